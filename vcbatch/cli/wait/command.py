"""`vcbatch wait`: options and waiting."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access, TimeoutType, access_options
from vcbatch.cli.base.exit_codes import TIMED_OUT
from vcbatch.cli.base.names import job_names
from vcbatch.cli.base.output import CliError, complain, say
from vcbatch.cli.base.retry_notice import RetryNotice
from vcbatch.cli.base.terminal import terminal_of
from vcbatch.cli.base.titles import title
from vcbatch.cli.wait.conditions import DEFAULTS, Condition, Kind, MalformedCondition, condition, kind_of

if TYPE_CHECKING:
    from vcbatch.cli.wait.reporter import Reporter
    from vcbatch.runtime.client.http import HttpApi

Json = dict[str, Any]

_INTERVAL: Final = 0.5
"""Seconds between two updates of the status line."""


@click.command("wait")
@click.argument("what", nargs=-1, required=True, metavar="[KIND/]NAME...", shell_complete=job_names)
@click.option(
    "--for", "wanted", default=None, metavar="CONDITION",
    help="Phase (e.g. running, completed), finished, created, deleted, condition=NAME or jsonpath=PATH=VALUE."
    "  [default: finished]",
)  # fmt: skip
@click.option(
    "--timeout", type=TimeoutType(), default=None, metavar="TIME", help="Timeout, e.g. 90s or 2h.  [default: none]"
)
@access_options
def command(access: Access, what: tuple[str, ...], wanted: str | None, timeout: timedelta | None) -> int:
    """Wait for a condition on jobs or other objects.

    \b
    vcbatch wait train --for completed
    vcbatch wait queue/research --for open
    vcbatch wait train --for jsonpath='{.status.running}'=4

    Exits 0 when all conditions are met, 1 if one can no longer be met (e.g. the job failed or was deleted), 124 after
    the timeout. Progress is printed to standard error.
    """
    asked: dict[str, tuple[Kind, str, Condition]] = {}
    for text in what:
        word, slash, name = text.partition("/")
        try:
            kind = kind_of(word if slash else JOBS.kind)
            name = name if slash else text
            awaited = condition(wanted or DEFAULTS.get(kind.resource, "created"), kind)
            asked[f"{kind.words[0]} {name}"] = (kind, name, awaited)
        except MalformedCondition as error:
            raise click.UsageError(str(error)) from error
    seconds = timeout.total_seconds() if timeout else None

    async def work(api: HttpApi) -> int:
        from vcbatch.cli.run.progress import StatusLine
        from vcbatch.cli.wait.reporter import Reporter

        namespace = access.namespace
        reporter = Reporter(StatusLine(sys.stderr, terminal_of(sys.stderr)))
        notice = RetryNotice(access.connection().server, reporter.aside)
        waiting = {
            called: asyncio.create_task(_one(api, kind, name, awaited, namespace, notice, reporter))
            for called, (kind, name, awaited) in asked.items()
        }
        drawing = asyncio.create_task(_draw(reporter, access))
        try:
            return await _all(waiting, asked, seconds, reporter)
        finally:
            drawing.cancel()
            await asyncio.gather(drawing, return_exceptions=True)
            reporter.close()

    return access.streaming(work, streams=len(asked) + 1)


async def _draw(reporter: Reporter, access: Access) -> None:
    while True:
        reporter.draw(access.now())
        await asyncio.sleep(_INTERVAL)


async def _all(
    waiting: Mapping[str, asyncio.Task[str]],
    asked: Mapping[str, tuple[Kind, str, Condition]],
    seconds: float | None,
    reporter: Reporter,
) -> int:
    """Wait for all conditions; returns the exit code. A condition that is met is reported at once."""
    by_task = {task: called for called, task in waiting.items()}
    pending = set(by_task)
    deadline = asyncio.get_running_loop().time() + seconds if seconds is not None else None
    try:
        while pending:
            left = None if deadline is None else max(deadline - asyncio.get_running_loop().time(), 0.0)
            done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                reporter.close()
                for called in sorted(by_task[task] for task in pending):
                    complain(CliError(f"timed out after {seconds:g} s waiting for {called}: {asked[called][2].said}"))
                return TIMED_OUT
            for task in done:
                called = by_task[task]
                reporter.reached(called)
                if trouble := task.result():
                    complain(CliError(f"{called} {trouble}"))
                    return 1
                kind, name, _ = asked[called]
                say(f"{title(kind.resource, name)} condition met")
        return 0
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def _one(
    api: HttpApi, kind: Kind, name: str, awaited: Condition, namespace: str, notice: RetryNotice, reporter: Reporter
) -> str:
    """Empty once the condition is met, else why it can no longer be met."""
    from vcbatch.runtime.clock import SystemClock
    from vcbatch.runtime.random import SystemRandom
    from vcbatch.sdk.watching import changes

    batches = changes(
        api,
        kind.resource,
        namespace=namespace if kind.resource.namespaced else None,
        field_selector=f"metadata.name={name}",
        clock=SystemClock(),
        random=SystemRandom(),
        on_trouble=notice,
    )
    obj: Json | None = None
    async with aclosing(batches) as stream:
        async for batch in stream:
            existed = obj is not None
            for change in batch:
                obj = None if change.deleted else change.object
            if awaited.holds(obj):
                return ""
            if obj is None and not awaited.without:
                return "was deleted" if existed else "not found"
            if obj is not None and (trouble := awaited.hopeless(obj)):
                return trouble
            reporter.update(f"{kind.words[0]} {name}", kind, awaited, obj)
    raise AssertionError("changes go on without end")
