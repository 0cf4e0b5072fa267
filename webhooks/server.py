"""The application on a port: TLS, clients that are too slow or too many cut off, an end that nobody notices."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from contextlib import nullcontext
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vcbatch.seams.clock import Clock

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 1000
DRAIN_SECONDS: Final = 10.0
_QUIET_SECONDS = 2.0
_LOOK_SECONDS = 0.1
_HEAD_SECONDS = 5.0
_HANDSHAKE_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = 90  # a moment longer than a client of Go's keeps an idle connection
_SHUTDOWN_SECONDS = 10


class _Protocol(HttpToolsProtocol):
    """uvicorn's parser, which waits for ever for the first request of a connection, and takes as many connections as
    there are. This one doesn't."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._patience = self.loop.call_later(_HEAD_SECONDS, transport.abort)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()

    def on_headers_complete(self) -> None:
        self._patience.cancel()
        super().on_headers_complete()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._patience.cancel()
        self._patience = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.cancel()
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which belong to the program, and with an end to TLS handshakes."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(config)
        self._listener = listener
        self._context = context

    def capture_signals(self) -> Any:
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        def protocol() -> asyncio.Protocol:
            return _Protocol(config=self.config, server_state=self.server_state, app_state={})

        server = await asyncio.get_running_loop().create_server(
            protocol, sock=self._listener, ssl=self._context, ssl_handshake_timeout=_HANDSHAKE_SECONDS
        )
        self.servers = [server]
        self.started = True


class Drained:
    """The application, which can be asked to send its clients elsewhere before the port closes.

    An API server keeps connections open and sends a request on one at any moment; closing it then fails the request,
    which isn't repeated. So every answer ends its connection first, and the port closes once nobody comes any more.
    """

    def __init__(self, app: ASGIApp, *, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._draining = False
        self._last = 0.0

    async def drain(self, seconds: float) -> None:
        """Return once no request has come for a while, or after `seconds`."""
        self._draining = True
        began = self._last = self._clock.monotonic()
        while (now := self._clock.monotonic()) < min(began + seconds, self._last + _QUIET_SECONDS):
            await self._clock.sleep(min(_LOOK_SECONDS, began + seconds - now))

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
    """A listening socket. Raises `OSError` where the address can't be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's algorithm, which costs 40 ms an answer, only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
) -> None:
    """Serve until cancelled; then clients are sent elsewhere, and what is under way is answered."""
    drained = Drained(app, clock=clock)
    config = uvicorn.Config(
        drained,  # type: ignore[arg-type]
        http=_Protocol,
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
    server = _Server(config, listener, context)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        await drained.drain(drain_seconds)
        server.should_exit = True
        await serving
        raise
