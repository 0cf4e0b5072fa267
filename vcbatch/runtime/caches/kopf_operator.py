"""Runs kopf in a thread of its own, which reports events of custom resources and does nothing else.

Only `on.event` is used: kopf then writes nothing to any object, no annotation and no finalizer. It also has its own
event loop, since on stopping it cancels tasks that it didn't start.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from vcbatch.api.names import KOPF_FINALIZER
from vcbatch.api.resources import Resource
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.tls import as_kubectl

_LONGEST_LOG = 2000
"""Characters of a message in kopf's log."""

_END_ROUNDS = 12
_END_SECONDS = 0.25
"""How often the remaining tasks of a run are cancelled, and the wait in seconds after each time."""

Observe = Callable[[Resource, str | None, Json], None]
"""Called for each event with its resource, its type (None for an object of kopf's first list), and the object."""
ConnectionInfo = Callable[[bool], Awaitable[Mapping[str, Any]]]
"""Returns the arguments of `kopf.ConnectionInfo` with the current credentials; called with True where the last ones
were refused."""


def connection_class(kopf: ModuleType) -> Any:
    """`kopf.ConnectionInfo`, with certificates verified in the same way as by our own client."""

    class Checked(kopf.ConnectionInfo):
        def as_ssl_context(self) -> ssl.SSLContext:
            return as_kubectl(super().as_ssl_context())

    return Checked


class KopfOperator:
    """One run of kopf, which watches some custom resources."""

    def __init__(self, resources: Sequence[Resource], *, observe: Observe, connection_info: ConnectionInfo) -> None:
        """Created in the main loop, where `observe` and `connection_info` are called."""
        self._resources = resources
        self._observe = observe
        self._connection_info = connection_info
        self._main = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._asked_to_stop = False
        self._logged_in = False
        self._stopped = False
        self.scanned = asyncio.Event()
        """Set once kopf has read the server's discovery, which it does once in a run: `unwatched` then lists the
        resources it missed."""
        self.unwatched: Sequence[Resource] = ()
        """Resources that discovery didn't list, so that this run never follows them."""
        self._seen: deque[tuple[Resource, str | None, Json]] = deque()
        self._to_be_fetched = False

    async def run(self) -> None:
        """Run until cancelled or stopped, or until kopf ends. Raises `RuntimeError` where it ended with an error."""
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

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def stop(self) -> None:
        """Make `run` return."""
        self._stopped = True
        self._ask_to_stop()

    def _ask_to_stop(self) -> None:
        self._asked_to_stop = True  # read by the thread where it hasn't created its event yet
        if self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):  # its loop has been closed
                self._loop.call_soon_threadsafe(self._stop.set)

    def _serve(self) -> None:
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(report)
        try:
            loop.run_until_complete(self._operate())
        except BaseException as error:
            self._error = error
        finally:
            # Not `asyncio.run`, nor `kopf.operator`: both wait for tasks of kopf that may never end. Where one of its
            # watches fails, the others ignore their cancellation and wait for credentials that never come.
            loop.run_until_complete(_end_tasks())
            loop.close()
            with suppress(RuntimeError):  # the main loop has been closed
                self._main.call_soon_threadsafe(self._ended.set)

    async def _operate(self) -> None:
        # Get credentials first: some use the official client, which is then imported before kopf checks for it.
        await self._connection()
        kopf = _import_kopf()
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        if self._asked_to_stop:
            return
        tasks = await kopf.spawn_tasks(
            registry=self._registry(kopf),
            settings=_settings(kopf),
            insights=self._insights(),
            standalone=True,
            clusterwide=True,
            stop_flag=self._stop,
        )
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task  # raises the task's error

    def _insights(self) -> Any:
        """kopf's `Insights`, reporting when kopf has read discovery. `kopf.spawn_tasks` accepts it, but its type has no
        public name."""
        from kopf._cogs.structs.references import Insights

        watched: set[Any] = set()
        return Insights(watched_resources=watched, ready_resources=_Reporting(lambda: self._read(watched)))

    def _read(self, watched: Iterable[Any]) -> None:
        known = {(each.group, each.version, each.plural) for each in watched}
        unwatched = [each for each in self._resources if (each.group, each.version, each.plural) not in known]
        with suppress(RuntimeError):  # the main loop has been closed
            self._main.call_soon_threadsafe(self._report_unwatched, unwatched)

    def _report_unwatched(self, unwatched: Sequence[Resource]) -> None:
        self.unwatched = unwatched
        self.scanned.set()

    async def _connection(self, *, again: bool = False) -> dict[str, Any]:
        """Called in the main loop, where credentials that are slow to get are cached, under its locks."""

        async def ask() -> dict[str, Any]:
            return dict(await self._connection_info(again))

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ask(), self._main))

    def _registry(self, kopf: ModuleType) -> Any:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def login(**_: Any) -> Any:
            again, self._logged_in = self._logged_in, True
            return connection_class(kopf)(**await self._connection(again=again))

        for resource in self._resources:
            self._handle(kopf, registry, resource)
        return registry

    def _handle(self, kopf: ModuleType, registry: Any, resource: Resource) -> None:
        @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)
        async def forward(event: Any, **_: Any) -> None:
            # A handler has to return None: kopf writes anything else to the object's status.
            self._seen.append((resource, event.get("type"), event["object"]))
            if not self._to_be_fetched:  # waking the other loop costs as much as many events
                self._to_be_fetched = True
                with suppress(RuntimeError):
                    self._main.call_soon_threadsafe(self._fetch)

    def _fetch(self) -> None:
        """Pass the queued events on, in the main loop."""
        self._to_be_fetched = False  # reset before the queue is read: later events schedule another call
        while self._seen:
            self._main.call_soon(self._observe, *self._seen.popleft())


