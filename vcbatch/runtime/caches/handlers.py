"""kopf as the source of custom-resource events, and the audit that finds what it missed.

Only `on.event` is used: kopf then writes nothing at all, no annotation and no finalizer, to any object. It runs in a
thread with a loop of its own, since on stopping it cancels tasks that it didn't start. What it sees goes to the
caches of the main loop. It doesn't tell of deletions that happened while a watch was broken, and it ends on some
answers of a server; the first is repaired by lists of our own, the second by starting it again.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from vcbatch.api.names import KOPF_FINALIZER
from vcbatch.api.resources import Resource
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.metrics.meter import Meter, NoMeter
from vcbatch.runtime.pacing.backoff import Backoff
from vcbatch.seams.api import Api, ApiError, Json
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

log = logging.getLogger(__name__)

_RESTART = Backoff(initial=0.5, limit=30.0)
_AUDIT_SECONDS = 300.0
_BLIND_SECONDS = 5.0
_SETTLING_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Pauses between the lists while kopf starts: what is deleted after a list of ours and before kopf's own is told by
nobody, and kopf doesn't say when it has listed."""
_CRD_PAUSE = Backoff(initial=0.2, limit=10.0)
_LONGEST_LOG = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One custom resource and the cache that its events go to."""

    resource: Resource
    cache: Cache[Json]


class CustomResourceSource(Protocol):
    """What fills the caches of the custom resources."""

    listed: asyncio.Event
    """Every cache has its first list."""
    watching: asyncio.Event
    """Changes arrive without another list."""

    async def audit(self) -> None: ...

    async def watch(self) -> None: ...


class CustomResources:
    """Feeds the caches of custom resources: a first list, then kopf's events, and a list now and then."""

    def __init__(
        self,
        api: Api,
        connection: Connection,
        feeds: Sequence[Feed],
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
    ) -> None:
        self._api = api
        self._connection = connection
        self._feeds = {feed.resource: feed for feed in feeds}
        self._clock = clock
        self._random = random
        self._meter = meter or NoMeter()
        self.listed = asyncio.Event()
        """Every cache has its first list."""
        self.watching = asyncio.Event()
        """kopf has delivered something: its watches are open."""
        self._blind = True

    async def audit(self) -> None:
        """List at once, then every few minutes with a little chance in it, until cancelled."""
        for feed in self._feeds.values():
            await self._first_list(feed)
        self.listed.set()
        while True:
            await self._until_audit()
            await self._repair()

    async def _repair(self) -> None:
        for feed in self._feeds.values():
            with suppress(ApiError):  # the next audit is as good
                repaired = await self._list(feed)
                if repaired:
                    self._meter.count("audit_repairs", repaired, resource=feed.resource.plural)

    async def _settle(self) -> None:
        """Find what went while kopf was starting."""
        for pause in _SETTLING_SECONDS:
            await self._clock.sleep(pause)
            if self.listed.is_set():
                await self._repair()

    async def _until_audit(self) -> None:
        """A few minutes; a few seconds where kopf delivers nothing, which on an ill connection may last: it begins anew
        where any of the many answers that it starts with is broken."""
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
        """Host kopf until cancelled; where it ends by itself it is started again."""
        failures = 0
        while True:
            operator = _Operator(self)
            self._blind = True
            started = self._clock.monotonic()
            settling = asyncio.create_task(self._settle(), name="settling")
            try:
                await operator.run()
            except Exception as error:
                log.warning("kopf ended: %s: %s", type(error).__name__, error)
            else:
                log.warning("kopf ended")
            finally:
                settling.cancel()
            self._blind = True
            failures = 1 if self._clock.monotonic() - started > _AUDIT_SECONDS else failures + 1
            self._meter.count("kopf_restarts")
            await self._clock.sleep(_RESTART.delay(failures, self._random))

    def observe(self, resource: Resource, event_type: str | None, obj: Json) -> None:
        """An event, in the main loop. kopf calls the objects of its first list events without a type."""
        self.watching.set()
        self._blind = False
        self._feeds[resource].cache.observe(event_type or "ADDED", obj)

    @property
    def resources(self) -> Sequence[Resource]:
        return tuple(self._feeds)

    async def connection_info(self, *, again: bool = False) -> Mapping[str, Any]:
        """The arguments of `kopf.ConnectionInfo`, with credentials as they are now; `again` where those of the last
        time were refused."""
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


