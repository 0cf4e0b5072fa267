"""The reason for a job's phase, in its status and in events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from vcbatch.api import messages
from vcbatch.api.host_lists import left_out
from vcbatch.api.job import Action, JobPhase, PodLoss
from vcbatch.api.reasons import BEFORE_MISSING, BESIDE_MISSING, JobReason, LossCause
from vcbatch.api.timestamps import format_time
from vcbatch.core.job import events, overdue
from vcbatch.core.job.causes import Failure, describe
from vcbatch.core.job.commands import Inbox
from vcbatch.core.job.context import JobContext, Stimulus
from vcbatch.core.job.counts import Counts
from vcbatch.core.job.policies import Verdict
from vcbatch.core.job.references import reported_missing
from vcbatch.core.job.status import Explanation, explanation_of
from vcbatch.core.machine import Emit

_PASSING: Final = frozenset(
    {
        JobReason.PVC_ERROR,
        JobReason.OBJECTS_MISSING,
        JobReason.FAILED_CREATE,
        JobReason.PLUGIN_ERROR,
        JobReason.POD_TERMINATING,
        JobReason.UNSUPPORTED,
    }
)
"""Reasons of a running job that are removed once they don't apply any more."""


def explain(
    context: JobContext, stimulus: Stimulus, phase: JobPhase, *, entered: bool, exhausted: bool, counts: Counts
) -> tuple[Explanation, list[Emit]]:
    """The reason for the phase, and the events about it when it has changed."""
    job = context.view.job
    stored = explanation_of(job)
    if exhausted:
        failed = Explanation(JobReason.RETRIES_EXHAUSTED, _retries_exhausted(context, stimulus))
        return failed, [events.warning(job, JobReason.RETRIES_EXHAUSTED, failed.message)]
    if phase is JobPhase.PENDING:
        return _with_missing(context, stored, *_explain_waiting(context, stored))
    if not entered and phase is JobPhase.RUNNING:
        return _with_missing(context, stored, *_explain_going_on(context, stored))
    if not entered:
        return _explain_going_on(context, stored)
    if phase is JobPhase.FAILED:
        return Explanation(JobReason.POD_FAILED, _how_it_failed(context, counts)), []
    if phase is JobPhase.ABORTED and stimulus.action is Action.SYNC_JOB and context.phase is JobPhase.ABORTED:
        return Explanation(JobReason.EXECUTE_ACTION, "the phase was set to Aborted from outside"), []
    if stimulus.action is Action.SYNC_JOB:
        keep = phase not in (JobPhase.RUNNING, JobPhase.COMPLETED) or context.phase is JobPhase.COMPLETING
        return (_began(stored) if keep else Explanation()), []
    message = messages.executing(action=stimulus.action, cause=stimulus.cause)
    return Explanation(stimulus.reason, message), []


def _with_missing(
    context: JobContext, stored: Explanation, why: Explanation, reported: Iterable[Emit]
) -> tuple[Explanation, list[Emit]]:
    """Missing objects that pods name precede every other reason: the job can't start before they exist. An error of the
    server, about them or anything else, is appended and keeps its reason."""
    missing = reported_missing(context)
    if not missing or why.reason in BEFORE_MISSING:
        return why, [*reported]
    beside = why.message if why.reason in BESIDE_MISSING else ""
    found = Explanation(
        JobReason(why.reason) if beside else JobReason.OBJECTS_MISSING,
        messages.shorten("; ".join(filter(None, (missing, beside)))),
    )
    news = [] if missing in stored.message else [events.warning(context.view.job, JobReason.OBJECTS_MISSING, missing)]
    return found, [*news, *(event for event in reported if event.reason != JobReason.POD_GROUP_PENDING)]


def _retries_exhausted(context: JobContext, stimulus: Stimulus) -> str:
    """The message about used-up retries. The refused restart has been counted; the message counts only the restarts
    that took place."""
    if stimulus.infrastructure:
        retries = context.ledger.infrastructure_retries - 1
        return messages.infrastructure_retries_exhausted(cause=stimulus.cause, retries=retries)
    return messages.retries_exhausted(cause=stimulus.cause, max_retry=context.plan.max_retry)


