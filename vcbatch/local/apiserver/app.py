"""The ASGI application: reads a request, authenticates it and checks its origin, calls the handler, writes the
response.

Raw ASGI without a framework: a framework's routing and encoding would take more time than all of the server's own work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from vcbatch.hosting.guards import STALL_SECONDS
from vcbatch.hosting.http_server import AUTHENTICATED_EXTENSION, STALL_EXTENSION
from vcbatch.local.apiserver import websockets
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.authn import Authenticator
from vcbatch.local.apiserver.handler import Handler, Request
from vcbatch.local.apiserver.request import BODY_LIMIT, parse_query
from vcbatch.local.apiserver.response import Pieces, Response, error_response

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

PIECE_BYTES = 64 * 1024
_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]", "kubernetes", "kubernetes.default", "kubernetes.default.svc"})


class App:
    """The ASGI application. `peer_certificate(scope)` returns the verified client certificate, where there is one;
    `body_seconds` is the time limit for sending a body."""

    def __init__(
        self,
        handler: Handler,
        authenticator: Authenticator,
        *,
        peer_certificate: Callable[[Scope], Mapping[str, Any] | None] = lambda _scope: None,
        body_seconds: float = 30.0,
    ) -> None:
        self._body_seconds = body_seconds
        self._handler = handler
        self._authenticator = authenticator
        self._peer_certificate = peer_certificate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = await self._request(scope, receive, send)
        except StatusError as error:
            await _write(error_response(error), send)
            return
        except _Gone:
            return
        response = await self._handler.handle(request)
        if response is None:
            return
        if isinstance(response.body, bytes | Pieces):
            await _write(response, send)
        else:
            if response.stall_seconds is not None:
                _extension(scope, STALL_EXTENSION, response.stall_seconds)
            await _stream(response, response.body, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> Request:
        """The request. The body of an anonymous user isn't read: no endpoint that takes one is open to them."""
        token = ""
        if scope["type"] == "websocket":
            scope, token = websockets.take_token(scope)
        headers = _headers(scope["headers"])
        _check_origin(headers)
        path = scope["path"]
        user = self._authenticator.user(path, headers, self._peer_certificate(scope), token)
        known = user.discovers
        if known:
            _extension(scope, AUTHENTICATED_EXTENSION)
        return Request(
            method=scope.get("method", "GET"),
            path=path,
            query=parse_query(scope["query_string"]),
            headers=headers,
            body=await self._body(headers, receive) if known and scope["type"] == "http" else b"",
            user=user,
            scope=scope,
            receive=receive,
            send=send,
        )

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """The body. Raises `StatusError` 413 where it is too large and 408 where it is sent too slowly."""
        try:
            async with asyncio.timeout(self._body_seconds):
                return await _body(headers, receive)
        except TimeoutError:
            message = f"the body of the request didn't arrive within {self._body_seconds:g} s"
            raise StatusError(408, "Timeout", message, {"": None}) from None

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket is a GET whose handler takes over the channel, or whose response is a stream; any other response
        refuses the handshake."""
        await receive()
        try:
            request = await self._request(scope, receive, send)
            response = await self._handler.handle(request)
            if response is None:
                return
            if not isinstance(response.body, bytes | Pieces):
                protocol = websockets.negotiate(request.scope or scope, response)
                # A watch by WebSocket has the limits of a watch: its connection would otherwise have those of a
                # session.
                _extension(scope, STALL_EXTENSION, response.stall_seconds or STALL_SECONDS)
                await websockets.stream(response, response.body, protocol, receive=receive, send=send)
                return
        except StatusError as error:
            response = error_response(error)
        if "websocket.http.response" in scope.get("extensions", {}):
            await send(
                {
                    "type": "websocket.http.response.start",
                    "status": response.code,
                    "headers": _raw_headers(response),
                }
            )
            body = bytes(response.body) if isinstance(response.body, bytes | Pieces) else b""
            await send({"type": "websocket.http.response.body", "body": body})
        else:
            await send({"type": "websocket.close", "code": 1008})


class _Gone(Exception):
    """The client closed the connection before it had sent its request."""


def _headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Lower-case names; repeated ones are joined with a comma."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    return headers


def _check_origin(headers: Mapping[str, str]) -> None:
    """Refuse requests of web pages in a browser, whether they use the server's own name or one that resolves to
    127.0.0.1."""
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.lower() not in _HOSTS:
        raise StatusError(
            403, "Forbidden", f'the Host header names "{host}", which is no name of this server: use 127.0.0.1'
        )
    # WebSocket libraries of programs send the server itself as the origin, which no page can: the server has none.
    if headers.get("origin", f"https://{host}") != f"https://{host}":
        raise StatusError(403, "Forbidden", "requests of web pages are not served")


_LONGEST_LENGTH = 18


def _extension(scope: Scope, name: str, *arguments: Any) -> None:
    """Call an extension of the connection, where it has one."""
    call = (scope.get("extensions") or {}).get(name)
    if call is not None:
        call(*arguments)


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and (len(length) > _LONGEST_LENGTH or int(length) > BODY_LIMIT):
        raise _too_large()
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > BODY_LIMIT:
            raise _too_large()
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large() -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_LIMIT}", {"": None})


def _raw_headers(response: Response) -> list[tuple[bytes, bytes]]:
    headers = [(b"content-type", response.content_type.encode()), (b"cache-control", b"no-cache, private")]
    headers += [(name.lower().encode(), value.encode("utf-8", "replace")) for name, value in response.headers]
    return headers


async def _write(response: Response, send: Send) -> None:
    """Send a response of a known size; a large one in chunks, as fast as the client reads."""
    body = response.body if isinstance(response.body, bytes | Pieces) else b""
    size = body.size if isinstance(body, Pieces) else len(body)
    headers = _raw_headers(response)
    headers.append((b"content-length", str(size).encode()))
    await send({"type": "http.response.start", "status": response.code, "headers": headers})
    if size <= PIECE_BYTES:
        await send({"type": "http.response.body", "body": bytes(body)})
        return
    for piece in _pieces(body):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)  # a large response must not delay others
    await send({"type": "http.response.body", "body": b""})


def _pieces(body: bytes | Pieces) -> Iterator[bytes]:
    """A body in chunks of about `PIECE_BYTES`."""
    held: list[bytes] = []
    size = 0
    for part in (body,) if isinstance(body, bytes) else body:
        for start in range(0, len(part), PIECE_BYTES):
            piece = part[start : start + PIECE_BYTES]
            held.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES:
                yield b"".join(held)
                held, size = [], 0
    if held:
        yield b"".join(held)


async def _stream(response: Response, body: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send chunks as they come, until they end or the client disconnects."""
    await send({"type": "http.response.start", "status": response.code, "headers": _raw_headers(response)})
    # The empty chunk sends the headers, which watchers wait for.
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    writer = asyncio.create_task(_copy(body, send))
    gone = asyncio.create_task(_until_gone(receive))
    try:
        await asyncio.wait((writer, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        writer.cancel()
        await asyncio.gather(gone, writer, return_exceptions=True)
    if not writer.cancelled() and writer.exception() is None:
        with suppress(Exception):
            await send({"type": "http.response.body", "body": b""})


async def _copy(body: AsyncIterator[bytes], send: Send) -> None:
    async for chunk in body:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if len(chunk) >= PIECE_BYTES // 2:
            await asyncio.sleep(0)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
