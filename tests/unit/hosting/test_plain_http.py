"""The server of health and metrics: what it answers, and to whom it listens no longer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from vcbatch.hosting.plain_http import Answer, PlainHttpServer, Target

PATIENCE = 60.0
TEXT = "text/plain"


def broken(_: Target) -> Answer:
    raise RuntimeError("a defect")


ROUTES = {
    "/healthz": lambda _: Answer(200, TEXT, b"ok"),
    "/bad": lambda _: Answer(503, TEXT, b"no"),
    "/broken": broken,
    "/below/": lambda target: Answer(200, TEXT, f"{target.path} {dict(target.query)}".encode()),
}


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    server = PlainHttpServer(ROUTES, **options)
    await server.start(listener)
    try:
        async with asyncio.timeout(PATIENCE):
            yield port
    finally:
        await server.close()


async def said(port: int, sent: bytes) -> bytes:
    """All that comes until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    answer = b""
    with suppress(ConnectionError):
        while piece := await reader.read(1000):
            answer += piece
    writer.close()
    return answer


def request(method: str, path: str, *more: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *more, "", ""]).encode()


@pytest.mark.parametrize(
    ("method", "path", "code", "body"),
    [
        ("GET", "/healthz", 200, b"ok"),
        ("GET", "/healthz?verbose", 200, b"ok"),
        ("GET", "/bad", 503, b"no"),
        ("GET", "/below/a?b=1&b=2&c", 200, b"/below/a {'b': ['1', '2'], 'c': ['']}"),
        ("GET", "/below/a%20b", 200, b"/below/a b {}"),
        ("GET", "/below/a/b", 404, b"404: Not Found"),
        ("GET", "/below", 404, b"404: Not Found"),
        ("HEAD", "/healthz", 200, b""),
        ("GET", "/other", 404, b"404: Not Found"),
        ("POST", "/healthz", 405, b"405: Method Not Allowed"),
        ("GET", "/broken", 500, b"500: Internal Server Error"),
    ],
)
async def test_answers(method: str, path: str, code: int, body: bytes) -> None:
    async with served() as port:
        head, _, answered = (await said(port, request(method, path))).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % code)
    assert answered == body


@pytest.mark.parametrize("sent", [b"\r\n\r\n", b"GET /healthz\r\n\r\n", b"\x00\xff\r\n\r\n"])
async def test_what_is_no_request_is_refused(sent: bytes) -> None:
    async with served() as port:
        assert (await said(port, sent)).startswith(b"HTTP/1.1 400 ")


async def test_a_head_that_is_too_large_is_refused() -> None:
    async with served() as port:
        assert (await said(port, request("GET", "/healthz", f"A: {'x' * 20_000}"))).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nA: "])
async def test_a_head_that_does_not_come_is_cut_off(sent: bytes) -> None:
    async with served(head_seconds=0.1) as port:
        assert await said(port, sent) == b""


async def test_too_many_connections_are_closed_and_those_that_end_make_room() -> None:
    async with served(most=2, head_seconds=1000) as port:
        first = await asyncio.open_connection("127.0.0.1", port)
        second = await asyncio.open_connection("127.0.0.1", port)
        first[1].write(b"GET")
        second[1].write(b"GET")
        assert await said(port, request("GET", "/healthz")) == b""
        first[1].write(b" /healthz HTTP/1.1\r\n\r\n")
        assert (await first[0].read()).startswith(b"HTTP/1.1 200 ")
        while not await said(port, request("GET", "/healthz")):
            pass  # the end of the first connection is noticed a moment later
        second[1].close()
