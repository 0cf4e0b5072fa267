"""Waiting for what a server or a thread does, bounded and without a pause longer than needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
_SECONDS = 60.0
_POLL = 0.05


def until(read: Callable[[], T | None], seconds: float = _SECONDS) -> T:
    """The first result that counts as true."""
    deadline = time.monotonic() + seconds
    while True:
        found = read()
        if found:
            return found
        assert time.monotonic() < deadline, f"still {found!r} after {seconds:.0f} s"
        time.sleep(_POLL)


async def until_async(read: Callable[[], Awaitable[T | None]], seconds: float = _SECONDS) -> T:
    async with asyncio.timeout(seconds):
        while True:
            found = await read()
            if found:
                return found
            await asyncio.sleep(_POLL)
