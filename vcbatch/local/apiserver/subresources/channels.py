"""The remote command protocol: standard streams, window size and the final status of a command on one connection.

On a WebSocket each message begins with the number of its channel. Source: kubernetes
`staging/src/k8s.io/kubelet/pkg/cri/streaming/remotecommand/websocket.go` and
`client-go/tools/remotecommand/websocket.go`. Before `v4` the error channel has the message of a failure, and nothing on
success; from `v4` on a Status. `v5` is `v4` with a message that closes a channel.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import aclosing, suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from vcbatch.interfaces.processes import Session
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.subresources.websocket import NO_PROTOCOL, WebSocket

Json = dict[str, Any]
log = logging.getLogger(__name__)

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"
V4_BASE64 = "v4.base64.channel.k8s.io"
V1 = "channel.k8s.io"
V1_BASE64 = "base64.channel.k8s.io"
PROTOCOLS = (V5, V4, V4_BASE64, V1, V1_BASE64, NO_PROTOCOL)

_LARGEST_WINDOW = 0xFFFF
_RESIZE_LIMIT = 256  # bytes of a resize message: two small numbers in JSON


class Channel(IntEnum):
    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4
    CLOSE = 255


@dataclass(frozen=True, slots=True)
class Input:
    data: bytes


@dataclass(frozen=True, slots=True)
class InputClosed:
    """The client has closed the standard input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    columns: int
    rows: int


Message = Input | InputClosed | Resize


class Channels(Protocol):
    """The client's side of a command, independent of the transport."""

    def messages(self) -> AsyncIterator[Message]:
        """The client's messages until it disconnects."""
        ...

    async def send(self, stream: int, data: bytes) -> None:
        """Send to standard output (1) or standard error (2); raises `OSError` where the client has disconnected."""
        ...

    async def finish(self, status: Json) -> None:
        """Send the final status."""
        ...

    async def close(self) -> None: ...

    async def lost(self) -> None:
        """Returns when the connection is lost."""
        ...


def decode(message: bytes) -> Message | None:
    """Parse a client's message; None for one without a meaning."""
    if not message:
        return None
    channel, data = message[0], message[1:]
    if channel == Channel.STDIN:
        return Input(data) if data else None
    if channel == Channel.CLOSE and data[:1] == bytes([Channel.STDIN]):
        return InputClosed()
    if channel == Channel.RESIZE:
        return decode_resize(data)
    return None


def decode_resize(data: bytes) -> Resize | None:
    """A window size as clients send it, `{"Width": 80, "Height": 24}`; None for any other text."""
    if len(data) > _RESIZE_LIMIT:
        return None
    try:
        document = json.loads(data)
        columns, rows = document["Width"], document["Height"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not all(type(value) is int and 0 < value <= _LARGEST_WINDOW for value in (columns, rows)):
        return None
    return Resize(columns=columns, rows=rows)


class WebSocketChannels:
    """Channels as messages of a WebSocket. Streams that the client did not request (`wanted`, by name) are neither read
    nor sent."""

    def __init__(self, socket: WebSocket, protocol: str, *, wanted: Collection[str]) -> None:
        self._socket = socket
        self._protocol = protocol
        self._input = "stdin" in wanted
        self._outputs = {number for name, number in _OUTPUTS.items() if name in wanted}

    @classmethod
    async def accept(cls, socket: WebSocket, *, wanted: Collection[str]) -> WebSocketChannels:
        """Complete the handshake. Raises `StatusError` where client and server have no protocol in common."""
        # A server that supports v5 uses only that with a client that offers it, in whatever order.
        protocol = V5 if V5 in socket.offered else socket.choose(PROTOCOLS)
        await socket.accept(protocol)
        return cls(socket, protocol, wanted=wanted)

    async def messages(self) -> AsyncIterator[Message]:
        async for raw in self._socket.messages():
            message = decode(raw)
            if message is not None and (self._input or not isinstance(message, Input)):
                yield message

    async def send(self, stream: int, data: bytes) -> None:
        if stream in self._outputs:
            await self._socket.send(bytes([stream]) + data)

    async def finish(self, status: Json) -> None:
        if self._protocol in (V5, V4, V4_BASE64):
            data = json.dumps(status).encode()
        elif status.get("status") == "Success":
            return
        else:
            data = str(status.get("message", "")).encode()
        with suppress(OSError):
            await self._socket.send(bytes([Channel.ERROR]) + data)

    async def close(self) -> None:
        await self._socket.close()

    async def lost(self) -> None:
        await self._socket.lost()


_OUTPUTS = {"stdout": Channel.STDOUT, "stderr": Channel.STDERR}


def exit_status(code: int) -> Json:
    """The Status with a command's exit code. Source: kubernetes `kubelet/pkg/cri/streaming/remotecommand`."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


async def converse(channels: Channels, session: Session) -> None:
    """Transfer input, window sizes and output between the client and a command until either has ended; then end
    both."""
    outbound = asyncio.create_task(_output(channels, session), name="output of a command")
    others = [
        asyncio.create_task(_input(channels, session), name="input of a command"),
        asyncio.create_task(channels.lost(), name="connection of a command"),
    ]
    try:
        await asyncio.wait((outbound, *others), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (outbound, *others):
            task.cancel()
        await asyncio.gather(outbound, *others, return_exceptions=True)
        await session.close()


async def _output(channels: Channels, session: Session) -> None:
    try:
        async with aclosing(session.output()) as pieces:
            async for stream, chunk in pieces:
                await channels.send(stream, chunk)
        status = exit_status(await session.exit_code())
    except OSError:
        return  # the client has disconnected
    except StatusError as error:
        status = error.body()
    except Exception:
        log.exception("reading the output of a command failed")
        status = StatusError(500, "InternalError", "Internal error occurred: see the server's log").body()
    await channels.finish(status)


async def _input(channels: Channels, session: Session) -> None:
    """Returns when the client has disconnected."""
    async for message in channels.messages():
        match message:
            case Input(data=data):
                # A command that doesn't read its input, or has ended, is reported by its exit code only.
                with suppress(OSError):
                    await session.write(data)
            case InputClosed():
                session.close_input()
            case Resize(columns=columns, rows=rows):
                session.resize(columns=columns, rows=rows)
