"""An API with fault injection, by a plan or at random from a seed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from enum import StrEnum
from random import Random
from typing import Any

from vcbatch.api.resources import PODS, Resource
from vcbatch.interfaces.api import Api, ApiError, WatchEvent


class Fault(StrEnum):
    NONE = "none"
    REFUSED = "no connection"  # the request had no effect
    LOST = "answer lost"  # the request took effect, but its response is lost
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
    """Wraps another `vcbatch.interfaces.Api`; `plan` yields the injected error, if any, for each call of a verb in
    `verbs`."""

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
    """Kills the program (`Crash`) at the `at`-th write, before its effect, or after it with `after`; never where `at`
    is None. Once dead, all further reads and writes of the program raise `Crash`. Writes of kinds in `uncounted` don't
    count."""

    def __init__(
        self, api: Api, *, at: int | None, after: bool = False, uncounted: frozenset[Resource] = frozenset()
    ) -> None:
        self._api = api
        self._at = at
        self._after = after
        self._uncounted = uncounted
        self.dead = False
        self.tried: list[tuple[str, str, str]] = []
        """The counted writes, including the one of the crash, as `(verb, plural, name)`."""

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        real = getattr(self._api, verb)
        if verb in ("watch", "watch_list"):
            return real

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.dead:
                raise Crash
            if verb not in WRITES or (args and args[0] in self._uncounted):
                return await real(*args, **kwargs)
            self.dead = len(self.tried) == self._at
            self.tried.append((verb, *_about(args, kwargs)))
            if self.dead and not self._after:
                raise Crash
            answer = await real(*args, **kwargs)
            if self.dead:
                raise Crash
            return answer

        return call


def _about(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
    """The plural and the name of a write's object."""
    if not args:  # a binding
        return PODS.plural, kwargs["name"]
    resource, what = args[:2]
    return resource.plural, what["metadata"]["name"] if isinstance(what, Mapping) else what
