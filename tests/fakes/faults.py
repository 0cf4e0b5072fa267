"""An API that fails as networks and servers do, by a plan or by chance from a seed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from enum import StrEnum
from random import Random
from typing import Any

from vcbatch.seams.api import Api, ApiError, WatchEvent


class Fault(StrEnum):
    NONE = "none"
    REFUSED = "no connection"  # nothing was done
    LOST = "answer lost"  # it was done, and nobody hears of it
    CONFLICT = "conflict"
    BUSY = "429"
    BROKEN = "500"


WRITES = ("create", "replace", "patch", "delete", "bind")


class Crash(BaseException):
    """The program is killed at this call."""


def by_chance(seed: int, share: float, faults: tuple[Fault, ...] = tuple(Fault)) -> Iterator[Fault]:
    random = Random(seed)
    while True:
        yield random.choice(faults) if random.random() < share else Fault.NONE


class FaultyApi:
    """`vcbatch.seams.Api` around another; `plan` gives the fault of each call to a verb in `verbs`."""

    def __init__(self, api: Api, plan: Iterator[Fault], *, verbs: tuple[str, ...] = WRITES) -> None:
        self._api = api
        self._plan = plan
        self._verbs = verbs

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        real = getattr(self._api, verb)
        if verb not in self._verbs:
            return real
        if verb in ("watch", "watch_list"):
            return self._stream(real)
        return self._wrapped(real)

    def _wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            fault = next(self._plan, Fault.NONE)
            refuse(fault)
            answer = await real(*args, **kwargs)
            if fault is Fault.LOST:
                raise ApiError(0, "ConnectionLost", "the connection ended before the answer")
            return answer

        return call

    def _stream(self, real: Callable[..., AsyncIterator[WatchEvent[Any]]]) -> Callable[..., Any]:
        async def events(*args: Any, **kwargs: Any) -> AsyncIterator[WatchEvent[Any]]:
            refuse(next(self._plan, Fault.NONE))
            async for event in real(*args, **kwargs):
                yield event
                if next(self._plan, Fault.NONE) is not Fault.NONE:
                    return

        return events


def refuse(fault: Fault) -> None:
    match fault:
        case Fault.REFUSED:
            raise ApiError(0, "ConnectionLost", "connection refused")
        case Fault.CONFLICT:
            raise ApiError(409, "Conflict", "the object has been modified")
        case Fault.BUSY:
            raise ApiError(429, "TooManyRequests", "try again later", {}, 0.1)
        case Fault.BROKEN:
            raise ApiError(500, "InternalError", "something is broken")
        case Fault.NONE | Fault.LOST:
            pass


class CrashingApi:
    """Kills the program (`Crash`) at the `at`-th write, before it is made, or after it where `after` says so."""

    def __init__(self, api: Api, *, at: int, after: bool = False) -> None:
        self._api = api
        self._left = at
        self._after = after

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        real = getattr(self._api, verb)
        if verb not in WRITES:
            return real

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left < 0 and not self._after:
                raise Crash
            answer = await real(*args, **kwargs)
            if self._left < 0:
                raise Crash
            return answer

        return call
