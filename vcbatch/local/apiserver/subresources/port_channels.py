"""Port-forward without streams: one connection for each requested port, as two channels of a WebSocket each.

Even channels have data and odd ones an error; the first message on each is its port's number. Source: kubernetes
`staging/src/k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go`; the official Python client uses this protocol.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.subresources.websocket import WebSocket

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[int], Awaitable[Streams]]

MAX_PORTS = 127
"""Two channels each, whose numbers are bytes."""

_CHUNK = 32 * 1024


class ChannelForwarder:
    """Connects an accepted WebSocket with `ports`, until the pod has closed all or the client has disconnected."""

    def __init__(self, *, pod: str, ports: Sequence[int], dial: Dial, socket: WebSocket) -> None:
        self._pod = pod
        self._ports = ports
        self._dial = dial
        self._socket = socket
        self._writers: list[asyncio.Future[asyncio.StreamWriter | None]] = []

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._writers = [loop.create_future() for _ in self._ports]
        connections = [asyncio.create_task(self._connect(index)) for index in range(len(self._ports))]
        everything = asyncio.gather(*connections, return_exceptions=True)
        others = [asyncio.create_task(self._receive()), asyncio.create_task(self._socket.lost())]
        try:
            await asyncio.wait((everything, *others), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*connections, *others):
                task.cancel()
            await asyncio.gather(*connections, *others, return_exceptions=True)

    async def _connect(self, index: int) -> None:
        data, error, port = 2 * index, 2 * index + 1, self._ports[index]
        with suppress(OSError):  # the client has disconnected
            for channel in (data, error):
                await self._socket.send(bytes([channel]) + struct.pack("<H", port))
            try:
                reader, writer = await self._dial(port)
            except (OSError, StatusError) as failure:
                self._writers[index].set_result(None)
                await self._socket.send(bytes([error]) + refusal(self._pod, port, failure))
                return
            self._writers[index].set_result(writer)
            try:
                while chunk := await reader.read(_CHUNK):
                    await self._socket.send(bytes([data]) + chunk)
            finally:
                writer.transport.abort()

    async def _receive(self) -> None:
        """Returns when the client has disconnected."""
        async for message in self._socket.messages():
            index, is_error = divmod(message[0], 2) if message else (len(self._ports), 0)
            if is_error or index >= len(self._ports):
                continue
            writer = await self._writers[index]
            if writer is not None and not writer.is_closing():
                with suppress(OSError):  # a failed connection doesn't affect the others
                    writer.write(message[1:])
                    await writer.drain()


def refusal(pod: str, port: int, failure: Exception) -> bytes:
    """The error message for a port that can't be reached."""
    why = (failure.strerror if isinstance(failure, OSError) else None) or str(failure)
    return f"error forwarding port {port} to pod {pod}: {why}".encode()


def parse_port(text: str) -> int | None:
    """A port number; None for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        return None
    port = int(text)
    return port if 0 < port < 65536 else None
