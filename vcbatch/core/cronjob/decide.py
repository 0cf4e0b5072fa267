"""The decision of one reconciliation of a CronJob (volcano-sh/volcano `pkg/controllers/cronjob`, and Kubernetes'
controller of the same name, which it follows).

A job is created first; the next reconciliation records its slot, because the job exists. So a crash in between loses
nothing, and the job's name prevents a second one. Old jobs are deleted only where none is to be created, so that a
deletion that fails doesn't keep a job from starting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from vcbatch.api.cronjob import AnyCronJob, CronJobLedger, CronJobStatus
from vcbatch.api.reasons import CronJobReason
from vcbatch.api.timestamps import format_time
from vcbatch.core.cronjob.children import (
    Children,
    active_entry,
    children_of,
    job_body,
    job_name,
    job_ref,
)
from vcbatch.core.cronjob.concurrency import Verb, verb_for
from vcbatch.core.cronjob.kinds import AnyJob, kinds_of, outcome_of, read_time, standing_of
from vcbatch.core.cronjob.timetable import Past, Plan, Timetable, timetable_of
from vcbatch.core.cronjob.view import CronJobView
from vcbatch.core.machine import Create, Decision, Delete, Emit, EventType, Json, ObjectRef, WriteStatus, ref_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The action for the slot that is due. `handled`: the slot was acted on, and is to be recorded."""

    handled: datetime | None = None
    replaced: Sequence[AnyJob] = ()
    creates: Sequence[Create] = ()
    events: Sequence[Emit] = field(default_factory=tuple)


def decide(view: CronJobView, *, now: datetime) -> Decision:
    """The status that follows from the existing jobs, and the action for the slot that is due."""
    cron_job = view.cron_job
    if cron_job.metadata.deletion_timestamp:
        return Decision()  # its jobs are deleted with it, by the garbage collector
    children, kinds = children_of(view), kinds_of(cron_job)
    past = _past(view, children)
    suspended = bool(cron_job.spec.suspend)
    timetable = Timetable() if suspended else timetable_of(view, past, now=now)
    step = _step(cron_job, children, timetable)
    status = _status(view, children, past, step)
    surplus = [] if step.creates else list(_surplus(cron_job, children))
    return Decision(
        status=status,
        deletes=[Delete(ref=job_ref(job), propagation=kinds.propagation) for job in (*step.replaced, *surplus)],
        creates=step.creates,
        events=[
            *_news(cron_job, children, status),
            *(_emit(cron_job, remark.reason, remark.message) for remark in timetable.remarks),
            *step.events,
            *(_event(cron_job, CronJobReason.SUCCESSFUL_DELETE, f"Deleted job {job.name}") for job in surplus),
        ],
        requeue_at=timetable.next,
    )


def _past(view: CronJobView, children: Children) -> Past:
    """The later of the recorded slot and that of the existing jobs, since a crash may have prevented the record."""
    status = view.cron_job.status
    return Past(
        last=_latest(read_time(status.last_schedule_time), children.last_slot),
        not_before=_latest(read_time(status.ledger.not_before), view.rescheduled_at),
    )


def _step(cron_job: AnyCronJob, children: Children, timetable: Timetable) -> _Step:
    plan, slot = timetable.plan, timetable.due
    if plan is None or slot is None:
        return _Step()
    name = job_name(cron_job, slot, plan.rule)
    if name in children.own:
        return _Step(handled=slot)
    if name in children.foreign:
        return _taken(cron_job, children.foreign[name], slot)
    verb = verb_for(cron_job.spec.concurrency_policy, busy=bool(children.running or children.ending))
    return _act(verb, cron_job, children, plan, slot)


def _act(verb: Verb, cron_job: AnyCronJob, children: Children, plan: Plan, slot: datetime) -> _Step:
    if verb is Verb.WAIT:
        return _Step(events=[_forbidden(cron_job, children, slot)])
    replaced = children.running if verb is Verb.REPLACE else ()
    name = job_name(cron_job, slot, plan.rule)
    return _Step(
        replaced=replaced,
        creates=[Create(resource=kinds_of(cron_job).job, body=job_body(cron_job, slot, name=name, zone=plan.zone))],
        events=[
            *(_emit(cron_job, CronJobReason.REPLACE_CONCURRENT, _replacing(job, name)) for job in replaced),
            _event(
                cron_job,
                CronJobReason.SUCCESSFUL_CREATE,
                kinds_of(cron_job).created.format(job=name, cron_job=cron_job.key),
            ),
        ],
    )


