"""What follows from one look at a pod and the ColocationConfigurations of its namespace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.api import names
from vcbatch.api.colocation import ColocationConfiguration, MemoryQos
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.resources import PODS
from vcbatch.api.selectors import matches
from vcbatch.core.machine import Decision, Mark, ref_of

_NOTHING = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColocationView:
    """A pod that isn't over, and the configurations of its namespace."""

    pod: ObjectMeta
    configurations: Sequence[ColocationConfiguration] = ()


def decide(view: ColocationView) -> Decision:
    """The newest configuration that selects the pod is written on it. One that followed a configuration and doesn't
    any more is told so, since the node agent would go on with the last one."""
    held = view.pod.annotations or {}
    followed = _followed(view)
    if followed is not None:
        wanted: dict[str, str | None] = {
            names.COLOCATION_NAME: followed.name,
            names.COLOCATION: _text(followed),
        }
    elif names.COLOCATION_NAME in held:
        wanted = {names.COLOCATION_NAME: None, names.COLOCATION: _NOTHING}
    else:
        return Decision()
    changed = {key: value for key, value in wanted.items() if held.get(key) != value}
    if not changed:
        return Decision()
    metadata = view.pod
    ref = ref_of(PODS, metadata)
    return Decision(marks=[Mark(ref=ref, patch={"metadata": {"annotations": changed}})])


def _followed(view: ColocationView) -> ColocationConfiguration | None:
    selecting = [each for each in view.configurations if matches(each.spec.selector, view.pod.labels)]
    # Of two of the same second, the name decides, so that all looks come to the same.
    by_name = sorted(selecting, key=lambda each: each.name)
    return max(by_name, key=lambda each: each.metadata.creation_timestamp or "", default=None)


def _text(configuration: ColocationConfiguration) -> str:
    qos = configuration.spec.memory_qos
    if qos is None:
        return _NOTHING
    filled: dict[str, Any] = MemoryQos().model_dump(by_alias=True) | qos.dump()
    return json.dumps({"memoryQos": filled}, separators=(",", ":"), sort_keys=True)
