"""A small HTTP server without TLS for health and metrics: GET and HEAD of few paths, one request per connection.

Requests aren't authenticated, so everything about a connection is limited: its head, its time, and the number of
connections.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, unquote

from vcbatch.hosting.guards import ConnectionCount, LimitedListener, most_connections

log = logging.getLogger(__name__)

_LARGEST_HEAD: Final = 16 * 1024
_HEAD_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 30.0
_MOST_CONNECTIONS: Final = 64
_MOST_PARAMETERS: Final = 32
_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a path."""

    code: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a request: its path and query parameters."""

    path: str
    query: Mapping[str, Sequence[str]]

    @staticmethod
    def parse(text: str) -> Target:
        path, _, query = text.partition("?")
        try:
            return Target(unquote(path), parse_qs(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS))
        except ValueError:
            return Target(unquote(path), {})


Route = Callable[[Target], Answer]


class PlainHttpServer:
    """Serves `routes`, by path, on a listening socket that it takes over. A path that ends with a slash matches those
    one level below it."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        *,
        head_seconds: float = _HEAD_SECONDS,
        most: int = _MOST_CONNECTIONS,
    ) -> None:
        self._routes = routes
        self._head_seconds = head_seconds
        self._count = ConnectionCount(most_connections(most))
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, listener: socket.socket) -> None:
        """Listen in the running loop."""
        limited = LimitedListener.of(listener, self._count)
        self._server = await asyncio.start_server(self._serve, sock=limited, limit=_LARGEST_HEAD)

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            async with asyncio.timeout(self._head_seconds):
                answer, with_body = await self._answer(reader)
            async with asyncio.timeout(_ANSWER_SECONDS):
                writer.write(_encoded(answer, with_body=with_body))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            pass  # the client has disconnected, or is too slow
        finally:
            self._writers.discard(writer)
            with suppress(OSError):
                writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[Answer, bool]:
        """The response, and whether it is sent with its body."""
        try:
            head = await reader.readuntil(_END)
        except asyncio.LimitOverrunError:
            return _plain(431), True
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        text, _, version = rest.rpartition(" ")
        if not version.startswith("HTTP/1."):
            return _plain(400), True
        target = Target.parse(text)
        route = self._routes.get(target.path) or self._routes.get(target.path[: target.path.rfind("/") + 1])
        if route is None:
            return _plain(404), True
        if method not in ("GET", "HEAD"):
            return _plain(405), True
        try:
            return route(target), method == "GET"
        except Exception:
            log.exception("%s failed", target.path)
            return _plain(500), True


def _plain(code: int) -> Answer:
    return Answer(code, "text/plain; charset=utf-8", f"{code}: {HTTPStatus(code).phrase}".encode())


def _encoded(answer: Answer, *, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.code} {HTTPStatus(answer.code).phrase}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (answer.body if with_body else b"")