def _taken(cron_job: AnyCronJob, holder: AnyJob, slot: datetime) -> _Step:
    """The name of the slot's job belongs to another owner's job, which is left alone. One that is being deleted (an
    earlier CronJob of the same name created it) is waited for."""
    if holder.metadata.deletion_timestamp:
        return _Step()
    text = f"no job is made for {format_time(slot)}: a job {holder.name} exists and isn't this CronJob's"
    return _Step(handled=slot, events=[_emit(cron_job, CronJobReason.FOREIGN_JOB, text)])


def _status(view: CronJobView, children: Children, past: Past, step: _Step) -> WriteStatus | None:
    cron_job = view.cron_job
    stored = cron_job.status.dump()
    decided = {key: value for key, value in stored.items() if key not in ("active", "lastScheduleTime")}
    active = [job for job in children.running if job not in step.replaced]
    if active:
        decided["active"] = _active(cron_job.status, active)
    decided |= _times(cron_job, past, children, step)
    if decided == stored:
        return None
    return WriteStatus(
        ref=_reference(cron_job),
        resource_version=cron_job.metadata.resource_version,
        status=decided,
    )


def _active(status: CronJobStatus, jobs: Sequence[AnyJob]) -> list[Json]:
    """The entries of `status.active`. Existing entries stay as written: the current version of their jobs isn't
    used."""
    written = {entry.uid: entry for entry in status.active}
    return [written.get(job.uid, active_entry(job)).dump() for job in jobs]


def _times(cron_job: AnyCronJob, past: Past, children: Children, step: _Step) -> Json:
    status = cron_job.status
    times: Json = {}
    last = _latest(past.last, step.handled)
    if last is not None:
        same = last == read_time(status.last_schedule_time)
        times["lastScheduleTime"] = status.last_schedule_time if same else format_time(last)
    success = children.last_success
    before = read_time(status.last_successful_time)
    if success is not None and (before is None or success > before):
        times["lastSuccessfulTime"] = format_time(success)
    if (
        kinds_of(cron_job).remembers
        and past.not_before is not None
        and past.not_before != read_time(status.ledger.not_before)
    ):
        times["ledger"] = CronJobLedger(not_before=format_time(past.not_before)).dump()
    return times


def _surplus(cron_job: AnyCronJob, children: Children) -> Iterator[AnyJob]:
    """The oldest finished jobs beyond the history limits."""
    spec = cron_job.spec
    for jobs, limit in (
        (children.completed, spec.successful_jobs_history_limit),
        (children.failed, spec.failed_jobs_history_limit),
    ):
        if limit is not None:
            yield from jobs[: max(len(jobs) - max(limit, 0), 0)]


def _news(cron_job: AnyCronJob, children: Children, status: WriteStatus | None) -> Iterator[Emit]:
    """The end of each job that the stored status lists as running. The events are emitted with the status that removes
    the jobs from the list, since the creation of the next job may fail."""
    by_uid = {job.uid: job for job in children.own.values()}
    for entry in cron_job.status.active:
        job = by_uid.get(entry.uid)
        if job is None:
            text = f"Job {entry.name} is gone, and wasn't finished when it was last seen"
            yield replace(_emit(cron_job, CronJobReason.STALE_REFERENCE, text), after=status)
        elif (outcome := outcome_of(job)) is not None:
            text = kinds_of(cron_job).completed.format(job=job.name, outcome=outcome)
            yield replace(_event(cron_job, CronJobReason.SAW_COMPLETED_JOB, text), after=status)


def _forbidden(cron_job: AnyCronJob, children: Children, slot: datetime) -> Emit:
    holder = next(iter([*children.running, *children.ending]))
    state = "is being deleted" if holder.metadata.deletion_timestamp else f"is {standing_of(holder)}"
    text = f"No job is started for {format_time(slot)}: {holder.name} {state}, and concurrencyPolicy is Forbid"
    return _emit(cron_job, CronJobReason.FORBID_CONCURRENT, text)


def _replacing(job: AnyJob, name: str) -> str:
    return f"Deleted job {job.name}, which is {standing_of(job)}, for {name}, since concurrencyPolicy is Replace"


def _latest(*instants: datetime | None) -> datetime | None:
    return max((instant for instant in instants if instant is not None), default=None)


def _event(cron_job: AnyCronJob, reason: CronJobReason, message: str) -> Emit:
    return Emit(
        ref=_reference(cron_job),
        type=EventType.NORMAL,
        reason=_word(cron_job, reason),
        message=message,
    )


def _emit(cron_job: AnyCronJob, reason: CronJobReason, message: str) -> Emit:
    return Emit(
        ref=_reference(cron_job),
        type=EventType.WARNING,
        reason=_word(cron_job, reason),
        message=message,
    )


def _word(cron_job: AnyCronJob, reason: CronJobReason) -> str:
    return kinds_of(cron_job).reasons.get(reason, reason)


def _reference(cron_job: AnyCronJob) -> ObjectRef:
    return ref_of(kinds_of(cron_job).cron_job, cron_job)
