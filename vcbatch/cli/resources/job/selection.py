"""Several jobs at once, for `job cancel` and `job delete`: by name, or by label, phase, queue and age."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

import click

from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access
from vcbatch.cli.base.fields import moment, name_of
from vcbatch.cli.base.names import job_names, queue_names
from vcbatch.cli.base.output import note, say
from vcbatch.cli.base.spans import SpanType
from vcbatch.cli.base.titles import title
from vcbatch.cli.resources.job_columns import job_order
from vcbatch.cli.resources.kinds import job_phase, job_queue
from vcbatch.interfaces.api import Api

Json = dict[str, Any]
F = TypeVar("F", bound=Callable[..., object])

_SHOWN: Final = 10
"""Jobs that are named in the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The options. Without names, a job has to match all of them."""

    names: tuple[str, ...]
    every: bool
    label_selector: str
    phases: tuple[str, ...]
    queues: tuple[str, ...]
    older_than: timedelta | None
    yes: bool
    dry_run: bool

    @property
    def by_name(self) -> bool:
        return bool(self.names)


def selection_options(verb: str) -> Callable[[F], F]:
    """Add the argument NAME... and the options that select jobs, as the argument `selection`. `verb` is what the
    command does, for its help."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(
            *arguments: Any,
            names: tuple[str, ...],
            every: bool,
            label_selector: str,
            phases: tuple[str, ...],
            queues: tuple[str, ...],
            older_than: timedelta | None,
            yes: bool,
            dry_run: bool,
            **others: Any,
        ) -> object:
            filtered = bool(label_selector or phases or queues or older_than is not None)
            if names and (every or filtered):
                raise click.UsageError("names and --all, -l, --phase, --queue or --older-than are mutually exclusive")
            if not (names or every or filtered):
                raise click.UsageError("a name, --all, -l, --phase, --queue or --older-than is required")
            if not names and not (yes or dry_run or sys.stdin.isatty()):
                raise click.UsageError("not a terminal: use --yes, or --dry-run to preview")
            selection = Selection(
                names=names,
                every=every,
                label_selector=label_selector,
                phases=phases,
                queues=queues,
                older_than=older_than,
                yes=yes,
                dry_run=dry_run,
            )
            return function(*arguments, selection=selection, **others)

        wrapped: Any = command
        for option in reversed(_options(verb)):
            wrapped = option(wrapped)
        return cast("F", wrapped)

    return decorate


def _options(verb: str) -> Sequence[Callable[[Any], Any]]:
    return (
        click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=job_names),
        click.option("--all", "every", is_flag=True, help=f"{verb} all jobs of the namespace."),
        click.option(
            "-l", "--selector", "label_selector", default="", metavar="SELECTOR",
            help=f"{verb} the jobs with these labels, e.g. team=vision.",
        ),
        click.option(
            "--phase", "phases", multiple=True, type=click.Choice(list(JobPhase), case_sensitive=False),
            metavar="PHASE", help=f"{verb} the jobs in this phase; may be repeated.",
        ),
        click.option(
            "-q", "--queue", "queues", multiple=True, metavar="QUEUE", shell_complete=queue_names,
            help=f"{verb} the jobs of this queue; may be repeated.",
        ),
        click.option(
            "--older-than", type=SpanType(), default=None, metavar="TIME",
            help=f"{verb} the jobs that were created longer ago than this, e.g. 12h or 7d.",
        ),
        click.option("--yes", "-y", is_flag=True, help="Don't ask for confirmation."),
        click.option("--dry-run", is_flag=True, help="Print the jobs, without changing them."),
    )  # fmt: skip


def chosen(
    access: Access, selection: Selection, *, verb: str, keep: Callable[[Json], bool] = lambda _: True
) -> Sequence[str] | None:
    """The names of the selected jobs, after confirmation for those that weren't named; None where the user declined.
    Jobs selected by filters also have to pass `keep`. `verb` is what happens to them: `cancel`. Raises `CliError`."""
    if selection.by_name:
        if selection.dry_run:
            for name in selection.names:
                say(f"{title(JOBS, name)} would be {_past(verb)}")
            return ()
        return selection.names
    found = sorted(filter(keep, access.once(lambda api: _matching(api, access, selection))), key=job_order)
    names = [name_of(job) for job in found]
    if not found:
        note(f"No matching jobs to {verb} in namespace {access.namespace}.")
        return ()
    if selection.dry_run:
        for job in found:
            say(f"{title(JOBS, name_of(job))} would be {_past(verb)} ({job_phase(job)})")
        return ()
    if selection.yes:
        return names
    for name in names[:_SHOWN]:
        note(f"  {name}")
    if len(names) > _SHOWN:
        note(f"  ... and {len(names) - _SHOWN} more")
    counts = ", ".join(f"{count} {phase}" for phase, count in Counter(map(job_phase, found)).items())
    number = f"{len(names)} job{'' if len(names) == 1 else 's'}"
    question = f"{verb.capitalize()} {number} in namespace {access.namespace} ({counts})?"
    if click.confirm(question, err=True):
        return names
    note("Nothing was changed.")
    return None


def _past(verb: str) -> str:
    return {"cancel": "cancelled", "delete": "deleted"}[verb]


async def _matching(api: Api, access: Access, selection: Selection) -> Sequence[Json]:
    """The jobs that match all options; servers can't select custom resources by other fields than labels and names."""
    listing = await api.list(JOBS, namespace=access.namespace, label_selector=selection.label_selector)
    before = None if selection.older_than is None else access.now() - selection.older_than

    def matches(job: Json) -> bool:
        created = moment(job, "metadata", "creationTimestamp")
        return (
            (not selection.phases or job_phase(job) in selection.phases)
            and (not selection.queues or job_queue(job) in selection.queues)
            and (before is None or (created is not None and created < before))
        )

    return [job for job in listing.items if matches(job)]
