"""A CustomResourceDefinition is served before discovery lists it, and kopf reads discovery once: what it missed at its
start is followed within seconds all the same."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.support.scripted_http import Answer, Asked, refused, scripted
from tests.support.virtual_time import SeededRandom
from vcbatch.api.resources import COMMANDS, JOBS, QUEUES, Resource
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.handlers import CustomResources, Feed
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.clock import SystemClock

Json = dict[str, Any]
FOLLOWED = (QUEUES, JOBS, COMMANDS)
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_WATCH_SECONDS = 0.3


class Server:
    """An API server of `FOLLOWED` whose discovery lists what it is told to, whatever is served."""

    def __init__(self, *, served: tuple[Resource, ...], listed: tuple[Resource, ...]) -> None:
        self._changed = threading.Condition()
        self._served = set(served)
        self._listed = set(listed)
        self._version = 1
        self._events: dict[Resource, list[tuple[int, str, Json]]] = {resource: [] for resource in FOLLOWED}
        self.watched: list[Resource] = []
        """The resource of each watch that was opened."""
        self.scans = 0
        """How often discovery was read."""

    def serve(self, resource: Resource, *, served: bool = True) -> None:
        with self._changed:
            (self._served.add if served else self._served.discard)(resource)
            self._changed.notify_all()

    def list(self, resource: Resource, *, listed: bool = True) -> None:
        with self._changed:
            (self._listed.add if listed else self._listed.discard)(resource)

    def create(self, resource: Resource, name: str) -> None:
        with self._changed:
            self._version += 1
            namespace = {"namespace": "ns"} if resource.namespaced else {}
            metadata = {"name": name, "uid": f"{resource.plural}-{name}", "resourceVersion": str(self._version)}
            obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {**metadata, **namespace}}
            self._events[resource].append((self._version, "ADDED", obj))
            self._changed.notify_all()

    def answer(self, asked: Asked) -> Answer:
        return replace(self._answer(asked), headers={"Content-Type": "application/json"})

    def _answer(self, asked: Asked) -> Answer:
        if asked.path == "/api":
            return Answer(body={"versions": ["v1"]})
        if asked.path == "/api/v1":
            return Answer(body={"resources": [_kind("namespaces", "Namespace"), _kind("events", "Event")]})
        with self._changed:
            groups = {resource.group: resource.version for resource in self._listed}
            if asked.path == "/apis":
                self.scans += 1
                return Answer(body={"groups": [_group(name, version) for name, version in groups.items()]})
            for group, version in groups.items():
                if asked.path == f"/apis/{group}/{version}":
                    kinds = [_kind(each.plural, each.kind) for each in self._listed if each.group == group]
                    return Answer(body={"resources": kinds})
            for resource in self._served:
                if asked.path == resource.path():
                    return self._watch(resource, asked) if "watch" in asked.query else self._list(resource)
        return refused(404, "NotFound", "the server could not find the requested resource")

    def _list(self, resource: Resource) -> Answer:
        items = [obj for _, _, obj in self._events[resource]]
        metadata = {"resourceVersion": str(self._version)}
        return Answer(body={"kind": f"{resource.kind}List", "metadata": metadata, "items": items})

    def _watch(self, resource: Resource, asked: Asked) -> Answer:
        self.watched.append(resource)
        since = int(asked.query["resourceVersion"])

        def news() -> list[Json]:
            return [{"type": kind, "object": obj} for version, kind, obj in self._events[resource] if version > since]

        self._changed.wait_for(lambda: news() or resource not in self._served, timeout=_WATCH_SECONDS)
        return Answer(body="".join(json.dumps(event) + "\n" for event in news()).encode())


def _group(name: str, version: str) -> Json:
    one = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [one], "preferredVersion": one}


def _kind(plural: str, kind: str) -> Json:
    namespaced = plural not in ("queues", "namespaces")
    return {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": namespaced, "verbs": _VERBS}


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a condition of another thread's making
            await asyncio.sleep(0.01)


@asynccontextmanager
async def following(server: Server) -> AsyncIterator[dict[Resource, Cache[Json]]]:
    """The caches of `FOLLOWED`, kept equal to the server."""
    caches: dict[Resource, Cache[Json]] = {resource: Cache() for resource in FOLLOWED}
    feeds = [Feed(resource=resource, cache=cache) for resource, cache in caches.items()]
    clock, random = SystemClock(), SeededRandom(1)
    with scripted(server.answer) as place:
        async with HttpApi(Connection(server=place.url), clock=clock, random=random) as api:
            source = CustomResources(api, api.connection, feeds, clock=clock, random=random)
            tasks = [asyncio.create_task(source.audit()), asyncio.create_task(source.watch())]
            try:
                yield caches
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


async def arrives(server: Server, caches: dict[Resource, Cache[Json]], resource: Resource, name: str) -> None:
    """A watch of that resource is opened from now on, and tells of an object that is created then."""
    before = len(server.watched)
    await until(lambda: resource in server.watched[before:])
    server.create(resource, name)
    key = f"ns/{name}" if resource.namespaced else name
    await until(lambda: caches[resource].by_key(key) is not None)


async def test_what_is_served_but_not_listed_yet_is_followed_as_soon_as_it_is_listed():
    server = Server(served=FOLLOWED, listed=(QUEUES,))
    async with following(server) as caches:
        await arrives(server, caches, QUEUES, "q")
        server.list(JOBS)
        await arrives(server, caches, JOBS, "first")
        server.list(COMMANDS)
        await arrives(server, caches, COMMANDS, "second")
        await arrives(server, caches, JOBS, "third")


async def test_what_is_created_after_the_start_is_followed():
    server = Server(served=(QUEUES, COMMANDS), listed=(QUEUES, COMMANDS))
    async with following(server) as caches:
        await arrives(server, caches, COMMANDS, "c")
        server.serve(JOBS)
        server.list(JOBS)
        await arrives(server, caches, JOBS, "j")


async def test_what_is_deleted_and_created_again_is_followed_again():
    server = Server(served=FOLLOWED, listed=FOLLOWED)
    async with following(server) as caches:
        await arrives(server, caches, JOBS, "before")
        server.list(JOBS, listed=False)
        server.serve(JOBS, served=False)
        scans = server.scans
        await until(lambda: server.scans > scans)
        await arrives(server, caches, QUEUES, "meanwhile")
        server.serve(JOBS)
        server.list(JOBS)
        await arrives(server, caches, JOBS, "after")
