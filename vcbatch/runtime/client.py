"""`HttpApi`: the API seam over HTTP, to a cluster or to the embedded server.

aiohttp with msgspec: about a quarter of the CPU per request of the official client, whose models cost 30 times a
trimmed struct to decode. What is retried here is only what can't do harm twice; everything else is the caller's to
look at again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from vcbatch._version import __version__
from vcbatch.api.resources import PODS, Resource
from vcbatch.runtime import wire
from vcbatch.runtime.backoff import Backoff
from vcbatch.runtime.fence import READS, fenced_request
from vcbatch.runtime.kubeconfig import Connection
from vcbatch.seams.api import ApiError, Json, Listing, PatchKind, WatchEvent
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What bounds a client: seconds, counts and bytes."""

    connections: int = 64
    connect_timeout: float = 10.0
    request_timeout: float = 30.0
    list_timeout: float = 120.0
    watch_idle_timeout: float = 90.0
    """A watch that carries nothing this long, not even a bookmark (sent about once a minute), counts as dead."""
    watch_seconds: float = 300.0
    """How long the server is asked to keep a watch open; up to twice that, by chance, as client-go does."""
    page_size: int = 500
    retries: int = 4
    max_answer: int = 512 * 1024 * 1024
    max_line: int = 32 * 1024 * 1024


_RETRY = Backoff(initial=0.1, limit=5.0)
_MAX_RETRY_AFTER = 30.0
_WATCHES = 16


