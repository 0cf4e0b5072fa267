"""Accounting of ended pods: each is counted exactly once. Counting has three steps, each of which may be repeated.

1. The pod's UID is written to `status.uncountedTerminatedPods` while it still has the tracking finalizer.
2. The finalizer is removed; until then no client can remove the pod.
3. The UID leaves the list and the count increases, in one write.

A pod that succeeded for an index needs no UID: the index itself is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from vcbatch.api.batch_job import BatchJob, FailureAction
from vcbatch.api.pod import Pod
from vcbatch.core.batchjob.indexes import Indexes
from vcbatch.core.batchjob.pods import (
    counts_for,
    ended_at,
    failures_before,
    has_failed,
    has_succeeded,
    ignored_before,
    index_in,
    is_tracked,
)
from vcbatch.core.batchjob.policies import failure_of, is_ignored
from vcbatch.core.workload.pods import is_active

MOST_UNCOUNTED: Final = 500
"""The maximum of UIDs in a status; they take 20 KB."""


class Ending(StrEnum):
    """The way in which a Job ends, whatever its pods do from now on."""

    FAILURE = "failure"
    SUCCESS = "success"
    DELETION = "deletion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """`succeeded` and `failed` are the counts; the UIDs are of pods that are yet to be added to them."""

    succeeded: int
    failed: int
    succeeded_uids: tuple[str, ...] = ()
    failed_uids: tuple[str, ...] = ()
    completed: Indexes = field(default_factory=Indexes)
    failed_indexes: Indexes = field(default_factory=Indexes)

    @property
    def settled(self) -> bool:
        """Whether every ended pod is in the counts."""
        return not self.succeeded_uids and not self.failed_uids


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The numbers of the Job's pods, including those that aren't in the ledger yet."""

    succeeded: int
    failed: int
    """The number of failures, without ignored ones."""
    completed: Indexes
    failed_indexes: Indexes
    held: Mapping[int, Pod]
    """The last failed pod of each index that is to be retried. Its annotations have the number of attempts, and it
    stays tracked until its successor's have it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """The ledger with the newly ended pods, and the pods that need no more tracking."""

    ledger: Ledger
    freed: Sequence[Pod]


def settled_ledger(job: BatchJob, pods: Iterable[Pod]) -> Ledger:
    """The ledger of the status, after step 3: UIDs of pods that are no longer tracked are turned into counts."""
    status = job.status
    uncounted = status.uncounted_terminated_pods
    tracked = {pod.metadata.uid for pod in pods if is_tracked(pod)}
    succeeded_uids = tuple(uid for uid in dict.fromkeys(uncounted.succeeded) if uid in tracked)
    failed_uids = tuple(uid for uid in dict.fromkeys(uncounted.failed) if uid in tracked)
    completed = Indexes.parse(status.completed_indexes, below=job.indices)
    return Ledger(
        succeeded=len(completed)
        if job.indexed
        else status.succeeded + len(set(uncounted.succeeded)) - len(succeeded_uids),
        failed=status.failed + len(set(uncounted.failed)) - len(failed_uids),
        succeeded_uids=succeeded_uids,
        failed_uids=failed_uids,
        completed=completed,
        failed_indexes=Indexes.parse(status.failed_indexes or "", below=job.indices),
    )


def seen(job: BatchJob, pods: Sequence[Pod], ledger: Ledger) -> Seen:
    """The counts of the ledger together with the pods that are yet to be recorded in it."""
    fresh = [pod for pod in pods if is_tracked(pod) and counts_for(pod, job)]
    # A deleted pod that counts as failed may still succeed.
    succeeded = [pod for pod in fresh if has_succeeded(pod) and pod.metadata.uid not in ledger.failed_uids]
    failed = [pod for pod in fresh if has_failed(pod, job)]
    completed = ledger.completed | Indexes.of(_indices(succeeded, job))
    failed_indexes = ledger.failed_indexes
    if job.counts_per_index:
        failed_indexes |= Indexes.of(_indices([pod for pod in failed if _ends_index(pod, job)], job))
    new = [pod for pod in succeeded if pod.metadata.uid not in ledger.succeeded_uids]
    lost = [pod for pod in failed if pod.metadata.uid not in ledger.failed_uids and not is_ignored(pod, job)]
    return Seen(
        succeeded=len(completed) if job.indexed else ledger.succeeded + len(ledger.succeeded_uids) + len(new),
        failed=ledger.failed + len(ledger.failed_uids) + len(lost),
        completed=completed,
        failed_indexes=failed_indexes,
        held=_held(job, pods, failed, over=completed | failed_indexes) if job.counts_per_index else {},
    )


def book(job: BatchJob, pods: Sequence[Pod], ledger: Ledger, now_seen: Seen, *, ending: Ending | None) -> Booking:
    """Step 1 for all pods that can be released, up to `MOST_UNCOUNTED`; the finalizers of `freed` are to be removed
    next.

    Where the Job ends, all pods are released; where it fails, those that hadn't ended count as failed.
    """
    freed: list[Pod] = []
    succeeded, failed = list(ledger.succeeded_uids), list(ledger.failed_uids)
    done: set[int] = set()
    for pod in sorted(pods, key=lambda each: (index_in(each, job) or 0, each.metadata.name)):
        if not is_tracked(pod):
            continue
        lost = has_failed(pod, job)
        if not (ending or has_succeeded(pod) or (lost and not _is_held(pod, job, now_seen))):
            continue
        if len(done) + len(succeeded) + len(failed) >= MOST_UNCOUNTED:
            break
        freed.append(pod)
        uid, index = pod.metadata.uid, index_in(pod, job)
        if has_succeeded(pod) and uid not in failed:
            if index is not None and index not in ledger.completed:
                done.add(index)
            elif not job.indexed and uid not in succeeded:
                succeeded.append(uid)
        elif (lost or ending is Ending.FAILURE) and uid not in failed and _costs(pod, job):
            failed.append(uid)
    completed = ledger.completed | Indexes.of(done)
    booked = replace(
        ledger,
        succeeded=len(completed) if job.indexed else ledger.succeeded,
        succeeded_uids=tuple(succeeded),
        failed_uids=tuple(failed),
        completed=completed,
        failed_indexes=now_seen.failed_indexes,
    )
    return Booking(ledger=booked, freed=freed)


def failures_so_far(job: BatchJob, before: Pod | None) -> tuple[int, int]:
    """The number of counted failures of an index so far, and of ignored ones; its next pod is annotated with both."""
    if before is None:
        return 0, 0
    ignored = is_ignored(before, job)
    return failures_before(before) + (not ignored), ignored_before(before) + ignored


def _costs(pod: Pod, job: BatchJob) -> bool:
    return counts_for(pod, job) and not is_ignored(pod, job)


def _is_held(pod: Pod, job: BatchJob, now_seen: Seen) -> bool:
    index = index_in(pod, job)
    holder = now_seen.held.get(index) if index is not None else None
    return holder is not None and holder.metadata.uid == pod.metadata.uid


def _ends_index(pod: Pod, job: BatchJob) -> bool:
    """Whether the pod's index is not retried."""
    action = failure_of(pod, job).action
    if action is FailureAction.FAIL_INDEX:
        return True
    return action is not FailureAction.IGNORE and failures_before(pod) >= (job.spec.backoff_limit_per_index or 0)


def _held(job: BatchJob, pods: Iterable[Pod], failed: Iterable[Pod], *, over: Indexes) -> Mapping[int, Pod]:
    running = set(_indices((pod for pod in pods if is_active(pod)), job))
    held: dict[int, Pod] = {}
    for pod in sorted(failed, key=lambda each: (failures_before(each) + ignored_before(each), ended_at(each))):
        index = index_in(pod, job)
        if index is not None and index not in running and index not in over:
            held[index] = pod
    return held


def _indices(pods: Iterable[Pod], job: BatchJob) -> Iterable[int]:
    return (index for index in (index_in(pod, job) for pod in pods) if index is not None)
