"""`vcbatch queue delete`, also of queues that jobs are still in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from vcbatch.api.phases import Action, QueueState
from vcbatch.api.resources import QUEUES
from vcbatch.cli.access import Access, TimeoutType, access_options
from vcbatch.cli.completion.names import queue_names
from vcbatch.cli.output import CliError, note, say
from vcbatch.cli.resources.fields import uid_of
from vcbatch.cli.resources.kinds import queue_state
from vcbatch.cli.resources.queue.actions import ask_queue
from vcbatch.cli.trouble import Trouble
from vcbatch.cli.wait.command import TIMED_OUT

if TYPE_CHECKING:
    from vcbatch.runtime.client import HttpApi
    from vcbatch.seams.api import Api

Json = dict[str, Any]

_UNFINISHED = ("running", "inqueue", "pending", "unknown")


@click.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=queue_names)
@click.option("--drain", is_flag=True, help="Close them, and delete each when the jobs in it have ended.")
@click.option(
    "--timeout", type=TimeoutType(), metavar="TIME", help="With --drain: give up after so long, and leave them closed."
)
@access_options
def delete(names: Sequence[str], access: Access, drain: bool, timeout: timedelta | None) -> int:
    """Delete queues that nothing is in.

    With --drain they are closed at first, with those below them, and go when what is in them has ended.
    """
    if timeout is not None and not drain:
        raise click.UsageError("--timeout is for --drain")

    async def work(api: Api) -> None:
        for name in names:
            await _delete(api, await api.get(QUEUES, name))

    async def drained(api: HttpApi) -> int:
        told = Trouble(access.connection().server)
        try:
            async with asyncio.timeout(timeout.total_seconds() if timeout else None):
                ends = await asyncio.gather(*[_drain(api, name, told) for name in names], return_exceptions=True)
        except TimeoutError:
            note("not all jobs have ended in time; the queues stay closed (vcbatch queue open undoes that)")
            return TIMED_OUT
        for error in ends:  # only now, as the other queues have nothing to do with it
            if error is not None:
                raise error
        return 0

    if drain:
        return access.streaming(drained, streams=len(names) + 1)
    access.once(work)
    return 0


async def _delete(api: Api, queue: Json) -> None:
    name = queue["metadata"]["name"]
    await api.delete(QUEUES, name, uid=uid_of(queue))
    say(f"queue {name} is deleted")


async def _drain(api: HttpApi, name: str, told: Trouble) -> None:
    """Close the queue, and delete it when its controller says that nothing is left in it."""
    from vcbatch.runtime.clock import SystemClock
    from vcbatch.runtime.random import SystemRandom
    from vcbatch.sdk.watching import changes

    queue = await api.get(QUEUES, name)
    uid, closing = uid_of(queue), queue_state(queue) in (QueueState.CLOSING, QueueState.CLOSED)
    if not closing:
        await ask_queue(api, name, Action.CLOSE_QUEUE)
        say(f"queue {name} takes no more jobs")
    said = ""
    batches = changes(
        api,
        QUEUES,
        namespace=None,
        field_selector=f"metadata.name={name}",
        clock=SystemClock(),
        random=SystemRandom(),
        on_trouble=told,
    )
    async with aclosing(batches) as stream:
        async for batch in stream:
            for change in batch:
                queue = {} if change.deleted else change.object
            if not queue or uid_of(queue) != uid:
                raise CliError(f"queue {name} was deleted by somebody else")
            state, inside = queue_state(queue), _inside(queue)
            if state == QueueState.CLOSED and not inside:
                await _delete(api, queue)
                return
            if closing and state == QueueState.OPEN:
                raise CliError(f"queue {name} was opened again by somebody else", hint="What is in it goes on.")
            closing = closing or state != QueueState.OPEN
            if closing and inside and inside != said:
                said = inside
                note(f"queue {name}: {inside}")
    raise AssertionError("changes go on without end")


def _inside(queue: Json) -> str:
    """What has not ended in the queue, as its controller counts it; empty where nothing is."""
    status = queue.get("status") or {}
    counts = {word: status.get(word) or 0 for word in _UNFINISHED}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)
