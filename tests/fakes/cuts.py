"""An API whose watches can be cut, and that can be unavailable for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from vcbatch.interfaces.api import Api, ApiError, WatchEvent

AWAY = ApiError(0, "ConnectionLost", "connection refused")
EXPIRED = ApiError(410, "Expired", "too old resource version")
_READS = ("get", "list", "watch")


class CutApi:
    """Wraps another `vcbatch.interfaces.Api`. `cut` ends every open watch, with an error or without one; while `away`
    is set all reads fail; after `forget` the next watch of each kind is answered with 410, once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._end = asyncio.Event()
        self._error: ApiError | None = None
        self.away = False
        self._forgotten: set[str] | None = None
        self.lists = 0

    def cut(self, error: ApiError | None = None) -> None:
        self._error = error
        self._end.set()
        self._end = asyncio.Event()

    def forget(self) -> None:
        """Drop the server's history of changes so far."""
        self._forgotten = set()

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        real = getattr(self._api, verb)
        if verb == "watch":
            return self._watch
        return self._read(verb, real) if verb in _READS else real

    def _read(self, verb: str, real: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.away:
                raise AWAY
            self.lists += verb == "list"
            return await real(*args, **kwargs)

        return call

    async def _watch(self, resource: Any, **kwargs: Any) -> AsyncIterator[WatchEvent[Any]]:
        if self.away:
            raise AWAY
        if self._forgotten is not None and resource.plural not in self._forgotten:
            self._forgotten.add(resource.plural)
            raise EXPIRED
        ended = asyncio.ensure_future(self._end.wait())
        try:
            async with aclosing(self._api.watch(resource, **kwargs)) as events:  # type: ignore[type-var]
                while (event := await _first(anext(events, None), ended)) is not None:
                    yield event
        finally:
            cut = ended.done()
            ended.cancel()
        if cut and self._error is not None:
            raise self._error


async def _first(coming: Awaitable[WatchEvent[Any] | None], ended: asyncio.Future[Any]) -> WatchEvent[Any] | None:
    """The next event; None where the watch ends first."""
    event = asyncio.ensure_future(coming)
    try:
        await asyncio.wait((event, ended), return_when=asyncio.FIRST_COMPLETED)
        return event.result() if event.done() and not ended.done() else None
    finally:
        event.cancel()
        await asyncio.gather(event, return_exceptions=True)
