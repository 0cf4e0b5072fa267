"""Parts of a program that have to keep running: what fails is logged and started again, what keeps failing ends it.

A program that has lost a part and says nothing is the worst of all states, so there is no third way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from vcbatch.runtime.pacing.backoff import Backoff
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

log = logging.getLogger(__name__)

_RESTART = Backoff(initial=0.2, limit=10.0)
_TRIES = 5
_WINDOW = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Something that runs until it is cancelled. A part with `restart` off ends the program when it fails once."""

    name: str
    run: Callable[[], Awaitable[None]]
    restart: bool = True


class PartFailedError(Exception):
    """A part failed for good; the message says which and how."""


class Supervisor:
    """Runs parts side by side. `run` ends only by being cancelled or with `PartFailedError`."""

    def __init__(self, *, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random

    async def run(self, *parts: Part) -> None:
        """All of them; when one fails for good the others are cancelled before the error is raised."""
        try:
            async with asyncio.TaskGroup() as group:
                for part in parts:
                    group.create_task(self._keep(part), name=part.name)
        except BaseExceptionGroup as failures:
            first = failures.exceptions[0]
            if isinstance(first, PartFailedError):
                raise first from first.__cause__
            raise

    async def _keep(self, part: Part) -> None:
        failed: deque[float] = deque(maxlen=_TRIES)
        while True:
            error: Exception | None = None
            try:
                await part.run()
            except Exception as caught:  # every kind: this is the place of last resort
                error = caught
            why = f"{type(error).__name__}: {error}" if error is not None else "it ended"
            now = self._clock.monotonic()
            failed.append(now)
            if not part.restart or (len(failed) == _TRIES and now - failed[0] < _WINDOW):
                raise PartFailedError(f"{part.name} failed for good: {why}") from error
            recent = sum(1 for moment in failed if now - moment < _WINDOW)
            delay = _RESTART.delay(recent, self._random)
            log.error("%s failed, starting it again", part.name, exc_info=error, extra={"delay": round(delay, 2)})
            await self._clock.sleep(delay)


async def never() -> None:
    """For a part whose work is done: it stays until it is cancelled."""
    await asyncio.get_running_loop().create_future()
