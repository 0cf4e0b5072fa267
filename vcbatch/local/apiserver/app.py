"""The ASGI face: reads a request, checks who and from where, hands it on, writes the answer.

Raw ASGI without a framework: a framework's routing and encoding would cost more than all of the server's own work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from vcbatch.local.apiserver.authn import Authenticator
from vcbatch.local.apiserver.errors import StatusError
from vcbatch.local.apiserver.handler import Handler, Request
from vcbatch.local.apiserver.request import BODY_LIMIT, parse_query
from vcbatch.local.apiserver.response import Response, error_response

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]", "kubernetes", "kubernetes.default", "kubernetes.default.svc"})


class App:
    """The ASGI application. `peer_certificate(scope)` gives the checked client certificate, where there is one."""

    def __init__(
        self,
        handler: Handler,
        authenticator: Authenticator,
        *,
        peer_certificate: Callable[[Scope], Mapping[str, Any] | None] = lambda _scope: None,
    ) -> None:
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
        if isinstance(response.body, bytes):
            await _write(response, send)
        else:
            await _stream(response, response.body, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> Request:
        headers = _headers(scope["headers"])
        _check_origin(headers)
        path = scope["path"]
        user = self._authenticator.user(path, headers, self._peer_certificate(scope))
        return Request(
            method=scope.get("method", "GET"),
            path=path,
            query=parse_query(scope["query_string"]),
            headers=headers,
            body=await _body(headers, receive) if scope["type"] == "http" else b"",
            user=user,
            scope=scope,
            receive=receive,
            send=send,
        )

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket is a GET whose handler takes over the channel; an answer instead refuses the handshake."""
        await receive()
        try:
            response = await self._handler.handle(await self._request(scope, receive, send))
        except StatusError as error:
            response = error_response(error)
        if response is None:
            return
        if "websocket.http.response" in scope.get("extensions", {}):
            await send(
                {
                    "type": "websocket.http.response.start",
                    "status": response.code,
                    "headers": _raw_headers(response),
                }
            )
            body = response.body if isinstance(response.body, bytes) else b""
            await send({"type": "websocket.http.response.body", "body": body})
        else:
            await send({"type": "websocket.close", "code": 1008})


class _Gone(Exception):
    """The client closed the connection before it had sent its request."""


def _headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Lower-case names; what comes twice is joined with a comma."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    return headers


def _check_origin(headers: Mapping[str, str]) -> None:
    """A page that a browser shows must not reach the server, by its own name or by one it bent to 127.0.0.1."""
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.lower() not in _HOSTS:
        raise StatusError(
            403, "Forbidden", f'the Host header names "{host}", which is no name of this server: use 127.0.0.1'
        )
    # WebSocket libraries of programs name the server itself as the origin, which no page can: the server has none.
    if headers.get("origin", f"https://{host}") != f"https://{host}":
        raise StatusError(403, "Forbidden", "requests of web pages are not served")


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > BODY_LIMIT:
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
    body = response.body if isinstance(response.body, bytes) else b""
    headers = _raw_headers(response)
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": response.code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _stream(response: Response, body: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send chunks as they come, until they end or the client goes."""
    await send({"type": "http.response.start", "status": response.code, "headers": _raw_headers(response)})
    # The empty chunk sends the headers, which watchers wait for before they act.
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


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
