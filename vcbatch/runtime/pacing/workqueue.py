"""A queue of keys to look at: never twice at once, never twice in line, later or again when asked.

The same rules as client-go's `util/workqueue`. A key is an object's UID, so everything about one object happens in
order; what is to be done is decided when its turn comes, not when it was put in.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.pacing.pause import pause

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

# Volcano's limiter starts at 5 ms too; its ceiling of 1,000 s leaves users waiting long after the cause is gone.
_RETRY = Backoff(initial=0.005, limit=60.0)

# While others wait, one turn in so many is for a key that yields.
_TURNS_FOR_ONE_THAT_YIELDS = 8

# A loop may wake a little early, and what is then left is less than it can sleep.
_SHORTEST_SLEEP = 0.001


class WorkQueue(Generic[K]):
    """Not thread-safe; from another thread go through `loop.call_soon_threadsafe(queue.add, key)`.

    `yields` says of a key that gets in line whether it lets the others go first, all but each eighth: thousands of
    objects that come at once don't hold up those that are being worked on.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        random: Random,
        retry: Backoff = _RETRY,
        yields: Callable[[K], bool] | None = None,
    ) -> None:
        self._clock = clock
        self._random = random
        self._retry = retry
        self._yields = yields
        self._ready: deque[K] = deque()
        self._yielding: deque[K] = deque()
        self._turns = 0  # since one that yields had its turn, or none was there
        self._waiting: set[K] = set()  # in line, or to be put there when the worker is done with it
        self._busy: set[K] = set()
        self._failures: dict[K, int] = {}
        self._due: dict[K, float] = {}  # key -> the earliest time it is wanted
        self._timers: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._has_work = asyncio.Event()
        self._moved = clock.monotonic()  # when a key was taken last, or the first one got in line
        self._timers_changed = asyncio.Event()

    def __len__(self) -> int:
        """How many keys wait for a worker."""
        return len(self._ready) + len(self._yielding)

    def waiting_for(self) -> float:
        """Seconds in which keys have been in line and none was taken; 0 where none is in line."""
        return self._clock.monotonic() - self._moved if len(self) else 0.0

    def add(self, key: K) -> None:
        """Have the key looked at as soon as a worker is free, and after the present look where there is one."""
        if key in self._waiting:
            return
        self._waiting.add(key)
        if key not in self._busy:
            self._line_up(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Have the key looked at in `seconds`. Of several such wishes for a key the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._sequence += 1
        heapq.heappush(self._timers, (due, self._sequence, key))
        self._timers_changed.set()

    def retry(self, key: K) -> float:
        """Have the key looked at again after a failure, later with each one in a row. Returns the delay."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = self._retry.delay(failures, self._random)
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: K) -> None:
        """The row of failures is over."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """The object is gone: drop what is kept about its key."""
        self._failures.pop(key, None)
        self._due.pop(key, None)

    async def get(self) -> K:
        """The next key. It is this worker's until `done`."""
        while not len(self):
            self._has_work.clear()
            await self._has_work.wait()
        key = self._next()
        self._moved = self._clock.monotonic()
        self._waiting.discard(key)
        self._busy.add(key)
        return key

    def done(self, key: K) -> None:
        self._busy.discard(key)
        if key in self._waiting:
            self._line_up(key)

    def _line_up(self, key: K) -> None:
        if not len(self):
            self._moved = self._clock.monotonic()
        yields = self._yields is not None and self._yields(key)
        (self._yielding if yields else self._ready).append(key)
        self._has_work.set()

    def _next(self) -> K:
        self._turns += 1
        if self._yielding and (not self._ready or self._turns >= _TURNS_FOR_ONE_THAT_YIELDS):
            self._turns = 0
            return self._yielding.popleft()
        return self._ready.popleft()

    async def run(self, reconcile: Callable[[K], Awaitable[bool]], *, workers: int) -> None:
        """Give every key to `reconcile`, `workers` at a time, until cancelled. A key for which it returns False or
        raises is retried later."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._serve_timers())
            for _ in range(workers):
                group.create_task(self._work(reconcile))

    async def _work(self, reconcile: Callable[[K], Awaitable[bool]]) -> None:
        while True:
            key = await self.get()
            try:
                if await reconcile(key):
                    self.succeeded(key)
                else:
                    self.retry(key)
            except Exception:
                delay = self.retry(key)
                log.exception("a look failed, trying again", extra={"key": str(key), "delay": round(delay, 3)})
            finally:
                self.done(key)

    async def _serve_timers(self) -> None:
        while True:
            self._timers_changed.clear()
            now = self._clock.monotonic()
            while self._timers and self._timers[0][0] <= now:
                due, _, key = heapq.heappop(self._timers)
                if self._due.get(key) == due:
                    del self._due[key]
                    self.add(key)
            if self._timers:
                await self._sleep_until(self._timers[0][0])
            else:
                await self._timers_changed.wait()

    async def _sleep_until(self, due: float) -> None:
        """Until then, or until a timer is set that may be earlier."""
        seconds = max(due - self._clock.monotonic(), _SHORTEST_SLEEP)
        await pause(self._clock, seconds, woken=self._timers_changed)
