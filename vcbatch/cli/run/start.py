"""The options of `vcbatch run` that decide when a job starts, and by when it has to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Final

import click

from vcbatch.api.names import AFTER, BEGIN_TIME, DEADLINE
from vcbatch.api.resources import JOBS
from vcbatch.api.timestamps import format_time
from vcbatch.cli.base.access import Access
from vcbatch.cli.base.fields import uid_of
from vcbatch.interfaces.api import Api

Json = dict[str, Any]

_FROM_NOW: Final = "now+"
_TIME_FORMS: Final = "2026-11-20T22:00, 2026-11-20T22:00:00Z or now+2h"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """The options as given."""

    after: tuple[str, ...] = ()
    begin: str | None = None
    deadline: str | None = None


def start_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options; the command gets them as `start`."""

    @click.option(
        "--after", multiple=True, metavar="JOB[:ok|any|fail]",
        help="Start after that job has completed (ok, the default), ended in any way, or failed; may be repeated.",
    )  # fmt: skip
    @click.option(
        "--begin",
        default=None,
        metavar="TIME",
        help="Start at this time at the earliest, e.g. 2026-11-20T22:00 or now+2h.",
    )
    @click.option(
        "--deadline", default=None, metavar="TIME",
        help="Cancel the job if it has not finished by this time, e.g. 8h or 2026-11-20T22:00.",
    )  # fmt: skip
    @wraps(command)
    def with_options(after: tuple[str, ...], begin: str | None, deadline: str | None, **others: Any) -> int:
        return command(start=StartOptions(after=after, begin=begin, deadline=deadline), **others)

    return with_options


def add_start(job: Json, given: StartOptions, access: Access, *, submit: bool) -> Json:
    """The job with the annotations for these options. Where it is to be submitted, each job that it depends on must
    exist, and is named with its UID. Raises `click.BadParameter`, `CliError`, `ApiError`."""
    now = access.now()
    found: dict[str, str] = {}
    if given.after:
        found[AFTER] = _after(given.after, access, submit=submit)
    begin = _moment(given.begin, "--begin", now)
    end = _moment(given.deadline, "--deadline", now, durations=True)
    if begin is not None:
        found[BEGIN_TIME] = format_time(begin + timedelta(seconds=begin.microsecond > 0))
    if end is not None:
        if end <= max(now, begin or now):
            than = "in the past" if end <= now else "not after --begin"
            raise click.BadParameter(f"{format_time(end)} is {than}", param_hint="--deadline")
        found[DEADLINE] = format_time(end)
    if found:
        job["metadata"].setdefault("annotations", {}).update(found)
    return job


def _after(texts: tuple[str, ...], access: Access, *, submit: bool) -> str:
    from dataclasses import replace

    from vcbatch.api.start_conditions import MalformedDependencyError, parse_dependencies

    try:
        wanted = parse_dependencies(",".join(texts))
    except MalformedDependencyError as error:
        raise click.BadParameter(str(error), param_hint="--after") from error

    async def with_uids(api: Api) -> str:
        named = [
            replace(one, uid=one.uid or uid_of(await api.get(JOBS, one.name, namespace=access.namespace)))
            for one in wanted
        ]
        return ",".join(map(str, named))

    return access.once(with_uids) if submit else ",".join(map(str, wanted))


def _moment(text: str | None, option: str, now: datetime, *, durations: bool = False) -> datetime | None:
    """The time: RFC 3339, local time where no offset is given, or a duration from now."""
    from vcbatch.sdk.compose.request import CannotCompose, time_limit_seconds

    if text is None:
        return None
    try:
        if text.startswith(_FROM_NOW):
            return now + timedelta(seconds=time_limit_seconds(text.removeprefix(_FROM_NOW)))
        try:
            return datetime.fromisoformat(text).astimezone(now.tzinfo)
        except ValueError:
            if not durations:
                raise
            return now + timedelta(seconds=time_limit_seconds(text))
    except (CannotCompose, OverflowError, ValueError):
        forms = f"{_TIME_FORMS}{', or a duration such as 8h' if durations else ''}"
        raise click.BadParameter(f"invalid time {text!r} (e.g. {forms})", param_hint=option) from None
