"""The decision of one reconciliation of a Job, by its standing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from vcbatch.api import names
from vcbatch.api.batch_job import BatchJob, ConditionType
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import BatchJobReason
from vcbatch.api.resources import BATCH_JOBS, PODS
from vcbatch.api.timestamps import parse_time
from vcbatch.core.batchjob.creation import creations
from vcbatch.core.batchjob.ledger import Ending, Ledger, Seen, book, seen, settled_ledger
from vcbatch.core.batchjob.plan import MOST_AT_ONCE, plan_pods
from vcbatch.core.batchjob.pods import is_tracked
from vcbatch.core.batchjob.status import StatusDraft
from vcbatch.core.batchjob.verdict import deadline_of, judge
from vcbatch.core.batchjob.view import BatchJobView
from vcbatch.core.machine import Create, Decision, Delete, Emit, EventType, Mark, ref_of
from vcbatch.core.workload.ownership import (
    Claimed,
    Owner,
    claim,
    controller_uid,
    mark_of,
    with_finalizer,
    without_finalizer,
)
from vcbatch.core.workload.pods import is_active, is_over


class Standing(StrEnum):
    """The state of a Job. It follows from the spec and the conditions alone, so that it survives restarts of the
    controller."""

    FOREIGN = "Foreign"
    """Another controller manages the Job."""
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    FAILING = "Failing"
    """It has failed, and its remaining pods are being ended."""
    SUCCEEDING = "Succeeding"
    """It has succeeded, and its remaining pods are being ended."""
    FINISHED = "Finished"
    DELETING = "Deleting"


class Verb(StrEnum):
    """What a reconciliation does with the Job."""

    IGNORE = "Ignore"
    RUN = "Run"
    """Count ended pods, check whether the Job has failed or succeeded, and keep the desired number of pods."""
    PAUSE = "Pause"
    """As `RUN`, with no pods."""
    END = "End"
    """Delete active pods, count ended pods, and set the final condition once none is left."""
    LET_GO = "LetGo"
    """Count ended pods, and remove the tracking finalizer from all pods so that they can be deleted."""
    EXPIRE = "Expire"
    """Delete the Job when its time to live has expired."""


TABLE: Final[Mapping[Standing, Verb]] = {
    Standing.FOREIGN: Verb.IGNORE,
    Standing.FINISHED: Verb.EXPIRE,
    Standing.DELETING: Verb.LET_GO,
    Standing.SUCCEEDING: Verb.END,
    Standing.FAILING: Verb.END,
    Standing.SUSPENDED: Verb.PAUSE,
    Standing.RUNNING: Verb.RUN,
}
"""Of several standings that apply, the first one in the table counts."""


def owner_of(job: BatchJob) -> Owner:
    """The Job as owner of its pods. A finished Job adopts no pods, as if it were being deleted."""
    metadata = job.metadata
    over = job.status.end.last_transition_time if job.status.end is not None else None
    return Owner(
        resource=BATCH_JOBS,
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            deletion_timestamp=metadata.deletion_timestamp or over,
        ),
        selector=job.spec.selector,
        finalizer=names.POD_TRACKING,
    )


def standing_of(job: BatchJob) -> Standing:
    """The standing of the Job: the first of `TABLE` that applies."""
    status = job.status
    if job.managed_elsewhere:
        return Standing.FOREIGN
    if status.end is not None:
        return Standing.FINISHED
    if job.metadata.deletion_timestamp:
        return Standing.DELETING
    if status.true_condition(ConditionType.SUCCESS_CRITERIA_MET):
        return Standing.SUCCEEDING
    if status.true_condition(ConditionType.FAILURE_TARGET):
        return Standing.FAILING
    return Standing.SUSPENDED if job.suspended else Standing.RUNNING


def decide(view: BatchJobView, *, now: datetime) -> Decision:
    """The status that follows from the pods, and the pods to create, patch and delete."""
    return _DO[TABLE[standing_of(view.job)]](view, now)


def stray(pods: Iterable[Pod]) -> Decision:
    """Release the pods of a deleted Job: their finalizers are removed, since no controller counts the pods any more."""
    return Decision(marks=_untrack(pods))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """The Job's own pods, and the accounting of those that ended."""

    view: BatchJobView
    claimed: Claimed[Pod]
    draft: StatusDraft
    now_seen: Seen

    @property
    def job(self) -> BatchJob:
        return self.view.job

    @property
    def pods(self) -> Sequence[Pod]:
        return self.claimed.mine


def _ignore(_view: BatchJobView, _now: datetime) -> Decision:
    return Decision()


