"""`vcbatch queue delete`, also of queues that still have jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from vcbatch.api.names import QUEUE_NAME
from vcbatch.api.phases import Action, QueueState
from vcbatch.api.resources import JOBS, PODS, QUEUES
from vcbatch.api.unfinished import holds_node, is_unfinished_job, names_work, phase_of_job, queue_of
from vcbatch.cli.base.access import Access, TimeoutType, access_options
from vcbatch.cli.base.exit_codes import TIMED_OUT
from vcbatch.cli.base.fields import name_of, namespace_of, uid_of
from vcbatch.cli.base.names import queue_names
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.retry_notice import RetryNotice
from vcbatch.cli.base.terminal import clean
from vcbatch.cli.base.titles import title
from vcbatch.cli.resources.kinds import queue_state
from vcbatch.cli.resources.queue.actions import ask_queue
from vcbatch.cli.resources.queue.order import all_below, lowest_first
from vcbatch.cli.resources.reading import within_reach
from vcbatch.interfaces.api import ApiError

if TYPE_CHECKING:
    from vcbatch.interfaces.api import Api
    from vcbatch.interfaces.clock import Clock
    from vcbatch.runtime.client.http import HttpApi

Json = dict[str, Any]

_UNFINISHED = ("running", "inqueue", "pending", "unknown")
_AGAIN_SECONDS = 1.0
_MOST_NAMED = 5


@click.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=queue_names)
@click.option("--drain", is_flag=True, help="Close the queues, wait for their jobs to finish, then delete them.")
@click.option("--timeout", type=TimeoutType(), metavar="TIME", help="Timeout of --drain; the queues stay closed.")
@access_options
def delete(names: Sequence[str], access: Access, drain: bool, timeout: timedelta | None) -> int:
    """Delete empty leaf queues (children before parents).

    With --drain, close the queues first and delete each when its jobs have finished.
    """
    if timeout is not None and not drain:
        raise click.UsageError("--timeout requires --drain")

    if drain:
        return access.streaming(lambda api: _drained(api, access, names, timeout), streams=len(names) + 1)

    found: list[Json] = []

    async def find(api: Api, name: str) -> None:
        found.append(await api.get(QUEUES, name))

    code = access.each(names, find)
    queues = {name_of(queue): queue for queue in lowest_first(found)}
    return max(code, access.each(queues, lambda api, name: _delete(api, queues[name])))


async def _drained(api: HttpApi, access: Access, names: Sequence[str], timeout: timedelta | None) -> int:
    """Drain all queues at once, and delete each one when those below it are deleted. A queue with children that stay
    isn't even closed. Errors are reported at the end, as the other queues are independent of them."""
    notice = RetryNotice(access.connection().server)
    there = (await api.list(QUEUES)).items
    draining: dict[str, asyncio.Task[None]] = {}
    failed = False
    for name in dict.fromkeys([*map(name_of, lowest_first(there)), *names]):
        below = all_below(name, there)
        if name not in names:
            continue
        if staying := [one for one in below if one not in names]:
            failed = True
            hint = f"Delete the children as well: vcbatch queue delete --drain {' '.join([name, *staying])}"
            access.report(CliError(f"queue {name} has child queues: {', '.join(staying)}", hint=hint))
            continue
        before = [draining[one] for one in below if one in draining]
        draining[name] = asyncio.create_task(_drain(api, name, notice, before=before))
    try:
        async with asyncio.timeout(timeout.total_seconds() if timeout else None):
            ends = await asyncio.gather(*draining.values(), return_exceptions=True)
    except TimeoutError:
        left = [name for name, task in draining.items() if task.cancelled()]
        undo = access.repeat(f"`vcbatch queue open {' '.join(left)}`")
        note(f"timed out waiting for jobs to finish; the queues stay closed. To reopen them: {undo}")
        return TIMED_OUT
    for error in filter(None, ends):
        if not isinstance(error, CliError | ApiError):
            raise error
        failed = True
        access.report(error if isinstance(error, CliError) else access.refusal(error))
    return 1 if failed else 0


