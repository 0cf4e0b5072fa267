"""The local server as the API of a test, without sockets and with methods that wait for conditions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from vcbatch.api.resources import Resource
from vcbatch.interfaces import Clock, Random
from vcbatch.interfaces.api import ApiError, Json
from vcbatch.local.apiserver.assembly import build
from vcbatch.local.apiserver.history import Change
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.store import collection_of


class Server:
    """A server with empty storage. `api` is the interface."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._kernel = build(clock=clock, random=random)
        self._random = random
        self.api = self._kernel.api
        self._changed = asyncio.Event()
        self._records: dict[tuple[str, str], list[Record]] = {}
        self._kernel.store.subscribe(self._observe)

    async def start(self) -> None:
        await self._kernel.start()

    async def stop(self) -> None:
        await self._kernel.stop()

    def _observe(self, collection: str, change: Change) -> None:
        self._records.setdefault((collection, change.record.name), []).append(change.record)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def history(self, resource: Resource, name: str) -> list[Json]:
        """The object after each of its writes, from its creation to its deletion."""
        return [record.decode() for record in self._records.get((collection_of(resource), name), [])]

    def plant(self, resource: Resource, body: Json) -> None:
        """Store an object as it is, without admission and defaults."""
        metadata = {"namespace": "default", "uid": self._random.uid(), **body["metadata"]}
        named = {"apiVersion": resource.api_version, "kind": resource.kind}
        self._kernel.store.put(resource, {"status": {"phase": "Pending"}, **body, **named, "metadata": metadata}, None)

    async def until(self, resource: Resource, name: str, condition: Callable[[Any], Any]) -> Json:
        """The object in the default namespace, once `condition(object or None)` is true."""
        while True:
            changed = self._changed
            obj = await self._get(resource, name)
            if condition(obj):
                return obj or {}
            await changed.wait()

    async def first(self, resource: Resource, condition: Callable[[Json], bool]) -> Json:
        """The first object of the default namespace that meets the condition, once there is one."""
        while True:
            changed = self._changed
            for obj in (await self.api.list(resource, namespace="default")).items:
                if condition(obj):
                    return obj
            await changed.wait()

    async def _get(self, resource: Resource, name: str) -> Json | None:
        try:
            return await self.api.get(resource, name, namespace="default")
        except ApiError as error:
            if error.not_found:
                return None
            raise
