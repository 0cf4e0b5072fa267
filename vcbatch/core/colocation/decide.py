"""The decision of one reconciliation of a pod with the ColocationConfigurations of its namespace."""

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
    """An unfinished pod, and the configurations of its namespace."""

    pod: ObjectMeta
    configurations: Sequence[ColocationConfiguration] = ()


def decide(view: ColocationView) -> Decision:
    """Record the newest configuration that selects the pod on it. Where no configuration selects it any more, an empty
    one is recorded, since the node agent would otherwise keep the last one."""
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
    # The name breaks ties between configurations of the same second, so that all reconciliations choose the same.
    by_name = sorted(selecting, key=lambda each: each.name)
    return max(by_name, key=lambda each: each.metadata.creation_timestamp or "", default=None)


def _text(configuration: ColocationConfiguration) -> str:
    qos = configuration.spec.memory_qos
    if qos is None:
        return _NOTHING
    filled: dict[str, Any] = MemoryQos().model_dump(by_alias=True) | qos.dump()
    return json.dumps({"memoryQos": filled}, separators=(",", ":"), sort_keys=True)