def _uncreated(context: JobContext) -> Explanation | None:
    """Why wanted pods don't exist; None where no error is known. The executor that got the error emits the event."""
    if context.view.refusal:
        return Explanation(JobReason.FAILED_CREATE, messages.shorten(context.view.refusal))
    errors = list(filter(None, (*context.plugin_errors, context.blocked.message, context.view.child_refusal)))
    if errors:
        return Explanation(JobReason.PLUGIN_ERROR, messages.shorten("; ".join(errors)))
    return None


def _blocked(context: JobContext, stored: Explanation) -> Iterable[Emit]:
    """The event about plugin objects that can't be created, where its message is new."""
    if context.blocked.message and context.blocked.message not in stored.message:
        yield events.warning(context.view.job, JobReason.PLUGIN_ERROR, context.blocked.message)


def _explain_waiting(context: JobContext, stored: Explanation) -> tuple[Explanation, list[Emit]]:
    view = context.view
    if view.queue is None:
        missing = Explanation(JobReason.QUEUE_NOT_FOUND, f"queue {context.plan.queue!r} doesn't exist")
        news = [events.warning(view.job, JobReason.QUEUE_NOT_FOUND, missing.message)] if missing != stored else []
        return missing, news
    if context.held_pending and context.hold is not None:
        return _explain_hold(context, Explanation(context.hold.reason, context.hold.message), stored)
    ledger = context.ledger
    if ledger.not_before is not None:
        message = messages.backing_off(losses=ledger.infrastructure_retries, until=format_time(ledger.not_before))
        return Explanation(JobReason.BACK_OFF, message), []
    if context.without_claims:
        return _explain_claims(context, stored)
    if view.group_refusal:
        return Explanation(JobReason.POD_GROUP_ERROR, messages.shorten(view.group_refusal)), []
    if trouble := _uncreated(context):
        return trouble, [*_blocked(context, stored)]  # precedes the rest, since the gang can't be complete without them
    if not _can_be_whole(context) and (trouble := _terminating(context)):
        return trouble, []
    trouble = events.pod_group_trouble(view.pod_group)
    if trouble is None:
        return _held_up(context) or _terminating(context), []
    if trouble == stored:
        return stored, []
    return trouble, [events.pod_group_pending(view.job, trouble)]


def _explain_hold(context: JobContext, held: Explanation, stored: Explanation) -> tuple[Explanation, list[Emit]]:
    """Why the job may not start yet, with an event where it needs a user."""
    needs_user = held.reason in (JobReason.DEPENDENCY_NEVER_SATISFIED, JobReason.DEPENDENCY_NOT_FOUND)
    reported = needs_user and held != stored
    return held, [events.warning(context.view.job, JobReason(held.reason), held.message)] if reported else []


def _explain_going_on(context: JobContext, stored: Explanation) -> tuple[Explanation, list[Emit]]:
    """The reason of a job that runs, and that may lack a member whose volumes are unavailable."""
    if context.without_claims:
        return _explain_claims(context, stored)
    if overdue.drains(context.phase):
        began, wait = _began(stored), overdue.waited_for(context)
        return (replace(began, message=messages.and_waits(began.message, wait)) if wait else began), []
    if context.phase is JobPhase.RUNNING:
        if trouble := _uncreated(context):
            return trouble, [*_blocked(context, stored)]
        if trouble := _terminating(context):
            return trouble, []
    return (Explanation() if stored.reason in _PASSING else stored), []


def _began(stored: Explanation) -> Explanation:
    """The reason that started a phase in which pods are waited for, without the names of those pods."""
    return replace(stored, message=messages.without_wait(stored.message))


def _can_be_whole(context: JobContext) -> bool:
    """Whether enough pods exist that aren't being deleted."""
    return sum(not member.terminating for member in context.roster.placed()) >= context.plan.min_available


