"""Responses over WebSockets: watches and logs, and the bearer token that a browser can send with the handshake.

Source: kubernetes `staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go` (`HandleWS`),
`staging/src/k8s.io/streaming/pkg/httpstream/wsstream/stream.go` and
`staging/src/k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.authn import unauthorized
from vcbatch.local.apiserver.request import JSON_TYPE
from vcbatch.local.apiserver.response import Response

_TOKEN_PREFIX: Final = "base64url.bearer.authorization.k8s.io."  # noqa: S105 - no token
_PROTOCOL_HEADER: Final = b"sec-websocket-protocol"
_BINARY, _BASE64 = "binary.k8s.io", "base64.binary.k8s.io"
_LARGEST_MESSAGE: Final = 32 * 1024
"""Bytes of a log in one message."""

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def take_token(scope: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The request without the token among its subprotocols, and the token, "" for none.

    Raises 401 for a token that is malformed, sent twice, or alone: a browser expects one of its protocols in return,
    and the token is never sent back."""
    offered: Sequence[str] = scope.get("subprotocols") or ()
    tokens = [protocol for protocol in offered if protocol.startswith(_TOKEN_PREFIX)]
    if not tokens:
        return scope, ""
    others = [protocol for protocol in offered if not protocol.startswith(_TOKEN_PREFIX)]
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != _PROTOCOL_HEADER]
    if len(tokens) > 1:
        raise unauthorized()
    token = _decoded(tokens[0].removeprefix(_TOKEN_PREFIX))
    if token and not others:
        raise unauthorized()
    return {**scope, "subprotocols": others, "headers": headers}, token


def _decoded(text: str) -> str:
    """Base64 with the alphabet of URLs and without padding."""
    if not text.isascii() or "=" in text or "+" in text or "/" in text:
        raise unauthorized()
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise unauthorized() from None


def negotiate(scope: Mapping[str, Any], response: Response) -> str:
    """The protocol of a streamed response, "" for none. Raises `StatusError`.

    A watch is JSON in text frames under every protocol: the only one that the client offers is sent back."""
    offered: Sequence[str] = scope.get("subprotocols") or ()
    if response.content_type == JSON_TYPE:
        if len(offered) > 1:
            raise bad_request(f"a watch takes one WebSocket protocol, got {', '.join(offered)}")
        return offered[0] if offered else ""
    for protocol in offered or ("",):
        if protocol in ("", _BINARY, _BASE64):
            return protocol
    raise StatusError(
        403,
        "Forbidden",
        f"requested protocol(s) are not supported: {', '.join(offered)}; supports {_BINARY}, {_BASE64}",
    )


async def stream(
    response: Response, body: AsyncIterator[bytes], protocol: str, *, receive: Receive, send: Send
) -> None:
    """Accept the WebSocket, send the response as messages until it ends or the client disconnects, and close."""
    await send({"type": "websocket.accept", "subprotocol": protocol or None})
    watching = response.content_type == JSON_TYPE
    writer = asyncio.create_task(_copy(body, _messages_of(protocol, watching=watching), send))
    gone = asyncio.create_task(_until_gone(receive))
    try:
        await asyncio.wait((writer, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended = writer.done()
        gone.cancel()
        writer.cancel()
        await asyncio.gather(gone, writer, return_exceptions=True)
    if ended:
        with suppress(OSError, RuntimeError):  # already closed
            await send({"type": "websocket.close", "code": 1000 if writer.exception() is None else 1011})


Message = Mapping[str, bytes | str]


def _messages_of(protocol: str, *, watching: bool) -> Callable[[bytes], Iterator[Message]]:
    """Returns a function that splits a chunk of the response into messages."""

    def events(chunk: bytes) -> Iterator[Message]:
        for line in chunk.splitlines(keepends=True):
            yield {"text": line.decode()}

    def pieces(chunk: bytes) -> Iterator[Message]:
        for start in range(0, len(chunk), _LARGEST_MESSAGE):
            piece = chunk[start : start + _LARGEST_MESSAGE]
            yield {"text": base64.b64encode(piece).decode()} if protocol == _BASE64 else {"bytes": piece}

    return events if watching else pieces


async def _copy(body: AsyncIterator[bytes], messages: Callable[[bytes], Iterator[Message]], send: Send) -> None:
    async with aclosing(body) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            for message in messages(chunk):
                await send({"type": "websocket.send", **message})


async def _until_gone(receive: Receive) -> None:
    """Wait until the client disconnects; its messages are ignored."""
    while (await receive())["type"] != "websocket.disconnect":
        pass