def _run(view: BatchJobView, now: datetime) -> Decision:
    job = view.job
    draft = StatusDraft(job, now=now)
    events: list[Emit] = []
    resumed = draft.put_condition(ConditionType.SUSPENDED, BatchJobReason.RESUMED, "Job resumed", status="False")
    if resumed:
        events.append(_event(job, BatchJobReason.RESUMED_EVENT, "Job resumed"))
    if resumed or not draft.start_time:
        draft.start()
    context = _look_at(view, draft)
    ended = _judged(context, now)
    if ended is not None:
        return ended
    plan = plan_pods(view, context.pods, context.now_seen, now=now)
    removals = _removals(context, plan.remove)
    creates = list(
        creations(owner_of(job), job, plan.create, context.now_seen, taken=view.taken, started=draft.start_time)
    )
    due = deadline_of(job)
    requeue = [at for at in (due, plan.wait_until) if at is not None]
    return replace(
        removals,
        creates=creates,
        events=[*_stored(events, removals), *removals.events, *(_created(job, create) for create in creates)],
        requeue_at=min(requeue, default=None),
    )


def _pause(view: BatchJobView, now: datetime) -> Decision:
    job = view.job
    draft = StatusDraft(job, now=now)
    context = _look_at(view, draft)
    ended = _judged(context, now)
    if ended is not None:
        return ended
    events: list[Emit] = []
    if draft.put_condition(ConditionType.SUSPENDED, BatchJobReason.SUSPENDED, "Job suspended"):
        events.append(_event(job, BatchJobReason.SUSPENDED_EVENT, "Job suspended"))
        draft.pause()
    removals = _removals(context, [pod for pod in context.pods if is_active(pod)][:MOST_AT_ONCE])
    return replace(removals, events=[*_stored(events, removals), *removals.events])


def _end(view: BatchJobView, now: datetime) -> Decision:
    """A Job ends only after all of its pods have: until then they use resources, and their results are unknown."""
    context = _look_at(view, StatusDraft(view.job, now=now))
    success = view.job.status.true_condition(ConditionType.SUCCESS_CRITERIA_MET)
    ending = Ending.SUCCESS if success else Ending.FAILURE
    ledger = settled_ledger(view.job, context.pods)
    if not ledger.settled or any(is_tracked(pod) or not is_over(pod) for pod in context.pods):
        return _stop(context, ending)
    return _conclude(context, ledger)


def _conclude(context: _Context, ledger: Ledger) -> Decision:
    """The final status, with the reason that the announcing condition has."""
    status = context.job.status
    context.draft.book(ledger)
    events: list[Emit] = []
    if success := status.true_condition(ConditionType.SUCCESS_CRITERIA_MET):
        context.draft.put_condition(ConditionType.COMPLETE, success.reason, success.message)
        context.draft.complete()
        events = _completed(context.job, ledger.succeeded)
    elif failure := status.true_condition(ConditionType.FAILURE_TARGET):
        context.draft.put_condition(ConditionType.FAILED, failure.reason, failure.message)
        events = [_warned(context.job, failure.reason, failure.message)]
    return Decision(status=context.draft.write(), events=events)


def _let_go(view: BatchJobView, now: datetime) -> Decision:
    """Release the pods of a deleted Job. Its deletion either deletes them too or orphans them."""
    context = _look_at(view, StatusDraft(view.job, now=now))
    return _counted(context, ending=Ending.DELETION)


def _expire(view: BatchJobView, now: datetime) -> Decision:
    job = view.job
    left = _untrack(_claimed(job, view.pods).mine)
    end, ttl = job.status.end, job.spec.ttl_seconds_after_finished
    if end is None or ttl is None or job.metadata.deletion_timestamp:
        return Decision(marks=left)
    try:
        due = parse_time(end.last_transition_time or "") + timedelta(seconds=ttl)
    except (ValueError, OverflowError):
        return Decision(marks=left)  # the time of its end is unknown, so it never expires
    if now < due:
        return Decision(marks=left, requeue_at=due)
    return Decision(marks=left, deletes=[Delete(ref=ref_of(BATCH_JOBS, job), propagation="Foreground")])


_DO: Final[Mapping[Verb, Callable[[BatchJobView, datetime], Decision]]] = {
    Verb.IGNORE: _ignore,
    Verb.RUN: _run,
    Verb.PAUSE: _pause,
    Verb.END: _end,
    Verb.LET_GO: _let_go,
    Verb.EXPIRE: _expire,
}


