"""Which slot of a CronJob is due now, and when the next one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from vcbatch.api.cron import Calendar, CronLine, Every, MalformedCron, parse_cron
from vcbatch.api.cronjob import AnyCronJob
from vcbatch.api.reasons import CronJobReason
from vcbatch.api.timestamps import format_time
from vcbatch.core.cronjob.kinds import read_time
from vcbatch.core.cronjob.slots import Slots, count_between, slots_of
from vcbatch.core.cronjob.view import CronJobView, Zones

MOST_MISSED: Final = 100
"""More missed slots than this emit a warning; in any case only the last one is made up for."""

_SKEW: Final = timedelta(hours=1)
"""A recorded slot further in the future isn't explained by clock skew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A message about the schedule for the CronJob's owner."""

    reason: CronJobReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A valid schedule."""

    rule: Calendar | Every
    slots: Slots
    zone: tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """`plan` is None where the schedule is invalid, and `due` where no slot is to be acted on. `next` is the first slot
    in the future."""

    plan: Plan | None = None
    due: datetime | None = None
    next: datetime | None = None
    remarks: Sequence[Remark] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """`last`: the latest slot that was acted on. `not_before`: earlier slots don't count, since the schedule was a
    different one."""

    last: datetime | None
    not_before: datetime | None


def timetable_of(view: CronJobView, past: Past, *, now: datetime) -> Timetable:
    """Compute the due slot and the next one.

    Slots count from the last one that was acted on, else from the CronJob's creation. Of several that passed only the
    last is due (Kubernetes' `mostRecentScheduleTime`, which estimates where this counts), unless it is older than
    `startingDeadlineSeconds`.
    """
    cron_job = view.cron_job
    created = read_time(cron_job.metadata.creation_timestamp) or now
    start = past.last or created
    plan, remarks = _plan(cron_job, view.zones, since=start)
    if plan is None:
        return Timetable(remarks=remarks)
    earliest = max(start, past.not_before) if past.not_before else start
    coming = plan.slots.next(max(now, earliest))
    if coming is None:
        return Timetable(remarks=[*remarks, _never(cron_job)])
    due = plan.slots.last(now)
    if due is None or due <= earliest:
        return Timetable(plan=plan, next=coming, remarks=[*remarks, *_skewed(past.last, now)])
    deadline = cron_job.spec.starting_deadline_seconds
    horizon = _horizon(now, deadline)
    if due <= horizon:
        return Timetable(plan=plan, next=coming, remarks=[*remarks, _too_late(due, deadline)])
    missed = count_between(plan.slots, after=max(earliest, horizon), until=now, most=MOST_MISSED + 1)
    if missed > MOST_MISSED:
        remarks.append(_too_many(due))
    return Timetable(plan=plan, due=due, next=coming, remarks=remarks)


def _plan(cron_job: AnyCronJob, zones: Zones, *, since: datetime) -> tuple[Plan | None, list[Remark]]:
    spec = cron_job.spec
    try:
        line = parse_cron(spec.schedule)
    except MalformedCron as error:
        text = f"schedule {spec.schedule[:64]!r} can't be read: {error}"
        return None, [Remark(reason=CronJobReason.UNPARSEABLE_SCHEDULE, message=text)]
    remarks: list[Remark] = []
    if line.zone is not None:
        text = (
            "the schedule names a time zone of its own, so that spec.timeZone isn't looked at; use that field instead"
        )
        remarks.append(Remark(reason=CronJobReason.UNSUPPORTED_SCHEDULE, message=text))
    zone = _zone(line, spec.time_zone, zones)
    if zone is None:
        named = (line.zone if line.zone is not None else spec.time_zone) or ""
        text = f"time zone {named[:64]!r} isn't known, want an IANA name such as Europe/Berlin"
        return None, [*remarks, Remark(reason=CronJobReason.INVALID_TIME_ZONE, message=text)]
    return Plan(rule=line.rule, slots=slots_of(line, zone=zone, since=since), zone=zone), remarks


def _zone(line: CronLine, named: str | None, zones: Zones) -> tzinfo | None:
    """The time zone; UTC where none is named, so that the controllers' own zone has no influence; None if unknown."""
    name = line.zone if line.zone is not None else named
    return zones(name) if name else UTC


def _horizon(now: datetime, deadline: int | None) -> datetime:
    """The time up to which slots are too old to be acted on."""
    try:
        return now - timedelta(seconds=deadline) if deadline is not None else datetime.min.replace(tzinfo=UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _never(cron_job: AnyCronJob) -> Remark:
    text = f"schedule {cron_job.spec.schedule[:64]!r} never comes, as the 31st of February does"
    return Remark(reason=CronJobReason.INVALID_SCHEDULE, message=text)


def _too_late(slot: datetime, deadline: int | None) -> Remark:
    text = f"no job was started for {format_time(slot)}: that is longer ago than startingDeadlineSeconds, {deadline}"
    return Remark(reason=CronJobReason.MISS_SCHEDULE, message=text)


def _too_many(slot: datetime) -> Remark:
    text = f"more than {MOST_MISSED} start times were missed, and only the last is made up for, {format_time(slot)}; "
    text += "set or lower startingDeadlineSeconds, or check the clocks"
    return Remark(reason=CronJobReason.TOO_MANY_MISSED_TIMES, message=text)


def _skewed(last: datetime | None, now: datetime) -> list[Remark]:
    if last is None or last < now + _SKEW:
        return []
    text = f"status.lastScheduleTime is in the future, {format_time(last)}: no job is started before then. "
    text += "If a clock was wrong, remove that field from the status"
    return [Remark(reason=CronJobReason.CLOCK_SKEW, message=text)]
