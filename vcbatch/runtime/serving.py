"""The small HTTP servers of a component for liveness, readiness and metrics.

They run in a thread of their own, so that a program whose event loop hangs still reports that.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vcbatch.hosting.checks import Checks
from vcbatch.hosting.plain_http import Answer, PlainHttpServer, Route, Target
from vcbatch.interfaces.clock import Clock

_BEAT_SECONDS = 1.0
_LONGEST_SILENCE = 30.0
_CLOSE_SECONDS = 2.0


class AddressError(ValueError):
    """Raised for an address that isn't `HOST:PORT`."""


@dataclass(frozen=True, slots=True)
class Address:
    """A listening address; without a host it means every interface, as Go's `:8080`."""

    host: str | None
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        host, colon, port = text.rpartition(":")
        if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
            raise AddressError(f"{text!r} is not HOST:PORT")
        if ":" in host and not (host.startswith("[") and host.endswith("]")):
            raise AddressError(f"{text!r} is not HOST:PORT: an IPv6 address goes in brackets")
        return cls(host.strip("[]") or None, int(port))

    def __str__(self) -> str:
        host = self.host or ""
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class Pulse:
    """Whether an event loop still runs. `run` has to run in that loop; `error` may be called from any thread."""

    def __init__(self, clock: Clock, *, longest_silence: float = _LONGEST_SILENCE) -> None:
        self._clock = clock
        self._longest = longest_silence
        self._beat = clock.monotonic()

    async def run(self) -> None:
        """Update the time of the last beat, until cancelled."""
        while True:
            self._beat = self._clock.monotonic()
            await self._clock.sleep(_BEAT_SECONDS)

    def error(self) -> str:
        """Empty while the loop runs, else why it counts as stuck."""
        silent = self._clock.monotonic() - self._beat
        return f"the event loop has been stuck for {silent:.0f}s" if silent > self._longest else ""


class HealthServer:
    """`/healthz` (also `/livez`) and `/readyz` on one address, `/metrics` on the other; both may be the same.

    `/readyz/NAME` is a single check.
    """

    def __init__(self, *, alive: Checks, ready: Checks, metrics: Callable[[], tuple[str, bytes]]) -> None:
        self._alive = alive
        self._ready = ready
        self._metrics = metrics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._servers: list[PlainHttpServer] = []

    def start(self, *, health: Address | None, metrics: Address | None) -> None:
        """Start listening; no thread is started without an address. Raises `OSError` where an address is in use."""
        wanted: dict[Address, dict[str, Route]] = {}
        if health is not None:
            routes = _routes("/readyz", self._ready)
            for path in ("/healthz", "/livez"):
                routes |= _routes(path, self._alive)
            wanted.setdefault(health, {}).update(routes)
        if metrics is not None:
            wanted.setdefault(metrics, {})["/metrics"] = self._expose
        if not wanted:
            return
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="health", daemon=True)
        self._thread.start()
        try:
            for address, routes in wanted.items():
                asyncio.run_coroutine_threadsafe(self._listen(address, routes), loop).result()
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Stop listening, and end the thread."""
        loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._cleanup(), loop).result(timeout=_CLOSE_SECONDS * 2)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():
            loop.close()

    async def _listen(self, address: Address, routes: Mapping[str, Route]) -> None:
        for listener in _listeners(address):
            server = PlainHttpServer(routes)
            await server.start(listener)
            self._servers.append(server)

    async def _cleanup(self) -> None:
        for server in self._servers:
            await server.close()
        self._servers.clear()

    def _expose(self, _: Target) -> Answer:
        return Answer(200, *self._metrics())


def _routes(path: str, checks: Checks) -> dict[str, Route]:
    return {
        path: lambda target: checks.answer(target.query),
        f"{path}/": lambda target: checks.answer_one(target.path.rpartition("/")[2]),
    }


def _listeners(address: Address) -> list[socket.socket]:
    """Listening sockets at that address: for IPv4 and IPv6 where it has both. Raises `OSError`."""
    found: list[socket.socket] = []
    flags = socket.AI_PASSIVE
    places = dict.fromkeys(socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=flags))
    try:
        for family, _, _, _, place in places:
            try:
                listener = socket.socket(family, socket.SOCK_STREAM)
            except OSError:
                continue  # this machine lacks that address family
            found.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(place)
            listener.listen(128)
    except OSError:
        for listener in found:
            listener.close()
        raise
    return found
