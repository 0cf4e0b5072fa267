"""The requests of the `Api` interface, independent of the transport: paths, bodies, pages, and retries.

Only requests that are safe to repeat are retried here; the caller has to handle all other failures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from vcbatch.api.resources import PODS, Resource
from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.api import ApiError, Json, Listing, PatchKind
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.client import wire
from vcbatch.runtime.client.kept_logs import KeptLogs, logs_path
from vcbatch.runtime.client.kubeconfig import Connection

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """Limits of a client: seconds, counts and bytes."""

    connections: int = 64
    streams: int = 16
    """The number of streamed responses (watches, followed logs) that may be open in addition."""
    connect_timeout: float = 10.0
    request_timeout: float = 30.0
    list_timeout: float = 120.0
    watch_idle_timeout: float = 90.0
    """A watch without any event for this long, not even a bookmark (sent about once a minute), counts as broken."""
    watch_seconds: float = 300.0
    """The requested duration of a watch; up to twice that, at random, as in client-go."""
    log_idle_timeout: float = 300.0
    """A followed log without output for this long is requested again: its server may be gone."""
    page_size: int = 500
    retries: int = 4
    max_answer: int = 512 * 1024 * 1024
    max_line: int = 32 * 1024 * 1024


class Unsent(ApiError):
    """No connection was established, so the server has received nothing of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    payload: bytes | None = field(default=None, repr=False)
    content_type: str = "application/json"
    timeout: float = 0.0
    """Seconds from its first byte to the last of the response; not for a streamed response."""


MAX_REFUSAL = 1024 * 1024
"""The number of bytes that are read of an error response."""

_RETRY = Backoff(initial=0.1, limit=5.0)
_MAX_RETRY_AFTER = 30.0
NO_CREDENTIALS = "NoCredentials"
"""Reason of a 401 that no server sent: the client had no credentials."""


class _Named(msgspec.Struct):
    name: str = ""


class _Kinds(msgspec.Struct):
    resources: list[_Named] | None = None


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    name: str = ""
    versions: list[_Version] | None = None


class _Groups(msgspec.Struct):
    groups: list[_Group] | None = None


