"""Why a job is in its phase, in its status and in events."""

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
from vcbatch.core.job.counts import Counts
from vcbatch.core.job.picture import Picture, Stimulus
from vcbatch.core.job.policies import Verdict
from vcbatch.core.job.references import told_missing
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
"""Reasons of a running job that are over once nothing says them any more."""


def explain(
    picture: Picture, stimulus: Stimulus, phase: JobPhase, *, entered: bool, exhausted: bool, counts: Counts
) -> tuple[Explanation, list[Emit]]:
    """Why the job is in this phase, and the events that say so when it is news."""
    job = picture.view.job
    stored = explanation_of(job)
    if exhausted:
        failed = Explanation(JobReason.RETRIES_EXHAUSTED, _retries_exhausted(picture, stimulus))
        return failed, [events.warning(job, JobReason.RETRIES_EXHAUSTED, failed.message)]
    if phase is JobPhase.PENDING:
        return _with_missing(picture, stored, *_explain_waiting(picture, stored))
    if not entered and phase is JobPhase.RUNNING:
        return _with_missing(picture, stored, *_explain_going_on(picture, stored))
    if not entered:
        return _explain_going_on(picture, stored)
    if phase is JobPhase.FAILED:
        return Explanation(JobReason.POD_FAILED, _how_it_failed(picture, counts)), []
    if phase is JobPhase.ABORTED and stimulus.action is Action.SYNC_JOB and picture.phase is JobPhase.ABORTED:
        return Explanation(JobReason.EXECUTE_ACTION, "the phase was set to Aborted from outside"), []
    if stimulus.action is Action.SYNC_JOB:
        keep = phase not in (JobPhase.RUNNING, JobPhase.COMPLETED) or picture.phase is JobPhase.COMPLETING
        return (_began(stored) if keep else Explanation()), []
    message = messages.executing(action=stimulus.action, cause=stimulus.cause)
    return Explanation(stimulus.reason, message), []


def _with_missing(
    picture: Picture, stored: Explanation, why: Explanation, told: Iterable[Emit]
) -> tuple[Explanation, list[Emit]]:
    """What pods name and doesn't exist comes before every other reason: waiting doesn't help as long as it is so. What
    the server refuses, for that or for something else, is said after it and keeps its reason."""
    missing = told_missing(picture)
    if not missing or why.reason in BEFORE_MISSING:
        return why, [*told]
    beside = why.message if why.reason in BESIDE_MISSING else ""
    found = Explanation(
        JobReason(why.reason) if beside else JobReason.OBJECTS_MISSING,
        messages.shorten("; ".join(filter(None, (missing, beside)))),
    )
    news = [] if missing in stored.message else [events.warning(picture.view.job, JobReason.OBJECTS_MISSING, missing)]
    return found, [*news, *(event for event in told if event.reason != JobReason.POD_GROUP_PENDING)]


def _retries_exhausted(picture: Picture, stimulus: Stimulus) -> str:
    """The restart that wasn't made has been counted; the sentence is about those that were."""
    if stimulus.infrastructure:
        retries = picture.ledger.infrastructure_retries - 1
        return messages.infrastructure_retries_exhausted(cause=stimulus.cause, retries=retries)
    return messages.retries_exhausted(cause=stimulus.cause, max_retry=picture.plan.max_retry)


def _uncreated(picture: Picture) -> Explanation | None:
    """Why pods that are wanted aren't there. Told as an event by the one who was refused."""
    if picture.view.refusal:
        return Explanation(JobReason.FAILED_CREATE, messages.shorten(picture.view.refusal))
    faults = list(filter(None, (*picture.plugin_faults, picture.blocked.message, picture.view.child_refusal)))
    if faults:
        return Explanation(JobReason.PLUGIN_ERROR, messages.shorten("; ".join(faults)))
    return None


def _blocked(picture: Picture, stored: Explanation) -> Iterable[Emit]:
    """The event of plugin objects that can't be created, where it is news."""
    if picture.blocked.message and picture.blocked.message not in stored.message:
        yield events.warning(picture.view.job, JobReason.PLUGIN_ERROR, picture.blocked.message)


def _explain_waiting(picture: Picture, stored: Explanation) -> tuple[Explanation, list[Emit]]:
    view = picture.view
    if view.queue is None:
        missing = Explanation(JobReason.QUEUE_NOT_FOUND, f"queue {picture.plan.queue!r} doesn't exist")
        news = [events.warning(view.job, JobReason.QUEUE_NOT_FOUND, missing.message)] if missing != stored else []
        return missing, news
    ledger = picture.ledger
    if ledger.not_before is not None:
        message = messages.backing_off(losses=ledger.infrastructure_retries, until=format_time(ledger.not_before))
        return Explanation(JobReason.BACK_OFF, message), []
    if picture.without_claims:
        return _explain_claims(picture, stored)
    if view.group_refusal:
        return Explanation(JobReason.POD_GROUP_ERROR, messages.shorten(view.group_refusal)), []
    if trouble := _uncreated(picture):
        return trouble, [*_blocked(picture, stored)]  # comes first, since the gang can't be complete without
    if not _can_be_whole(picture) and (trouble := _terminating(picture)):
        return trouble, []
    trouble = events.pod_group_trouble(view.pod_group)
    if trouble is None:
        return _held_up(picture) or _terminating(picture), []
    if trouble == stored:
        return stored, []
    return trouble, [events.pod_group_pending(view.job, trouble)]


