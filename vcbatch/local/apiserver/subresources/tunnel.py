"""A connection that was upgraded from HTTP: older clients upgrade to SPDY instead of a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

from vcbatch.local.apiserver.apierrors import bad_request
from vcbatch.local.apiserver.registry import HandlerRequest
from vcbatch.local.apiserver.subresources.websocket import IDLE_SECONDS

TAKE_OVER_EXTENSION = "vcbatch.take_over"
"""In the ASGI scope of a request that asks for the upgrade: answers with the given bytes, and returns the
connection."""

UPGRADE = b"spdy/3.1"
_OFFERED = "x-stream-protocol-version"
_HIGH_WATER = 256 * 1024  # unread received bytes; above, the client has to wait


class Connection(Protocol):
    """The transport of a protocol with several streams: a WebSocket or a tunnel."""

    def messages(self) -> AsyncIterator[bytes]: ...

    async def send(self, data: bytes) -> None: ...

    async def close(self) -> None: ...

    async def lost(self) -> None: ...


class Tunnel(asyncio.Protocol):
    """The bytes of an upgraded connection, in both directions, with flow control."""

    def __init__(self, transport: asyncio.Transport, *, ended: Callable[[Tunnel], None]) -> None:
        self.transport = transport
        self._ended = ended
        self._received: list[bytes] = []
        self._size = 0
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._gone = asyncio.Event()
        self._last_activity = asyncio.get_running_loop().time()

    # Methods of asyncio.Protocol -------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._touch()
        self._received.append(data)
        self._size += len(data)
        if self._size > _HIGH_WATER:
            self.transport.pause_reading()
        self._arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended(self)
        self._gone.set()
        self._arrived.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def shutdown(self) -> None:
        """Called when the server stops."""
        self.transport.close()

    # Methods of Connection -------------------------------------------------------------------------------------------

    async def messages(self) -> AsyncIterator[bytes]:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            chunks, self._received, self._size = self._received, [], 0
            for chunk in chunks:
                yield chunk
            if self._gone.is_set():
                return
            self.transport.resume_reading()

    async def send(self, data: bytes) -> None:
        self._touch()
        await self._writable.wait()
        if self._gone.is_set():
            raise ConnectionResetError("the client is gone")
        self.transport.write(data)

    async def close(self) -> None:
        self.transport.close()

    async def lost(self) -> None:
        loop = asyncio.get_running_loop()
        while (left := self._last_activity + IDLE_SECONDS - loop.time()) > 0:
            try:
                await asyncio.wait_for(self._gone.wait(), left)
            except TimeoutError:
                continue
            return

    def _touch(self) -> None:
        self._last_activity = asyncio.get_running_loop().time()


def can_take_over(request: HandlerRequest) -> bool:
    return _take_over_of(request) is not None


def take_over(request: HandlerRequest, protocols: Sequence[str]) -> Tunnel:
    """Upgrade a request to SPDY with the first of our stream protocols that the client offers; raises 400."""
    offered = [part.strip() for part in request.headers.get(_OFFERED, "").split(",")]
    chosen = next((protocol for protocol in protocols if protocol in offered), None)
    if chosen is None:
        raise bad_request(
            f"unable to upgrade: unable to negotiate protocol: client supports {offered}, server accepts {[*protocols]}"
        )
    upgrade = _take_over_of(request)
    if upgrade is None:
        raise bad_request("Upgrade request required")
    lines = ("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: SPDY/3.1", f"{_OFFERED}: {chosen}")
    return upgrade("".join(f"{line}\r\n" for line in (*lines, "")).encode())


def _take_over_of(request: HandlerRequest) -> Any:
    return ((request.scope or {}).get("extensions") or {}).get(TAKE_OVER_EXTENSION)