class RestApi(ABC):
    """`vcbatch.interfaces.Api` except for watches; a subclass implements the transport."""

    def __init__(self, connection: Connection, *, clock: Clock, random: Random, limits: ClientLimits | None) -> None:
        self._connection = connection
        self._clock = clock
        self._random = random
        self._limits = limits or ClientLimits()

    @property
    def connection(self) -> Connection:
        return self._connection

    @abstractmethod
    async def _exchange(self, request: Request) -> bytes:
        """The body of a successful response. Raises `ApiError`: with code 0 for no response, `Unsent` where nothing was
        sent."""

    # Reads

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None, model: type[T] = dict) -> T:
        data = await self._request("GET", _path(resource, namespace, name), retry=True)
        with _decoding(f"{resource.kind} {name}"):
            return wire.decoder(model).decode(data)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type[T] = dict,
    ) -> Listing[T]:
        query = selectors(label_selector, field_selector)
        path = _path(resource, namespace)
        try:
            return await self._pages(path, query, model, limit=self._limits.page_size)
        except ApiError as error:
            if not error.expired:
                raise
            # The snapshot behind the continue token has expired: the whole list in one response can't expire.
            return await self._pages(path, query, model, limit=0)

    async def pages(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        parameters: Mapping[str, str] | None = None,
        model: type[T] = dict,
    ) -> AsyncIterator[Sequence[T]]:
        """The matching objects, one page after the other, so that a caller needs no more memory than it keeps.
        `parameters`: further parameters of the query. Raises `ApiError`, with `expired` where the list took longer than
        the server keeps its snapshot."""
        query = {**selectors(label_selector, field_selector), **(parameters or {})}
        path = _path(resource, namespace)
        async for page in self._each_page(path, query, model, limit=self._limits.page_size):
            yield page.items or ()

    async def _pages(self, path: str, query: Mapping[str, str], model: type[T], *, limit: int) -> Listing[T]:
        items: list[T] = []
        version = ""
        async for page in self._each_page(path, query, model, limit=limit):
            items.extend(page.items or ())
            version = version or page.metadata.resource_version
        return Listing(items=items, resource_version=version)

    async def _each_page(
        self, path: str, query: Mapping[str, str], model: type[T], *, limit: int
    ) -> AsyncIterator[wire.Page[T]]:
        token = ""
        while True:
            params = dict(query)
            if limit:
                params["limit"] = str(limit)
            if token:
                params["continue"] = token
            data = await self._request("GET", path, query=params, retry=True, timeout=self._limits.list_timeout)
            with _decoding(f"the list at {path}"):
                page = wire.decode_page(data, model)
            yield page
            last, token = token, page.metadata.continue_ or ""
            if not token:
                return
            if token == last:
                raise ApiError(406, "NotAcceptable", f"the list at {path} has no end: it goes on where it is")

    async def version(self) -> Json:
        """The server's version information: `/version`."""
        return _object(await self._request("GET", "/version", retry=True))

    async def failing_checks(self) -> Sequence[str]:
        """The failing checks of `/readyz`, with their reasons as far as the server reports them."""
        try:
            await self._request("GET", "/readyz", query={"verbose": ""})
        except ApiError as error:
            failing = [line[3:] for line in error.message.splitlines() if line.startswith("[-]")]
            if not failing:
                raise
            return failing
        return ()

    async def kept_logs(self, job: str, *, namespace: str) -> KeptLogs:
        """The kept logs of deleted pods of all jobs of this name. A server without them isn't `supported`."""
        for part in (namespace, job):
            _path(PODS, namespace, part)
        try:
            data = await self._request("GET", logs_path(namespace, job), retry=True)
        except ApiError as error:
            if error.code in (403, 404, 405):  # an ordinary user may get no unknown path of a cluster
                return KeptLogs(supported=False)
            raise
        with _decoding(f"the list of logs of {job}"):
            return wire.decoder(KeptLogs).decode(data)

    async def discovered(self, resources: Sequence[Resource]) -> Sequence[Resource]:
        """Those of them that the server's discovery lists: in `/apis`, and in the list of their group and version."""
        index = await self._discovery("/apis", _Groups)
        served = {(group.name, each.version) for group in index.groups or () for each in group.versions or ()}
        found: list[Resource] = []
        for group, version in dict.fromkeys((resource.group, resource.version) for resource in resources):
            if group and (group, version) not in served:
                continue
            try:
                kinds = await self._discovery(f"/apis/{group}/{version}" if group else f"/api/{version}", _Kinds)
            except ApiError as error:
                if not error.not_found:
                    raise
                continue
            names = {kind.name for kind in kinds.resources or ()}
            found += [
                each for each in resources if (each.group, each.version, each.plural in names) == (group, version, True)
            ]
        return found

    async def _discovery(self, path: str, model: type[T]) -> T:
        data = await self._request("GET", path, retry=True)
        with _decoding(f"the discovery at {path}"):
            return wire.decoder(model).decode(data)

    # Writes

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        return _object(await self._request("POST", _path(resource, namespace), body=body))

    async def replace(
        self, resource: Resource, body: Json, *, namespace: str | None = None, subresource: str = ""
    ) -> Json:
        path = _path(resource, namespace, body["metadata"]["name"], subresource)
        return _object(await self._request("PUT", path, body=body))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json | Sequence[Json],
        *,
        namespace: str | None = None,
        subresource: str = "",
        kind: PatchKind = PatchKind.MERGE,
        manager: str = "",
    ) -> Json:
        path = _path(resource, namespace, name, subresource)
        query = {"fieldManager": manager, "force": "true"} if manager else None
        return _object(await self._request("PATCH", path, query=query, body=patch, content_type=kind.value))

    async def apply(
        self,
        resource: Resource,
        body: Json,
        *,
        manager: str,
        namespace: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> Json:
        """Server-side apply: create the object, or set the fields that `manager` owns to what `body` has. Raises
        `ApiError` with `conflict` where another manager's fields differ, unless with `force`, and for unknown
        fields."""
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        # Applying is idempotent.
        data = await self._request(
            "PATCH",
            _path(resource, namespace, body["metadata"]["name"]),
            query=query,
            body=body,
            content_type=PatchKind.APPLY.value,
            retry=True,
        )
        return _object(data)

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
        # With the UID named, a repeated delete can't affect another object of the same name.
        retry = uid is not None
        # A response that isn't an object (a proxy's page) doesn't confirm the deletion.
        _object(await self._request("DELETE", _path(resource, namespace, name), body=options, retry=retry))

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
        _object(await self._request("POST", _path(PODS, namespace, name, "binding"), body=body))

    # Requests

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
        """The body of a successful response. `retry` says that the request is safe to repeat."""
        request = Request(
            method=method,
            path=path,
            query=query or {},
            payload=None if body is None else wire.encode(body),
            content_type=content_type,
            timeout=timeout or self._limits.request_timeout,
        )
        failures = 0
        while True:
            try:
                return await self._exchange(request)
            except ApiError as error:
                failures += 1
                if failures > self._limits.retries or not _again(error, safe=retry, failures=failures):
                    raise
                pause = _RETRY.delay(failures, self._random)
                if error.retry_after is not None:
                    pause = max(pause, min(error.retry_after, _MAX_RETRY_AFTER))
            await self._clock.sleep(pause)

    def _headers(self, request: Request, authorization: str | None) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if request.payload is not None:
            headers["Content-Type"] = request.content_type
        if authorization is not None:
            headers["Authorization"] = authorization
        return headers


def _again(error: ApiError, *, safe: bool, failures: int) -> bool:
    """Whether to retry: always if the request had no effect, and after a transient error if it is `safe` to repeat."""
    if isinstance(error, Unsent) or error.code == 429:
        return True
    if error.code == 401:
        return failures == 1 and error.reason != NO_CREDENTIALS  # with new ones
    # A Retry-After header says that the server did nothing, and when to retry.
    return error.transient and (safe or error.retry_after is not None)


def _path(resource: Resource, namespace: str | None, name: str | None = None, subresource: str = "") -> str:
    """The path of a request. Raises `ApiError` for a name that would address something else, as k8s.io/client-go does:
    an empty one means the whole collection."""
    for what, part in (("namespace", namespace or None), ("name", name)):
        if part is not None and (part in ("", ".", "..") or not part.isprintable() or set(part) & set("/%?# ")):
            raise ApiError(400, "BadRequest", f"{part!r} can't be the {what} of a {resource.kind}")
    return resource.path(namespace=namespace, name=name, subresource=subresource)


def _object(data: bytes) -> Json:
    with _decoding("the answer"):
        return wire.decode_json(data)


@contextmanager
def _decoding(what: str) -> Iterator[None]:
    """Raises `ApiError` for a response that can't be decoded: a server may send anything."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(406, "NotAcceptable", f"{what} doesn't decode: {error}") from error


def selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    """The query parameters of a list or a watch."""
    query: dict[str, str] = {}
    if label_selector:
        query["labelSelector"] = label_selector
    if field_selector:
        query["fieldSelector"] = field_selector
    return query


def no_answer(error: Exception, *, sent: bool = True) -> ApiError:
    """The `ApiError` for an error of the connection."""
    if isinstance(error, TimeoutError):
        return (ApiError if sent else Unsent)(0, "Timeout", str(error) or "it took too long")
    return (ApiError if sent else Unsent)(0, "ConnectionLost", str(error) or type(error).__name__)


def no_credentials(connection: Connection, error: Exception) -> ApiError:
    return ApiError(401, NO_CREDENTIALS, f"no credentials for {connection.server}: {error}")


def too_large(limit: int) -> ApiError:
    return ApiError(406, "TooLarge", f"the answer is longer than {limit} bytes")


def refusal(connection: Connection, code: int, data: bytes, *, retry_after: str | None) -> ApiError:
    """The error in a response. After a 401 the next request gets new credentials."""
    if code == 401:
        connection.credentials.refused()
    return wire.error_from(code, data, retry_after=_seconds(retry_after))


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None  # an HTTP date, which Kubernetes never sends