class HttpApi:
    """`vcbatch.seams.Api` on one server. Close it, or use it as an async context manager.

    Where `may_write` is given, no write leaves that it doesn't agree to at that moment.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        random: Random,
        limits: ClientLimits | None = None,
        may_write: Callable[[], bool] | None = None,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._random = random
        self._limits = limits or ClientLimits()
        self._may_write = may_write
        self._session: aiohttp.ClientSession | None = None
        self._server_name = connection.tls_server_name

    @property
    def connection(self) -> Connection:
        return self._connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # Reads

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None, model: type[T] = dict) -> T:
        data = await self._request("GET", resource.path(namespace=namespace, name=name), retry=True)
        try:
            return wire.decoder(model).decode(data)
        except msgspec.ValidationError as error:
            raise ApiError(406, "NotAcceptable", f"{resource.kind} {name} doesn't decode: {error}") from error

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type[T] = dict,
    ) -> Listing[T]:
        query = _selectors(label_selector, field_selector)
        path = resource.path(namespace=namespace)
        try:
            return await self._pages(path, query, model, limit=self._limits.page_size)
        except ApiError as error:
            if not error.expired:
                raise
            # The snapshot behind the continue token is gone: the whole list in one answer can't expire.
            return await self._pages(path, query, model, limit=0)

    async def _pages(self, path: str, query: Mapping[str, str], model: type[T], *, limit: int) -> Listing[T]:
        items: list[T] = []
        version = token = ""
        while True:
            params = dict(query)
            if limit:
                params["limit"] = str(limit)
            if token:
                params["continue"] = token
            data = await self._request("GET", path, query=params, retry=True, timeout=self._limits.list_timeout)
            page = wire.decode_page(data, model)
            items.extend(page.items or ())
            version = version or page.metadata.resource_version
            token = page.metadata.continue_ or ""
            if not token:
                return Listing(items=items, resource_version=version)

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
        query = {**_selectors(label_selector, field_selector), "resourceVersion": resource_version}
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
        lines = self._stream(path, query=query, silence=self._limits.watch_idle_timeout)
        async with aclosing(lines):
            async for line in lines:
                event = _event(line, model) if line else None
                if event is not None:
                    yield event

    async def log_lines(
        self, name: str, *, namespace: str, container: str = "", follow: bool = False
    ) -> AsyncIterator[bytes]:
        """The lines of a container's log, without their ends; with `follow` until the container has ended."""
        query = {"follow": "true"} if follow else {}
        if container:
            query["container"] = container
        path = PODS.path(namespace=namespace, name=name, subresource="log")
        lines = self._stream(path, query=query, silence=None)
        async with aclosing(lines):
            async for line in lines:
                yield line

    async def _stream(
        self, path: str, *, query: Mapping[str, str], silence: float | None
    ) -> AsyncGenerator[bytes, None]:
        """The lines of an answer that goes on; ends after `silence` seconds in which nothing came."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_timeout, sock_read=silence)
        try:
            response = await self._send("GET", path, query=query, timeout=timeout)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unanswered(error) from error
        try:
            await self._raise_for(response)
            async for line in _lines(response.content, self._limits.max_line):
                yield line
        except TimeoutError:
            return  # silence for too long: the caller reconnects where it was
        except (aiohttp.ClientError, OSError) as error:
            raise _unanswered(error) from error
        finally:
            # Also when the caller stops in the middle: an open stream never goes back to the pool.
            response.close()

    # Writes

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        data = await self._request("POST", resource.path(namespace=namespace), body=body)
        return wire.decode_json(data)

    async def replace(
        self, resource: Resource, body: Json, *, namespace: str | None = None, subresource: str = ""
    ) -> Json:
        path = resource.path(namespace=namespace, name=body["metadata"]["name"], subresource=subresource)
        return wire.decode_json(await self._request("PUT", path, body=body))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json | Sequence[Json],
        *,
        namespace: str | None = None,
        subresource: str = "",
        kind: PatchKind = PatchKind.MERGE,
    ) -> Json:
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        return wire.decode_json(await self._request("PATCH", path, body=patch, content_type=kind.value))

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if propagation is not None:
            options["propagationPolicy"] = propagation
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        # With the UID named, a second delete can't hit another object of the same name.
        await self._request(
            "DELETE", resource.path(namespace=namespace, name=name), body=options, retry=uid is not None
        )

    async def bind(
        self, *, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        metadata: Json = {"name": name, "namespace": namespace, "uid": uid}
        if annotations:
            metadata["annotations"] = dict(annotations)
        body: Json = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._request("POST", PODS.path(namespace=namespace, name=name, subresource="binding"), body=body)

    # One request

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        retry: bool = False,
        timeout: float | None = None,
    ) -> bytes:
        """The body of a successful answer. `retry` says that the request may safely be carried out twice."""
        payload = None if body is None else wire.encode(body)
        limit = aiohttp.ClientTimeout(
            total=timeout or self._limits.request_timeout, sock_connect=self._limits.connect_timeout
        )

        async def once() -> bytes:
            response = await self._send(
                method, path, query=query, data=payload, content_type=content_type, timeout=limit
            )
            async with response:
                await self._raise_for(response)
                return await _read(response, self._limits.max_answer)

        return await self._retrying(once, safe=retry)

    async def _retrying(self, once: Callable[[], Awaitable[bytes]], *, safe: bool) -> bytes:
        failures = 0
        while True:
            try:
                return await once()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                refused = _unanswered(error)
                # A connection that never came to be has carried no request.
                again = safe or isinstance(error, aiohttp.ClientConnectorError)
                cause: Exception = error
            except ApiError as error:
                refused = cause = error
                again = error.code == 429 or (error.transient and (safe or _sent_away(error)))
                if error.code == 401 and failures == 0:
                    again = True
            failures += 1
            if not again or failures > self._limits.retries:
                raise refused from (None if cause is refused else cause)
            pause = _RETRY.delay(failures, self._random)
            if refused.retry_after is not None:
                pause = max(pause, min(refused.retry_after, _MAX_RETRY_AFTER))
            await self._clock.sleep(pause)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        timeout: aiohttp.ClientTimeout,
        query: Mapping[str, str] | None = None,
        data: bytes | None = None,
        content_type: str = "application/json",
    ) -> aiohttp.ClientResponse:
        if self._may_write is not None and method not in READS and not self._may_write():
            raise ApiError(0, "NotLeading", "not sent: this replica may not write any more")
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        authorization = await self._authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        return await self._opened().request(
            method,
            self._connection.server + path,
            params=query,
            data=data,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            proxy=self._connection.proxy_url,
            server_hostname=self._server_name,
        )

    async def _authorization(self) -> str | None:
        try:
            return await self._connection.credentials.authorization(now=self._clock.now())
        except Exception as error:  # whatever a credential plugin raises
            raise ApiError(401, "Unauthorized", f"no credentials for {self._connection.server}: {error}") from error

    async def _raise_for(self, response: aiohttp.ClientResponse) -> None:
        if response.status < 300:
            return
        data = await _read(response, 1024 * 1024)
        if response.status == 401:
            self._connection.credentials.refused()
        raise wire.error_from(response.status, data, retry_after=_seconds(response.headers.get("Retry-After")))

    def _opened(self) -> aiohttp.ClientSession:
        # Made late: a session belongs to the loop that runs.
        if self._session is None:
            context = self._connection.ssl_context()
            connector = aiohttp.TCPConnector(
                # The dozen watches of a process hold a connection each for as long as they live.
                limit=self._limits.connections + _WATCHES,
                ssl=context if context is not None else True,
                keepalive_timeout=30.0,
                ttl_dns_cache=60,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": f"vcbatch/{__version__}", **self._connection.headers},
                auto_decompress=True,
                trust_env=False,
                read_bufsize=256 * 1024,
                request_class=fenced_request(self._may_write) if self._may_write else aiohttp.ClientRequest,
            )
        return self._session


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    query: dict[str, str] = {}
    if label_selector:
        query["labelSelector"] = label_selector
    if field_selector:
        query["fieldSelector"] = field_selector
    return query


def _sent_away(error: ApiError) -> bool:
    """503 and the like with a Retry-After: the server says that it did nothing and when to come again."""
    return error.retry_after is not None


def _unanswered(error: Exception) -> ApiError:
    reason = "Timeout" if isinstance(error, TimeoutError) else "ConnectionLost"
    return ApiError(0, reason, str(error) or type(error).__name__)


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None  # an HTTP date, which Kubernetes never sends


def _event(line: bytes, model: type[T]) -> WatchEvent[T] | None:
    """Raises `ApiError` for an ERROR event and for a line that is no event at all."""
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
    except msgspec.DecodeError as error:
        raise ApiError(0, "ConnectionLost", f"the watch carried something else than events: {error}") from error
    item = wire.decode_item(frame.object, model)
    return None if item is None else WatchEvent(type=frame.type, object=item, resource_version=version)


async def _lines(content: aiohttp.StreamReader, limit: int) -> AsyncIterator[bytes]:
    """The lines of a stream; a longer one than `limit` ends it, since what follows can't be trusted to be a line."""
    pending = bytearray()
    async for chunk in content.iter_any():
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            line = bytes(pending) + chunk[start:end] if pending else chunk[start:end]
            pending.clear()
            start = end + 1
            yield line
        pending += chunk[start:]
        if len(pending) > limit:
            raise ApiError(0, "ConnectionLost", f"a line of the stream is longer than {limit} bytes")
    if pending:
        yield bytes(pending)


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    if (response.content_length or 0) > limit:
        raise ApiError(0, "TooLarge", f"the answer is longer than {limit} bytes")
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise ApiError(0, "TooLarge", f"the answer is longer than {limit} bytes")
        chunks.append(chunk)
    return b"".join(chunks)
