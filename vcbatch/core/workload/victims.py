"""Which pods of a ReplicaSet are deleted first when it has too many (kubernetes `controller.ActivePodsWithRanks`)."""

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
    """`count` of the active `pods`: first those that aren't placed, running or ready, then those with the lowest
    deletion cost, then those on the nodes with most `neighbours`, then those that became ready last, restarted most
    often, or are the youngest. `neighbours`: the number of pods of the same Deployment by node."""

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
    """The deletion cost in the pod's annotation; a malformed one counts as 0."""
    text = (pod.metadata.annotations or {}).get(names.POD_DELETION_COST, "")
    try:
        cost = int(text) if len(text) < 12 else 0
    except ValueError:
        return 0
    return cost if -_LARGEST_COST - 1 <= cost <= _LARGEST_COST else 0


def _created(pod: Pod) -> datetime | None:
    return parse_time(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else None


def _age(since: datetime | None, now: datetime) -> int:
    """The age by order of magnitude, so that not always the pods created last are deleted."""
    return 0 if since is None else max(int((now - since).total_seconds()), 0).bit_length()
