"""The `Api` seam in memory, for tests of components that only read and write objects: no validation, no defaults."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from vcbatch.api.resources import PODS, Resource
from vcbatch.seams.api import ApiError, Json, Listing, PatchKind, WatchEvent


class MemoryApi:
    """Holds objects by resource, namespace and name. `writes` lists every request that changed something."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.writes: list[tuple[str, str, str]] = []
        self._version = 0
        self._history: list[tuple[int, str, str, Json]] = []
        self._changed = asyncio.Event()

    # Reading

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None, model: type = dict) -> Any:
        return copy.deepcopy(self._find(resource, namespace, name))

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type = dict,
    ) -> Listing[Any]:
        items = [
            copy.deepcopy(obj)
            for (plural, _, _), obj in self.objects.items()
            if plural == resource.plural and _selected(obj, namespace, field_selector)
        ]
        return Listing(items=items, resource_version=str(self._version))

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type = dict,
    ) -> AsyncIterator[WatchEvent[Any]]:
        seen = int(resource_version)
        matching: set[str] = {
            o["metadata"]["uid"]
            for (plural, _, _), o in self.objects.items()
            if plural == resource.plural
            and int(o["metadata"]["resourceVersion"]) <= seen
            and _selected(o, namespace, field_selector)
        }
        while True:
            for version, plural, kind, obj in list(self._history):
                if version <= seen:
                    continue
                seen = version
                if plural != resource.plural:
                    continue
                uid = obj["metadata"]["uid"]
                selected = kind != "DELETED" and _selected(obj, namespace, field_selector)
                event = "MODIFIED" if uid in matching and selected else "ADDED" if selected else "DELETED"
                if not selected and uid not in matching:
                    continue
                matching.add(uid) if selected else matching.discard(uid)
                yield WatchEvent(type=event, object=copy.deepcopy(obj), resource_version=str(version))
            await self._wait_for_change(seen)

    async def _wait_for_change(self, seen: int) -> None:
        while self._version <= seen:
            await self._changed.wait()

    # Writing

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        obj = copy.deepcopy(body)
        metadata = obj.setdefault("metadata", {})
        if resource.namespaced:
            metadata["namespace"] = namespace or metadata.get("namespace") or "default"
        key = (resource.plural, metadata.get("namespace", ""), metadata["name"])
        if key in self.objects:
            raise ApiError(409, "AlreadyExists", f'{resource.plural} "{metadata["name"]}" already exists')
        metadata["uid"] = f"uid-{self._version + 1}-{metadata['name']}"
        metadata["creationTimestamp"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if resource == PODS:
            obj.setdefault("status", {"phase": "Pending"})
        self._store(key, "ADDED", obj)
        self.writes.append(("create", resource.plural, metadata["name"]))
        return copy.deepcopy(obj)

    async def replace(
        self, resource: Resource, body: Json, *, namespace: str | None = None, subresource: str = ""
    ) -> Json:
        raise NotImplementedError

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
        assert isinstance(patch, Mapping)
        old = self._find(resource, namespace, name)
        uid = (patch.get("metadata") or {}).get("uid")
        if uid not in (None, old["metadata"]["uid"]):
            raise ApiError(409, "Conflict", f"the UID in the precondition ({uid}) does not match")
        obj = _merge(copy.deepcopy(old), patch, strategic=kind is PatchKind.STRATEGIC)
        if obj != old:
            self._store((resource.plural, old["metadata"].get("namespace", ""), name), "MODIFIED", obj)
            self.writes.append(("patch", f"{resource.plural}/{subresource}".rstrip("/"), name))
        return copy.deepcopy(obj)

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
        obj = self._find(resource, namespace, name)
        if uid not in (None, obj["metadata"]["uid"]):
            raise ApiError(409, "Conflict", "the UID does not match")
        key = (resource.plural, obj["metadata"].get("namespace", ""), name)
        grace = grace_seconds if grace_seconds is not None else obj["spec"].get("terminationGracePeriodSeconds", 30)
        self.writes.append(("delete", resource.plural, name))
        if resource == PODS and grace and obj["spec"].get("nodeName"):
            marked = copy.deepcopy(obj)
            marked["metadata"]["deletionTimestamp"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            marked["metadata"]["deletionGracePeriodSeconds"] = grace
            self._store(key, "MODIFIED", marked)
            return
        del self.objects[key]
        self._record("DELETED", resource.plural, copy.deepcopy(obj))

    async def bind(
        self, *, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        await self.patch(PODS, name, {"spec": {"nodeName": node}}, namespace=namespace)

    # Waiting

    async def until(self, resource: Resource, name: str, condition: Any, *, namespace: str = "default") -> Json:
        """The object, once `condition(object or None)` holds."""
        while True:
            obj = self.objects.get((resource.plural, namespace if resource.namespaced else "", name))
            if condition(obj):
                return copy.deepcopy(obj) if obj else {}
            await self._wait_for_change(self._version)

    async def next_write(self) -> None:
        """Return after the next change of anything."""
        await self._wait_for_change(self._version)

    def _find(self, resource: Resource, namespace: str | None, name: str) -> Json:
        try:
            return self.objects[resource.plural, (namespace or "") if resource.namespaced else "", name]
        except KeyError:
            raise ApiError(404, "NotFound", f'{resource.plural} "{name}" not found') from None

    def _store(self, key: tuple[str, str, str], kind: str, obj: Json) -> None:
        self.objects[key] = obj
        self._record(kind, key[0], obj)

    def _record(self, kind: str, plural: str, obj: Json) -> None:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self._history.append((self._version, plural, kind, copy.deepcopy(obj)))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _selected(obj: Json, namespace: str | None, field_selector: str) -> bool:
    if namespace and obj["metadata"].get("namespace") != namespace:
        return False
    if not field_selector:
        return True
    path, _, wanted = field_selector.partition("=")
    value: Any = obj
    for part in path.split("."):
        value = (value or {}).get(part)
    return (value or "") == wanted


def _merge(target: Any, patch: Mapping[str, Any], *, strategic: bool) -> Any:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, Mapping):
            target[key] = _merge(target.get(key) or {}, value, strategic=strategic)
        elif strategic and key == "conditions":
            merged = {c["type"]: c for c in target.get(key) or ()}
            for condition in value:
                merged[condition["type"]] = {**merged.get(condition["type"], {}), **condition}
            target[key] = list(merged.values())
        else:
            target[key] = copy.deepcopy(value)
    return target
