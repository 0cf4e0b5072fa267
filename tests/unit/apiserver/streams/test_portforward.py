"""Port-forward: pairs of SPDY streams and the connections behind them, with a client that speaks SPDY itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.subresources import portforward, streams
from vcbatch.local.apiserver.subresources.port_channels import ChannelForwarder
from vcbatch.local.apiserver.subresources.portforward import PortForwarder
from vcbatch.local.apiserver.subresources.spdy import (
    Data,
    Decoder,
    Encoder,
    Frame,
    Ping,
    Reset,
    ResetReason,
    SpdyError,
    SynReply,
    SynStream,
)

WAIT = 60.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Client:
    """kubectl's end: opens streams and keeps what comes."""

    def __init__(self, ports: dict[int, int]) -> None:
        self.dialled: list[int] = []
        self._ports = ports
        self._encoder, self._decoder = Encoder(), Decoder()
        self._arrived = asyncio.Condition()
        self.frames: list[Frame] = []
        self.forwarder = PortForwarder(pod="p", dial=self._dial, send=self._receive)

    async def _dial(self, port: int) -> Streams:
        self.dialled.append(port)
        if port not in self._ports:
            raise StatusError(500, "InternalError", "nobody listens")
        return await asyncio.open_connection("127.0.0.1", self._ports[port])

    async def _receive(self, data: bytes) -> None:
        async with self._arrived:
            self.frames += self._decoder.feed(data)
            self._arrived.notify_all()

    async def say(self, *frames: Frame) -> None:
        for frame in frames:
            await asyncio.wait_for(self.forwarder.feed(self._encoder.encode(frame)), WAIT)

    async def open(self, number: int, kind: str, *, port: str = "80", request: str = "0", fin: bool = False) -> None:
        headers = {"streamtype": kind, "port": port, "requestid": request}
        await self.say(SynStream(stream=number, headers=headers, fin=fin))

    async def pair(self, *, port: str = "80", first: int = 1, request: str = "0") -> None:
        await self.open(first, "error", port=port, request=request, fin=True)
        await self.open(first + 2, "data", port=port, request=request)

    def data(self, stream: int) -> bytes:
        return b"".join(f.data for f in self.frames if isinstance(f, Data) and f.stream == stream)

    def ended(self, stream: int) -> bool:
        return any(isinstance(f, Data) and f.stream == stream and f.fin for f in self.frames)

    def reset(self, stream: int) -> int | None:
        return next((f.reason for f in self.frames if isinstance(f, Reset) and f.stream == stream), None)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._arrived:
            await asyncio.wait_for(self._arrived.wait_for(condition), WAIT)


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@asynccontextmanager
async def pod(serve: Serve) -> AsyncIterator[Client]:
    """A program on port 80 of a pod, and a client that forwards to it."""
    listener = await asyncio.start_server(serve, "127.0.0.1", 0)  # type: ignore[arg-type]
    client = Client({80: listener.sockets[0].getsockname()[1]})
    try:
        yield client
    finally:
        await client.forwarder.close()
        listener.close()
        await listener.wait_closed()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.read()).upper())  # all of it: the client's half must have ended
    await writer.drain()
    writer.close()


async def test_a_half_that_has_ended_is_still_answered_and_both_streams_end() -> None:
    async with pod(echo) as client:
        await client.pair()
        assert [f for f in client.frames if isinstance(f, SynReply)] != []
        await client.say(Data(stream=3, data=b"hel", fin=False), Data(stream=3, data=b"lo", fin=True))
        await client.until(lambda: client.ended(1) and client.ended(3))
        assert (client.data(3), client.data(1)) == (b"HELLO", b"")


async def test_connections_beside_each_other_are_kept_apart() -> None:
    async with pod(echo) as client:
        for index in range(10):
            await client.pair(first=1 + 4 * index, request=str(index))
        for index in range(10):
            await client.say(Data(stream=3 + 4 * index, data=f"n{index}".encode(), fin=True))
        await client.until(lambda: all(client.ended(1 + 4 * index) for index in range(10)))
        assert [client.data(3 + 4 * index) for index in range(10)] == [f"N{index}".encode() for index in range(10)]


async def test_why_a_port_cannot_be_reached_is_told_on_the_error_stream() -> None:
    async with pod(echo) as client:
        await client.pair(port="81")
        await client.until(lambda: client.ended(1) and client.ended(3))
        assert client.data(1) == b"error forwarding port 81 to pod p: nobody listens"


@pytest.mark.parametrize("port", ["0", "65536", "-1", "80x", "", "٣", "999999999"])
async def test_a_port_that_is_none_is_refused_without_dialling(port: str) -> None:
    async with pod(echo) as client:
        await client.open(1, "error", port=port)
        await client.until(lambda: client.reset(1) == ResetReason.PROTOCOL_ERROR)
        assert client.dialled == []