async def _delete(api: Api, queue: Json, *, draining: bool = False) -> None:
    name = queue["metadata"]["name"]
    try:
        await api.delete(QUEUES, name, uid=uid_of(queue))
    except ApiError as error:
        if draining or not names_work(error.message):
            raise
        hint = f"To close it, wait for its jobs and then delete it: `vcbatch queue delete --drain {name}`"
        raise CliError(clean(str(error)), hint=hint) from error
    say(f"{title(QUEUES, name)} deleted")


async def _drain(api: HttpApi, name: str, notice: RetryNotice, *, before: Sequence[asyncio.Task[None]]) -> None:
    """Close the queue, and delete it when its controller reports no work in it and the tasks `before` have ended."""
    from vcbatch.runtime.clock import SystemClock
    from vcbatch.runtime.random import SystemRandom
    from vcbatch.sdk.watching import changes

    queue = await api.get(QUEUES, name)
    uid, closing = uid_of(queue), queue_state(queue) in (QueueState.CLOSING, QueueState.CLOSED)
    if not closing:
        await ask_queue(api, name, Action.CLOSE_QUEUE)
        say(f"{title(QUEUES, name)} closed")
    said, clock = "", SystemClock()
    batches = changes(
        api,
        QUEUES,
        namespace=None,
        field_selector=f"metadata.name={name}",
        clock=clock,
        random=SystemRandom(),
        on_trouble=notice,
    )
    async with aclosing(batches) as stream:
        async for batch in stream:
            for change in batch:
                queue = {} if change.deleted else change.object
            if not queue or uid_of(queue) != uid:
                raise CliError(f"queue {name} was deleted by another client")
            state, inside = queue_state(queue), _inside(queue)
            if state == QueueState.CLOSED and not inside:
                await asyncio.gather(*before, return_exceptions=True)
                await _delete_when_empty(api, queue, clock)
                return
            if closing and state == QueueState.OPEN:
                raise _opened(name)
            closing = closing or state != QueueState.OPEN
            if state == QueueState.CLOSING and not inside:
                inside = await _jobs_inside(api, name) or await _pods_inside(api, name)
            if closing and inside and inside != said:
                said = inside
                note(f"queue {name}: {inside}")
    raise AssertionError("changes go on without end")


async def _delete_when_empty(api: Api, queue: Json, clock: Clock) -> None:
    """Delete the queue; retried while the server still finds work in it."""
    name, said = name_of(queue), ""
    while True:
        try:
            return await _delete(api, queue, draining=True)
        except ApiError as error:
            if not names_work(error.message):
                raise
            if error.message != said:
                said = error.message
                note(said)
        await clock.sleep(_AGAIN_SECONDS)
        if queue_state(await api.get(QUEUES, name)) == QueueState.OPEN:
            raise _opened(name)


def _opened(name: str) -> CliError:
    return CliError(f"queue {name} was reopened by another client", hint="Its jobs continue.")


async def _jobs_inside(api: Api, name: str) -> str:
    """The unfinished jobs of the queue that the user may list. The counts in its status are of PodGroups, and a job
    that is suspended or between two attempts has none."""
    jobs = [job for job in await within_reach(api, JOBS) if queue_of(job) == name and is_unfinished_job(job)]
    named = [f"{namespace_of(job)}/{name_of(job)} {phase_of_job(job)}" for job in jobs[:_MOST_NAMED]]
    more = [f"{len(jobs) - _MOST_NAMED} more"] if len(jobs) > _MOST_NAMED else []
    return f"{len(jobs)} jobs without a PodGroup: {', '.join([*named, *more])}" if jobs else ""


async def _pods_inside(api: Api, name: str) -> str:
    """The pods of deleted or finished jobs that still use nodes, as far as the user may list them."""
    pods = await within_reach(api, PODS, label_selector=f"{QUEUE_NAME}={name}")
    named = [f"{namespace_of(pod)}/{name_of(pod)}" for pod in pods if holds_node(pod)]
    more = [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    shown = ", ".join([*named[:_MOST_NAMED], *more])
    return f"{len(named)} pods still on nodes: {shown}" if named else ""


def _inside(queue: Json) -> str:
    """The unfinished work in the queue, as its controller counts it; empty where there is none."""
    status = queue.get("status") or {}
    counts = {word: status.get(word) or 0 for word in _UNFINISHED}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)
