"""The system clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """`vcbatch.interfaces.Clock` on the machine's wall clock and its monotonic clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # imported here, so that a command without an event loop doesn't load it

        await asyncio.sleep(max(0.0, seconds))


class BlockingClock(SystemClock):
    """The clock of a single-threaded program without an event loop: its `sleep` blocks."""

    async def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))  # noqa: ASYNC251 - there is no loop that it could hold up
