"""What follows from one look at a job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from vcbatch.api import reasons
from vcbatch.api.job import Action, Event, Job, JobPhase
from vcbatch.api.reasons import JobReason
from vcbatch.api.resources import PODS
from vcbatch.core.gc.ttl import expiry_of
from vcbatch.core.job import children, events, kill, podgroup
from vcbatch.core.job.budget import Charge, charge
from vcbatch.core.job.commands import Inbox, read_inbox
from vcbatch.core.job.counts import Counts, count
from vcbatch.core.job.ledger import Ledger, Loss, observe, read_ledger
from vcbatch.core.job.plan import Plan, plan_of
from vcbatch.core.job.plugins import PluginSet, load
from vcbatch.core.job.pods import creates
from vcbatch.core.job.policies import Verdict, judge
from vcbatch.core.job.roster import Member, Roster, roster_of
from vcbatch.core.job.states import EXHAUSTED, LIVE, Cell, Outlook, Retain, Verb, cell_of
from vcbatch.core.job.status import Explanation, build, explanation_of, trimmed
from vcbatch.core.job.sync import compare
from vcbatch.core.job.unsupported import refusal_of
from vcbatch.core.job.view import JobView
from vcbatch.core.machine import Create, Decision, Delete, Emit, Ensure, ObjectRef, WriteStatus

_QUEUE_RECHECK = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stimulus:
    """What moves the job in this look. `told`: an event says so even when nothing changes (a person asked)."""

    action: Action
    cause: str = ""
    reason: str = ""
    infrastructure: bool = False
    targets: tuple[tuple[str, int | None], ...] = ()
    told: bool = False


@dataclass(slots=True, kw_only=True)
class _Picture:
    """The view, sorted once, with the ledger that this look brings up to date."""

    view: JobView
    now: datetime
    plan: Plan
    roster: Roster
    ledger: Ledger
    plugins: PluginSet
    phase: JobPhase
    fresh: bool
    """The job has no status yet."""
    losses: list[Loss] = field(default_factory=list[Loss])


@dataclass(slots=True, kw_only=True)
class _Acts:
    """What a verb does, before it is known which phase follows."""

    ensures: list[Ensure] = field(default_factory=list[Ensure])
    deletes: list[Delete] = field(default_factory=list[Delete])
    killed: list[Member] = field(default_factory=list[Member])
    missing: dict[str, list[int]] = field(default_factory=dict[str, list[int]])


def decide(view: JobView, *, now: datetime) -> Decision:
    """The status and the intents that follow for one job.

    Pure and level-triggered: the same view and time give the same decision, and deciding again on a world in which any
    prefix of the decision has been carried out leads to the same end. Counts in the status are those of the world as
    it is once the decision is carried out.
    """
    if view.job.metadata.deletion_timestamp:
        return Decision()
    picture = _look(view, now)
    refusal = refusal_of(picture.plan) if picture.fresh or _refused(view) else ""
    inbox = read_inbox(view.job, view.commands, picture.ledger)
    if refusal:
        return _refuse(picture, refusal, inbox)
    verdict = Verdict()
    if picture.phase in LIVE:
        picture.losses = observe(picture.ledger, plan=picture.plan, roster=picture.roster)
        verdict = judge(picture.plan, picture.roster, picture.ledger, picture.losses, view.pod_group, now=picture.now)
        picture.ledger.add_losses(picture.losses, now=now)
    stimulus = _stimulus(inbox, verdict)
    return _follow(picture, stimulus, inbox, verdict)


def _look(view: JobView, now: datetime) -> _Picture:
    plan = plan_of(view.job)
    picture = _Picture(
        view=view,
        now=now,
        plan=plan,
        roster=roster_of(plan, view.pods),
        ledger=read_ledger(plan),
        plugins=load(plan),
        phase=_phase_of(view.job),
        fresh=not view.job.status.state.phase,
    )
    picture.ledger.drop_met_targets(picture.roster)
    if _suspended_by_hand(view.job):
        picture.ledger.end_attempt()
    return picture


def _logged_phase(job: Job) -> str:
    """The phase that the controller itself wrote last."""
    return job.status.conditions[-1].status if job.status.conditions else ""


def _phase_of(job: Job) -> JobPhase:
    """The job's phase. What somebody else wrote into the status counts, but not for a job that is finished."""
    logged = _logged_phase(job)
    finished = next((phase for phase in JobPhase if phase == logged and phase.finished), None)
    return finished or job.phase


