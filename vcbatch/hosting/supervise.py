"""The only way to start a background task: its failures are logged by name, reported as unhealthy, and followed by a
restart.

A failed task is restarted after a pause, or ends the program; it never disappears silently. A test
(`tests/unit/test_background_tasks.py`) finds tasks and threads that are started in any other way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from vcbatch.hosting.backoff import Backoff
from vcbatch.hosting.health import Health
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random

log = logging.getLogger(__name__)

_RESTART = Backoff(initial=0.2, limit=10.0)
_TRIES = 5
_WINDOW = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A task that runs until it is cancelled. A part with `restart` off ends the program when it fails once."""

    name: str
    run: Callable[[], Awaitable[None]]
    restart: bool = True


class PartFailedError(Exception):
    """A part failed for good; the message has its name and the error."""


class _Restarts:
    """The recent failures of one task: the delay of the next start, and whether there were too many."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._failed: deque[float] = deque(maxlen=_TRIES)

    def note(self) -> None:
        self._failed.append(self._clock.monotonic())

    @property
    def too_many(self) -> bool:
        return len(self._failed) == _TRIES and self._failed[-1] - self._failed[0] < _WINDOW

    def delay(self) -> float:
        """Seconds until the next start: longer with each failure within the window, with jitter."""
        now = self._clock.monotonic()
        recent = sum(1 for moment in self._failed if now - moment < _WINDOW)
        return _RESTART.delay(recent, self._random)


class Supervisor:
    """Runs parts concurrently. `run` ends only by being cancelled or with `PartFailedError`."""

    def __init__(self, *, clock: Clock, random: Random, health: Health | None = None) -> None:
        self._clock = clock
        self._random = random
        self.health = health if health is not None else Health(clock)

    async def run(self, *parts: Part) -> None:
        """Run all of them; when one fails for good the others are cancelled before the error is raised."""
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
        restarts = _Restarts(self._clock, self._random)
        self.health.started(part.name)
        try:
            while True:
                error: Exception | None = None
                try:
                    await part.run()
                except Exception as caught:  # every kind: there is no other handler
                    error = caught
                why = reason_of(error)
                restarts.note()
                self.health.failed(part.name, why)
                if not part.restart or restarts.too_many:
                    raise PartFailedError(f"{part.name} failed for good: {why}") from error
                await _pause(part.name, error, restarts.delay(), self._clock)
                self.health.restarted(part.name)
        finally:
            self.health.ended(part.name)


class Background:
    """The background tasks of one owner, such as a kubelet, whose failures must not end the program: the users' pods
    don't depend on them. Each is restarted until it works, and the program isn't ready meanwhile.
    """

    def __init__(self, *, clock: Clock, random: Random, health: Health | None = None) -> None:
        self._clock = clock
        self._random = random
        self.health = health if health is not None else Health(clock)
        self._tasks: set[asyncio.Task[None]] = set()

    def keep(self, name: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Start a task that runs until it is cancelled; where it ends by itself, or with an error, it is restarted."""
        return self._start(name, self._repeat(name, run, until_done=False))

    def finish(self, name: str, run: Callable[[], Awaitable[None]], *, about: str = "") -> asyncio.Task[None]:
        """Start a task that ends by itself; where it ends with an error, it is restarted. `about` names its object,
        where there are many such tasks."""
        return self._start(_full(name, about), self._repeat(name, run, until_done=True, about=about))

    def once(self, name: str, run: Callable[[], Awaitable[None]], *, about: str = "") -> asyncio.Task[None]:
        """Start a task that must not be repeated, such as the response to a request. An error is logged; it doesn't
        affect the health of the program."""
        return self._start(_full(name, about), _logged(_full(name, about), run))

    async def close(self) -> None:
        """Cancel all remaining tasks, and wait for their end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _repeat(
        self, kind: str, run: Callable[[], Awaitable[None]], *, until_done: bool, about: str = ""
    ) -> None:
        name = _full(kind, about)
        restarts = _Restarts(self._clock, self._random)
        self.health.started(name)
        try:
            while True:
                error: Exception | None = None
                try:
                    await run()
                except Exception as caught:
                    error = caught
                if until_done and error is None:
                    return
                restarts.note()
                self.health.failed(name, reason_of(error), kind=kind)
                await _pause(name, error, restarts.delay(), self._clock)
                self.health.restarted(name)
        finally:
            self.health.ended(name)


def reason_of(error: Exception | None) -> str:
    """Why a task isn't running, for users; None means that it returned. Of a group's errors it is the first one."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return "it ended" if error is None else f"{type(error).__name__}: {error}"


async def never() -> None:
    """Wait until cancelled, for a part whose work is done."""
    await asyncio.get_running_loop().create_future()


async def first_of(*events: asyncio.Event) -> None:
    """Return as soon as one of the events is set."""
    await _any([asyncio.ensure_future(event.wait()) for event in events])


async def pause(clock: Clock, seconds: float, *, woken: asyncio.Event) -> None:
    """Return after that many seconds of the clock, or as soon as `woken` is set."""
    await _any([asyncio.ensure_future(clock.sleep(seconds)), asyncio.ensure_future(woken.wait())])


async def _any(waiting: list[asyncio.Future[Any]]) -> None:
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _pause(name: str, error: Exception | None, delay: float, clock: Clock) -> None:
    log.error("%s failed, restarting", name, exc_info=error, extra={"delay": round(delay, 2)})
    await clock.sleep(delay)


def _full(name: str, about: str) -> str:
    return f"{name} of {about}" if about else name


async def _logged(name: str, run: Callable[[], Awaitable[None]]) -> None:
    try:
        await run()
    except Exception:
        log.exception("%s failed", name)