def _terminating(context: JobContext) -> Explanation:
    """Pods that can't be created yet, since the deletion of their predecessors is overdue."""
    wait = overdue.waited_for(context)
    return Explanation(JobReason.POD_TERMINATING, messages.shorten(wait)) if wait else Explanation()


def _explain_claims(context: JobContext, stored: Explanation) -> tuple[Explanation, list[Emit]]:
    missing = Explanation(JobReason.PVC_ERROR, messages.shorten(context.without_claims))
    # The executor that gets the server's error emits the event.
    reported = missing.message in stored.message or context.without_claims == context.view.claim_refusal
    return missing, [] if reported else [events.warning(context.view.job, JobReason.PVC_ERROR, missing.message)]


def _held_up(context: JobContext) -> Explanation:
    """What keeps a container of a placed pod from starting; the pod's own events report it too. A container without a
    message is just being created."""
    for member in sorted(context.roster.placed(), key=lambda member: member.pod.metadata.name):
        status = member.pod.status
        for container in (*(status.init_container_statuses or ()), *(status.container_statuses or ())):
            waiting = container.state.waiting if container.state is not None else None
            if waiting is not None and waiting.message:
                where = f"container {container.name} of pod {member.pod.metadata.name}"
                why = messages.shorten(f"{where} can't start: {waiting.reason}: {waiting.message}")
                return Explanation(JobReason.POD_NOT_STARTED, why)
    return _waits_for_others(context)


def _waits_for_others(context: JobContext) -> Explanation:
    """The tasks that wait, and the tasks that they wait for, where dependsOn is why the job waits."""
    waiting = [f"task {name} waits for {' and '.join(others)}" for name, others in context.held.waiting.items()]
    if not waiting:
        return Explanation()
    return Explanation(JobReason.DEPENDENCY_NOT_READY, messages.shorten("; ".join(waiting)))


def _how_it_failed(context: JobContext, counts: Counts) -> str:
    outcome = f"{counts.succeeded} of {context.plan.replicas} pods succeeded and {counts.failed} failed"
    if counts.blocked:
        outcome = f"{outcome}, {counts.blocked} could never start ({' and '.join(sorted(context.held.never))})"
    lost = [loss for loss in context.ledger.losses if loss.version >= context.ledger.version - 1]
    return messages.shorten(f"{_reported_again(lost[0])}; {outcome}" if lost else outcome)


def _reported_again(loss: PodLoss) -> str:
    """A loss in the ledger, in the words of its event."""
    failure = Failure(
        cause=next((cause for cause in LossCause if cause == loss.cause), LossCause.FAILED),
        exit_codes=() if loss.exit_code is None else (loss.exit_code,),
        reason=loss.reason,
        signal=loss.signal or 0,
        message=loss.message,
    )
    return describe(pod=loss.pod, failure=failure, node=loss.node)


def report(context: JobContext, stimulus: Stimulus, inbox: Inbox, verdict: Verdict, *, acted: bool) -> Iterable[Emit]:
    """The other events of this reconciliation. `acted`: the stimulus changed something, or a user requested it."""
    job = context.view.job
    if context.fresh:
        for error in context.plugins.errors:
            yield events.warning(job, JobReason.PLUGIN_ERROR, error)
        if why := left_out(job.spec, job.name):
            yield events.warning(job, JobReason.HOSTS_IN_FILES_ONLY, why)
    for error in context.plugin_errors:
        if error not in explanation_of(job).message:
            yield events.warning(job, JobReason.PLUGIN_ERROR, error)
    yield from events.losses(job, context.losses)
    for why in inbox.rejected:
        yield events.warning(job, JobReason.COMMAND_REJECTED, why)
    if inbox.order is not None:
        yield events.command_issued(job, inbox.order[1])
    yield from events.delayed(job, verdict.delayed)
    if acted and stimulus.action is not Action.SYNC_JOB:
        yield events.executing(job, stimulus.action, stimulus.cause)
