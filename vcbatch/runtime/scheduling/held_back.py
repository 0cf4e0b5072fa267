"""Delays the reports of binds that are refused repeatedly: no delay the first time, then longer and longer ones.

A bind that is refused for good, for example by a webhook or for lack of permission, would be decided and refused again
in every cycle. Until the scheduler gets the report, the pod keeps its place on the chosen node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.pacing.pace import Pace

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 30.0


class HeldBack:
    """`reported(uid, error)` is called for each refusal, after its delay."""

    def __init__(self, *, clock: Clock, failed: Callable[[str, str], None]) -> None:
        self._clock = clock
        self._failed = failed
        self._pace: Pace[str] = Pace(first=FIRST_SECONDS, limit=LONGEST_SECONDS)
        self._waiting: asyncio.Queue[tuple[float, str, str]] = asyncio.Queue()

    def refused(self, uid: str, error: str) -> None:
        """Record that the pod's bind was refused."""
        now = self._clock.monotonic()
        wait = self._pace.wait(uid, now=now)
        self._pace.acted(uid, now=now + wait)
        if wait:
            self._waiting.put_nowait((wait, uid, error))
        else:
            self._failed(uid, error)

    async def run(self) -> None:
        """Send the delayed reports, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._report(*await self._waiting.get()))

    async def _report(self, wait: float, uid: str, error: str) -> None:
        await self._clock.sleep(wait)
        self._failed(uid, error)
