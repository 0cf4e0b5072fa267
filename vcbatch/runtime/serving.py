"""The small HTTP servers of a component: is it alive, is it ready, what does it count.

They run in a thread of their own, so that a program whose event loop hangs says so and is not merely silent.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from aiohttp import web

from vcbatch.seams.clock import Clock

_BEAT_SECONDS = 1.0
_LONGEST_SILENCE = 30.0
_CLOSE_SECONDS = 2.0


class AddressError(ValueError):
    """Not a `HOST:PORT`."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; no host means every interface, as Go's `:8080`."""

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
    """Tells whether an event loop still turns. `run` is to run in it; `fault` may be asked from any thread."""

    def __init__(self, clock: Clock, *, longest_silence: float = _LONGEST_SILENCE) -> None:
        self._clock = clock
        self._longest = longest_silence
        self._beat = clock.monotonic()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._beat = self._clock.monotonic()
            await self._clock.sleep(_BEAT_SECONDS)

    def fault(self) -> str:
        """ "" while it turns, else what is wrong."""
        silent = self._clock.monotonic() - self._beat
        return f"the event loop has been stuck for {silent:.0f}s" if silent > self._longest else ""


Check = Callable[[], str]
"""What is wrong, "" where nothing is. Called in the thread of the server."""


class HealthServer:
    """`/healthz` (also `/livez`) and `/readyz` on one address, `/metrics` on the other; both may be the same.

    A check that finds a fault is answered with 503 and the fault as text.
    """

    def __init__(self, *, alive: Sequence[Check], ready: Sequence[Check], metrics: Callable[[], tuple[str, bytes]]):
        self._alive = tuple(alive)
        self._ready = (*alive, *ready)
        self._metrics = metrics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._runners: list[web.AppRunner] = []

    def start(self, *, health: Address | None, metrics: Address | None) -> None:
        """Listen; no thread is started where there is no address. Raises `OSError` where one is taken."""
        wanted: dict[Address, list[web.RouteDef]] = {}
        if health is not None:
            alive = self._answer(self._alive)
            wanted.setdefault(health, []).extend(
                [web.get("/healthz", alive), web.get("/livez", alive), web.get("/readyz", self._answer(self._ready))]
            )
        if metrics is not None:
            wanted.setdefault(metrics, []).append(web.get("/metrics", self._expose))
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

    async def _listen(self, address: Address, routes: Iterable[web.RouteDef]) -> None:
        app = web.Application(client_max_size=1024)
        app.add_routes(routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_CLOSE_SECONDS, handle_signals=False)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, address.host, address.port).start()

    async def _cleanup(self) -> None:
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()

    @staticmethod
    def _answer(checks: Sequence[Check]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(_: web.Request) -> web.StreamResponse:
            faults = [fault for fault in (check() for check in checks) if fault]
            return web.Response(status=503 if faults else 200, text="; ".join(faults) or "ok")

        return handle

    async def _expose(self, _: web.Request) -> web.Response:
        content_type, body = self._metrics()
        return web.Response(body=body, headers={"Content-Type": content_type})
