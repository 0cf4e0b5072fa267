"""What happened to the objects of a scenario, as watches tell it: nothing is too short to be seen.

An `Observer` watches a cluster once, for all scenarios that play there; each has its `History`.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from tests.scenarios.conditions import Condition, ScenarioFailed, dig, named, target
from vcbatch.api.resources import (
    COMMANDS,
    DEPLOYMENTS,
    JOBFLOWS,
    JOBS,
    NODES,
    PODGROUPS,
    PODS,
    QUEUES,
    REPLICASETS,
    Resource,
)
from vcbatch.interfaces import Api, ApiError

Json = dict[str, Any]

WATCHED = (JOBS, PODS, PODGROUPS, COMMANDS, QUEUES, NODES, JOBFLOWS, DEPLOYMENTS, REPLICASETS)
_PAUSE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`object` None: it is gone."""

    resource: Resource
    name: str
    object: Json | None
    at: float


class History:
    """What one namespace saw, and the cluster-scoped objects around it."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._changes: dict[Resource, list[Change]] = {resource: [] for resource in WATCHED}
        self._current: dict[Resource, dict[str, Json]] = {resource: {} for resource in WATCHED}
        self._forbidden: list[Condition] = []
        self._violation = ""
        self._last = 0.0
        self._waiting: asyncio.Future[None] | None = None

    def forbid(self, conditions: Sequence[Json]) -> None:
        """None of these may ever hold."""
        self._forbidden = [Condition(condition) for condition in conditions]
        for condition in self._forbidden:
            if condition.resource not in WATCHED:
                raise ScenarioFailed(f"nobody watches {condition.resource.plural}, so `never` can't say anything of it")

    def check(self) -> None:
        """Raises `ScenarioFailed` where something happened that must never be."""
        if self._violation:
            raise ScenarioFailed(self._violation)

    def lost(self, why: str) -> None:
        """Nobody watches any more, so nothing can be said."""
        self._violation = self._violation or f"the watch of the test itself ended: {why}"

    def current(self, resource: Resource) -> dict[str, Json] | None:
        """All objects of a watched resource, by name; None for one that isn't watched."""
        return self._current.get(resource)

    def values(self, text: str, path: str) -> list[Any]:
        """All that was ever at this place, without repetitions in a row; what isn't there doesn't count."""
        resource, name = target(text)
        found: list[Any] = []
        for change in self._changes[resource]:
            value = dig(change.object, path) if change.object and named(name, change.name) else None
            if value is not None and (not found or found[-1] != value):
                found.append(value)
        return found

    def phases(self) -> dict[str, list[Any]]:
        """The phases of each job, for people."""
        jobs = dict.fromkeys(change.name for change in self._changes[JOBS])
        return {name: self.values(f"{JOBS.plural}/{name}", "status.state.phase") for name in jobs}

    def quiet(self) -> float:
        """Seconds since anything changed in the namespace."""
        return asyncio.get_running_loop().time() - self._last

    def latest(self, number: int) -> list[str]:
        """The last changes, for people."""
        changes = sorted((each for all_ in self._changes.values() for each in all_), key=lambda change: change.at)
        return [f"{change.resource.plural}/{change.name}" for change in changes[-number:]]

    def next_change(self) -> asyncio.Future[None]:
        """Done with the next change of anything, here or in the cluster."""
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.get_running_loop().create_future()
        return self._waiting

    def take(self, resource: Resource, name: str, found: Json | None) -> None:
        now = asyncio.get_running_loop().time()
        self._changes[resource].append(Change(resource=resource, name=name, object=found, at=now))
        if found is None:
            self._current[resource].pop(name, None)
        else:
            self._current[resource][name] = found
        if resource.namespaced:
            self._last = now
        for condition in self._forbidden:
            if condition.resource == resource and not self._violation:
                self._judge(condition)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _judge(self, condition: Condition) -> None:
        value = condition.select(list(self._current[condition.resource].values()))
        if not condition.unmet(value):
            reported = f"{condition.resource.plural} at {time.strftime('%H:%M:%S')}"
            self._violation = (
                f"what must never be happened: {condition.reported} ({reported}: {condition.brief(value)})"
            )


class Observer:
    """Watches what scenarios are about, cluster-wide, and hands each namespace its part."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._histories: dict[str, History] = {}
        self._known: dict[Resource, dict[tuple[str, str], Json]] = defaultdict(dict)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        listed = [asyncio.get_running_loop().create_future() for _ in WATCHED]
        self._tasks = [
            asyncio.create_task(self._follow(resource, first)) for resource, first in zip(WATCHED, listed, strict=True)
        ]
        for task in self._tasks:
            task.add_done_callback(self._ended)
        await asyncio.gather(*listed)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            for history in self._histories.values():
                history.lost(repr(error))

    def history(self, namespace: str) -> History:
        """The history of this namespace from now on."""
        history = self._histories[namespace] = History(namespace)
        for resource in WATCHED:
            for (place, name), found in self._known[resource].items():
                if place in ("", namespace):
                    history.take(resource, name, found)
        return history

    async def _follow(self, resource: Resource, listed: asyncio.Future[None]) -> None:
        while True:
            try:
                listing = await self._api.list(resource)
                self._compare(resource, listing.items)
                if not listed.done():
                    listed.set_result(None)
                async for event in self._api.watch(resource, resource_version=listing.resource_version):
                    if event.type != "BOOKMARK":
                        self._report(resource, event.object, gone=event.type == "DELETED")
            except ApiError as error:
                # The server is away while a scenario restarts it; what was missed is seen in the next list.
                if not error.transient and not error.expired:
                    raise
            await asyncio.sleep(_PAUSE)

    def _compare(self, resource: Resource, items: Sequence[Json]) -> None:
        there = {_key(item): item for item in items}
        for key, found in list(self._known[resource].items()):
            now = there.get(key)
            if now is None or now["metadata"]["uid"] != found["metadata"]["uid"]:
                self._report(resource, found, gone=True)
        # A list is in the order of names; what was written first is told first.
        for key, found in sorted(there.items(), key=lambda each: int(each[1]["metadata"]["resourceVersion"])):
            before = self._known[resource].get(key)
            if before is None or before["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                self._report(resource, found, gone=False)

    def _report(self, resource: Resource, found: Json, *, gone: bool) -> None:
        key = namespace, name = _key(found)
        if gone:
            self._known[resource].pop(key, None)
        else:
            self._known[resource][key] = found
        for place, history in self._histories.items():
            if namespace in ("", place):
                history.take(resource, name, None if gone else found)


def _key(item: Json) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]
