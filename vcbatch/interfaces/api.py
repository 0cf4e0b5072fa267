"""The API interface: how every component reads and writes objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from vcbatch.api.resources import Resource
from vcbatch.api.rights import MissingRight, missing_right

T = TypeVar("T")
Json = dict[str, Any]


class PatchKind(StrEnum):
    """The media types of a PATCH request."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """The items of a list and the resourceVersion from which a watch continues without a gap."""

    items: Sequence[T]
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent(Generic[T]):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK; the object of a bookmark has only its resourceVersion.

    `complete` marks the bookmark of a `watch_list` that follows the events of all existing objects.
    """

    type: str
    object: T
    resource_version: str
    complete: bool = False


@dataclass(eq=False)
class ApiError(Exception):
    """An error response of the API server, as its Status object describes it.

    `code` is the HTTP status; it is 0 where there was no response (connection lost, timeout).
    """

    code: int
    reason: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    retry_after: float | None = None

    def __str__(self) -> str:
        return self.message

    @property
    def missing_right(self) -> MissingRight | None:
        """The permission that the user lacks; None for any other error."""
        return missing_right(self.message) if self.code == 403 else None

    @property
    def sentence(self) -> str:
        """The text for users: the missing permission where that is the cause, else the server's message."""
        return str(self.missing_right or self.message)

    @property
    def not_found(self) -> bool:
        return self.code == 404

    @property
    def conflict(self) -> bool:
        """The object has changed since it was read, or its UID isn't the one that the request named."""
        return self.code == 409 and self.reason == "Conflict"

    @property
    def already_exists(self) -> bool:
        return self.code == 409 and self.reason == "AlreadyExists"

    @property
    def expired(self) -> bool:
        """The resourceVersion is too old for a watch: list again."""
        return self.code == 410

    @property
    def namespace_terminating(self) -> bool:
        """The namespace is being deleted, so that no object can be created in it."""
        return any(cause.get("reason") == "NamespaceTerminating" for cause in self.details.get("causes") or ())

    @property
    def transient(self) -> bool:
        """The same request may succeed later: no response, throttled, or an internal error of the server."""
        return self.code in (0, 408, 429) or self.code >= 500


class Api(Protocol):
    """Reads and writes of Kubernetes objects. Every method raises `ApiError` for an error response.

    `model` is the type that items are decoded to: `dict` (plain JSON) or a `msgspec.Struct` with only the fields that
    are read.
    """

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None, model: type[T] = dict) -> T: ...

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type[T] = dict,
    ) -> Listing[T]:
        """All objects that match, at one resourceVersion. Long lists are read in pages."""
        ...

    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type[T] = dict,
    ) -> AsyncIterator[WatchEvent[T]]:
        """The changes after `resource_version`, with bookmarks. Ends when the server ends the stream; raises `ApiError`
        with `expired` when the version is too old."""
        ...

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json: ...

    async def replace(
        self, resource: Resource, body: Json, *, namespace: str | None = None, subresource: str = ""
    ) -> Json:
        """PUT. The body's `metadata.resourceVersion`, if present, must be the stored one."""
        ...

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
        """PATCH. A `metadata.uid` or `metadata.resourceVersion` inside a merge patch is a precondition, the latter in
        an apply as well. `manager` is the field manager of an apply; it takes over fields that other managers own."""
        ...

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
        """DELETE. With `uid`, only the object with that UID is deleted; another one is a conflict."""
        ...

    async def bind(
        self, *, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        """POST the pod's `binding` subresource; `annotations` are merged into the pod."""
        ...


class Reading(Protocol):
    """The part of an `Api` that reads one object; a client without watches has it, too."""

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None, model: type[T] = dict) -> T: ...


async def get_or_none(
    api: Reading, resource: Resource, name: str, *, namespace: str | None = None, model: type[T] = dict
) -> T | None:
    """The stored object, or None where none of that name exists. Raises `ApiError` for any other error."""
    try:
        return await api.get(resource, name, namespace=namespace, model=model)
    except ApiError as error:
        if not error.not_found:
            raise
        return None


@runtime_checkable
class StreamingApi(Protocol):
    """An `Api` that can list existing objects by a watch (KEP-3157, streaming lists)."""

    def watch_list(self, resource: Resource, *, model: type[T] = dict) -> AsyncIterator[WatchEvent[T]]:
        """The existing objects as ADDED, then a bookmark that is `complete`, then changes. Raises `ApiError` 400, 405
        or 422 where the server doesn't support it."""
        ...


@runtime_checkable
class DiscoveringApi(Protocol):
    """An `Api` that reports which resources the server's discovery lists. Discovery lags behind: a new
    CustomResourceDefinition is listed some seconds after its first object can be created."""

    async def discovered(self, resources: Sequence[Resource]) -> Sequence[Resource]:
        """The given resources that discovery lists."""
        ...
