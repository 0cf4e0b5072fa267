"""The WebSocket for `exec`, `attach` and `port-forward`: messages, idle time, and detection of lost clients.

A message of a channel begins with the channel's number: as a byte, or with the `base64` protocols as a digit before the
encoded data, in text frames. Source: kubernetes `staging/src/k8s.io/streaming/pkg/httpstream/wsstream`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Final

from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.registry import HandlerRequest

GONE_EXTENSION = "vcbatch.gone"
"""In the ASGI scope: an `asyncio.Event` that is set when the connection is lost, even while nothing is received."""

IDLE_SECONDS = 4 * 3600.0
"""The time limit of a connection without data in both directions: a kubelet's `streamingConnectionIdleTimeout`."""


NO_PROTOCOL: Final = ""
"""The protocol of a client that names no subprotocol: `channel.k8s.io`."""

_DIGIT_ZERO: Final = ord("0")


class WebSocket:
    """A WebSocket of a request, accepted or not yet."""

    def __init__(self, request: HandlerRequest) -> None:
        scope, receive, send = request.scope, request.receive, request.send
        if scope is None or receive is None or send is None or scope["type"] != "websocket":
            raise bad_request("Upgrade request required")
        self.offered: Sequence[str] = scope.get("subprotocols") or ()
        self._receive = receive
        self._send = send
        self._gone: asyncio.Event | None = (scope.get("extensions") or {}).get(GONE_EXTENSION)
        self._last_activity = 0.0
        self._base64 = False

    def choose(self, spoken: Sequence[str]) -> str:
        """The first protocol that the client offers and `spoken` has; `NO_PROTOCOL` where it offers none and `spoken`
        has that. Raises 403, as a kubelet answers, where there is none."""
        for protocol in self.offered or (NO_PROTOCOL,):
            if protocol in spoken:
                return protocol
        given = ", ".join(self.offered) or "none"
        known = ", ".join(protocol for protocol in spoken if protocol)
        raise StatusError(
            403,
            "Forbidden",
            f"unable to upgrade: the client offers the WebSocket protocols {given}; spoken here: {known}",
        )

    async def accept(self, protocol: str) -> None:
        self._touch()
        self._base64 = "base64." in protocol
        await self._send({"type": "websocket.accept", "subprotocol": protocol or None})

    async def messages(self) -> AsyncIterator[bytes]:
        """The client's messages, until it disconnects. With a `base64` protocol each message is decoded to the number
        of its channel, as a byte, and its data; invalid messages are ignored."""
        while True:
            message: Any = await self._receive()
            if message["type"] != "websocket.receive":
                return
            self._touch()
            data = message.get("bytes")
            data = data if data is not None else (message.get("text") or "").encode()
            if not self._base64:
                yield data
            elif data:
                with suppress(binascii.Error):
                    yield _decoded(data)

    async def send(self, data: bytes) -> None:
        """Returns once the send buffer is below its limit; raises `OSError` where the client has disconnected. With a
        `base64` protocol the first byte is the number of a channel."""
        self._touch()
        if self._base64:
            await self._send({"type": "websocket.send", "text": _encoded(data)})
        else:
            await self._send({"type": "websocket.send", "bytes": data})

    async def close(self) -> None:
        with suppress(OSError, RuntimeError):  # already closed
            await self._send({"type": "websocket.close", "code": 1000})

    async def lost(self) -> None:
        """Returns when the connection is lost, or was idle for too long."""
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


def _encoded(message: bytes) -> str:
    return chr(_DIGIT_ZERO + message[0]) + base64.b64encode(message[1:]).decode()


def _decoded(message: bytes) -> bytes:
    """Raises `binascii.Error`. Go's decoder, too, ignores line breaks and no other characters outside of the
    alphabet."""
    data = base64.b64decode(message[1:].translate(None, b"\r\n"), validate=True)
    return bytes([(message[0] - _DIGIT_ZERO) % 256]) + data