def _suspended_by_hand(job: Job) -> bool:
    """Whether somebody wrote the phase Aborted into the status, as torchx cancels a job."""
    return _phase_of(job) is JobPhase.ABORTED and _logged_phase(job) != JobPhase.ABORTED


def _stimulus(inbox: Inbox, verdict: Verdict) -> _Stimulus:
    """A person's wish comes before a policy's."""
    if inbox.order is not None:
        command, action = inbox.order
        cause = f"asked for by the Command {command.name}"
        return _Stimulus(action=action, cause=cause, reason=JobReason.COMMAND_ISSUED, told=True)
    order = verdict.order
    if order is None:
        return _Stimulus(action=Action.SYNC_JOB)
    return _Stimulus(
        action=order.action,
        cause=order.cause,
        reason=order.event if order.event is not Event.ANY else JobReason.EXECUTE_ACTION,
        infrastructure=order.infrastructure,
        targets=order.targets,
    )


def _follow(picture: _Picture, stimulus: _Stimulus, inbox: Inbox, verdict: Verdict) -> Decision:
    """Carry the table's cell out on paper, and write down what comes of it."""
    cell = cell_of(picture.phase, stimulus.action)
    exhausted = not _pay(picture, cell, stimulus)
    if exhausted:
        cell = EXHAUSTED
    acts = _perform(picture, cell, stimulus)
    counts = _count(picture, acts)
    phase = cell.then.decide(_outlook(picture, counts))
    if phase.finished and cell.verb is Verb.SYNC:
        # The job is over: what still runs is of no use to anybody.
        picture.ledger.end_attempt()
        acts = _kill(picture, Retain.FINISHED)
        counts = _count(picture, acts)
    _tidy(picture, acts, counts, phase)
    entered = picture.fresh or phase != picture.phase or _suspended_by_hand(picture.view.job)
    explanation, told = _explain(picture, stimulus, phase, entered=entered, exhausted=exhausted, counts=counts)
    status = _status(picture, phase, counts, explanation, entered=entered)
    acted = entered or picture.ledger.version != picture.view.job.status.version or stimulus.told
    return Decision(
        status=status,
        ensures=acts.ensures,
        deletes=[*inbox.deletes, *(_delete_pod(member) for member in acts.killed), *acts.deletes, *_expiry(picture)],
        creates=_creates(picture, acts),
        events=[*_tell(picture, stimulus, inbox, verdict, acted=acted and not exhausted), *told],
        look_again_at=_next_look(picture, inbox, verdict, phase),
    )


# What the verbs do ---------------------------------------------------------------------------------------------------


def _pay(picture: _Picture, cell: Cell, stimulus: _Stimulus) -> bool:
    """Charge the restart to its budget, before anything is killed; whether it is allowed."""
    if cell.verb is Verb.TARGET and not stimulus.targets:
        return True
    return charge(
        picture.ledger, what=cell.charge, infrastructure=stimulus.infrastructure, max_retry=picture.plan.max_retry
    )


def _perform(picture: _Picture, cell: Cell, stimulus: _Stimulus) -> _Acts:
    ledger = picture.ledger
    match cell.verb:
        case Verb.SYNC:
            return _sync(picture)
        case Verb.TARGET:
            for task, index in stimulus.targets:
                ledger.aim(task=task, index=index)
            return _drain(picture)
        case Verb.DRAIN:
            return _drain(picture)
        case Verb.KILL:
            already = picture.phase is JobPhase.RESTARTING and ledger.restarting_job
            if cell.ends_attempt and not (already and stimulus.action is Action.RESTART_JOB):
                ledger.end_attempt()
                ledger.restarting_job = False
                if cell.charge is Charge.RESUME:
                    ledger.begin_resumed()
                elif cell.retain is Retain.NOTHING:
                    ledger.begin_anew()
            return _kill(picture, cell.retain)


def _sync(picture: _Picture) -> _Acts:
    acts = _Acts()
    view = picture.view
    if view.queue is None and picture.phase is JobPhase.PENDING:
        return acts
    group = podgroup.ensure(picture.plan, view.pod_group, view.priority_classes)
    acts.ensures.extend(children.ensures(view, picture.plugins))
    if group is not None:
        acts.ensures.append(group)
    if podgroup.lets_create(view.pod_group):
        difference = compare(picture.plan, picture.roster, picture.ledger)
        acts.killed, acts.missing = difference.superfluous, difference.missing
    return acts


