"""The application on a port: TLS, clients that are too slow cut off, a clean end."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from contextlib import nullcontext
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = logging.getLogger(__name__)

_HEAD_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = 90  # a moment longer than a client of Go's keeps an idle connection
_SHUTDOWN_SECONDS = 10


class _Protocol(HttpToolsProtocol):
    """uvicorn's parser, which waits for ever for the first request of a connection. This one doesn't."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._patience = self.loop.call_later(_HEAD_SECONDS, transport.abort)

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
    """uvicorn without its signal handlers, which belong to the program."""

    def capture_signals(self) -> Any:
        return nullcontext()


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


async def serve(app: ASGIApp, listener: socket.socket, context: ssl.SSLContext) -> None:
    """Serve until cancelled; what is under way is answered first."""
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
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
        ssl_context_factory=lambda _config, _default: context,
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise
