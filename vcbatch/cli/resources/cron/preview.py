"""`vcbatch cronjob preview`: the next scheduled runs, computed as by the controllers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final

import click

from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import name_of
from vcbatch.cli.base.names import cron_names
from vcbatch.cli.base.output import CliError, age, note, say
from vcbatch.cli.base.table import Row, table
from vcbatch.cli.base.terminal import Terminal, terminal_of
from vcbatch.interfaces.api import Api

if TYPE_CHECKING:
    from vcbatch.core.cronjob.timetable import Plan

Json = dict[str, Any]

_MOST: Final = 1000


@click.command("preview")
@click.argument("name", required=False, shell_complete=cron_names)
@click.option(
    "-c", "--count", type=click.IntRange(1, _MOST), default=10, show_default=True, metavar="N", help="Number of runs."
)
@click.option(
    "--schedule", metavar="LINE", help="Schedule to preview instead of a cron job, e.g. '30 2 * * *' or '@every 90s'."
)
@click.option("--time-zone", metavar="ZONE", help="Time zone of --schedule, e.g. Europe/Berlin.  [default: UTC]")
@access_options
def command(access: Access, name: str | None, count: int, schedule: str | None, time_zone: str | None) -> int:
    """Show the next scheduled runs of a cron job in its time zone, including daylight-saving changes."""
    from vcbatch.api.resources import CRONJOBS

    if (name is None) == (schedule is None):
        raise click.UsageError("exactly one of NAME and --schedule is required")
    if name is not None and time_zone is not None:
        raise click.UsageError("--time-zone requires --schedule")
    now = access.now()
    if name is not None:

        async def fetch(api: Api) -> Json:
            return await api.get(CRONJOBS, name, namespace=access.namespace)

        cron = access.once(fetch)
    else:
        cron = {"metadata": {"name": "schedule"}, "spec": {"schedule": schedule, "timeZone": time_zone or None}}
    plan, since, remarks = plan_of(cron, now=now)
    if plan is None:
        hint = f"Fix the schedule: kubectl edit cronvcjob {name}" if name else ""
        raise CliError("; ".join(remarks) or "the schedule never runs", hint=hint)
    for remark in remarks:
        note(remark)
    if (cron.get("spec") or {}).get("suspend"):
        resume = access.repeat(f"`vcbatch cronjob resume {name_of(cron)}`")
        note(f"cronjob {name_of(cron)} is suspended. To resume it: {resume}")
    slots = list(_next(plan, after=since, count=count))
    say(preview(slots, plan.zone, terminal_of(), now=now))
    return 0


def plan_of(cron: Json, *, now: datetime) -> tuple[Plan | None, datetime, list[str]]:
    """The parsed schedule, the time after which runs count, and the warnings of the controllers."""
    from vcbatch.api.cronjob import CronJob
    from vcbatch.api.model import MalformedObject
    from vcbatch.core.cronjob.children import read_time
    from vcbatch.core.cronjob.timetable import Past, timetable_of
    from vcbatch.core.cronjob.view import CronJobView
    from vcbatch.runtime.time_zones import time_zone

    try:
        parsed = CronJob.parse(cron)
    except MalformedObject as error:
        raise CliError(str(error)) from error
    status = parsed.status
    past = Past(last=read_time(status.last_schedule_time), not_before=read_time(status.ledger.not_before))
    timetable = timetable_of(CronJobView(cron_job=parsed, zones=time_zone), past, now=now)
    start = max(filter(None, (now, past.not_before)))
    return timetable.plan, start, [remark.message for remark in timetable.remarks]


def _next(plan: Plan, *, after: datetime, count: int) -> Iterator[datetime]:
    at: datetime | None = after
    for _ in range(count):
        at = plan.slots.next(at)
        if at is None:
            return
        yield at


def preview(slots: Sequence[datetime], zone: tzinfo, terminal: Terminal, *, now: datetime) -> str:
    """A line for each run: its time in the schedule's zone and in UTC, the time until then, and clock changes."""
    rows: list[Row] = [("START", "ZONE", "UTC", "IN", "")]
    before: datetime | None = None
    for slot in slots:
        here = slot.astimezone(zone)
        rows.append(
            (
                f"{here:%a %Y-%m-%d %H:%M:%S}",
                f"{here:%Z} {_offset(here)}" if here.tzname() != "UTC" else "UTC",
                f"{slot:%m-%d %H:%M:%S}",
                age(now, slot),
                _clock(before, here),
            )
        )
        before = here
    return table(rows, terminal=terminal, flexible=[4])


def _offset(here: datetime) -> str:
    offset = here.utcoffset() or timedelta()
    sign, minutes = ("-" if offset < timedelta() else "+"), abs(int(offset.total_seconds())) // 60
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"


def _clock(before: datetime | None, here: datetime) -> str:
    """The clock change (daylight saving time) since the previous run."""
    if here.fold:
        return "repeated hour (clock set back)"
    if before is None:
        return ""
    moved = (here.utcoffset() or timedelta()) - (before.utcoffset() or timedelta())
    if not moved:
        return ""
    return "clock set forward" if moved > timedelta() else "clock set back"