def _drain(picture: _Picture) -> _Acts:
    acts = _Acts(killed=kill.doomed(picture.roster, picture.ledger))
    if picture.ledger.restarting_job:
        acts.deletes.extend(_delete_group(picture))
    return acts


def _kill(picture: _Picture, retain: Retain) -> _Acts:
    acts = _Acts(killed=kill.whole_job(picture.roster, retain=retain))
    acts.deletes.extend(_delete_group(picture))
    return acts


def _tidy(picture: _Picture, acts: _Acts, counts: Counts, phase: JobPhase) -> None:
    """The plugins' objects go with the last pod: until then it may still need the names of the others."""
    if phase is not JobPhase.RESTARTING and picture.ledger.restarting_job:
        picture.ledger.restarting_job = False
    if phase not in LIVE and counts.alive == 0:
        acts.deletes.extend(children.deletes(picture.view, picture.plugins))


def _delete_group(picture: _Picture) -> Iterable[Delete]:
    group = picture.view.pod_group
    if group is not None and not group.metadata.deletion_timestamp:
        yield Delete(ref=podgroup.reference(group))


def _delete_pod(member: Member) -> Delete:
    metadata = member.pod.metadata
    return Delete(ref=ObjectRef(resource=PODS, namespace=metadata.namespace, name=metadata.name, uid=metadata.uid))


def _creates(picture: _Picture, acts: _Acts) -> list[Create]:
    return [
        create
        for name, indices in acts.missing.items()
        for create in creates(
            picture.plan, picture.ledger, picture.plugins, task=picture.plan.tasks[name], indices=indices
        )
    ]


# What is written down ------------------------------------------------------------------------------------------------


def _count(picture: _Picture, acts: _Acts) -> Counts:
    deleting = {member.uid for member in acts.killed}
    return count(picture.plan, picture.roster, picture.ledger, deleting=deleting, creating=acts.missing)


def _outlook(picture: _Picture, counts: Counts) -> Outlook:
    drained = kill.drained(picture.roster, picture.ledger)
    if picture.ledger.restarting_job:
        drained = drained and picture.view.pod_group is None
    return Outlook(phase=picture.phase, plan=picture.plan, counts=counts, ledger=picture.ledger, drained=drained)


def _status(
    picture: _Picture, phase: JobPhase, counts: Counts, explanation: Explanation, *, entered: bool
) -> WriteStatus | None:
    """The status, where it differs from the stored one."""
    job = picture.view.job
    at_work = phase in LIVE or counts.alive
    decided = trimmed(
        build(
            picture.plan,
            phase=phase,
            entered=entered,
            counts=counts,
            ledger=picture.ledger,
            explanation=explanation,
            controlled=children.controlled_resources(picture.plugins) if at_work else {},
            now=picture.now,
        )
    )
    if decided == trimmed(job.status.dump()):
        return None
    return WriteStatus(ref=events.reference(job), resource_version=job.metadata.resource_version, status=decided)


def _explain(
    picture: _Picture, stimulus: _Stimulus, phase: JobPhase, *, entered: bool, exhausted: bool, counts: Counts
) -> tuple[Explanation, list[Emit]]:
    """Why the job is in this phase, and the events that say so when it is news."""
    job = picture.view.job
    stored = explanation_of(job)
    if exhausted:
        retries = _retries_exhausted(picture, stimulus)
        failed = Explanation(JobReason.RETRIES_EXHAUSTED, reasons.shorten(f"{retries}; at last {stimulus.cause}"))
        return failed, [events.warning(job, JobReason.RETRIES_EXHAUSTED, failed.message)]
    if phase is JobPhase.PENDING:
        return _explain_waiting(picture, stored)
    if not entered:
        return stored, []
    if phase is JobPhase.FAILED:
        return Explanation(JobReason.POD_FAILED, _how_it_failed(picture, counts)), []
    if phase is JobPhase.ABORTED and stimulus.action is Action.SYNC_JOB and picture.phase is JobPhase.ABORTED:
        return Explanation(JobReason.EXECUTE_ACTION, "the phase was set to Aborted from outside"), []
    if stimulus.action is Action.SYNC_JOB:
        keep = phase not in (JobPhase.RUNNING, JobPhase.COMPLETED) or picture.phase is JobPhase.COMPLETING
        return (stored if keep else Explanation()), []
    message = reasons.executing(action=stimulus.action, cause=stimulus.cause)
    return Explanation(stimulus.reason, message), []


