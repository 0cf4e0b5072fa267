"""The API of `api` with the automatic behaviour of a cluster, and an API with delayed watches."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from tests.fakes.api import FakeApi
from vcbatch.api.resources import Resource
from vcbatch.api.timestamps import format_time
from vcbatch.interfaces.api import ApiError, Json, Listing, WatchEvent
from vcbatch.interfaces.clock import Clock

_FOREGROUND = "foregroundDeletion"


class Server(FakeApi):
    """Adds creation times, generations and the garbage collector, whose work `collect` does. UIDs are the same in every
    run of a history: they number the objects of a name."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._named: Counter[tuple[Resource, str]] = Counter()
        self.stillborn: set[str] = set()
        """UIDs of objects whose owner was deleted before they were created; they are garbage-collected."""
        self.kept: set[Resource] = set()
        """The kinds whose objects can't be deleted."""
        self.happened: dict[int, float] = {}
        """resourceVersion -> the time when it was written."""
        self._collected = -1

    def seed(self, resource: Resource, body: Json) -> Json:
        name = body["metadata"]["name"]
        self._named[resource, name] += 1
        uid = f"{name}-{resource.plural}-{self._named[resource, name]}"
        created = {"creationTimestamp": format_time(self._clock.now()), "generation": 1, "uid": uid}
        owners = _owners(body)
        if owners and all(self._with_uid(owner) is None for owner in owners):
            self.stillborn.add(uid)
        return super().seed(resource, {**body, "metadata": {**created, **body["metadata"]}})

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        super().remove(resource, name, namespace)
        self.happened[self.version] = self._clock.monotonic()

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        if resource in self.kept:
            raise ApiError(403, "Forbidden", f"{resource.plural} can't be deleted")
        stored = self.objects.get((resource, options.get("namespace") or "", name))
        named = stored is not None and options.get("uid") in (None, stored["metadata"]["uid"])
        if stored is None or not named or options.get("propagation") != "Foreground" or not self._dependents(stored):
            await super().delete(resource, name, **options)
            return
        self.writes.append(("delete", resource.plural, name))
        if not stored["metadata"].get("deletionTimestamp"):
            marks = {"deletionTimestamp": format_time(self._clock.now()), "finalizers": [_FOREGROUND]}
            self._store("MODIFIED", resource, {**stored, "metadata": {**stored["metadata"], **marks}})

    def collect(self) -> None:
        """Remove objects without a remaining owner or with an owner that is being deleted, and owners that waited for
        them."""
        if self._collected == self.version:
            return
        self._collected = self.version
        for (resource, namespace, name), stored in list(self.objects.items()):
            there = [self._with_uid(uid) for uid in _owners(stored)]
            if there and all(owner is None or _goes(owner) for owner in there):
                self.remove(resource, name, namespace)
        for (resource, namespace, name), stored in list(self.objects.items()):
            if _goes(stored) and not self._dependents(stored):
                self.remove(resource, name, namespace)

    def _store(self, event: str, resource: Resource, body: Json) -> Json:
        metadata = body["metadata"]
        before = self.objects.get((resource, metadata.get("namespace", ""), metadata["name"]))
        if before is not None and before.get("spec") != body.get("spec"):
            metadata = body["metadata"] = {**metadata, "generation": metadata["generation"] + 1}
        stored = super()._store(event, resource, body)
        self.happened[self.version] = self._clock.monotonic()
        return stored

    def _with_uid(self, uid: str) -> Json | None:
        return next((stored for stored in self.objects.values() if stored["metadata"]["uid"] == uid), None)

    def _dependents(self, owner: Json) -> list[Json]:
        return [stored for stored in self.objects.values() if owner["metadata"]["uid"] in _owners(stored)]


class LateApi:
    """Implements `vcbatch.interfaces.Api` and delays each kind in `lags` (by plural) by so many seconds, in lists and
    watches. Reads of single objects and responses to writes aren't delayed."""

    def __init__(self, server: Server, lags: Mapping[str, float]) -> None:
        self._server = server
        self._lags = lags

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        return getattr(self._server, verb)

    async def list(self, resource: Resource, **options: Any) -> Listing[Any]:
        listing = await self._server.list(resource, **options)
        await asyncio.sleep(self._lags.get(resource.plural, 0.0))
        return listing

    async def watch(self, resource: Resource, **options: Any) -> AsyncIterator[WatchEvent[Any]]:
        async for event in self._server.watch(resource, **options):
            due = self._server.happened[int(event.resource_version)] + self._lags.get(resource.plural, 0.0)
            await asyncio.sleep(max(due - asyncio.get_running_loop().time(), 0.0))
            yield event


def _owners(stored: Json) -> list[str]:
    return [reference["uid"] for reference in stored["metadata"].get("ownerReferences") or ()]


def _goes(stored: Json) -> bool:
    return _FOREGROUND in (stored["metadata"].get("finalizers") or ())
