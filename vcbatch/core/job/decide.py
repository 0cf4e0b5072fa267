"""The decision of one reconciliation of a job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from vcbatch.api import messages
from vcbatch.api.job import Action, Event, JobPhase
from vcbatch.api.reasons import JobReason
from vcbatch.api.resources import JOBS, PODS
from vcbatch.api.timestamps import format_time
from vcbatch.core.gc.ttl import expiry_of
from vcbatch.core.job import children, events, kill, limit, volumes
from vcbatch.core.job.budget import Charge, charge, wait_after
from vcbatch.core.job.commands import Inbox, read_inbox
from vcbatch.core.job.context import JobContext, Stimulus, job_context, suspended_by_hand
from vcbatch.core.job.counts import Counts, count
from vcbatch.core.job.explain import explain, report
from vcbatch.core.job.ledger import has_only_seen_more, observe, read_ledger
from vcbatch.core.job.overdue import next_overdue
from vcbatch.core.job.plan import by_priority, priority_of
from vcbatch.core.job.plugin_trouble import PLUGIN_RETRY
from vcbatch.core.job.plugins import PluginFailedError
from vcbatch.core.job.pods import creates
from vcbatch.core.job.policies import Verdict, judge
from vcbatch.core.job.roster import Member, roster_of
from vcbatch.core.job.states import EXHAUSTED, LIVE, TABLE, Cell, Outlook, Retain, Verb, cell_of
from vcbatch.core.job.status import Explanation, build, explanation_of, trimmed
from vcbatch.core.job.unsupported import refusal_of
from vcbatch.core.job.verbs import Acts, kill_pods, perform, tidy
from vcbatch.core.job.view import JobView
from vcbatch.core.machine import Decision, Delete, WriteStatus, ref_of

_QUEUE_RECHECK = timedelta(seconds=10)

_COUNTS = frozenset({"pending", "running", "succeeded", "failed", "terminating", "unknown", "taskStatusCount"})
_COUNTS_WAIT = timedelta(seconds=1)
_BEGINNING = _COUNTS | {"state", "conditions", "minAvailable"}
_BEGINNING_WAITS = timedelta(seconds=0.5)
_SEEN_WAITS = timedelta(seconds=2)
"""Delay of a status write that only records that pods exist. Mostly the pods run by then, which is written at once. If
the controller ends within that time, a pod that was created and lost meanwhile is recreated without calling
policies."""
_AT_ONCE = timedelta(0)


def decide(view: JobView, *, now: datetime) -> Decision:
    """The status and the intents that follow for one job.

    Pure and level-triggered: the same view and time give the same decision, and deciding again after any prefix of the
    decision was executed leads to the same final state. Counts in the status are those after the decision is executed,
    except that pods which the server refused to create are not counted. Raises `PluginFailedError` where a plugin
    raises.
    """
    if view.job.metadata.deletion_timestamp:
        return Decision()
    context = job_context(view, now)
    refusal = refusal_of(context.plan) if context.fresh or _refused(view) else ""
    inbox = read_inbox(view.job, view.commands, context.ledger)
    if refusal:
        return _refuse(context, refusal, inbox)
    verdict = Verdict()
    if context.phase in LIVE:
        context.losses = observe(
            context.ledger, plan=context.plan, roster=context.roster, departed=roster_of(context.plan, view.departed)
        )
        verdict = judge(context.plan, context.roster, context.ledger, context.losses, view.pod_group, now=context.now)
        context.ledger.add_losses(context.losses, now=now)
    stimulus = _stimulus(context, inbox, verdict)
    return _follow(context, stimulus, inbox, verdict)


def _stimulus(context: JobContext, inbox: Inbox, verdict: Verdict) -> Stimulus:
    """The action of this reconciliation. A user's Command precedes the time limit and a policy's action, unless it
    changes nothing in this phase: the event that a policy handles is in the ledger from now on, and wouldn't be found
    again."""
    order = verdict.order
    effective = TABLE[context.phase].keys() - {Action.SYNC_JOB}
    over = _over(context)
    if inbox.order is not None and (inbox.order[1] in effective or (order is None and over is None)):
        command, action = inbox.order
        cause = f"asked for by the Command {command.name}"
        return Stimulus(action=action, cause=cause, reason=JobReason.COMMAND_ISSUED, reported=True)
    if over is not None:
        return over
    if order is None:
        return Stimulus(action=Action.SYNC_JOB)
    return Stimulus(
        action=order.action,
        cause=order.cause,
        reason=order.event if order.event is not Event.ANY else JobReason.EXECUTE_ACTION,
        infrastructure=order.infrastructure,
        targets=order.targets,
    )


def _over(context: JobContext) -> Stimulus | None:
    """The end of a job that has used up its time limit, or hasn't finished at its deadline; None for others."""
    seconds, end = context.plan.max_run_seconds, context.plan.deadline
    if limit.out_of_time(context) and seconds is not None:
        cause = messages.ran_out_of_time(seconds=seconds)
        return Stimulus(action=Action.TERMINATE_JOB, cause=cause, reason=JobReason.DEADLINE_EXCEEDED)
    if end is not None and end <= context.now and context.phase in LIVE:
        cause = messages.deadline_passed(time=format_time(end))
        return Stimulus(action=Action.TERMINATE_JOB, cause=cause, reason=JobReason.DEADLINE_PASSED)
    return None