async def _end_tasks() -> None:
    """Cancel all other tasks of the running loop until they have ended, for a few seconds at most."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for _ in range(_END_ROUNDS):
        if not left:
            return
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=_END_SECONDS)
        for task in done:
            if not task.cancelled():
                task.exception()  # marks it as retrieved: the relevant error was raised before
        left |= asyncio.all_tasks() - {asyncio.current_task()}


class _Reporting(asyncio.Event):
    """An event that calls a function whenever it is set."""

    def __init__(self, on_set: Callable[[], None]) -> None:
        super().__init__()
        self._on_set = on_set

    def set(self) -> None:
        super().set()
        self._on_set()


def _import_kopf() -> ModuleType:
    """Import kopf, with its log reduced to what users need. Imported late, since it takes longer than our own start."""
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
    """kopf imports the official client if it is installed, to recognise its models among a handler's objects. Ours have
    none, and the import costs 0.15 s and 20 MB. If the program has imported it already, it stays."""
    if "kubernetes" in sys.modules:
        yield
        return
    sys.modules["kubernetes"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["kubernetes"]


class _Shorten(logging.Filter):
    """Shortens kopf's messages: when it stops, it lists every unfinished stream in one line, hundreds of kilobytes on a
    busy cluster."""

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
    # Workers that are idle this long end; the default of 5 s keeps two tasks per object alive.
    settings.queueing.idle_timeout = 0.1
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 10.0
    # With another operator's default finalizer, kopf would remove that finalizer from the other operator's objects.
    settings.persistence.finalizer = KOPF_FINALIZER
    settings.persistence.progress_storage = _no_progress(kopf)
    settings.persistence.diffbase_storage = _no_diffbase(kopf)
    return settings


def _no_progress(kopf: ModuleType) -> Any:
    class NoProgress(kopf.ProgressStorage):
        """Handlers of events keep no progress; nothing is read or written."""

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
        """Handlers of events compare nothing; this saves the deep copy of every object."""

        def build(self, **_: Any) -> dict[str, Any]:
            return {}

        def fetch(self, **_: Any) -> None:
            return None

        def store(self, **_: Any) -> None:
            return None

    return NoDiffBase()


def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error in a callback of the loop, except for one of kopf's that occurs wherever kopf is stopped while a
    watch waits for its response: it asserts that it runs in a task, and callbacks don't. Nothing depends on it."""
    kopfs = "request_cancel_callback" in str(context.get("message", ""))
    if not (kopfs and isinstance(context.get("exception"), AssertionError)):
        loop.default_exception_handler(context)
