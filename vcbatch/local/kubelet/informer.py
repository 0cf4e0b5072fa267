"""A local copy of some objects, updated by list and watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vcbatch.api.resources import Resource
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random

Json = dict[str, Any]
log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 15.0
_SHORT_WATCH = 1.0  # seconds: a watch that the server ends sooner isn't reopened at once


@dataclass(slots=True)
class Informer:
    """Objects of one resource by UID. `changed(old, new)` is called for every change, with None for a missing object.

    Reads never wait for the server; `synced` is set once the first list is in. `trimmed` returns the part of an object
    that is kept; it has the metadata that identifies the object.
    """

    api: Api
    clock: Clock
    random: Random
    resource: Resource
    changed: Callable[[Json | None, Json | None], None]
    field_selector: str = ""
    trimmed: Callable[[Json], Json] = lambda item: item
    objects: dict[str, Json] = field(default_factory=dict[str, Json])
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    _names: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def find(self, namespace: str, name: str) -> Json | None:
        uid = self._names.get((namespace, name))
        return None if uid is None else self.objects.get(uid)

    async def run(self) -> None:
        """List, then watch, until cancelled; list again where the watch can't continue."""
        pause = _FIRST_PAUSE
        version = ""
        while True:
            try:
                if not version:
                    version = await self._list()
                opened = self.clock.monotonic()
                version = await self._watch(version)
                if self.clock.monotonic() - opened < _SHORT_WATCH:
                    await self.clock.sleep(pause * (0.5 + self.random.random()))
                pause = _FIRST_PAUSE
            except ApiError as error:
                if error.expired:
                    version = ""
                    continue
                log.debug("watch of %s: %s", self.resource.plural, error)
                await self.clock.sleep(pause * (0.5 + self.random.random()))
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _list(self) -> str:
        listing = await self.api.list(self.resource, field_selector=self.field_selector)
        current = {item["metadata"]["uid"]: self.trimmed(item) for item in listing.items}
        for uid in list(self.objects.keys() - current.keys()):
            self._remove(self.objects[uid])
        for item in current.values():
            self._store(item)
        self.synced.set()
        return listing.resource_version

    async def _watch(self, version: str) -> str:
        events = self.api.watch(self.resource, resource_version=version, field_selector=self.field_selector)
        async for event in events:
            version = event.resource_version or version
            if event.type == "DELETED":
                self._remove(event.object)
            elif event.type in ("ADDED", "MODIFIED"):
                self._store(self.trimmed(event.object))
        return version

    def _store(self, item: Json) -> None:
        metadata = item["metadata"]
        old = self.objects.get(metadata["uid"])
        if old is not None and old["metadata"].get("resourceVersion") == metadata.get("resourceVersion"):
            return
        self.objects[metadata["uid"]] = item
        self._names[metadata.get("namespace", ""), metadata["name"]] = metadata["uid"]
        self._notify(old, item)

    def _remove(self, item: Json) -> None:
        metadata = item["metadata"]
        old = self.objects.pop(metadata["uid"], None)
        key = (metadata.get("namespace", ""), metadata["name"])
        if self._names.get(key) == metadata["uid"]:
            del self._names[key]
        if old is not None:
            self._notify(old, None)

    def _notify(self, old: Json | None, new: Json | None) -> None:
        try:
            self.changed(old, new)
        except Exception:
            # An object that can't be processed must not block the others.
            log.exception("handling a change of %s failed", self.resource.plural)
