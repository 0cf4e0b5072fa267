"""`HttpApi`: the `Api` interface over HTTP, to a cluster or to the embedded server.

aiohttp with msgspec: about a quarter of the CPU per request of the official client, whose models cost 30 times a
trimmed struct to decode.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Self, TypeVar

import aiohttp
import msgspec

from vcbatch._version import __version__
from vcbatch.api.resources import PODS, Resource
from vcbatch.api.timestamps import format_time
from vcbatch.interfaces.api import ApiError, WatchEvent
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.client import wire
from vcbatch.runtime.client.kept_logs import KeptRun, log_path
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.client.rest import (
    MAX_REFUSAL,
    ClientLimits,
    Request,
    RestApi,
    no_answer,
    no_credentials,
    refusal,
    selectors,
    too_large,
)
from vcbatch.runtime.leader.fence import READS, fenced_request
from vcbatch.runtime.metrics.meter import Meter, NoMeter

__all__ = ["ClientLimits", "HttpApi"]

T = TypeVar("T")
log = logging.getLogger(__name__)

_MAX_LOG_LINE = 1024 * 1024
_NO_ANSWER = "error"
"""The status in metrics of a request without a response."""


class _SilenceError(ApiError):
    """Nothing was received for so long that the server counts as unreachable."""


class HttpApi(RestApi):
    """`vcbatch.interfaces.Api` on one server. Close it, or use it as an async context manager.

    With `may_write`, a write is sent only if that returns True at that moment.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        random: Random,
        limits: ClientLimits | None = None,
        may_write: Callable[[], bool] | None = None,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(connection, clock=clock, random=random, limits=limits)
        self._may_write = may_write
        self._meter = meter or NoMeter()
        self._session: aiohttp.ClientSession | None = None
        self._server_name = connection.tls_server_name

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # Streams

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type[T] = dict,
    ) -> AsyncIterator[WatchEvent[T]]:
        query = {**selectors(label_selector, field_selector), "resourceVersion": resource_version}
        async with aclosing(self._events(resource.path(namespace=namespace), query, model)) as events:
            async for event in events:
                yield event

    async def watch_list(self, resource: Resource, *, model: type[T] = dict) -> AsyncIterator[WatchEvent[T]]:
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        async with aclosing(self._events(resource.path(), query, model)) as events:
            async for event in events:
                yield event

    async def _events(self, path: str, query: Mapping[str, str], model: type[T]) -> AsyncGenerator[WatchEvent[T], None]:
        seconds = self._limits.watch_seconds * (1.0 + self._random.random())
        query = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(seconds)),
        }
        silence, longest = self._limits.watch_idle_timeout, self._limits.max_line
        try:
            async with aclosing(self._stream(path, query=query, silence=silence, longest=longest)) as lines:
                async for line in lines:
                    event = _event(line, model) if line else None
                    if event is not None:
                        yield event
        except _SilenceError:
            return  # the caller reconnects from the last version

    async def log_lines(
        self,
        name: str,
        *,
        namespace: str,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        on_unfinished: Callable[[bytes], None] | None = None,
    ) -> AsyncIterator[bytes]:
        """The lines of a container's log, without line ends; with `follow` until the container has ended. A line longer
        than 1 MiB is truncated.

        `previous` is the run before the latest one; `tail` counts lines, `since` counts in whole seconds. A stream that
        breaks, or in which nothing comes for too long, raises `ApiError` with code 0. `on_unfinished` is called with
        the latest content of a line that carriage returns overwrite before its end, such as a progress bar.
        """
        asked = {
            "container": container,
            "follow": "true" if follow else "",
            "previous": "true" if previous else "",
            "timestamps": "true" if timestamps else "",
            "tailLines": "" if tail is None else str(tail),
            "sinceTime": "" if since is None else format_time(since),
        }
        path = PODS.path(namespace=namespace, name=name, subresource="log")
        silence = self._limits.log_idle_timeout if follow else self._limits.request_timeout
        query = {key: value for key, value in asked.items() if value}
        lines = self._stream(
            path, query=query, silence=silence, longest=_MAX_LOG_LINE, cut=True, on_unfinished=on_unfinished
        )
        async with aclosing(lines):
            async for line in lines:
                yield line

    async def kept_log_lines(
        self,
        run: KeptRun,
        *,
        namespace: str,
        job: str,
        tail: int | None = None,
        since: datetime | None = None,
    ) -> AsyncIterator[bytes]:
        """The lines of the log of a deleted pod, with their times; `tail` and `since` as in `log_lines`. Raises
        `ApiError`, with code 410 where the log was removed."""
        asked = {
            "timestamps": "true",
            "tailLines": "" if tail is None else str(tail),
            "sinceTime": "" if since is None else format_time(since),
        }
        query = {key: value for key, value in asked.items() if value}
        path, silence = log_path(namespace, job, run), self._limits.request_timeout
        async with aclosing(self._stream(path, query=query, silence=silence, longest=_MAX_LOG_LINE, cut=True)) as lines:
            async for line in lines:
                yield line

    async def _stream(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        silence: float,
        longest: int,
        cut: bool = False,
        on_unfinished: Callable[[bytes], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a streamed response. Raises `_SilenceError` after `silence` seconds in which nothing was
        received."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_timeout, sock_read=silence)
        method = "WATCH" if "watch" in query else "GET"
        try:
            response = await self._send(Request(method="GET", path=path, query=query), timeout=timeout)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._meter.count("api_requests", method=method, code=_NO_ANSWER)
            raise no_answer(error) from error
        self._meter.count("api_requests", method=method, code=str(response.status))
        try:
            await self._raise_for(response)
            async for line in _lines(response.content, longest, cut=cut, on_unfinished=on_unfinished):
                yield line
        except TimeoutError as error:
            raise _SilenceError(0, "Timeout", f"nothing came for {silence:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise no_answer(error) from error
        finally:
            # Also when the caller stops in the middle: an open stream never returns to the pool.
            response.close()

    # One request

    async def _exchange(self, request: Request) -> bytes:
        timeout = aiohttp.ClientTimeout(total=request.timeout, sock_connect=self._limits.connect_timeout)
        started, code = self._clock.monotonic(), _NO_ANSWER
        try:
            async with await self._send(request, timeout=timeout) as response:
                code = str(response.status)
                await self._raise_for(response)
                return await _read(response, self._limits.max_answer)
        except aiohttp.ClientConnectorError as error:
            raise no_answer(error, sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            code = _NO_ANSWER
            raise no_answer(error) from error
        except asyncio.CancelledError:
            code = ""
            raise
        finally:
            if code:
                self._meter.count("api_requests", method=request.method, code=code)
                self._meter.duration(
                    "api_request_duration_seconds", self._clock.monotonic() - started, method=request.method
                )

    async def _send(self, request: Request, *, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if self._may_write is not None and request.method not in READS and not self._may_write():
            raise ApiError(0, "NotLeading", "not sent: this replica may not write any more")
        return await self._opened().request(
            request.method,
            self._connection.server + request.path,
            params=request.query,
            data=request.payload,
            headers=self._headers(request, await self._authorization()),
            timeout=timeout,
            allow_redirects=False,
            proxy=self._connection.proxy_url,
            server_hostname=self._server_name,
        )

    async def open_socket(
        self, path: str, *, query: Sequence[tuple[str, str]], protocols: Sequence[str]
    ) -> aiohttp.ClientWebSocketResponse:
        """A WebSocket, for commands in containers. Raises `ApiError`."""
        authorization = await self._authorization()
        headers = {"Authorization": authorization} if authorization is not None else {}
        server = self._connection.server.replace("http", "ws", 1)
        try:
            return await self._opened().ws_connect(
                server + path,
                params=query,
                protocols=protocols,
                headers=headers,
                heartbeat=30.0,
                max_msg_size=self._limits.max_line,
                proxy=self._connection.proxy_url,
                server_hostname=self._server_name,
            )
        except aiohttp.WSServerHandshakeError as error:
            raise await self._why_no_socket(path, query, headers, error.status) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise no_answer(error) from error

    async def _why_no_socket(
        self, path: str, query: Sequence[tuple[str, str]], headers: Mapping[str, str], code: int
    ) -> ApiError:
        """The server's error for a refused WebSocket. A failed handshake loses the message, so the request is repeated
        without an upgrade; the server refuses it for the same reason and never executes it."""
        timeout = aiohttp.ClientTimeout(total=self._limits.request_timeout, sock_connect=self._limits.connect_timeout)
        try:
            async with self._opened().get(
                self._connection.server + path,
                params=query,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                proxy=self._connection.proxy_url,
                server_hostname=self._server_name,
            ) as response:
                data = await _read(response, MAX_REFUSAL) if response.status == code else b""
        except (aiohttp.ClientError, TimeoutError, OSError, ApiError):
            data = b""
        return refusal(self._connection, code, data, retry_after=None)

    async def _authorization(self) -> str | None:
        try:
            return await self._connection.credentials.authorization(now=self._clock.now())
        except Exception as error:  # any error of a credential plugin
            raise no_credentials(self._connection, error) from error

    async def _raise_for(self, response: aiohttp.ClientResponse) -> None:
        if response.status < 300:
            return
        data = await _read(response, MAX_REFUSAL)
        raise refusal(self._connection, response.status, data, retry_after=response.headers.get("Retry-After"))

    def _opened(self) -> aiohttp.ClientSession:
        # Created late: a session belongs to the running loop.
        if self._session is None:
            context = self._connection.ssl_context()
            connector = aiohttp.TCPConnector(
                # A stream uses a connection for its whole life.
                limit=self._limits.connections + self._limits.streams,
                ssl=context if context is not None else True,
                keepalive_timeout=30.0,
                ttl_dns_cache=60,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": f"vcbatch/{__version__}", **self._connection.headers},
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=True,
                trust_env=False,
                read_bufsize=256 * 1024,
                request_class=fenced_request(self._may_write) if self._may_write else aiohttp.ClientRequest,
            )
        return self._session


def _event(line: bytes, model: type[T]) -> WatchEvent[T] | None:
    """The event of a line; None (logged) where its object doesn't fit the model. Raises `ApiError` for an ERROR event
    and for a line that is no event."""
    try:
        if (event := wire.decode_event(line, model)) is not None:
            return event
        frame = wire.decode_frame(line)
        if frame.type == "ERROR":
            raise wire.error_from(500, bytes(frame.object))
        version = wire.resource_version(frame.object)
        if frame.type == "BOOKMARK":
            complete = wire.ends_initial_events(frame.object)
            return WatchEvent(type=frame.type, object=model(), resource_version=version, complete=complete)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ApiError(0, "ConnectionLost", f"the watch carried something else than events: {error}") from error
    item = wire.decode_item(frame.object, model)
    return None if item is None else WatchEvent(type=frame.type, object=item, resource_version=version)


async def _lines(
    content: aiohttp.StreamReader,
    longest: int,
    *,
    cut: bool = False,
    on_unfinished: Callable[[bytes], None] | None = None,
) -> AsyncIterator[bytes]:
    """The lines of a stream. A line longer than `longest` ends the stream, since what follows it can't be trusted,
    unless it may be `cut`."""
    pending = bytearray()
    async for chunk in content.iter_any():
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            line = bytes(pending) + chunk[start:end] if pending else chunk[start:end]
            pending.clear()
            start = end + 1
            yield line[:longest] if cut else line
        if on_unfinished is not None and (drawn := chunk.rfind(b"\r", start)) >= 0:
            on_unfinished(chunk[drawn + 1 :])
        pending += chunk[start:]
        if len(pending) > longest:
            if not cut:
                raise ApiError(0, "ConnectionLost", f"a line of the stream is longer than {longest} bytes")
            del pending[longest:]
    if pending:
        yield bytes(pending)


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    if (response.content_length or 0) > limit:
        raise too_large(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)
