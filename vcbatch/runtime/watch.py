"""Keeping a cache equal to the server: list, then watch, then list again where the watch lost the thread.

Whatever was missed while a watch was broken is found by comparing the new list with the cache, deletions included.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from vcbatch.api.resources import Resource
from vcbatch.runtime.backoff import Backoff
from vcbatch.runtime.cache import Cache
from vcbatch.seams.api import Api, ApiError
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

T = TypeVar("T")
log = logging.getLogger(__name__)

_RECONNECT = Backoff(initial=0.05, limit=15.0)
# A watch that ended sooner than this didn't work, whatever it said (client-go calls it a very short watch).
_SHORT_WATCH = 1.0


class Reflector(Generic[T]):
    """Follows one resource into one cache. `synced` is set once the first list is in."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        cache: Cache[T],
        *,
        clock: Clock,
        random: Random,
        on_relist: Callable[[int], None] | None = None,
    ) -> None:
        self.resource = resource
        self.cache = cache
        self.synced = asyncio.Event()
        self._api = api
        self._clock = clock
        self._random = random
        self._on_relist = on_relist
        self._version = ""  # "" means: list first
        self._failures = 0
        self._expired = False  # the last word was that our history is gone

    async def run(self) -> None:
        """Follow until cancelled. No refusal by the server ends it: it waits longer and tries again."""
        while True:
            try:
                if not self._version:
                    await self._list()
                started = self._clock.monotonic()
                await self._watch()
                if self._clock.monotonic() - started >= _SHORT_WATCH:
                    self._works()
                    continue
                await self._pause(None)
            except ApiError as error:
                if error.expired:
                    # The history we would continue from is gone; only a list tells what happened meanwhile.
                    self._version = ""
                    if not self._expired:
                        # The server answers, so there is nothing to wait for; unless the list leads here again.
                        self._expired = True
                        self._failures = 0
                        continue
                await self._pause(error)

    async def _list(self) -> None:
        listing = await self._api.list(self.resource, model=self.cache.model)
        changed = self.cache.replace(listing)
        self._version = listing.resource_version
        if self.synced.is_set() and self._on_relist is not None:
            self._on_relist(changed)
        self.synced.set()

    async def _watch(self) -> None:
        events = self._api.watch(self.resource, resource_version=self._version, model=self.cache.model)
        try:
            async for event in events:
                if event.type != "BOOKMARK":
                    self.cache.observe(event.type, event.object)
                if event.resource_version:
                    self._version = event.resource_version
                self._works()
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    def _works(self) -> None:
        if self._failures > 1:
            log.info("following %s again", self.resource.plural, extra={"resource": self.resource.plural})
        self._failures = 0
        self._expired = False

    async def _pause(self, error: ApiError | None) -> None:
        self._failures += 1
        if error is not None and self._failures > 1:
            # The first failure of a row is everyday life: a server restarts, a connection ends.
            log.warning(
                "following %s failed, trying again",
                self.resource.plural,
                extra={"resource": self.resource.plural, "code": error.code, "error": error.message},
            )
        delay = _RECONNECT.delay(self._failures, self._random)
        if error is not None and error.retry_after is not None:
            delay = max(delay, error.retry_after)
        await self._clock.sleep(delay)
