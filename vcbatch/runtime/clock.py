"""The clock of a running program: the machine's own."""

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
        import asyncio  # here, so that a command without an event loop doesn't load it

        await asyncio.sleep(max(0.0, seconds))


class BlockingClock(SystemClock):
    """The clock of a program that does one thing at a time, without an event loop: its `sleep` stops everything."""

    async def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))  # noqa: ASYNC251 - there is no loop that it could hold up
