"""An in-memory API server with the resourceVersions, UIDs, preconditions and watches of the real one, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from vcbatch.api.resources import PODS, Resource
from vcbatch.interfaces.api import ApiError, Json, Listing, PatchKind, WatchEvent

T = TypeVar("T")


def not_found(name: str) -> ApiError:
    return ApiError(404, "NotFound", f"{name} not found")


def conflict(name: str) -> ApiError:
    return ApiError(409, "Conflict", f"{name} has been modified")


def copied(value: T) -> T:
    """A deep copy of JSON; what else it holds is shared."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}  # type: ignore[return-value]
    if isinstance(value, list):
        return [copied(each) for each in value]  # type: ignore[return-value]
    return value


def merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return copied(patch)
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@dataclass(frozen=True)
class Entry:
    version: int
    type: str
    resource: Resource
    object: Json


class FakeApi:
    """Implements `vcbatch.interfaces.Api`. `writes` is the history of writes as `(verb, plural, name)`."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Resource, str, str], Json] = {}
        self.history: list[Entry] = []
        self.oldest = 0
        self.version = 0
        self.uids = 0
        self.writes: list[tuple[str, str, str]] = []
        self.lists = 0
        self.changed = asyncio.Event()
        self.closed_streams = 0

    # Operations of tests

    def forget_history(self) -> None:
        """Watches from any earlier resourceVersion now get 410."""
        self.history.clear()
        self.oldest = self.version
        self._wake()

    def break_watches(self) -> None:
        """End every open watch, as a restart of the server does."""
        self.closed_streams += 1
        self._wake()

    def all(self, resource: Resource) -> list[Json]:
        return [copied(obj) for (kind, _, _), obj in self.objects.items() if kind == resource]

    def seed(self, resource: Resource, body: Json) -> Json:
        """Store an object as it is."""
        body = copied(body)
        metadata = body.setdefault("metadata", {})
        self.uids += 1
        metadata.setdefault("uid", f"uid-{self.uids}")
        return self._store("ADDED", resource, body)

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        obj = self.objects.pop((resource, namespace, name))
        self.version += 1
        gone = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self.history.append(Entry(self.version, "DELETED", resource, gone))
        self._wake()

    def _store(self, event: str, resource: Resource, body: Json) -> Json:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        metadata = body["metadata"]
        self.objects[(resource, metadata.get("namespace", ""), metadata["name"])] = body
        self.history.append(Entry(self.version, event, resource, copied(body)))
        self._wake()
        return copied(body)

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def _find(self, resource: Resource, name: str, namespace: str | None) -> Json:
        try:
            return self.objects[(resource, namespace or "", name)]
        except KeyError:
            raise not_found(name) from None

    # The interface

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None, model: type[T] = dict) -> T:
        return convert(self._find(resource, name, namespace), model)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type[T] = dict,
    ) -> Listing[T]:
        self.lists += 1
        items = [convert(obj, model) for (kind, _, _), obj in self.objects.items() if kind == resource]
        return Listing(items=items, resource_version=str(self.version))

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
        at, stream = int(resource_version), self.closed_streams
        while True:
            if at < self.oldest:
                raise ApiError(410, "Expired", "too old resource version")
            changed = self.changed
            for entry in [entry for entry in self.history if entry.version > at]:
                at = entry.version
                if entry.resource == resource:
                    yield WatchEvent(
                        type=entry.type, object=convert(entry.object, model), resource_version=str(entry.version)
                    )
                if stream != self.closed_streams:
                    return
            if stream != self.closed_streams:
                return
            if changed is self.changed:
                await changed.wait()

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        name = body["metadata"]["name"]
        self.writes.append(("create", resource.plural, name))
        if (resource, namespace or "", name) in self.objects:
            raise ApiError(409, "AlreadyExists", f"{name} already exists")
        body = copied(body)
        if namespace:
            body["metadata"]["namespace"] = namespace
        return self.seed(resource, body)

    async def replace(
        self, resource: Resource, body: Json, *, namespace: str | None = None, subresource: str = ""
    ) -> Json:
        name = body["metadata"]["name"]
        self.writes.append(("replace", resource.plural, name))
        stored = self._find(resource, name, namespace)
        wanted = body["metadata"].get("resourceVersion")
        if wanted and wanted != stored["metadata"]["resourceVersion"]:
            raise conflict(name)
        fresh = copied(body)
        fresh["metadata"]["uid"] = stored["metadata"]["uid"]
        return self._store("MODIFIED", resource, fresh)

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
        assert isinstance(patch, Mapping)
        assert bool(manager) is (kind is PatchKind.APPLY)
        self.writes.append(("patch", "/".join(filter(None, (resource.plural, subresource))), name))
        stored = self._find(resource, name, namespace)
        for field in ("uid", "resourceVersion"):
            wanted = patch.get("metadata", {}).get(field)
            if wanted is not None and wanted != stored["metadata"][field]:
                raise conflict(name)
        fresh = merged(stored, patch)
        if fresh == stored:
            return copied(stored)
        return self._store("MODIFIED", resource, fresh)

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
        self.writes.append(("delete", resource.plural, name))
        stored = self._find(resource, name, namespace)
        if uid is not None and stored["metadata"]["uid"] != uid:
            raise conflict(name)
        self.remove(resource, name, namespace or "")

    async def bind(
        self, *, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        self.writes.append(("bind", "pods", name))
        stored = self._find(PODS, name, namespace)
        if stored["metadata"]["uid"] != uid or stored.get("spec", {}).get("nodeName"):
            raise conflict(name)
        bound: Json = {"spec": {"nodeName": node}}
        if annotations:
            bound["metadata"] = {"annotations": dict(annotations)}
        self._store("MODIFIED", PODS, merged(stored, bound))


class StreamingFakeApi(FakeApi):
    """An API that also lists objects by a watch (streaming lists)."""

    def __init__(self) -> None:
        super().__init__()
        self.streamed = 0

    async def watch_list(self, resource: Resource, *, model: type[T] = dict) -> AsyncIterator[WatchEvent[T]]:
        self.streamed += 1
        listing = await super().list(resource, model=model)
        self.lists -= 1
        stream = self.closed_streams
        for item in listing.items:
            yield WatchEvent(type="ADDED", object=item, resource_version="")
            if stream != self.closed_streams:
                return
        yield WatchEvent(type="BOOKMARK", object=model(), resource_version=listing.resource_version, complete=True)
        async for event in self.watch(resource, resource_version=listing.resource_version, model=model):
            yield event


def convert(obj: Json, model: type[T]) -> T:
    return copied(obj) if model is dict else msgspec.convert(obj, model)  # type: ignore[return-value]
