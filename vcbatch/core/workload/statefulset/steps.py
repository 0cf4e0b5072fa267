"""Which pods of a StatefulSet are created and deleted next (kubernetes `pkg/controller/statefulset`).

In order: a pod is created when all before it are available, and deleted when all after it are deleted. An update
replaces them from the last to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from vcbatch.api.apps import RollingUpdate, StatefulSet, StrategyType
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.core.workload.allowance import share_of
from vcbatch.core.workload.pods import is_available, is_over, is_ready
from vcbatch.core.workload.statefulset.view import (
    Row,
    first_ordinal,
    in_order,
    replicas_of,
    revision_label,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """`make`: the ordinals of the pods to create."""

    make: Sequence[int] = ()
    delete: Sequence[Pod] = ()


def is_running_and_ready(pod: Pod) -> bool:
    return pod.status.phase == PodPhase.RUNNING and is_ready(pod)


def next_steps(
    stateful_set: StatefulSet, row: Row, update: str, startable: Callable[[int], bool], *, now: datetime
) -> Steps:
    """`update`: the name of the revision with the present template. `startable`: whether a pod's claims are
    available."""
    waits = in_order(stateful_set)
    made: list[int] = []
    deleted: list[Pod] = []
    for ordinal, pod in row.seats.items():
        if pod is not None and is_over(pod):
            if pod.metadata.deletion_timestamp is None:
                deleted.append(pod)
            blocked = True
        elif pod is None:
            if startable(ordinal):
                made.append(ordinal)
            blocked = True
        else:
            blocked = not _serves(stateful_set, pod, now)
        if blocked and waits:
            return Steps(make=made, delete=deleted)
    first_down = _first_down(stateful_set, row, now)
    for pod in row.condemned:
        # A pod that isn't available is deleted only where no pod before it is unavailable.
        free = not waits or _serves(stateful_set, pod, now) or pod is first_down
        if free and pod.metadata.deletion_timestamp is None:
            deleted.append(pod)
        if waits:
            return Steps(make=made, delete=deleted)
    if stateful_set.spec.update_strategy.type == StrategyType.ON_DELETE:
        return Steps(make=made, delete=deleted)
    replaced = _replaced(stateful_set, row, update, now)
    return Steps(make=made, delete=[*deleted, *(pod for pod in replaced if pod not in deleted)])


def of_the_old_revision(stateful_set: StatefulSet, ordinal: int) -> bool:
    """Whether a pod of that ordinal keeps the revision from before the update."""
    rolling = stateful_set.spec.update_strategy.rolling_update
    rolls = stateful_set.spec.update_strategy.type == StrategyType.ROLLING_UPDATE
    partition = (rolling.partition or 0) if rolling is not None and rolls else 0
    return ordinal < first_ordinal(stateful_set) + partition


def _serves(stateful_set: StatefulSet, pod: Pod, now: datetime) -> bool:
    return (
        pod.metadata.deletion_timestamp is None
        and is_running_and_ready(pod)
        and is_available(pod, stateful_set.spec.min_ready_seconds, now=now)
    )


def _first_down(stateful_set: StatefulSet, row: Row, now: datetime) -> Pod | None:
    """The pod with the lowest ordinal that isn't available."""
    for pod in [*row.seats.values(), *reversed(row.condemned)]:
        if pod is not None and not _serves(stateful_set, pod, now):
            return pod
    return None


def _replaced(stateful_set: StatefulSet, row: Row, update: str, now: datetime) -> list[Pod]:
    """The pods of another revision to replace, from the last to the first, as long as few enough are unavailable."""
    rolling = stateful_set.spec.update_strategy.rolling_update or RollingUpdate()
    start = first_ordinal(stateful_set)
    top_down = [(ordinal, row.seats[ordinal]) for ordinal in sorted(row.seats, reverse=True)]
    due = [(ordinal, pod) for ordinal, pod in top_down if ordinal >= start + (rolling.partition or 0)]
    down = [pod for _, pod in top_down if pod is None or not _serves(stateful_set, pod, now)]
    found: list[Pod] = []
    if rolling.max_unavailable is not None:
        room = max(share_of(rolling.max_unavailable, replicas_of(stateful_set), up=False), 1) - len(down)
        outdated = [pod for _, pod in due if pod is not None and _is_outdated(pod, update)]
        return outdated[: max(room, 0)]
    for _, pod in due:
        if pod is not None and _is_outdated(pod, update):
            found.append(pod)
            break
        if pod in down:
            break
    return found


def _is_outdated(pod: Pod, update: str) -> bool:
    return revision_label(pod) != update and pod.metadata.deletion_timestamp is None
