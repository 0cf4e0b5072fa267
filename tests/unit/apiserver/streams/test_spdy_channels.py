"""The remote command protocol on SPDY, with a client that opens its streams itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.unit.apiserver.streams.test_channels import FakeSession
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.registry import HandlerRequest
from vcbatch.local.apiserver.subresources import spdy_channels
from vcbatch.local.apiserver.subresources.channels import V4, converse
from vcbatch.local.apiserver.subresources.spdy import Data, Decoder, Encoder, Frame, Reset, ResetReason, SynStream
from vcbatch.local.apiserver.subresources.spdy_channels import SpdyChannels
from vcbatch.local.apiserver.subresources.tunnel import TAKE_OVER_EXTENSION, Tunnel, take_over

WAIT = 60.0


class Transport(asyncio.Transport):
    """Keeps what is written, and whether reading is paused."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.paused = False
        self.wrote = asyncio.Event()

    def write(self, data: Any) -> None:
        self.written += data
        self.wrote.set()

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Client:
    def __init__(self) -> None:
        self.transport = Transport()
        self.tunnel = Tunnel(self.transport, ended=lambda _: None)
        self._encoder, self._decoder = Encoder(), Decoder()
        self.frames: list[Frame] = []

    def say(self, *frames: Frame) -> None:
        for frame in frames:
            self.tunnel.data_received(self._encoder.encode(frame))

    def open(self, number: int, kind: str) -> None:
        self.say(SynStream(stream=number, headers={"streamtype": kind}, fin=False))

    def heard(self) -> list[Frame]:
        written, self.transport.written = self.transport.written, b""
        self.frames += self._decoder.feed(written)
        return self.frames

    def data(self, number: int) -> bytes:
        return b"".join(f.data for f in self.heard() if isinstance(f, Data) and f.stream == number)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT):
            while not condition():
                self.transport.wrote.clear()
                await self.transport.wrote.wait()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    made = Client()
    yield made
    made.tunnel.connection_lost(None)


async def test_a_command_is_connected_from_its_input_to_its_exit_code(client: Client) -> None:
    channels = SpdyChannels(client.tunnel, wanted={"error", "stdin", "stdout", "stderr", "resize"})
    for number, kind in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr"), (9, "resize")):
        client.open(number, kind)
    assert await asyncio.wait_for(channels.ready(), WAIT)
    session = FakeSession(code=7)
    client.say(Data(stream=9, data=b'{"Width":80,"Hei', fin=False), Data(stream=9, data=b'ght":24}\n', fin=False))
    running = asyncio.create_task(converse(channels, session))
    await client.until(lambda: client.data(7) == b"no" and session.sizes == [(80, 24)])
    client.say(Data(stream=3, data=b"hello", fin=True))
    await asyncio.wait_for(running, WAIT)
    assert client.data(5) == b"HELLO"
    status = json.loads(client.data(1))
    assert status["details"] == {"causes": [{"reason": "ExitCode", "message": "7"}]}
    ended = {frame.stream for frame in client.heard() if isinstance(frame, Data) and frame.fin}
    assert ended == {1, 3, 5, 7, 9}
    await channels.close()
    assert client.transport.closed


async def test_a_client_that_leaves_or_babbles_ends_the_command(client: Client) -> None:
    for last_words in (b"", b"\xff" * 100):
        other = Client()
        channels = SpdyChannels(other.tunnel, wanted={"error", "stdin"})
        other.open(1, "error")
        other.open(3, "stdin")
        assert await asyncio.wait_for(channels.ready(), WAIT)
        session = FakeSession()
        running = asyncio.create_task(converse(channels, session))
        if last_words:
            other.tunnel.data_received(last_words)
        else:
            other.tunnel.connection_lost(None)
        await asyncio.wait_for(running, WAIT)
        assert session.closed
        await channels.close()


async def test_streams_that_were_not_asked_for_are_refused(client: Client) -> None:
    channels = SpdyChannels(client.tunnel, wanted={"error", "stdout"})
    for number, kind in ((1, "error"), (3, "error"), (5, "stdin"), (7, "?"), (9, "stdout")):
        client.open(number, kind)
    assert await asyncio.wait_for(channels.ready(), WAIT)
    refused = [Reset(stream=number, reason=ResetReason.PROTOCOL_ERROR) for number in (3, 5, 7)]
    await client.until(lambda: all(frame in client.heard() for frame in refused))
    await channels.close()


async def test_a_client_that_does_not_open_its_streams_is_left(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spdy_channels, "_OPENING_SECONDS", 0.05)
    channels = SpdyChannels(client.tunnel, wanted={"error", "stdout"})
    client.open(1, "error")
    assert not await asyncio.wait_for(channels.ready(), WAIT)
    await channels.close()
    assert client.transport.closed


async def test_a_client_that_sends_faster_than_it_is_read_has_to_wait(client: Client) -> None:
    client.tunnel.data_received(b"x" * 300_000)
    assert client.transport.paused
    messages = client.tunnel.messages()
    assert await anext(messages) == b"x" * 300_000
    client.tunnel.data_received(b"y")
    assert await anext(messages) == b"y"
    assert not client.transport.paused


def asking(offered: str, written: list[bytes]) -> HandlerRequest:
    def upgrade(answer: bytes) -> str:
        written.append(answer)
        return "tunnel"

    fields: dict[str, Any] = dict.fromkeys(("served", "ctx", "operations"))
    return HandlerRequest(
        **fields,
        method="POST",
        verb="create",
        name="p",
        query={},
        headers={"x-stream-protocol-version": offered},
        body=None,
        scope={"type": "http", "extensions": {TAKE_OVER_EXTENSION: upgrade}},
    )


async def test_the_protocol_is_agreed_on_before_the_upgrade() -> None:
    written: list[bytes] = []
    assert take_over(asking(f"v5.channel.k8s.io,{V4}", written), (V4,)) == "tunnel"
    assert written[0].startswith(b"HTTP/1.1 101 ")
    assert written[0].endswith(b"\r\nx-stream-protocol-version: v4.channel.k8s.io\r\n\r\n")
    with pytest.raises(StatusError, match="unable to negotiate protocol"):
        take_over(asking("v9", written), (V4,))
    assert len(written) == 1
