"""Which pods a Job needs now, and which it has too many of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from typing import Final

from vcbatch.api.batch_job import BatchJob
from vcbatch.api.pod import Pod
from vcbatch.core.batchjob.indexes import Indexes
from vcbatch.core.batchjob.ledger import Seen
from vcbatch.core.batchjob.pods import by_index, by_worth, index_in
from vcbatch.core.batchjob.tries import next_try, next_try_of_index
from vcbatch.core.batchjob.view import BatchJobView
from vcbatch.core.workload.pods import is_active, is_terminating

MOST_AT_ONCE: Final = 500
"""Pods that are made or removed after one look, so that other Jobs have their turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`create` has an index for each pod to make, None where the Job isn't Indexed. In one look there are either pods
    to remove or pods to make. `wait_until`: when more may be made than now."""

    remove: Sequence[Pod] = ()
    create: Sequence[int | None] = ()
    wait_until: datetime | None = None


def plan_pods(view: BatchJobView, pods: Sequence[Pod], now_seen: Seen, *, now: datetime) -> Plan:
    """As many pods as `parallelism` allows and `completions` still asks for."""
    job = view.job
    active = [pod for pod in pods if is_active(pod)]
    wanted = _wanted(job, len(active), now_seen)
    surplus = _surplus(job, active, keep=wanted)
    if surplus:
        return Plan(remove=surplus[:MOST_AT_ONCE])
    leaving = [pod for pod in pods if is_terminating(pod)] if job.replaces_ended_only else []
    missing = min(wanted - len(active) - len(leaving), MOST_AT_ONCE)
    if missing <= 0:
        return Plan()
    if not job.counts_per_index:
        due = next_try(view, pods)
        if due is not None and due > now:
            return Plan(wait_until=due)
    return _chosen(missing, _open_indexes(job, [*active, *leaving], now_seen), now_seen, now=now)


def _wanted(job: BatchJob, active: int, now_seen: Seen) -> int:
    if job.spec.completions is None:
        # After the first success those that run may end, and there are no new ones.
        return active if now_seen.succeeded else job.parallelism
    return max(0, min(job.spec.completions - now_seen.succeeded, job.parallelism))


def _surplus(job: BatchJob, active: Sequence[Pod], *, keep: int) -> list[Pod]:
    """The pods beyond `keep`, and all that are second for their index or have none of the Job's."""
    surplus: list[Pod] = []
    left: list[Pod] = [] if job.indexed else list(active)
    if job.indexed:
        for index, members in by_index(active).items():
            ranked = by_worth(members)
            stays = 1 if index is not None and index < job.indices else 0
            surplus += ranked[: len(ranked) - stays]
            left += ranked[len(ranked) - stays :]
    excess = len(active) - keep - len(surplus)
    return surplus + (by_worth(left)[:excess] if excess > 0 else [])


def _open_indexes(job: BatchJob, present: Sequence[Pod], now_seen: Seen) -> Iterator[int | None]:
    if not job.indexed:
        return repeat(None)
    taken = Indexes.of(index for index in (index_in(pod, job) for pod in present) if index is not None)
    return (now_seen.completed | now_seen.failed_indexes | taken).missing(job.indices)


def _chosen(count: int, indexes: Iterator[int | None], now_seen: Seen, *, now: datetime) -> Plan:
    """The lowest indexes whose time has come. One that waits for its next try doesn't hold up those behind it."""
    create: list[int | None] = []
    waits: list[datetime] = []
    for index in indexes:
        due = next_try_of_index(now_seen.held.get(index)) if index is not None else None
        if due is not None and due > now:
            waits.append(due)
        else:
            create.append(index)
            if len(create) == count:
                break
    return Plan(create=create, wait_until=min(waits, default=None))
