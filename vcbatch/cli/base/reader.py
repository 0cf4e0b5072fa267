"""Detects that the reader of a long-running command's output has closed it."""

from __future__ import annotations

import asyncio
import io
import select
import sys
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

_INTERVAL: Final = 1.0
"""Seconds between two checks, since a closed pipe is reported only to writes."""


async def while_read(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. Raises `BrokenPipeError` once the reader of standard output has closed it, also while
    there is nothing to write."""
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_reader_closed())
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise BrokenPipeError
    finally:
        for one in (task, watch):
            one.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _reader_closed() -> None:
    try:
        output = sys.stdout.fileno()
    except (io.UnsupportedOperation, ValueError):  # not a file: it has no reader
        await asyncio.Event().wait()
        return
    poll = select.poll()
    poll.register(output, 0)  # errors are reported in any case
    while not poll.poll(0):  # noqa: ASYNC110 - no code could set an event
        await asyncio.sleep(_INTERVAL)
