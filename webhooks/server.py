"""Serves the application on a port: TLS, limits for slow or too many clients, and a graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import TYPE_CHECKING, Final

import uvicorn

from vcbatch.hosting.guards import HttpLimits
from vcbatch.hosting.http_server import Guard, GuardedHttp, GuardedServer
from vcbatch.interfaces.clock import Clock

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 1000
DRAIN_SECONDS: Final = 10.0
_QUIET_SECONDS = 2.0
_CHECK_SECONDS = 0.1
_HEAD_SECONDS = 5.0
_HANDSHAKE_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = 90  # a little longer than Go's clients keep an idle connection
_SHUTDOWN_SECONDS = 10


class Drained:
    """The application, with an operation that drains its clients before the port closes.

    An API server keeps connections open and may send a request on one at any moment; closing it then fails the request,
    which isn't retried. So every answer closes its connection first, and the port closes once no request arrives any
    more.
    """

    def __init__(self, app: ASGIApp, *, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._draining = False
        self._last = 0.0

    async def drain(self, seconds: float) -> None:
        """Return once no request has arrived for a while, or after `seconds`."""
        self._draining = True
        began = self._last = self._clock.monotonic()
        while (now := self._clock.monotonic()) < min(began + seconds, self._last + _QUIET_SECONDS):
            await self._clock.sleep(min(_CHECK_SECONDS, began + seconds - now))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._last = self._clock.monotonic()
        if not self._draining:
            await self._app(scope, receive, send)
            return

        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, closing)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; without a host on every address, including IPv6 where the machine has it. Raises `OSError`
    where the address can't be bound."""
    everywhere = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if everywhere or ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm, which costs 40 ms per answer, only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if everywhere:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
        listener.listen(2048)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


async def serve(
    app: ASGIApp,
    listener: socket.socket,
    context: ssl.SSLContext,
    *,
    clock: Clock,
    drain_seconds: float = DRAIN_SECONDS,
    limits: HttpLimits | None = None,
) -> None:
    """Serve until cancelled; then clients are drained, and requests in progress are answered."""
    drained = Drained(app, clock=clock)
    limits = limits or HttpLimits(
        head_seconds=_HEAD_SECONDS,
        handshake_seconds=_HANDSHAKE_SECONDS,
        connections=MOST_CONNECTIONS,
        anonymous_idle_seconds=None,  # an API server sends no credentials
    )
    config = uvicorn.Config(
        drained,  # type: ignore[arg-type]
        http=GuardedHttp,
        ws="none",
        loop="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    server = GuardedServer(config, listener, context, Guard(limits))
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        await drained.drain(drain_seconds)
        server.should_exit = True
        await serving
        raise