def _retries_exhausted(picture: _Picture, stimulus: _Stimulus) -> str:
    """The restart that wasn't made has been counted; the sentence is about those that were."""
    ledger = picture.ledger
    if stimulus.infrastructure:
        return reasons.infrastructure_retries_exhausted(retries=ledger.infrastructure_retries - 1)
    return reasons.retries_exhausted(retries=ledger.own_retries - 1, max_retry=picture.plan.max_retry)


def _explain_waiting(picture: _Picture, stored: Explanation) -> tuple[Explanation, list[Emit]]:
    view = picture.view
    if view.queue is None:
        missing = Explanation(JobReason.QUEUE_NOT_FOUND, f"queue {picture.plan.queue!r} doesn't exist")
        news = [events.warning(view.job, JobReason.QUEUE_NOT_FOUND, missing.message)] if missing != stored else []
        return missing, news
    trouble = events.pod_group_trouble(view.pod_group)
    if trouble is None or view.pod_group is None:
        return Explanation(), []
    if trouble == stored:
        return stored, []
    return trouble, [events.pod_group_pending(view.job, view.pod_group, trouble)]


def _how_it_failed(picture: _Picture, counts: Counts) -> str:
    outcome = f"{counts.succeeded} of {picture.plan.replicas} pods succeeded and {counts.failed} failed"
    lost = [loss for loss in picture.ledger.losses if loss.version >= picture.ledger.version - 1]
    first = f"; first, pod {lost[0].pod}: {lost[0].cause}" if lost else ""
    code = f" with code {lost[0].exit_code}" if lost and lost[0].exit_code is not None else ""
    return reasons.shorten(outcome + first + code)


def _tell(picture: _Picture, stimulus: _Stimulus, inbox: Inbox, verdict: Verdict, *, acted: bool) -> Iterable[Emit]:
    job = picture.view.job
    if picture.fresh:
        for fault in picture.plugins.faults:
            yield events.warning(job, JobReason.PLUGIN_ERROR, fault)
    yield from events.losses(job, picture.losses)
    for why in inbox.rejected:
        yield events.warning(job, JobReason.COMMAND_REJECTED, why)
    if inbox.order is not None:
        yield events.command_issued(job, inbox.order[1])
    yield from events.delayed(job, verdict.delayed)
    if acted and stimulus.action is not Action.SYNC_JOB:
        yield events.executing(job, stimulus.action, stimulus.cause)


def _expiry(picture: _Picture) -> Iterable[Delete]:
    delete = expiry_of(picture.view.job, now=picture.now).delete
    if delete is not None:
        yield delete


def _next_look(picture: _Picture, inbox: Inbox, verdict: Verdict, phase: JobPhase) -> datetime | None:
    """The earliest moment at which time alone changes the decision."""
    moments = [verdict.due, expiry_of(picture.view.job, now=picture.now).due]
    if inbox.more:
        moments.append(picture.now)
    if phase is JobPhase.PENDING and picture.view.queue is None:
        moments.append(picture.now + _QUEUE_RECHECK)
    return min((moment for moment in moments if moment is not None), default=None)


# Jobs that can't be run ----------------------------------------------------------------------------------------------


def _refused(view: JobView) -> bool:
    return view.job.status.state.reason == JobReason.UNSUPPORTED


def _refuse(picture: _Picture, refusal: str, inbox: Inbox) -> Decision:
    """The job stays Pending and says why, once. It never runs otherwise than it was written, and Commands to it find
    nothing to do."""
    job = picture.view.job
    explanation = Explanation(JobReason.UNSUPPORTED, reasons.shorten(refusal))
    status = _status(picture, JobPhase.PENDING, Counts(), explanation, entered=picture.fresh)
    told = [events.warning(job, JobReason.UNSUPPORTED, refusal)] if explanation != explanation_of(job) else []
    return Decision(status=status, deletes=inbox.deletes, events=told)