async def test_a_second_stream_of_a_kind_or_another_port_is_refused() -> None:
    async with pod(echo) as client:
        await client.open(1, "error")
        await client.open(3, "error")
        await client.open(5, "data", port="81")
        await client.open(7, "speech")
        await client.until(lambda: all(client.reset(n) == ResetReason.PROTOCOL_ERROR for n in (3, 5, 7)))
        await client.open(9, "data")
        await client.say(Data(stream=9, data=b"x", fin=True))
        await client.until(lambda: client.ended(9))
        assert client.data(9) == b"X"


async def test_a_stream_that_stays_alone_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portforward, "_PAIR_SECONDS", 0.05)
    async with pod(echo) as client:
        await client.open(1, "data")
        await client.until(lambda: client.reset(1) == ResetReason.CANCEL)


async def test_a_reset_closes_the_connection_in_the_pod() -> None:
    closed = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hi")
        try:
            await reader.read()
        except ConnectionError:
            pass
        closed.set()
        writer.close()

    async with pod(wait) as client:
        await client.pair()
        await client.until(lambda: client.data(3) == b"hi")
        await client.say(Reset(stream=3, reason=ResetReason.CANCEL))
        await asyncio.wait_for(closed.wait(), WAIT)


async def test_the_end_of_the_forwarder_closes_the_connections_in_the_pod() -> None:
    closed = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hi")
        try:
            await reader.read()
        except ConnectionError:
            pass
        closed.set()
        writer.close()

    async with pod(wait) as client:
        await client.pair()
        await client.until(lambda: client.data(3) == b"hi")
        await client.forwarder.close()
        await asyncio.wait_for(closed.wait(), WAIT)


async def test_only_so_many_streams_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_STREAMS", 2)
    async with pod(echo) as client:
        await client.pair()
        await client.open(5, "error", request="1")
        await client.until(lambda: client.reset(5) == ResetReason.REFUSED_STREAM)


@pytest.mark.parametrize("number", [2, 1])
async def test_stream_numbers_of_the_wrong_kind_break_the_protocol(number: int) -> None:
    async with pod(echo) as client:
        await client.open(1, "error")
        with pytest.raises(SpdyError):
            await client.open(number, "data")


async def test_pings_are_answered_and_data_of_unknown_streams_is_reset() -> None:
    async with pod(echo) as client:
        await client.say(Ping(number=7), Ping(number=8), Data(stream=99, data=b"?", fin=False))
        assert client.frames == [Ping(number=7), Reset(stream=99, reason=ResetReason.INVALID_STREAM)]


class FakeSocket:
    """A WebSocket for the way without streams."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.sent: list[bytes] = []
        self._arrived = asyncio.Condition()

    async def messages(self) -> AsyncIterator[bytes]:
        while (message := await self.incoming.get()) is not None:
            yield message

    async def send(self, data: bytes) -> None:
        async with self._arrived:
            self.sent.append(data)
            self._arrived.notify_all()

    async def lost(self) -> None:
        await asyncio.Event().wait()

    def on(self, channel: int) -> bytes:
        return b"".join(message[1:] for message in self.sent if message[0] == channel)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._arrived:
            await asyncio.wait_for(self._arrived.wait_for(condition), WAIT)


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def test_clients_without_streams_have_two_channels_a_port() -> None:
    async with pod(answer_once) as client:
        socket = FakeSocket()
        for message in (b"", b"\x63x", b"\x01x", b"\x00hello\n"):
            socket.incoming.put_nowait(message)
        forwarder = ChannelForwarder(pod="p", ports=[80, 81], dial=client._dial, socket=socket)  # type: ignore[arg-type]
        await asyncio.wait_for(forwarder.run(), WAIT)
        assert (socket.on(0), socket.on(1)) == (b"\x50\x00HELLO\n", b"\x50\x00")
        assert socket.on(2) == b"\x51\x00"
        assert socket.on(3) == b"\x51\x00error forwarding port 81 to pod p: nobody listens"


async def test_a_client_without_streams_that_leaves_closes_its_connections() -> None:
    closed = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hi")
        with suppress(ConnectionError):
            await reader.read()
        closed.set()
        writer.close()

    async with pod(wait) as client:
        socket = FakeSocket()
        forwarder = ChannelForwarder(pod="p", ports=[80], dial=client._dial, socket=socket)  # type: ignore[arg-type]
        running = asyncio.create_task(forwarder.run())
        await socket.until(lambda: socket.on(0) == b"\x50\x00hi")
        socket.incoming.put_nowait(None)
        await asyncio.wait_for(running, WAIT)
        await asyncio.wait_for(closed.wait(), WAIT)
