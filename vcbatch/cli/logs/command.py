"""`vcbatch job logs`: the logs of all pods of a gang."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from vcbatch.api.loose import part
from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access, TimeoutType, access_options
from vcbatch.cli.base.fields import number, objects, text
from vcbatch.cli.base.names import job_names
from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.base.retry_notice import RetryNotice
from vcbatch.cli.base.terminal import terminal_of
from vcbatch.cli.resources.kinds import job_phase
from vcbatch.interfaces.api import ApiError

if TYPE_CHECKING:
    from vcbatch.runtime.client.http import HttpApi

Json = dict[str, Any]


class IndicesType(click.ParamType):
    """Indices of pods in a task: `0-3,7`."""

    name = "LIST"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[int]:
        if isinstance(value, frozenset):
            return value
        found: set[int] = set()
        for piece in str(value).split(","):
            first, dash, last = piece.strip().partition("-")
            if not (_is_index(first) and (not dash or _is_index(last)) and int(last or first) >= int(first)):
                self.fail(f"invalid index list {value!r} (e.g. 0-3,7)", param, ctx)
            found.update(range(int(first), int(last or first) + 1))
        return frozenset(found)


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    name: str
    follow: bool
    tail: int | None
    since: datetime | None
    timestamps: bool
    containers: tuple[str, ...]
    tasks: tuple[str, ...]
    indices: frozenset[int] | None
    prefix: bool | None


@click.command("logs")
@click.argument("name", metavar="JOB", shell_complete=job_names)
@click.option("-f", "--follow", is_flag=True, help="Follow the logs until the job finishes, across restarts.")
@click.option(
    "--tail",
    type=click.IntRange(min=-1),
    default=-1,
    metavar="N",
    help="Number of lines to print from the end of each log.  [default: all]",
)
@click.option(
    "--since",
    type=TimeoutType(),
    default=None,
    metavar="TIME",
    help="Print only lines newer than this, e.g. 30s or 2h.",
)
@click.option("--timestamps", is_flag=True, help="Print timestamps.")
@click.option(
    "-c", "--container", "containers", multiple=True, metavar="NAME", help="Filter by container; may be repeated."
)
@click.option("--task", "tasks", multiple=True, metavar="NAME", help="Filter by task; may be repeated.")
@click.option("--index", "indices", type=IndicesType(), default=None, help="Filter by pod index, e.g. 0-3,7.")
@click.option(
    "--prefix/--no-prefix", default=None,
    help="Prefix each line with its pod.  [default: if there are several containers]",
)  # fmt: skip
@access_options
def command(
    access: Access,
    name: str,
    follow: bool,
    tail: int,
    since: timedelta | None,
    timestamps: bool,
    containers: tuple[str, ...],
    tasks: tuple[str, ...],
    indices: frozenset[int] | None,
    prefix: bool | None,
) -> int:
    """Print the logs of a job's pods.

    For a pending job, print why it is pending. With -f, wait for the job to start, follow restarted pods, and exit when
    the job finishes. Messages go to standard error. Init containers are included only with -c.
    """
    asked = _Asked(
        name=name,
        follow=follow,
        tail=None if tail < 0 else tail,
        since=datetime.now(UTC) - since if since else None,
        timestamps=timestamps,
        containers=containers,
        tasks=tasks,
        indices=indices,
        prefix=prefix,
    )
    from vcbatch.cli.base.reader import while_read
    from vcbatch.sdk.logs import MAX_STREAMS

    server = access.connection().server
    access.streaming(lambda api: while_read(_show(api, access.namespace, asked, server=server)), streams=MAX_STREAMS)
    return 0


async def _show(api: HttpApi, namespace: str, asked: _Asked, *, server: str) -> None:
    from vcbatch.cli.logs.lines import Layout, Style, Writer, show
    from vcbatch.cli.logs.watch import finished, say_why, waits
    from vcbatch.sdk.logs import follow_job

    job: Json = await api.get(JOBS, asked.name, namespace=namespace)
    _check(job, asked)
    layout = Layout.of(job, tasks=asked.tasks or None, indices=asked.indices, containers=asked.containers or None)
    shown = layout.speakers > 1 if asked.prefix is None else asked.prefix
    style = Style(layout=layout if shown else None, timestamps=asked.timestamps, terminal=terminal_of(sys.stdout))
    writer = Writer(sys.stdout)
    lines = follow_job(
        api,
        namespace=namespace,
        name=asked.name,
        follow=asked.follow,
        tail=asked.tail,
        since=asked.since,
        containers=asked.containers or None,
        tasks=asked.tasks or None,
        indices=asked.indices,
        on_trouble=RetryNotice(server, writer.aside),
        on_silence=writer.aside,
    )
    waiting = asyncio.create_task(say_why(api, job)) if asked.follow and not finished(job) else None
    try:
        await show(lines, style, writer)
    finally:
        if waiting is not None:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
    if asked.follow:
        await _say_how_it_ended(api, job)
    elif why := waits(job):
        note(why)


async def _say_how_it_ended(api: HttpApi, job: Json) -> None:
    """Print how the job ended, unless it completed."""
    from vcbatch.cli.logs.watch import finished
    from vcbatch.cli.resources.outcome import sentence

    try:
        last: Json = await api.get(JOBS, job["metadata"]["name"], namespace=job["metadata"]["namespace"])
    except ApiError:  # the job was deleted, which is reported already, or the server is unreachable
        return
    if finished(last) and job_phase(last) != JobPhase.COMPLETED:
        note(sentence(last, now=datetime.now(UTC)))


def _check(job: Json, asked: _Asked) -> None:
    """Raise `CliError` where the options match no pod of the job, since waiting for one would never end."""
    sizes = {text(task, "name"): number(task, "replicas") for task in objects(job, "spec", "tasks")}
    for task in asked.tasks:
        if task not in sizes:
            raise CliError(f"job {asked.name} has no task {task}", hint=f"Tasks: {', '.join(sizes)}.")
    largest = max((size for name, size in sizes.items() if not asked.tasks or name in asked.tasks), default=0)
    known = {
        text(one, "name")
        for task in objects(job, "spec", "tasks")
        for kind in ("containers", "initContainers")
        for one in objects(part(task, "template"), "spec", kind)
    }
    for container in asked.containers:
        if container not in known:
            raise CliError(
                f"job {asked.name} has no container {container}", hint=f"Containers: {', '.join(sorted(known))}."
            )
    if asked.indices is not None and min(asked.indices) >= largest:
        raise CliError(
            f"job {asked.name} has no pod with index {min(asked.indices)}", hint=f"The highest index is {largest - 1}."
        )
