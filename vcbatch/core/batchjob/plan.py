"""Which pods a Job still needs, and which are surplus."""

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
"""The maximum of pods that one reconciliation creates or deletes, so that other Jobs are reconciled in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`create` has an index for each pod to create, None where the Job isn't Indexed. One reconciliation either deletes
    pods or creates pods. `wait_until`: when more pods may be created."""

    remove: Sequence[Pod] = ()
    create: Sequence[int | None] = ()
    wait_until: datetime | None = None


def plan_pods(view: BatchJobView, pods: Sequence[Pod], now_seen: Seen, *, now: datetime) -> Plan:
    """The pods to create or delete, so that there are as many as `parallelism` allows and `completions` still needs."""
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
        # After the first success the running pods may end, and no new ones are created.
        return active if now_seen.succeeded else job.parallelism
    return max(0, min(job.spec.completions - now_seen.succeeded, job.parallelism))


def _surplus(job: BatchJob, active: Sequence[Pod], *, keep: int) -> list[Pod]:
    """The pods beyond `keep`, duplicates for an index, and pods without an index of the Job."""
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
    """The lowest indexes whose backoff is over. An index that waits for a retry doesn't block higher ones."""
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
