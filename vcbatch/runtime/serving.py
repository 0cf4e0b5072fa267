"""The small HTTP servers of a component: is it alive, is it ready, what does it count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web


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
        if not colon or not port.isdecimal() or int(port) > 65535:
            raise AddressError(f"{text!r} is not HOST:PORT")
        return cls(host.strip("[]") or None, int(port))


class HealthServer:
    """`/healthz` (it answers, so it is), `/readyz` (503 until it is), and `/metrics` where there is something to
    expose."""

    def __init__(
        self,
        *,
        ready: Callable[[], bool],
        metrics: Callable[[], tuple[str, bytes]] | None = None,
    ) -> None:
        self._ready = ready
        self._metrics = metrics
        self._runners: list[web.AppRunner] = []

    async def listen(self, address: Address) -> None:
        """Raises `OSError` where the address is taken."""
        app = web.Application(client_max_size=1024)
        app.router.add_get("/healthz", self._answer(lambda: True))
        app.router.add_get("/readyz", self._answer(self._ready))
        if self._metrics is not None:
            app.router.add_get("/metrics", self._expose)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, address.host, address.port).start()

    async def close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()

    @staticmethod
    def _answer(check: Callable[[], bool]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(_: web.Request) -> web.StreamResponse:
            good = check()
            return web.Response(status=200 if good else 503, text="ok" if good else "not ready")

        return handle

    async def _expose(self, _: web.Request) -> web.Response:
        content_type, body = self._metrics() if self._metrics is not None else ("text/plain", b"")
        return web.Response(body=body, headers={"Content-Type": content_type})
