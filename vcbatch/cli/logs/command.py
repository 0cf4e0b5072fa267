"""`vcbatch job logs`: the logs of all pods of a gang."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBS, PODS
from vcbatch.cli.base.access import Access, TimeoutType, access_options
from vcbatch.cli.base.fields import number, objects, text
from vcbatch.cli.base.names import job_names
from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.base.retry_notice import RetryNotice
from vcbatch.cli.base.terminal import terminal_of
from vcbatch.cli.resources.kinds import job_phase
from vcbatch.interfaces.api import ApiError

if TYPE_CHECKING:
    from vcbatch.cli.logs.lines import Style
    from vcbatch.runtime.client.http import HttpApi

Json = dict[str, Any]
Notice = Callable[[Callable[[str], None]], RetryNotice]


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
    attempt: int | None
    previous: bool
    uid: str


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
    "--attempt", type=click.IntRange(min=1), default=None, metavar="N",
    help="Attempt of the job, from 1.  [default: the latest that has logs]",
)  # fmt: skip
@click.option(
    "-p", "--previous", is_flag=True,
    help="Print the logs of the previous attempt or, in the first one, those before the containers' last restart.",
)  # fmt: skip
@click.option("--uid", default="", metavar="UID", help="UID of a deleted job, if there were several of this name.")
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
    attempt: int | None,
    previous: bool,
    uid: str,
    prefix: bool | None,
) -> int:
    """Print the logs of a job's pods.

    For a pending job, print why it is pending. With -f, wait for the job to start, follow restarted pods, and exit when
    the job finishes. Messages go to standard error. Init containers are included only with -c.

    A local server keeps the logs of deleted pods: those of earlier attempts, and of cancelled, suspended and deleted
    jobs.
    """
    if follow and (attempt is not None or previous or uid):
        raise click.UsageError(
            "-f follows the running attempt: it can't be combined with --attempt, --previous or --uid"
        )
    if attempt is not None and previous:
        raise click.UsageError("--attempt and --previous can't be combined")
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
        attempt=attempt,
        previous=previous,
        uid=uid,
    )
    from vcbatch.cli.base.local_end import LocalEnd, local_state
    from vcbatch.cli.base.reader import while_read
    from vcbatch.sdk.logs import MAX_STREAMS

    server = access.connection().server
    ended = LocalEnd(local_state(access.kubeconfig, server), follow_up=access.repeat(f"vcbatch job logs -f {name}"))
    notice = partial(RetryNotice, server, ended=ended)
    access.streaming(lambda api: while_read(_show(api, access.namespace, asked, notice)), streams=MAX_STREAMS)
    return 0


async def _show(api: HttpApi, namespace: str, asked: _Asked, notice: Notice) -> None:
    from vcbatch.cli.logs.watch import finished

    if asked.follow:
        job = await _job(api, namespace, asked.name)
        if job is not None and not finished(job):
            _check(job, asked)
            await _follow(api, job, asked, notice)
            return
    job = await _print_once(api, namespace, asked)
    if asked.follow and job is not None:
        await _say_how_it_ended(api, job)


async def _job(api: HttpApi, namespace: str, name: str) -> Json | None:
    """The job; None where it doesn't exist."""
    try:
        return await api.get(JOBS, name, namespace=namespace)
    except ApiError as error:
        if not error.not_found:
            raise
        return None


def _style(job: Json, asked: _Asked) -> Style:
    from vcbatch.cli.logs.lines import Layout, Style

    layout = Layout.of(job, tasks=asked.tasks or None, indices=asked.indices, containers=asked.containers or None)
    shown = layout.speakers > 1 if asked.prefix is None else asked.prefix
    return Style(layout=layout if shown else None, timestamps=asked.timestamps, terminal=terminal_of(sys.stdout))


async def _follow(api: HttpApi, job: Json, asked: _Asked, notice: Notice) -> None:
    """Print the logs until the job has finished, and how it ended."""
    from vcbatch.cli.logs.lines import ProgressLine, Writer, show
    from vcbatch.cli.logs.watch import say_why
    from vcbatch.sdk.logs import follow_job

    style = _style(job, asked)
    progress = ProgressLine(sys.stdout, style)
    writer = Writer(sys.stdout, before=progress.clear)
    lines = follow_job(
        api,
        namespace=job["metadata"]["namespace"],
        name=asked.name,
        tail=asked.tail,
        since=asked.since,
        containers=asked.containers or None,
        tasks=asked.tasks or None,
        indices=asked.indices,
        on_trouble=notice(writer.aside),
        on_silence=writer.aside,
        on_unfinished=progress.draw if progress.on_screen else None,
    )
    waiting = asyncio.create_task(say_why(api, job))
    try:
        await show(lines, style, writer)
    finally:
        progress.clear()
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
    await _say_how_it_ended(api, job)


async def _print_once(api: HttpApi, namespace: str, asked: _Asked) -> Json | None:
    """Print the present logs, and why there are none. Returns the job; None for a deleted one."""
    from vcbatch.cli.logs.kept import from_kept, other_jobs
    from vcbatch.cli.logs.lines import Writer, show
    from vcbatch.cli.logs.silence import why_nothing
    from vcbatch.cli.logs.watch import waits
    from vcbatch.sdk.log_sources import NoSuchAttemptError
    from vcbatch.sdk.past_logs import LogRequest, PastLogs

    request = LogRequest(
        namespace=namespace, name=asked.name, uid=asked.uid, attempt=asked.attempt, previous=asked.previous,
        tail=asked.tail, since=asked.since, containers=asked.containers or None, tasks=asked.tasks or None,
        indices=asked.indices,
    )  # fmt: skip
    found = await _job(api, namespace, asked.name)
    if found is not None and asked.uid in ("", found["metadata"]["uid"]):
        _check(found, asked)
    try:
        past = await PastLogs.open(api, request)
    except NoSuchAttemptError as error:
        known = ", ".join(map(str, error.known))
        hint = f"Attempts with logs: {known}." if known else "No attempt has logs yet."
        raise CliError(f"job {asked.name} has no logs of that: {error}", hint=hint) from error
    job = found if past.job_exists else None
    shown = job if job is not None else from_kept(past)
    if job is None:
        _check(shown, asked)
        if not asked.uid and (others := other_jobs(past)):
            note(others)
    writer = Writer(sys.stdout)
    said: list[str] = []

    def aside(sentence: str) -> None:
        said.append(sentence)
        writer.aside(sentence)

    printed = await show(past.lines(aside), _style(shown, asked), writer)
    waiting = waits(job) if job is not None else ""
    if printed:
        if waiting:
            note(waiting)
        return job
    if not said:
        pods: list[Json] = []
        if job is not None:
            selector = f"{names.JOB_NAME}={asked.name}"
            pods = list((await api.list(PODS, namespace=namespace, label_selector=selector)).items)
        for sentence in why_nothing(past, {pod["metadata"]["uid"]: pod for pod in pods}, waiting=waiting):
            note(sentence)
    return job


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