def _explain_going_on(picture: Picture, stored: Explanation) -> tuple[Explanation, list[Emit]]:
    """A job that runs, and may lack a member that can't have its volumes."""
    if picture.without_claims:
        return _explain_claims(picture, stored)
    if overdue.drains(picture.phase):
        began, wait = _began(stored), overdue.waited_for(picture)
        return (replace(began, message=messages.and_waits(began.message, wait)) if wait else began), []
    if picture.phase is JobPhase.RUNNING:
        if trouble := _uncreated(picture):
            return trouble, [*_blocked(picture, stored)]
        if trouble := _terminating(picture):
            return trouble, []
    return (Explanation() if stored.reason in _PASSING else stored), []


def _began(stored: Explanation) -> Explanation:
    """What began a phase in which pods are waited for, without those that are."""
    return replace(stored, message=messages.without_wait(stored.message))


def _can_be_whole(picture: Picture) -> bool:
    """Whether enough pods are there that aren't being deleted."""
    return sum(not member.terminating for member in picture.roster.placed()) >= picture.plan.min_available


def _terminating(picture: Picture) -> Explanation:
    """Pods that can't be created again, since those before them outstay their deletion."""
    wait = overdue.waited_for(picture)
    return Explanation(JobReason.POD_TERMINATING, messages.shorten(wait)) if wait else Explanation()


def _explain_claims(picture: Picture, stored: Explanation) -> tuple[Explanation, list[Emit]]:
    missing = Explanation(JobReason.PVC_ERROR, messages.shorten(picture.without_claims))
    # What the server refuses is told as an event by the one who was refused.
    told = missing.message in stored.message or picture.without_claims == picture.view.claim_refusal
    return missing, [] if told else [events.warning(picture.view.job, JobReason.PVC_ERROR, missing.message)]


def _held_up(picture: Picture) -> Explanation:
    """What keeps a container of a placed pod from starting; the pod tells it as an event. A container without a message
    is merely being made."""
    for member in sorted(picture.roster.placed(), key=lambda member: member.pod.metadata.name):
        status = member.pod.status
        for container in (*(status.init_container_statuses or ()), *(status.container_statuses or ())):
            waiting = container.state.waiting if container.state is not None else None
            if waiting is not None and waiting.message:
                where = f"container {container.name} of pod {member.pod.metadata.name}"
                why = messages.shorten(f"{where} can't start: {waiting.reason}: {waiting.message}")
                return Explanation(JobReason.POD_NOT_STARTED, why)
    return _waits_for_others(picture)


def _waits_for_others(picture: Picture) -> Explanation:
    """Which task waits for which, where dependsOn is what the job waits for."""
    waiting = [f"task {name} waits for {' and '.join(others)}" for name, others in picture.held.waiting.items()]
    if not waiting:
        return Explanation()
    return Explanation(JobReason.DEPENDENCY_NOT_READY, messages.shorten("; ".join(waiting)))


def _how_it_failed(picture: Picture, counts: Counts) -> str:
    outcome = f"{counts.succeeded} of {picture.plan.replicas} pods succeeded and {counts.failed} failed"
    if counts.blocked:
        outcome = f"{outcome}, {counts.blocked} could never start ({' and '.join(sorted(picture.held.never))})"
    lost = [loss for loss in picture.ledger.losses if loss.version >= picture.ledger.version - 1]
    return messages.shorten(f"{_told_again(lost[0])}; {outcome}" if lost else outcome)


def _told_again(loss: PodLoss) -> str:
    """A loss out of the ledger, in the words of its event."""
    failure = Failure(
        cause=next((cause for cause in LossCause if cause == loss.cause), LossCause.FAILED),
        exit_codes=() if loss.exit_code is None else (loss.exit_code,),
        reason=loss.reason,
        signal=loss.signal or 0,
        message=loss.message,
    )
    return describe(pod=loss.pod, failure=failure, node=loss.node)


def tell(picture: Picture, stimulus: Stimulus, inbox: Inbox, verdict: Verdict, *, acted: bool) -> Iterable[Emit]:
    """The other events of this look. `acted`: the stimulus changed something, or a person asked for it."""
    job = picture.view.job
    if picture.fresh:
        for fault in picture.plugins.faults:
            yield events.warning(job, JobReason.PLUGIN_ERROR, fault)
        if why := left_out(job.spec, job.name):
            yield events.warning(job, JobReason.HOSTS_IN_FILES_ONLY, why)
    for fault in picture.plugin_faults:
        if fault not in explanation_of(job).message:
            yield events.warning(job, JobReason.PLUGIN_ERROR, fault)
    yield from events.losses(job, picture.losses)
    for why in inbox.rejected:
        yield events.warning(job, JobReason.COMMAND_REJECTED, why)
    if inbox.order is not None:
        yield events.command_issued(job, inbox.order[1])
    yield from events.delayed(job, verdict.delayed)
    if acted and stimulus.action is not Action.SYNC_JOB:
        yield events.executing(job, stimulus.action, stimulus.cause)
