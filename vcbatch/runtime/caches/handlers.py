"""kopf as the source of custom-resource events, and the audit that finds the changes it missed.

kopf doesn't report deletions that happened while a watch was broken, it ends on some responses of a server, and it
reads discovery once, at its start. The first is fixed by lists of our own, the others by restarting it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from vcbatch.api.resources import Resource
from vcbatch.hosting.backoff import Backoff
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Background, reason_of
from vcbatch.interfaces.api import Api, ApiError, DiscoveringApi, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.kopf_operator import KopfOperator
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.metrics.meter import Meter, NoMeter

log = logging.getLogger(__name__)

_RESTART = Backoff(initial=0.5, limit=30.0)
_AUDIT_SECONDS = 300.0
_BLIND_SECONDS = 5.0
_SETTLING_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds between the lists while kopf starts: no event reports an object that is deleted after our list and before
kopf's, and kopf doesn't report when it has listed."""
_CRD_PAUSE = Backoff(initial=0.2, limit=10.0)
_DISCOVERY_SECONDS = 2.0
_LATER_DISCOVERY_SECONDS = 15.0
_SOON_CHECKS = 30
"""The number of checks at `_DISCOVERY_SECONDS` for resources that kopf doesn't watch yet; later ones are less
frequent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One custom resource and the cache that its events go to."""

    resource: Resource
    cache: Cache[Json]


class CustomResourceSource(Protocol):
    """The source that fills the caches of the custom resources."""

    listed: asyncio.Event
    """Set once every cache has its first list."""
    watching: asyncio.Event
    """Set once changes arrive without another list."""

    async def audit(self) -> None: ...

    async def watch(self) -> None: ...

    def error(self) -> str:
        """Which resources aren't watched, "" where all are."""
        ...


class CustomResources:
    """Feeds the caches of custom resources: a first list, then kopf's events, and a periodic list."""

    def __init__(
        self,
        api: Api,
        connection: Connection,
        feeds: Sequence[Feed],
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        health: Health | None = None,
    ) -> None:
        self._background = Background(clock=clock, random=random, health=health)
        self._api = api
        self._connection = connection
        self._feeds = {feed.resource: feed for feed in feeds}
        self._clock = clock
        self._random = random
        self._meter = meter or NoMeter()
        self.listed = asyncio.Event()
        """Set once every cache has its first list."""
        self.watching = asyncio.Event()
        """Set once kopf has delivered an event: its watches are open."""
        self._blind = True
        self._missing: Sequence[Resource] = ()

    def error(self) -> str:
        missing = self._missing
        return f"not followed yet: {_plurals(missing)}" if missing else ""

    async def audit(self) -> None:
        """List at once, then every few minutes with a random jitter, until cancelled."""
        for feed in self._feeds.values():
            await self._first_list(feed)
        self.listed.set()
        while True:
            await self._until_audit()
            await self._repair()

    async def _repair(self) -> None:
        for feed in self._feeds.values():
            with suppress(ApiError):  # the next audit handles it
                repaired = await self._list(feed)
                if repaired:
                    self._meter.count("cache_drift_repairs", repaired, resource=feed.resource.plural)

    async def _settle(self) -> None:
        """Find what was deleted while kopf was starting."""
        for pause in _SETTLING_SECONDS:
            await self._clock.sleep(pause)
            if self.listed.is_set():
                await self._repair()

    async def _until_audit(self) -> None:
        """Wait for a few minutes, or a few seconds while kopf delivers nothing. On a bad connection that may take long:
        kopf restarts where any of the many responses at its start is incomplete."""
        seconds = _AUDIT_SECONDS * (0.9 + 0.2 * self._random.random())
        end = self._clock.monotonic() + seconds
        while (left := end - self._clock.monotonic()) > 0:
            blind = self._blind
            await self._clock.sleep(min(left, _BLIND_SECONDS))
            if blind and self._blind:
                return

    async def _first_list(self, feed: Feed) -> None:
        failures = 0
        while True:
            try:
                await self._list(feed)
            except ApiError as error:
                failures += 1
                if error.not_found:
                    log.warning("waiting for the CustomResourceDefinition of %s", feed.resource.plural)
                else:
                    log.warning("listing %s failed: %s", feed.resource.plural, error.message)
                await self._clock.sleep(_CRD_PAUSE.delay(failures, self._random))
            else:
                return

    async def _list(self, feed: Feed) -> int:
        return feed.cache.replace(await self._api.list(feed.resource))

    async def watch(self) -> None:
        """Run kopf until cancelled, and restart it where it ends by itself."""
        failures, health = 0, self._background.health
        while True:
            operator = KopfOperator(tuple(self._feeds), observe=self._observe, connection_info=self._connection_info)
            self._blind = True
            started = self._clock.monotonic()
            beside = (
                self._background.once("kopf: settling", self._settle),
                self._background.once("kopf: reading discovery", partial(self._complete, operator)),
            )
            try:
                await operator.run()
            except Exception as error:
                why = reason_of(error)
            else:
                why = reason_of(None)
            finally:
                for task in beside:
                    task.cancel()
                self._missing = ()
            if operator.stopped:
                self._meter.count("kopf_restarts")
                continue
            log.warning("kopf stopped: %s", why)
            health.failed("kopf", why)
            self._blind = True
            failures = 1 if self._clock.monotonic() - started > _AUDIT_SECONDS else failures + 1
            self._meter.count("kopf_restarts")
            await self._clock.sleep(_RESTART.delay(failures, self._random))
            health.restarted("kopf")

    async def _complete(self, operator: KopfOperator) -> None:
        """Stop that run of kopf once discovery lists a resource that it doesn't watch."""
        await operator.scanned.wait()
        self._missing = operator.unwatched
        if not self._missing or not isinstance(self._api, DiscoveringApi):
            return
        log.warning("kopf doesn't watch %s: not listed by discovery yet", _plurals(self._missing))
        for attempt in itertools.count():
            await self._clock.sleep(_DISCOVERY_SECONDS if attempt < _SOON_CHECKS else _LATER_DISCOVERY_SECONDS)
            try:
                found = await self._api.discovered(self._missing)
            except ApiError as error:
                log.debug("discovery can't be read: %s", error.message)
                continue
            if found:
                log.info("restarting kopf to watch %s", _plurals(found))
                operator.stop()
                return

    def _observe(self, resource: Resource, event_type: str | None, obj: Json) -> None:
        """Handle an event, in the main loop. Events for the objects of kopf's first list have no type."""
        self.watching.set()
        self._blind = False
        self._feeds[resource].cache.observe(event_type or "ADDED", obj)

    async def _connection_info(self, again: bool) -> Mapping[str, Any]:
        """The arguments of `kopf.ConnectionInfo` with the current credentials; `again` where the last ones were
        refused."""
        connection = self._connection
        if again:
            connection.credentials.refused()
        scheme = token = None
        header = await connection.credentials.authorization(now=self._clock.now())
        if header is not None:
            scheme, _, token = header.partition(" ")
        return {
            "server": connection.server,
            "ca_data": connection.ca_pem,
            "insecure": connection.insecure or None,
            "scheme": scheme,
            "token": token,
            "certificate_data": connection.cert_pem,
            "private_key_data": connection.key_pem,
            "proxy_url": connection.proxy_url,
            "default_namespace": connection.namespace,
        }


def _plurals(resources: Sequence[Resource]) -> str:
    return ", ".join(resource.plural for resource in resources)
