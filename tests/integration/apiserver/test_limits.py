"""What clients may do to the listeners: large and slow heads, bodies that nobody wants, answers that nobody reads.

The same for the API server and for the admission service, which share the limits.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.cluster.pki import Authority
from tests.integration.apiserver.test_server import api_of
from tests.support.admission_http import app_over
from tests.support.admission_world import World
from tests.support.raw_http import Stalled, head, token_of, trusting
from vcbatch.api.resources import CONFIGMAPS
from vcbatch.hosting.guards import HttpLimits
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom
from webhooks import server as admission

SHORT = 0.2
SMALL = HttpLimits(head_bytes=64 * 1024, headers=100, pipelined=8, discarded_bytes=256 * 1024)
"""The limits of every test, but for those that it is about."""
PATIENCE = 60.0
MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    port: int
    context: ssl.SSLContext
    token: str = ""

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)
        try:
            async with asyncio.timeout(PATIENCE):
                yield reader, writer
        finally:
            writer.transport.abort()

    async def answer(self, sent: bytes) -> int:
        """The status code, 0 where the connection was cut off without one."""
        async with self.connection() as (reader, writer):
            writer.write(sent)
            return await code_of(reader)


async def code_of(reader: asyncio.StreamReader) -> int:
    """Of the next answer, whose body is read; 0 where the connection ends."""
    try:
        start = await reader.readuntil(b"\r\n\r\n")
    except (ConnectionError, asyncio.IncompleteReadError):
        return 0
    fields = dict(line.lower().split(b": ", 1) for line in start.split(b"\r\n")[1:] if b": " in line)
    await reader.readexactly(int(fields.get(b"content-length", b"0")))
    return int(start.split(b" ")[1])


async def end_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends."""
    with suppress(ConnectionError):
        return await reader.read()
    return b""


@asynccontextmanager
async def api_server(folder: Path, limits: HttpLimits) -> AsyncIterator[Served]:
    server = EmbeddedServer(state_dir=folder, clock=SystemClock(), random=SystemRandom(), limits=limits)
    await server.start()
    try:
        yield Served(port=server.port, context=trusting(folder), token=token_of(folder))
    finally:
        await server.stop()