class _Operator:
    """One run of kopf in a thread of its own."""

    def __init__(self, source: CustomResources) -> None:
        self._source = source
        self._main = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._asked_to_stop = False
        self._logged_in = False
        self._seen: deque[tuple[Resource, str | None, Json]] = deque()
        self._to_be_fetched = False

    async def run(self) -> None:
        thread = threading.Thread(target=self._serve, name="kopf", daemon=True)
        thread.start()
        try:
            await self._ended.wait()
        finally:
            if not self._ended.is_set():
                self._ask_to_stop()
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(self._ended.wait()), timeout=5.0)
        if self._error is not None:
            raise RuntimeError(str(self._error)) from self._error

    def _ask_to_stop(self) -> None:
        self._asked_to_stop = True  # seen by the thread where it isn't yet at the point of having an event
        if self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):  # its loop has closed meanwhile
                self._loop.call_soon_threadsafe(self._stop.set)

    def _serve(self) -> None:
        try:
            asyncio.run(self._operate())
        except BaseException as error:
            self._error = error
        finally:
            with suppress(RuntimeError):  # the main loop has closed before us
                self._main.call_soon_threadsafe(self._ended.set)

    async def _operate(self) -> None:
        # Credentials first: some are had with the official client, which is then imported before kopf looks for it.
        future = asyncio.run_coroutine_threadsafe(_as_dict(self._source), self._main)
        await asyncio.wrap_future(future)
        kopf = _import_kopf()
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        if self._asked_to_stop:
            return
        await kopf.operator(
            registry=self._registry(kopf),
            settings=_settings(kopf),
            standalone=True,
            clusterwide=True,
            stop_flag=self._stop,
        )

    def _registry(self, kopf: ModuleType) -> Any:
        registry = kopf.OperatorRegistry()
        source, main = self._source, self._main

        @kopf.on.login(registry=registry)
        async def login(**_: Any) -> Any:
            # In the main loop: credentials that are slow to get are kept there, under its locks.
            future = asyncio.run_coroutine_threadsafe(_as_dict(source, again=self._logged_in), main)
            self._logged_in = True
            return kopf.ConnectionInfo(**await asyncio.wrap_future(future))

        for resource in source.resources:
            self._handle(kopf, registry, resource)
        return registry

    def _handle(self, kopf: ModuleType, registry: Any, resource: Resource) -> None:
        @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)
        async def forward(event: Any, **_: Any) -> None:
            # None is what a handler has to return: kopf writes anything else to the object's status.
            self._seen.append((resource, event.get("type"), event["object"]))
            if not self._to_be_fetched:  # to wake the other loop costs as much as many events
                self._to_be_fetched = True
                with suppress(RuntimeError):
                    self._main.call_soon_threadsafe(self._fetch)

    def _fetch(self) -> None:
        """What was seen, in the main loop."""
        self._to_be_fetched = False  # before it is looked what there is: what comes from now on asks again
        while self._seen:
            self._main.call_soon(self._source.observe, *self._seen.popleft())


async def _as_dict(source: CustomResources, *, again: bool = False) -> dict[str, Any]:
    return dict(await source.connection_info(again=again))


def _import_kopf() -> ModuleType:
    """kopf, with its log kept to what a person should read: imported here, since it takes longer than our own start."""
    with _without_official_client():
        import kopf

    logger = logging.getLogger("kopf")
    logger.setLevel(logging.ERROR)
    if not any(isinstance(existing, _Shorten) for existing in logger.filters):
        for name in ("kopf", "kopf.objects", "kopf._core.reactor.queueing"):
            logging.getLogger(name).addFilter(_Shorten())
    return kopf


@contextmanager
def _without_official_client() -> Iterator[None]:
    """kopf imports the official client where there is one, to recognise its models among a handler's objects. Ours
    have none, and the import costs 0.15 s and 20 MB. A program that has it already keeps it."""
    if "kubernetes" in sys.modules:
        yield
        return
    sys.modules["kubernetes"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["kubernetes"]


class _Shorten(logging.Filter):
    """kopf names every unfinished stream in one line when it stops: hundreds of kilobytes on a busy cluster."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if len(text) > _LONGEST_LOG:
            record.msg, record.args = f"{text[:_LONGEST_LOG]}...", None
        return True


def _settings(kopf: ModuleType) -> Any:
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.process.ultimate_exiting_timeout = None
    settings.queueing.worker_limit = None
    # Workers idle this long are let go; the default of 5 s keeps two tasks per object alive.
    settings.queueing.idle_timeout = 0.1
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 10.0
    # Another operator's default finalizer would be taken off its objects by an operator that shares the name.
    settings.persistence.finalizer = KOPF_FINALIZER
    settings.persistence.progress_storage = _no_progress(kopf)
    settings.persistence.diffbase_storage = _no_diffbase(kopf)
    return settings


def _no_progress(kopf: ModuleType) -> Any:
    class NoProgress(kopf.ProgressStorage):
        """Handlers of events keep no progress; nothing is read and nothing written."""

        def fetch(self, **_: Any) -> None:
            return None

        def store(self, **_: Any) -> None:
            return None

        def purge(self, **_: Any) -> None:
            return None

        def touch(self, **_: Any) -> None:
            return None

        def clear(self, *, essence: Any) -> Any:
            return essence

    return NoProgress()


def _no_diffbase(kopf: ModuleType) -> Any:
    class NoDiffBase(kopf.DiffBaseStorage):
        """Handlers of events compare nothing; the deep copy of every object is saved."""

        def build(self, **_: Any) -> dict[str, Any]:
            return {}

        def fetch(self, **_: Any) -> None:
            return None

        def store(self, **_: Any) -> None:
            return None

    return NoDiffBase()