def _look_at(view: BatchJobView, draft: StatusDraft) -> _Context:
    claimed = _claimed(view.job, view.pods)
    draft.count(claimed.mine)
    now_seen = seen(view.job, claimed.mine, settled_ledger(view.job, claimed.mine))
    return _Context(view=view, claimed=claimed, draft=draft, now_seen=now_seen)


def _claimed(job: BatchJob, pods: Iterable[Pod]) -> Claimed[Pod]:
    return claim(owner_of(job), PODS, pods, lambda pod: pod.metadata)


def _judged(context: _Context, now: datetime) -> Decision | None:
    """The announcement that the Job ends, where a rule says so; None otherwise."""
    verdict = judge(context.job, context.pods, context.now_seen, now=now)
    if verdict is None:
        return None
    context.draft.put_condition(verdict.type, verdict.reason, verdict.message)
    failed = verdict.type is ConditionType.FAILURE_TARGET
    return _stop(context, Ending.FAILURE if failed else Ending.SUCCESS)


def _stop(context: _Context, ending: Ending) -> Decision:
    """Announce the end and delete active pods. The status is written first, so that after a crash between any two
    writes the remaining steps follow."""
    deletes = [Delete(ref=ref_of(PODS, pod.metadata)) for pod in context.pods if is_active(pod)]
    return replace(
        _counted(context, ending=ending),
        deletes=deletes,
        events=[_deleted(context.job, delete) for delete in deletes],
    )


def _removals(context: _Context, pods: Sequence[Pod]) -> Decision:
    """Delete surplus pods without counting them: their finalizers are removed before the deletion, unless the pods have
    ended since. Other active pods that lack the finalizer, after a crash or because a user removed it, get it back."""
    removed = {pod.metadata.uid for pod in pods}
    again = [
        mark_of(PODS, pod.metadata, {"finalizers": with_finalizer(pod.metadata, names.POD_TRACKING)})
        for pod in context.pods
        if _runs_untracked(pod) and pod.metadata.uid not in removed
    ]
    counted = _counted(context, ending=None)
    deletes = [Delete(ref=ref_of(PODS, pod.metadata)) for pod in pods]
    return replace(
        counted,
        marks=[*counted.marks, *again, *_untrack(pods)],
        deletes=deletes,
        events=[_deleted(context.job, delete) for delete in deletes],
    )


def _runs_untracked(pod: Pod) -> bool:
    """Whether the pod is active without the finalizer. Orphans are excluded: they get it on adoption."""
    return is_active(pod) and not is_tracked(pod) and bool(controller_uid(pod.metadata))


def _counted(context: _Context, *, ending: Ending | None) -> Decision:
    ledger = settled_ledger(context.job, context.pods)
    booking = book(context.job, context.pods, ledger, context.now_seen, ending=ending)
    context.draft.book(booking.ledger)
    return Decision(status=context.draft.write(), marks=[*context.claimed.marks, *_untrack(booking.freed)])


def _stored(events: Iterable[Emit], decision: Decision) -> list[Emit]:
    """The events, emitted as soon as the status is stored, whether or not the writes to pods succeed."""
    return [replace(event, after=decision.status) for event in events]


def _untrack(pods: Iterable[Pod]) -> list[Mark]:
    return [
        mark_of(PODS, pod.metadata, {"finalizers": without_finalizer(pod.metadata, names.POD_TRACKING)})
        for pod in pods
        if is_tracked(pod)
    ]


def _completed(job: BatchJob, succeeded: int) -> list[Emit]:
    events = [_event(job, BatchJobReason.COMPLETED_EVENT, "Job completed")]
    if job.spec.completions is not None and succeeded > job.spec.completions:
        text = "Too many succeeded pods running after completion count reached"
        events.insert(0, _warned(job, BatchJobReason.TOO_MANY_SUCCEEDED_PODS, text))
    return events


def _created(job: BatchJob, create: Create) -> Emit:
    text = f"Created pod: {create.body['metadata']['name']}"
    return _event(job, BatchJobReason.SUCCESSFUL_CREATE, text, after=create)


def _deleted(job: BatchJob, delete: Delete) -> Emit:
    return _event(job, BatchJobReason.SUCCESSFUL_DELETE, f"Deleted pod: {delete.ref.name}", after=delete)


def _event(job: BatchJob, reason: BatchJobReason, message: str, *, after: Create | Delete | None = None) -> Emit:
    return Emit(ref=ref_of(BATCH_JOBS, job), type=EventType.NORMAL, reason=reason, message=message, after=after)


def _warned(job: BatchJob, reason: str, message: str) -> Emit:
    return Emit(ref=ref_of(BATCH_JOBS, job), type=EventType.WARNING, reason=reason, message=message)
