"""`vcbatch cronjob describe`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from vcbatch.api.resources import CRONJOBS, JOBS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import dig, moment, name_of, namespace_of, objects, text, uid_of, words
from vcbatch.cli.base.names import cron_names
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.base.table import Cell
from vcbatch.cli.base.terminal import Terminal, Tone, terminal_of
from vcbatch.cli.resources.cron.preview import plan_of
from vcbatch.cli.resources.job_columns import JOB
from vcbatch.cli.resources.reading import events_of, owned_by, within_reach
from vcbatch.cli.resources.sections import (
    document,
    events_text,
    facts,
    labels_text,
    moment_text,
    objects_table,
    section,
)
from vcbatch.interfaces.api import Api

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CronScreen:
    """A CronJob with the jobs that it created."""

    cron: Json
    jobs: Sequence[Json] = ()
    events: Sequence[Json] = ()


@click.command("describe")
@click.argument("name", shell_complete=cron_names)
@access_options
def command(name: str, access: Access) -> int:
    """Show details of a cron job: schedule, last and active jobs, events."""

    async def fetch(api: Api) -> CronScreen:
        cron = await api.get(CRONJOBS, name, namespace=access.namespace)
        jobs = owned_by(await within_reach(api, JOBS, namespace=access.namespace), uid_of(cron))
        return CronScreen(cron=cron, jobs=jobs, events=await events_of(api, cron))

    say(described(access.once(fetch), terminal_of(), now=access.now(), complete=access.repeat))
    return 0


def described(screen: CronScreen, terminal: Terminal, *, now: datetime, complete: Callable[[str], str] = str) -> str:
    """The text of the screen. `complete` completes the commands in it."""
    return document(
        [
            facts(_facts(screen.cron, now, complete), terminal),
            section("Jobs", objects_table(JOB.columns, screen.jobs, terminal, now=now), terminal),
            section("Events", events_text(screen.events, terminal, now=now), terminal),
        ]
    )


def _next(cron: Json, now: datetime) -> str | Cell:
    """The next scheduled run, or why there is none."""
    try:
        plan, since, remarks = plan_of(cron, now=now)
    except CliError as error:
        return Cell(str(error), Tone.BAD)
    slot = plan.slots.next(since) if plan is not None else None
    if slot is None:
        return Cell("; ".join(remarks) or "never", Tone.BAD)
    return moment_text(slot, now)


def _facts(cron: Json, now: datetime, complete: Callable[[str], str]) -> Iterator[tuple[str, str | Cell]]:
    name = name_of(cron)
    yield "Name", f"{namespace_of(cron)}/{name}"
    yield "Schedule", f"{text(cron, 'spec', 'schedule')} ({text(cron, 'spec', 'timeZone') or 'UTC'})"
    if dig(cron, "spec", "suspend") is True:
        yield "Suspended", Cell(f"yes; {complete(f'vcbatch cronjob resume {name}')}", Tone.WAITING)
    else:
        yield "Next run", _next(cron, now)
    yield "Concurrency", text(cron, "spec", "concurrencyPolicy") or "Allow"
    deadline = text(cron, "spec", "startingDeadlineSeconds")
    yield "Deadline", f"{deadline} s after the scheduled time" if deadline else ""
    kept = [
        f"{text(cron, 'spec', field) or default} {word}"
        for field, default, word in (
            ("successfulJobsHistoryLimit", "3", "completed"),
            ("failedJobsHistoryLimit", "1", "failed"),
        )
    ]
    yield "History limit", ", ".join(kept)
    yield "Active", ", ".join(text(one, "name") for one in objects(cron, "status", "active"))
    yield "Last run", moment_text(moment(cron, "status", "lastScheduleTime"), now)
    yield "Last success", moment_text(moment(cron, "status", "lastSuccessfulTime"), now)
    yield "Created", moment_text(moment(cron, "metadata", "creationTimestamp"), now)
    yield "Labels", labels_text(words(cron, "metadata", "labels"))
