"""The WebSocket below `exec`, `attach` and `port-forward`: messages, activity, and knowing when the client is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from vcbatch.local.apiserver.errors import bad_request
from vcbatch.local.apiserver.registry import HandlerRequest

GONE_EXTENSION = "vcbatch.gone"
"""In the ASGI scope: an `asyncio.Event` that is set when the connection is lost, even while nobody receives."""

IDLE_SECONDS = 4 * 3600.0
"""How long a connection may be silent in both directions: a kubelet's `streamingConnectionIdleTimeout`."""


class WebSocket:
    """One accepted or still to be accepted WebSocket of a request."""

    def __init__(self, request: HandlerRequest) -> None:
        scope, receive, send = request.scope, request.receive, request.send
        if scope is None or receive is None or send is None or scope["type"] != "websocket":
            raise bad_request("Upgrade request required")
        self.offered: Sequence[str] = scope.get("subprotocols") or ()
        self._receive = receive
        self._send = send
        self._gone: asyncio.Event | None = (scope.get("extensions") or {}).get(GONE_EXTENSION)
        self._last_activity = 0.0

    def choose(self, spoken: Sequence[str]) -> str:
        """The first protocol of ours that the client offers; raises 400 where it offers none."""
        for protocol in spoken:
            if protocol in self.offered:
                return protocol
        given = ", ".join(self.offered) or "none"
        raise bad_request(
            f"unable to upgrade: the client offers the WebSocket protocols {given}; spoken here: {', '.join(spoken)}"
        )

    async def accept(self, protocol: str) -> None:
        self._touch()
        await self._send({"type": "websocket.accept", "subprotocol": protocol})

    async def messages(self) -> AsyncIterator[bytes]:
        """What the client sends, until it is gone."""
        while True:
            message: Any = await self._receive()
            if message["type"] != "websocket.receive":
                return
            self._touch()
            data = message.get("bytes")
            yield data if data is not None else (message.get("text") or "").encode()

    async def send(self, data: bytes) -> None:
        """Returns once the connection has room again; raises `OSError` where the client is gone."""
        self._touch()
        await self._send({"type": "websocket.send", "bytes": data})

    async def close(self) -> None:
        with suppress(OSError, RuntimeError):  # gone already
            await self._send({"type": "websocket.close", "code": 1000})

    async def lost(self) -> None:
        """Returns when the connection is lost, or was silent for too long."""
        loop = asyncio.get_running_loop()
        while (left := self._last_activity + IDLE_SECONDS - loop.time()) > 0:
            if self._gone is None:
                await asyncio.sleep(left)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), left)
                return

    def _touch(self) -> None:
        self._last_activity = asyncio.get_running_loop().time()
