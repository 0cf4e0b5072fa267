"""The snapshot on which a StatefulSet is decided, with its pods by ordinal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.apps import ControllerRevision, PodManagement, StatefulSet
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.model import Json
from vcbatch.api.pod import Pod
from vcbatch.api.resources import STATEFULSETS
from vcbatch.api.storage import Claim
from vcbatch.core.workload.ownership import Owner

_NUMBERED: Final = re.compile(r"(.*)-([0-9]{1,10})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatefulSetView:
    """`pods` and `revisions`: those it controls, and those of its namespace without a controller."""

    stateful_set: StatefulSet
    status: Json = field(default_factory=dict[str, Any])
    """Its status as stored."""
    pods: Sequence[Pod] = ()
    revisions: Sequence[ControllerRevision] = ()
    claim: Callable[[str], Claim | None] = lambda _name: None
    """The claim of that name in its namespace."""
    taken: Callable[[str], bool] = lambda _name: False
    """Whether a ControllerRevision with that name exists in its namespace."""
    free_at: Callable[[str], datetime | None] = lambda _name: None
    """When a pod may be created under that name again, after a pod that had it; None where it may be now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`seats` are the wanted ordinals, ascending, with their pods; `condemned` are the pods beyond, the last first."""

    seats: Mapping[int, Pod | None]
    condemned: Sequence[Pod]

    @property
    def pods(self) -> Sequence[Pod]:
        """Every pod: the wanted ones by ordinal, then the condemned."""
        return [*(pod for pod in self.seats.values() if pod is not None), *self.condemned]


def stateful_set_owner(stateful_set: StatefulSet) -> Owner:
    return Owner(resource=STATEFULSETS, metadata=stateful_set.metadata, selector=stateful_set.spec.selector)


def ordinal_of(stateful_set: StatefulSet, metadata: ObjectMeta) -> int | None:
    """The ordinal of the pod with that name; None where no pod of the StatefulSet has it."""
    found = _NUMBERED.fullmatch(metadata.name)
    if found is None or found[1] != stateful_set.metadata.name or str(int(found[2])) != found[2]:
        return None
    return int(found[2])


def row_of(stateful_set: StatefulSet, pods: Sequence[Pod]) -> Row:
    """The pods by the ordinals in their names; pods with other names are left out."""
    start, count = first_ordinal(stateful_set), replicas_of(stateful_set)
    by_ordinal = {ordinal: pod for pod in pods if (ordinal := ordinal_of(stateful_set, pod.metadata)) is not None}
    wanted = range(start, start + count)
    beyond = sorted((ordinal for ordinal in by_ordinal if ordinal not in wanted), reverse=True)
    return Row(
        seats={ordinal: by_ordinal.get(ordinal) for ordinal in wanted},
        condemned=[by_ordinal[ordinal] for ordinal in beyond],
    )


def first_ordinal(stateful_set: StatefulSet) -> int:
    """The first ordinal; 0 where the spec doesn't set it."""
    return stateful_set.spec.ordinals.start if stateful_set.spec.ordinals is not None else 0


def replicas_of(stateful_set: StatefulSet) -> int:
    """The number of wanted pods: 1 where the spec doesn't set it."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def in_order(stateful_set: StatefulSet) -> bool:
    """Whether a pod waits for those before it."""
    return stateful_set.spec.pod_management_policy != PodManagement.PARALLEL


def revision_label(pod: Pod) -> str:
    """The name of the revision of the pod."""
    return (pod.metadata.labels or {}).get(names.REVISION_HASH, "")
