"""An event loop with virtual time, which advances only when no task is runnable: hours take milliseconds, and no test
sleeps."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from vcbatch.interfaces.random import KeyPair

T = TypeVar("T")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Deadlock(Exception):
    """Every task waits, and no timer would wake one."""


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the time to the next timer instead of blocking."""

    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Deadlock("every task waits for something that nobody will do")
        self.loop.elapsed += max(timeout, 0.0)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.elapsed = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.elapsed


class VirtualClock:
    """The clock of the running `VirtualTimeLoop`, and of threads that work for it; `shift` changes the wall clock
    without advancing the time."""

    def __init__(self, epoch: datetime = EPOCH) -> None:
        self._epoch = epoch
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:  # a thread of a loop that was used before
            if self._loop is None:
                raise
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0))

    def shift(self, seconds: float) -> None:
        self._epoch += timedelta(seconds=seconds)


class SeededRandom:
    """The randomness interface, from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def random(self) -> float:
        return self._random.random()

    def token(self, length: int) -> str:
        return "".join(self._random.choices("bcdfghjklmnpqrstvwxz2456789", k=length))

    def uid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    async def key_pair(self) -> KeyPair:
        return KeyPair(f"private {self.token(8)}", f"public {self.token(8)}")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to its end in virtual time; remaining tasks are cancelled."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
