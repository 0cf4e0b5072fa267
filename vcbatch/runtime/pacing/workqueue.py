"""A queue of keys to reconcile: each key is processed by one worker at a time and queued at most once, with delays and
retries.

The same rules as client-go's `util/workqueue`. A key is an object's UID, so everything about one object happens in
order; the decision is made when the key is processed, not when it was queued.
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

# Volcano's limiter starts at 5 ms too; its limit of 1,000 s leaves users waiting long after the cause is resolved.
_RETRY = Backoff(initial=0.005, limit=60.0)

# While others wait, one of this many keys taken is one that yields.
_TURNS_FOR_ONE_THAT_YIELDS = 8

# A loop may wake a little early, and the remaining time is then shorter than it can sleep.
_SHORTEST_SLEEP = 0.001


class WorkQueue(Generic[K]):
    """Not thread-safe; from another thread use `loop.call_soon_threadsafe(queue.add, key)`.

    `yields` returns whether a queued key lets the others go first, except for every eighth: thousands of new objects
    don't delay those in progress.
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
        self._turns = 0  # keys taken since the last one that yields, or since none was queued
        self._waiting: set[K] = set()  # queued, or to be queued when the worker is done with it
        self._busy: set[K] = set()
        self._failures: dict[K, int] = {}
        self._due: dict[K, float] = {}  # key -> the earliest time at which it is due
        self._timers: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._idle: deque[asyncio.Future[None]] = deque()  # workers that wait, the longest first
        self._moved = clock.monotonic()  # when a key was taken last, or the first one got in line
        self._timers_changed = asyncio.Event()

    def __len__(self) -> int:
        """The number of keys that wait for a worker."""
        return len(self._ready) + len(self._yielding)

    def waiting_for(self) -> float:
        """Seconds in which keys were queued and none was taken; 0 where none is queued."""
        return self._clock.monotonic() - self._moved if len(self) else 0.0

    def add(self, key: K) -> None:
        """Queue the key for the next free worker, or, while it is being processed, for afterwards."""
        if key in self._waiting:
            return
        self._waiting.add(key)
        if key not in self._busy:
            self._line_up(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Queue the key after `seconds`. Of several delays for a key the earliest applies."""
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
        """Queue the key again after a failure, with a delay that grows with each failure in a row. Returns the delay in
        seconds."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = self._retry.delay(failures, self._random)
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: K) -> None:
        """Reset the count of failures in a row."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Drop everything about the key of a deleted object."""
        self._failures.pop(key, None)
        self._due.pop(key, None)

    async def get(self) -> K:
        """The next key. It is reserved for this worker until `done`."""
        while not len(self):
            await self._work_to_do()
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
        self._wake_one()

    async def _work_to_do(self) -> None:
        """Return once a key got in line for this worker; another may have taken it before."""
        called = asyncio.get_running_loop().create_future()
        self._idle.append(called)
        try:
            await called
        except BaseException:
            if called.done() and not called.cancelled() and len(self):
                self._wake_one()  # The key is for another one, then.
            elif called in self._idle:
                self._idle.remove(called)
            raise

    def _wake_one(self) -> None:
        """A key is one worker's: the others would only look and wait again."""
        while self._idle:
            called = self._idle.popleft()
            if not called.done():
                called.set_result(None)
                return

    def _next(self) -> K:
        self._turns += 1
        if self._yielding and (not self._ready or self._turns >= _TURNS_FOR_ONE_THAT_YIELDS):
            self._turns = 0
            return self._yielding.popleft()
        return self._ready.popleft()

    async def run(self, reconcile: Callable[[K], Awaitable[bool]], *, workers: int) -> None:
        """Call `reconcile` for every key, with `workers` concurrent calls, until cancelled. A key for which it returns
        False or raises is retried later."""
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
                log.exception("reconcile failed, retrying", extra={"key": str(key), "delay": round(delay, 3)})
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
        """Sleep until that time, or until an earlier timer may have been set."""
        seconds = max(due - self._clock.monotonic(), _SHORTEST_SLEEP)
        await pause(self._clock, seconds, woken=self._timers_changed)
