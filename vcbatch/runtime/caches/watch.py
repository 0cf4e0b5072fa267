"""Keeps a cache equal to the server: existing objects first, then changes, then existing objects again where a watch
was lost.

Existing objects arrive by the watch itself where the server supports it (which spares both sides the whole list in
memory at once), else by a paginated list. Changes that were missed while a watch was broken are found by comparison
with the cache, deletions included.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from vcbatch.api.resources import Resource
from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.api import Api, ApiError, Listing, StreamingApi, WatchEvent
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import Cache, identity

T = TypeVar("T")
log = logging.getLogger(__name__)

_RECONNECT = Backoff(initial=0.05, limit=15.0)
# A watch that ended sooner than this failed, whatever its response (client-go calls it a very short watch).
_SHORT_WATCH = 1.0
# Responses of servers without streaming lists: the parameter is unknown, forbidden or not for this resource.
_NO_STREAMS = frozenset({400, 405, 422})
# Seconds between checks whether the cluster serves an optional kind now.
_ABSENT_CHECK = 60.0
# A request that lasts longer than the connection timeout was accepted by the server.
_OPEN_SECONDS = 12.0
# Not the server's own message, which names the account.
_REFUSALS = {401: "the server refuses the credentials (401)", 403: "the server forbids it (403)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """For how many seconds a program counts as healthy that watches nothing: because the server refuses it, or for any
    reason."""

    refused: float
    silent: float


OWN = Patience(refused=0.0, silent=20.0)
"""For programs that act by themselves: after this time, a cache may be too old to decide on."""
ASKED = Patience(refused=40.0, silent=120.0)
"""For programs that are called by API servers. All of them would be unhealthy after a restart of the API server, which
forbids everything until it knows the roles, and its calls would then be refused without need."""


class Reflector(Generic[T]):
    """Watches one resource into one cache. `synced` is set once all existing objects are in.

    Of an `optional` resource nothing exists as long as the server doesn't know the kind.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource,
        cache: Cache[T],
        *,
        clock: Clock,
        random: Random,
        on_relist: Callable[[int], None] | None = None,
        optional: bool = False,
    ) -> None:
        self.resource = resource
        self.cache = cache
        self.optional = optional
        self.synced = asyncio.Event()
        self._api = api
        self._clock = clock
        self._random = random
        self._on_relist = on_relist
        self._streams = api if isinstance(api, StreamingApi) else None
        self._cut = False  # the last stream of existing objects was incomplete
        self._version = ""  # "" means: get the existing objects first
        self._failures = 0
        self._expired = False  # the last response was that our version has expired
        self._attempt: float | None = None  # start time of the current request
        self._failing_since: float | None = None
        self._refused_since: float | None = None
        self._refusal = ""

    def error(self, patience: Patience = OWN) -> str:
        """Why the cache may be out of date, "" where it isn't: the server refuses the requests, or there has been no
        watch for a while."""
        since, refusal = self._failing_since, self._refusal
        if since is None or self._open():
            return ""
        now = self._clock.monotonic()
        if self._refused_since is not None and now - self._refused_since >= patience.refused:
            return f"{self.resource.plural}: {refusal}"
        lasted = now - since
        return f"{self.resource.plural}: not followed for {lasted:.0f}s" if lasted > patience.silent else ""

    async def run(self) -> None:
        """Watch until cancelled. No refusal by the server ends it: it retries with a longer delay."""
        while True:
            try:
                started = self._attempt = self._clock.monotonic()
                if self._version:
                    await self._watch()
                elif self._streams is not None and not self._cut:
                    await self._stream(self._streams)
                else:
                    await self._list()
                    continue
                if self._clock.monotonic() - started >= _SHORT_WATCH:
                    self._works()
                    continue
                await self._pause(None)
            except ApiError as error:
                if error.not_found and self.optional:
                    await self._absent()
                    continue
                if error.expired:
                    # The version that the watch would continue from has expired; only a list shows what happened since.
                    self._version = ""
                    if not self._expired:
                        log.warning(
                            "the resource version of %s expired, listing again",
                            self.resource.plural,
                            extra={"resource": self.resource.plural},
                        )
                        # The server answers, so retry without a delay; unless the list leads here again.
                        self._expired = True
                        self._failures = 0
                        continue
                await self._pause(error)

    async def _absent(self) -> None:
        """The server doesn't know the kind: nothing of it exists, until it does."""
        if not self.synced.is_set() or self._version:
            log.info("%s are not served by this cluster", self.resource.plural)
            self._take(Listing(items=[], resource_version=""))
        self._failures = 0
        self._follows()
        await self._clock.sleep(_ABSENT_CHECK)

    async def _list(self) -> None:
        self._take(await self._api.list(self.resource, model=self.cache.model))
        self._cut = False

    async def _stream(self, api: StreamingApi) -> None:
        """Receive the existing objects and then the changes, in one watch."""
        existing: dict[str, T] = {}
        complete = False
        try:
            async with _closing(api.watch_list(self.resource, model=self.cache.model)) as events:
                async for event in events:
                    if complete:
                        self._observe(event)
                    elif event.complete:
                        self._take(Listing(items=list(existing.values()), resource_version=event.resource_version))
                        existing, complete = {}, True
                    elif event.type == "DELETED":
                        existing.pop(identity(event.object).uid, None)
                    elif event.type != "BOOKMARK":
                        # Nearly all objects of a relist are cached already: keep the cached ones to save memory.
                        existing[identity(event.object).uid] = self.cache.held_as(event.object)
        except ApiError as error:
            if not complete and error.code in _NO_STREAMS:
                log.info("listing %s: the server doesn't stream them", self.resource.plural)
                self._streams = None
                return
            self._cut = bool(existing)
            raise
        if not complete:
            self._cut = True
            raise ApiError(0, "ConnectionLost", f"the stream ended before all {self.resource.plural} were in")

    def _take(self, listing: Listing[T]) -> None:
        changed = self.cache.replace(listing)
        self._version = listing.resource_version
        if self.synced.is_set() and self._on_relist is not None:
            self._on_relist(changed)
        self.synced.set()
        self._follows()

    async def _watch(self) -> None:
        watch = self._api.watch(self.resource, resource_version=self._version, model=self.cache.model)
        async with _closing(watch) as events:
            async for event in events:
                self._observe(event)

    def _observe(self, event: WatchEvent[T]) -> None:
        if event.type != "BOOKMARK":
            self.cache.observe(event.type, event.object)
        if event.resource_version:
            self._version = event.resource_version
        self._works()

    def _works(self) -> None:
        if self._failures > 1:
            log.info("watching %s again", self.resource.plural, extra={"resource": self.resource.plural})
        self._failures = 0
        self._expired = False
        self._follows()

    def _open(self) -> bool:
        """Whether a watch has been open for some time: there may be no event on it for a minute."""
        attempt = self._attempt
        return attempt is not None and self._clock.monotonic() - attempt >= _OPEN_SECONDS

    def _follows(self) -> None:
        self._failing_since, self._refused_since, self._refusal = None, None, ""

    async def _pause(self, error: ApiError | None) -> None:
        self._failures += 1
        if self._failing_since is None or self._open():
            self._failing_since = self._clock.monotonic()
        self._attempt = None
        self._refusal = _REFUSALS.get(error.code, "") if error is not None else ""
        if not self._refusal:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = self._clock.monotonic()
            self._failures = 1  # a server that didn't answer before does now: it may soon know the roles
        if error is not None and self._failures > 1:
            # The first failure in a row is normal: a server restarts, a connection ends.
            log.warning(
                "watch of %s failed, retrying",
                self.resource.plural,
                extra={"resource": self.resource.plural, "code": error.code, "error": error.message},
            )
        delay = _RECONNECT.delay(self._failures, self._random)
        if error is not None and error.retry_after is not None:
            delay = max(delay, error.retry_after)
        await self._clock.sleep(delay)


@asynccontextmanager
async def _closing(events: AsyncIterator[WatchEvent[T]]) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
    """Close the stream at the end of the block, if it can be closed."""
    try:
        yield events
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
