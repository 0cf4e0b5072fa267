"""uvicorn with limits: an untrusted client can use little memory and few files, and can't delay others."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import nullcontext
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from vcbatch.hosting.guards import (
    WRITE_BUFFER,
    ConnectionCount,
    HttpLimits,
    LimitedListener,
    SlowReader,
    most_connections,
)

AUTHENTICATED_EXTENSION: Final = "vcbatch.authenticated"
"""In the ASGI scope: a function to call once the request's credentials were verified, so that its connection is
kept."""
STALL_EXTENSION: Final = "vcbatch.stall"
"""In the ASGI scope: a function to call with the seconds that the client may leave sent data unread."""

_LINGER_SECONDS = 1.0


class Guard:
    """The state that the connections of one server share."""

    def __init__(self, limits: HttpLimits) -> None:
        self.limits = limits
        self.count = ConnectionCount(most_connections(limits.connections), make_room=self._make_room)
        self.anonymous: dict[GuardedHttp, None] = {}
        """Connections without verified credentials, the oldest first."""

    def _make_room(self) -> bool:
        """Close the oldest connection without credentials."""
        oldest = next(iter(self.anonymous), None)
        if oldest is None or self.limits.anonymous_idle_seconds is None:
            return False
        del self.anonymous[oldest]
        oldest.transport.abort()
        return True


class GuardedHttp(HttpToolsProtocol):
    """uvicorn's parser, with limits for the time and the size of a head."""

    def __init__(self, *arguments: Any, guard: Guard, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._guard = guard
        self._limits = guard.limits
        self._patience: asyncio.TimerHandle | None = None
        self._slow_reader: SlowReader | None = None
        self._idle_seconds = self.timeout_keep_alive
        self._head_bytes = 0
        """Bytes received of an incomplete head, or of an incomplete trailer after a body."""
        self._in_head = True
        self._header_bytes = 0
        self._too_large = False
        self._refused = False
        self._complete = True
        """Whether the last request has arrived completely."""
        self._discardable = self._limits.discarded_bytes

    # Connections -----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self._slow_reader = SlowReader(transport, self._limits.stall_seconds)
        self._guard.anonymous[self] = None
        if self._limits.anonymous_idle_seconds is not None:
            self.timeout_keep_alive = self._limits.anonymous_idle_seconds  # type: ignore[assignment]
        self._wait(self._limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        if self._slow_reader is not None:
            self._slow_reader.resumed()
        self._guard.anonymous.pop(self, None)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        self._leave_http()
        super().handle_websocket_upgrade()

    def _leave_http(self) -> None:
        """Another protocol takes over the connection, with limits of its own."""
        self._wait(None)
        if self._slow_reader is not None:
            self._slow_reader.resumed()
        self._guard.anonymous.pop(self, None)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._slow_reader is not None:
            self._slow_reader.paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._slow_reader is not None:
            self._slow_reader.resumed()

    def _wait(self, seconds: float | None) -> None:
        """Abort the connection after that many seconds, unless this is called again before."""
        if self._patience is not None:
            self._patience.cancel()
        self._patience = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)

    def _authenticated(self) -> None:
        self._guard.anonymous.pop(self, None)
        self.timeout_keep_alive = self._idle_seconds

    # Requests --------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._discard(len(data))
            return
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.parser is None or self.transport.is_closing() or self._refused:
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes:
                self._too_large = True
                self.send_400_response("")
        idle = self._complete and (self.cycle is None or self.cycle.response_complete)
        if idle and self.cycle is not None and self.timeout_keep_alive_task is None:
            # Empty lines between requests don't keep a connection open.
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extensions: dict[str, Any] = {AUTHENTICATED_EXTENSION: self._authenticated}
        if self._slow_reader is not None:
            extensions[STALL_EXTENSION] = self._slow_reader.allow
        self.scope["extensions"] = extensions  # type: ignore[typeddict-item]
        self._in_head, self._complete = True, False
        self._head_bytes = self._header_bytes = 0
        self._wait(self._limits.head_seconds)

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        if len(self.headers) >= self._limits.headers:
            self._too_large = True
            raise ValueError("too many headers")
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > self._limits.head_bytes:
            self._too_large = True
            raise ValueError("the headers are too large")

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        self._discardable = self._limits.discarded_bytes
        self._wait(None)
        if len(self.pipeline) >= self._limits.pipelined:
            raise ValueError("too many requests in advance")
        if self._slow_reader is not None and (self.cycle is None or self.cycle.response_complete):
            self._slow_reader.allow(self._limits.stall_seconds)
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """A part of the body follows, or after the last part a trailer, which is parsed like a head."""
        self._in_head = True

    def on_body(self, body: bytes) -> None:
        self._in_head, self._head_bytes = False, 0
        if self.cycle is not None and self.cycle.response_complete:
            self._discard(len(body))
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        self._complete = True
        self._wait(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._complete and not self.transport.is_closing():
            self._wait(self._limits.discarded_seconds)

    def _discard(self, size: int) -> None:
        self._discardable -= size
        if self._discardable < 0:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is invalid or too large. The rest is dropped for a moment: a connection that is closed
        at once may lose the response."""
        if self._refused:
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
            return
        code = 431 if self._too_large else 400
        text = b"431 Request Header Fields Too Large" if self._too_large else msg.encode("ascii")
        head = b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(text)
        self._refused = True
        self._unset_keepalive_if_required()
        self.transport.write(STATUS_LINE[code] + head + text)
        self._wait(None)
        self._patience = self.loop.call_later(_LINGER_SECONDS, self.transport.close)


class GuardedServer(uvicorn.Server):
    """uvicorn on one listener, without its signal handlers, which belong to the program. The time of TLS handshakes is
    limited."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, context: ssl.SSLContext, guard: Guard) -> None:
        super().__init__(config)
        self._listener = LimitedListener.of(listener, guard.count)
        self._context = context
        self._guard = guard

    def capture_signals(self) -> Any:
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        kind: type[GuardedHttp] = self.config.http_protocol_class  # type: ignore[assignment]

        def protocol() -> asyncio.Protocol:
            return kind(config=self.config, server_state=self.server_state, app_state={}, guard=self._guard)

        server = await asyncio.get_running_loop().create_server(
            protocol,
            sock=self._listener,
            ssl=self._context,
            ssl_handshake_timeout=self._guard.limits.handshake_seconds,
            backlog=2048,
        )
        self.servers = [server]
        self.started = True