def _follow(context: JobContext, stimulus: Stimulus, inbox: Inbox, verdict: Verdict) -> Decision:
    """Compute the effects of the table's cell, and build the decision from them."""
    cell = cell_of(context.phase, stimulus.action)
    exhausted = not _pay(context, cell, stimulus)
    if exhausted:
        cell = EXHAUSTED
    acts = perform(context, cell, stimulus)
    _build_pods(context, acts)
    if cell.charge is Charge.RETRY and stimulus.infrastructure:
        _wait(context)
    counts = _count(context, acts)
    held = cell.verb is Verb.SYNC and context.held_pending
    phase = context.phase if held else cell.then.decide(_outlook(context, counts))
    if phase.finished and cell.verb is Verb.SYNC:
        # The job has ended: its remaining pods are of no use any more.
        context.ledger.end_attempt()
        acts = kill_pods(context, Retain.FINISHED)
        counts = _count(context, acts)
    tidy(context, acts, counts, phase)
    limit.note(context, phase)
    entered = context.fresh or phase != context.phase or suspended_by_hand(context.view.job)
    explanation, reported = explain(context, stimulus, phase, entered=entered, exhausted=exhausted, counts=counts)
    status = _status(context, phase, _existing(context, acts, counts), explanation, entered=entered)
    ended = context.ledger.version != context.view.job.status.version
    acted = entered or ended or stimulus.reported or bool(stimulus.targets)
    said = [*report(context, stimulus, inbox, verdict, acted=acted and not exhausted), *reported]
    if status is not None and said:
        status = replace(status, may_wait=_AT_ONCE)
        # The status alone remembers the emitted events: they are emitted with it, even if creating a pod fails
        # afterwards.
        said = [event if event.after is not None else replace(event, after=status) for event in said]
    return Decision(
        status=status,
        marks=acts.marks,
        ensures=acts.ensures,
        deletes=[*inbox.deletes, *(_delete_pod(member) for member in acts.killed), *acts.deletes, *_expiry(context)],
        creates=acts.creates,
        events=said,
        requeue_at=_next_reconcile(context, inbox, verdict, phase),
    )


def _pay(context: JobContext, cell: Cell, stimulus: Stimulus) -> bool:
    """Charge the restart to its budget, before any pod is deleted, and return whether it is allowed."""
    if cell.verb is Verb.TARGET and not stimulus.targets:
        return True
    return charge(
        context.ledger, what=cell.charge, infrastructure=stimulus.infrastructure, max_retry=context.plan.max_retry
    )


def _wait(context: JobContext) -> None:
    """Start the backoff of a job that the infrastructure took down repeatedly."""
    ledger = context.ledger
    wait = wait_after(losses=ledger.infrastructure_retries, ran=limit.ran_for(context))
    if wait:
        ledger.not_before = context.now + wait


def _delete_pod(member: Member) -> Delete:
    metadata = member.pod.metadata
    return Delete(ref=ref_of(PODS, metadata))


def _build_pods(context: JobContext, acts: Acts) -> None:
    """Build the missing pods: the tasks of the highest priority first, each by its index. A task whose pods a plugin
    fails to change gets none in this reconciliation; the other tasks get theirs."""
    if context.without_claims or context.blocked:
        return
    for task in by_priority(context.plan.tasks.values(), context.view.priority_classes):
        indices = acts.missing.get(task.name)
        if not indices:
            continue
        turn = -priority_of(task, context.view.priority_classes)
        try:
            made = list(creates(context.plan, context.ledger, context.plugins, task=task, indices=indices))
            acts.creates += (replace(create, turn=turn) for create in made)
        except PluginFailedError as error:
            del acts.missing[task.name]
            context.plugin_errors.append(f"task {task.name}: {error}")


# Status --------------------------------------------------------------------------------------------------------------


def _count(context: JobContext, acts: Acts) -> Counts:
    deleting = {member.uid for member in acts.killed}
    return count(
        context.plan,
        context.roster,
        context.ledger,
        deleting=deleting,
        creating=acts.missing,
        never=context.held.never,
    )


def _existing(context: JobContext, acts: Acts, counts: Counts) -> Counts:
    """The counts for the status: pods to be created are left out while the server refuses them, or while their volumes
    or the plugins' objects can't be created."""
    view = context.view
    kept = view.refusal or view.child_refusal or context.without_claims or context.blocked
    return _count(context, replace(acts, missing={})) if kept and acts.missing else counts


def _outlook(context: JobContext, counts: Counts) -> Outlook:
    drained = kill.drained(context.roster, context.ledger)
    if context.ledger.restarting_job:
        drained = drained and context.view.pod_group is None
    return Outlook(phase=context.phase, plan=context.plan, counts=counts, ledger=context.ledger, drained=drained)


def _status(
    context: JobContext, phase: JobPhase, counts: Counts, explanation: Explanation, *, entered: bool
) -> WriteStatus | None:
    """The status write; None where the status equals the stored one."""
    job = context.view.job
    at_work = phase in LIVE or counts.alive
    plugins = children.controlled_resources(context.plugins) if at_work else {}
    stored = job.status.dump()
    decided = trimmed(
        build(
            context.plan,
            phase=phase,
            entered=entered,
            counts=counts,
            ledger=context.ledger,
            explanation=explanation,
            controlled=plugins | volumes.controlled_resources(job, context.view.claims),
            stored=stored,
            now=context.now,
        )
    )
    stored = trimmed(stored)
    changed = {key for key in stored.keys() | decided.keys() if stored.get(key) != decided.get(key)}
    if not changed:
        return None
    return WriteStatus(
        ref=ref_of(JOBS, job),
        resource_version=job.metadata.resource_version,
        status=decided,
        may_wait=_may_wait(context, changed, phase, explanation),
    )


def _may_wait(context: JobContext, changed: set[str], phase: JobPhase, explanation: Explanation) -> timedelta:
    """How long the status write may be delayed. Changes of the ledger may not, except that pods exist: a pod that
    succeeded and was deleted before that was recorded would run again."""
    if "ledger" in changed and not has_only_seen_more(context.ledger, read_ledger(context.plan)):
        return _AT_ONCE
    others = changed - {"ledger"}
    if others <= _COUNTS:
        return _COUNTS_WAIT if others else _SEEN_WAITS
    if others <= _BEGINNING and _only_begins(context, phase, explanation):
        return _BEGINNING_WAITS
    return _AT_ONCE


def _only_begins(context: JobContext, phase: JobPhase, explanation: Explanation) -> bool:
    """Whether the first status would only say that the job was accepted."""
    return context.fresh and phase is JobPhase.PENDING and not explanation.reason


def _expiry(context: JobContext) -> Iterable[Delete]:
    delete = expiry_of(context.view.job, now=context.now, awaited=context.view.awaited).delete
    if delete is not None:
        yield delete


def _next_reconcile(context: JobContext, inbox: Inbox, verdict: Verdict, phase: JobPhase) -> datetime | None:
    """The earliest moment at which time alone changes the decision."""
    moments = [
        verdict.due,
        context.ledger.not_before,
        limit.ends_at(context) if phase is JobPhase.RUNNING else None,
        expiry_of(context.view.job, now=context.now, awaited=context.view.awaited).due,
        context.hold.until if context.hold is not None else None,
        context.plan.deadline if phase in LIVE else None,
        context.blocked.recheck_at,
        next_overdue(context) if not phase.finished else None,
    ]
    if context.plugin_errors:
        moments.append(context.now + PLUGIN_RETRY)
    if inbox.more:
        moments.append(context.now)
    if phase is JobPhase.PENDING and context.view.queue is None:
        moments.append(context.now + _QUEUE_RECHECK)
    return min((moment for moment in moments if moment is not None), default=None)


# Jobs that can't run -------------------------------------------------------------------------------------------------


def _refused(view: JobView) -> bool:
    return view.job.status.state.reason == JobReason.UNSUPPORTED


def _refuse(context: JobContext, refusal: str, inbox: Inbox) -> Decision:
    """The job stays Pending, and the reason is reported once. It never runs with a changed spec, and Commands to it
    have no effect."""
    job = context.view.job
    explanation = Explanation(JobReason.UNSUPPORTED, messages.shorten(refusal))
    status = _status(context, JobPhase.PENDING, Counts(), explanation, entered=context.fresh)
    reported = [events.warning(job, JobReason.UNSUPPORTED, refusal)] if explanation != explanation_of(job) else []
    return Decision(status=status, deletes=inbox.deletes, events=reported)
