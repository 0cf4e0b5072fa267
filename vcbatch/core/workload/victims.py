"""Which pods of a ReplicaSet go first when it has too many (kubernetes `controller.ActivePodsWithRanks`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from vcbatch.api import names
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.api.timestamps import parse_time
from vcbatch.core.workload.pods import ready_since

_PHASES: Final[Mapping[str, int]] = {PodPhase.PENDING: 0, PodPhase.UNKNOWN: 1, PodPhase.RUNNING: 2}
_LARGEST_COST: Final = 2**31 - 1


def victims(pods: Sequence[Pod], count: int, neighbours: Mapping[str, int], *, now: datetime) -> list[Pod]:
    """`count` of the active `pods`: first what serves least, then what is cheap to lose, then what shares its node
    with most of its kind, then the young. `neighbours`: how many pods of its kind each node has."""

    def order(pod: Pod) -> tuple[float | str | bool, ...]:
        since = ready_since(pod)
        restarts = max((status.restart_count for status in pod.status.container_statuses or ()), default=0)
        return (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase, 0),
            since is not None,
            _cost(pod),
            -neighbours.get(pod.spec.node_name, 0),
            _age(since, now),
            -restarts,
            _age(_created(pod), now),
            pod.metadata.uid,
        )

    return sorted(pods, key=order)[:count]


def _cost(pod: Pod) -> int:
    """What the pod says it costs to lose it; what can't be read counts as nothing."""
    text = (pod.metadata.annotations or {}).get(names.POD_DELETION_COST, "")
    try:
        cost = int(text) if len(text) < 12 else 0
    except ValueError:
        return 0
    return cost if -_LARGEST_COST - 1 <= cost <= _LARGEST_COST else 0


def _created(pod: Pod) -> datetime | None:
    return parse_time(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else None


def _age(since: datetime | None, now: datetime) -> int:
    """Ages of the same order of magnitude count as the same, so that not always the last ones made have to go."""
    return 0 if since is None else max(int((now - since).total_seconds()), 0).bit_length()