@asynccontextmanager
async def admission_service(folder: Path, limits: HttpLimits) -> AsyncIterator[Served]:
    authority = Authority(folder / "pki")
    pair = authority.serving("first")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    listener = admission.listen("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    limits = replace(limits, anonymous_idle_seconds=None)
    serving = admission.serve(app_over(World()), listener, context, clock=SystemClock(), drain_seconds=0, limits=limits)
    task = asyncio.create_task(serving)
    client = ssl.create_default_context(cafile=str(authority.certificate))
    try:
        yield Served(port=port, context=client)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


Start = Callable[[Path, HttpLimits], AbstractAsyncContextManager[Served]]
both = pytest.mark.parametrize("start", [api_server, admission_service])


@both
@pytest.mark.parametrize(
    "more",
    [
        [f"A: {'x' * SMALL.head_bytes}"],
        [f"A-{number}: {'x' * 1000}" for number in range(70)],
        [f"A-{number}: x" for number in range(SMALL.headers + 1)],
        [f"{'a' * SMALL.head_bytes}: x"],
    ],
    ids=["large value", "large together", "many", "large name"],
)
async def test_headers_that_are_too_large_are_refused(start: Start, tmp_path: Path, more: list[str]) -> None:
    async with start(tmp_path, SMALL) as served:
        assert await served.answer(head("GET", "/healthz", "", *more)) == 431
        assert await served.answer(head("GET", "/healthz")) == 200


@both
async def test_a_path_that_is_too_long_is_refused(start: Start, tmp_path: Path) -> None:
    async with start(tmp_path, SMALL) as served:
        assert await served.answer(head("GET", f"/healthz?{'x' * SMALL.head_bytes}")) == 431


@both
async def test_a_header_that_never_ends_is_refused_while_it_comes(start: Start, tmp_path: Path) -> None:
    async with start(tmp_path, SMALL) as served, served.connection() as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nA: " + b"x" * SMALL.head_bytes)
        assert await code_of(reader) == 431
        with suppress(ConnectionError):
            for _ in range(100):
                writer.write(b"x" * 64 * 1024)
                await writer.drain()
        assert await end_of(reader) == b""


@both
async def test_a_trailer_that_is_too_large_is_cut_off(start: Start, tmp_path: Path) -> None:
    async with start(tmp_path, SMALL) as served, served.connection() as (reader, writer):
        chunked = ("Transfer-Encoding: chunked", "Content-Type: application/json")
        writer.write(head("POST", MAPS, served.token, *chunked) + b"2\r\n{}\r\n0\r\nA: ")
        with suppress(ConnectionError):
            for _ in range(100):
                writer.write(b"x" * 64 * 1024)
                await writer.drain()
        await end_of(reader)


async def test_headers_of_nearly_a_megabyte_are_served_by_default(tmp_path: Path) -> None:
    async with api_server(tmp_path, HttpLimits()) as served:
        assert await served.answer(head("GET", "/healthz", "", f"A: {'x' * 1_000_000}")) == 200
        assert await served.answer(head("GET", "/healthz", "", f"A: {'x' * 1_100_000}")) == 431


@both
@pytest.mark.parametrize("sent", [b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nA: ", b"\r\n\r\n"])
async def test_a_head_that_does_not_come_is_cut_off(start: Start, tmp_path: Path, sent: bytes) -> None:
    limits = replace(SMALL, head_seconds=SHORT)
    async with start(tmp_path, limits) as served, served.connection() as (reader, writer):
        writer.write(sent)
        assert await end_of(reader) == b""


@both
async def test_a_second_head_that_comes_slowly_is_cut_off(start: Start, tmp_path: Path) -> None:
    limits = replace(SMALL, head_seconds=SHORT)
    async with start(tmp_path, limits) as served, served.connection() as (reader, writer):
        writer.write(head("GET", "/healthz"))
        assert await code_of(reader) == 200
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        assert await end_of(reader) == b""


async def test_empty_lines_do_not_keep_a_connection(tmp_path: Path) -> None:
    limits = replace(SMALL, anonymous_idle_seconds=SHORT)
    async with api_server(tmp_path, limits) as served, served.connection() as (reader, writer):
        writer.write(head("GET", "/healthz"))
        assert await code_of(reader) == 200
        writer.write(b"\r\n")
        assert await end_of(reader) == b""


@both
async def test_a_handshake_that_is_not_finished_is_cut_off(start: Start, tmp_path: Path) -> None:
    async with start(tmp_path, replace(SMALL, handshake_seconds=SHORT)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        async with asyncio.timeout(PATIENCE):
            assert await end_of(reader) == b""
        writer.close()


@both
async def test_requests_that_come_before_their_answers_are_few(start: Start, tmp_path: Path) -> None:
    async with start(tmp_path, SMALL) as served:
        async with served.connection() as (reader, writer):
            writer.write(head("GET", "/healthz") * SMALL.pipelined)
            for _ in range(SMALL.pipelined):
                assert await code_of(reader) == 200
        async with served.connection() as (reader, writer):
            writer.write(head("GET", "/healthz") * 1000)
            await end_of(reader)
        assert await served.answer(head("GET", "/healthz")) == 200


@pytest.mark.parametrize(("token", "code"), [("", 403), ("wrong", 401)])
async def test_somebody_unknown_is_refused_before_a_body_is_read(tmp_path: Path, token: str, code: int) -> None:
    async with api_server(tmp_path, SMALL) as served:
        announced = ("Content-Type: application/json", "Content-Length: 3000000", "Expect: 100-continue")
        assert await served.answer(head("POST", MAPS, token, *announced)) == code


async def test_a_body_that_was_refused_is_not_read_for_ever(tmp_path: Path) -> None:
    async with api_server(tmp_path, SMALL) as served, served.connection() as (reader, writer):
        writer.write(head("POST", MAPS, "wrong", "Content-Length: 1000000000"))
        assert await code_of(reader) == 401
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                writer.write(b"x" * 64 * 1024)
                await writer.drain()
            await writer.wait_closed()


async def test_a_body_that_was_refused_and_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    limits = replace(SMALL, discarded_seconds=SHORT)
    async with api_server(tmp_path, limits) as served, served.connection() as (reader, writer):
        writer.write(head("POST", MAPS, "wrong", "Content-Length: 1000000000"))
        assert await code_of(reader) == 401
        assert await end_of(reader) == b""


async def test_a_small_body_that_was_refused_leaves_the_connection_usable(tmp_path: Path) -> None:
    async with api_server(tmp_path, SMALL) as served, served.connection() as (reader, writer):
        writer.write(head("POST", MAPS, "wrong", "Content-Length: 1000") + b"x" * 1000)
        assert await code_of(reader) == 401
        writer.write(head("GET", "/healthz"))
        assert await code_of(reader) == 200


async def test_a_body_that_comes_slowly_is_cut_off(tmp_path: Path) -> None:
    limits = replace(SMALL, body_seconds=SHORT, discarded_seconds=SHORT)
    async with api_server(tmp_path, limits) as served, served.connection() as (reader, writer):
        content = ("Content-Type: application/json", "Content-Length: 1000")
        writer.write(head("POST", MAPS, served.token, *content) + b"{")
        assert await code_of(reader) == 408
        assert await end_of(reader) == b""


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_of_more_than_3_mib_is_refused(tmp_path: Path, announced: bool) -> None:
    body = b'{"a":"%b"}' % (b"x" * 3 * 1024 * 1024)
    length = f"Content-Length: {len(body)}" if announced else "Transfer-Encoding: chunked"
    content = body if announced else b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    async with api_server(tmp_path, HttpLimits()) as served:
        sent = head("POST", MAPS, served.token, "Content-Type: application/json", length) + content
        assert await served.answer(sent) == 413


async def test_strangers_make_room_for_who_is_known(tmp_path: Path) -> None:
    limits = replace(SMALL, connections=3)
    async with (
        api_server(tmp_path, limits) as served,
        served.connection() as (first, _),
        served.connection(),
        served.connection(),
    ):
        assert await served.answer(head("GET", MAPS, served.token)) == 200
        assert await end_of(first) == b"", "the oldest"


async def test_nobody_makes_room_who_is_known(tmp_path: Path) -> None:
    limits = replace(SMALL, connections=2)
    async with (
        api_server(tmp_path, limits) as served,
        served.connection() as (first, to_first),
        served.connection() as (second, to_second),
    ):
        for reader, writer in ((first, to_first), (second, to_second)):
            writer.write(head("GET", MAPS, served.token))
            assert await code_of(reader) == 200
        with pytest.raises(ConnectionError):
            await served.answer(head("GET", MAPS, served.token))
        to_first.write(head("GET", MAPS, served.token))
        assert await code_of(first) == 200


async def test_handshakes_count_as_connections(tmp_path: Path) -> None:
    limits = replace(SMALL, connections=2, handshake_seconds=SHORT)
    async with api_server(tmp_path, limits) as served:
        silent = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(2)]
        third, writer = await asyncio.open_connection("127.0.0.1", served.port)
        async with asyncio.timeout(PATIENCE):
            assert await end_of(third) == b""
            for reader, _ in silent:
                await end_of(reader)
        assert await served.answer(head("GET", "/healthz")) == 200, "those that were cut off count no more"
        for each in (writer, *(writer for _, writer in silent)):
            each.close()


@pytest.mark.parametrize("path", [f"{MAPS}?watch=true&resourceVersion=0", MAPS])
async def test_who_reads_nothing_is_dropped_and_delays_nobody(tmp_path: Path, path: str) -> None:
    async with api_server(tmp_path, replace(SMALL, stall_seconds=SHORT)) as served, api_of(tmp_path) as api:
        for number in range(12):  # more than the buffers of a socket hold
            data = {"data": {"filling": "x" * 1_000_000}, "metadata": {"name": f"large-{number}"}}
            await api.create(CONFIGMAPS, data, namespace="default")
        stalled = [await Stalled.open(served.port, served.context, path, served.token) for _ in range(3)]
        assert len((await api.list(CONFIGMAPS, namespace="default")).items) >= 12
        try:
            async with asyncio.timeout(PATIENCE):
                for each in stalled:
                    await each.cut_off()
        finally:
            for each in stalled:
                each.abort()


async def test_who_reads_slowly_gets_everything(tmp_path: Path) -> None:
    async with api_server(tmp_path, replace(SMALL, stall_seconds=30)) as served, api_of(tmp_path) as api:
        for number in range(6):
            data = {"data": {"filling": "x" * 1_000_000}, "metadata": {"name": f"large-{number}"}}
            await api.create(CONFIGMAPS, data, namespace="default")
        async with served.connection() as (reader, writer):
            writer.write(head("GET", MAPS, served.token, "Connection: close"))
            size = 0
            while piece := await reader.read(10_000):
                size += len(piece)
                await asyncio.sleep(0)
        assert size > 6_000_000
