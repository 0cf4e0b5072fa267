"""`vcbatch accounting`: `list`, the records of attempts, and `report`, the usage by user, queue, job, namespace or
day."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from vcbatch.api.duration import MalformedDuration, parse_duration
from vcbatch.cli.accounting.formats import FORMATS, print_attempts, print_usage
from vcbatch.cli.accounting.reading import Source
from vcbatch.cli.base.access import Access, access_options
from vcbatch.core.accounting import Attempt, AttemptState, Filter, Group, summed

if TYPE_CHECKING:
    from vcbatch.core.accounting import Usage

F = TypeVar("F", bound=Callable[..., object])


class TimeType(click.ParamType):
    """A time as seconds since the epoch: a date, an RFC 3339 time, or an age such as `24h` or `7d`."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        try:
            if text.endswith("d") and text[:-1].isascii() and text[:-1].isdigit():
                return (datetime.now(UTC) - timedelta(days=int(text[:-1]))).timestamp()
            return (datetime.now(UTC) - parse_duration(text)).timestamp()
        except (MalformedDuration, OverflowError):
            pass
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"invalid time {text!r} (e.g. 24h, 7d, 2026-11-20 or 2026-11-20T12:00:00Z)", param, ctx)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@click.group("accounting", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> object:
    """Show records of jobs and their usage.

    Without a command, `list` is run. Records are kept after jobs are deleted.
    """
    if ctx.invoked_subcommand is not None:
        return None
    with list_.make_context("list", [], parent=ctx) as inner:
        return list_.invoke(inner)


def _selection(*, since: str) -> Callable[[F], F]:
    """Add the options that select records, as the arguments `source` and `chosen`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def called(
            *arguments: Any,
            access: Access,
            store: str | None,
            all_namespaces: bool,
            since: float,
            until: float | None,
            users: tuple[str, ...],
            queues: tuple[str, ...],
            phases: tuple[str, ...],
            **others: Any,
        ) -> object:
            source = Source(access=access, store=store, all_namespaces=all_namespaces)
            chosen = Filter(
                since=since,
                until=until,
                users=users,
                queues=queues,
                states=tuple(dict.fromkeys(phases)),
            )
            return function(*arguments, source=source, chosen=chosen, **others)

        options = (
            click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces."),
            click.option(
                "--since",
                type=TimeType(),
                default=since,
                show_default=True,
                help="Attempts that ended at or after a time: an age (24h, 7d), a date, or an RFC 3339 time.",
            ),
            click.option("--until", type=TimeType(), default=None, help="Attempts that ended before a time."),
            click.option("--user", "users", multiple=True, metavar="NAME", help="User; may be repeated."),
            click.option("--queue", "queues", multiple=True, metavar="NAME", help="Queue; may be repeated."),
            click.option(
                "--phase",
                "phases",
                multiple=True,
                help="State of the attempt; may be repeated.",
                type=click.Choice([str(state) for state in AttemptState], case_sensitive=False),
            ),
            click.option(
                "--store",
                metavar="URL",
                envvar="VCBATCH_ACCOUNTING_STORE",
                default=None,
                help="Read this store directly: sqlite:///PATH or postgresql://USER@HOST/DATABASE.  "
                "[env: VCBATCH_ACCOUNTING_STORE; default: the local server]",
            ),
            click.option(
                "-o",
                "--output",
                type=click.Choice(FORMATS),
                default="table",
                show_default=True,
                help="Output format.",
            ),
        )
        wrapped: Any = called
        for option in reversed(options):
            wrapped = option(wrapped)
        return cast("F", access_options(wrapped))

    return decorate


@command.command("list")
@click.option("--job", "jobs", multiple=True, metavar="NAME", help="Job; may be repeated.")
@_selection(since="24h")
def list_(source: Source, chosen: Filter, output: str, jobs: tuple[str, ...] = ()) -> int:
    """List attempts of jobs: those that run, and those that ended in the last 24 hours."""
    import msgspec

    found = source.attempts(msgspec.structs.replace(chosen, jobs=jobs))
    print_attempts(found, output, now=datetime.now(UTC).timestamp(), namespaces=source.many)
    return 0


@command.command("report")
@click.option(
    "--by", type=click.Choice([str(group) for group in Group]), default="user", show_default=True,
    help="What usage is summed by; a day is that of the end, in UTC.",
)  # fmt: skip
@_selection(since="30d")
def report(source: Source, chosen: Filter, output: str, by: str) -> int:
    """Sum the usage of attempts that ended in the last 30 days."""
    import msgspec

    group = Group(by)
    found = source.attempts(msgspec.structs.replace(chosen, include_open=False))
    print_usage(_summed(found, group), group, output)
    return 0


def _summed(found: Iterable[Attempt], group: Group) -> Sequence[Usage]:
    return summed(found, group, now=datetime.now(UTC).timestamp())
