"""Commands that nobody takes go after a while, whether their target never was or went before it took them."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import EPOCH, SeededRandom, VirtualClock, run
from vcbatch.api.resources import COMMANDS, JOBS, QUEUES, Resource
from vcbatch.api.timestamps import format_time
from vcbatch.core.command.decide import PATIENCE
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.command import CommandController
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]


class _World:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.caches: dict[Resource, Cache[Json]] = {resource: Cache() for resource in (COMMANDS, JOBS, QUEUES)}
        self.clock, random = VirtualClock(), SeededRandom(1)
        recorder = Recorder(self.api, clock=self.clock, random=random, component="test")
        applier = Applier(self.api, self.caches, recorder, clock=self.clock, random=random)
        targets = {resource: self.caches[resource] for resource in (JOBS, QUEUES)}
        self.controller = CommandController(
            self.caches[COMMANDS], targets, applier, clock=self.clock, random=random
        ).controller

    def add(self, resource: Resource, name: str, **fields: Any) -> None:
        namespace = {"namespace": "ns"} if resource.namespaced else {}
        metadata = {"name": name, **namespace, "creationTimestamp": format_time(EPOCH)}
        self.caches[resource].put(self.api.seed(resource, {"metadata": metadata, **fields}))

    def command(self, name: str, *, to: tuple[Resource, str]) -> None:
        resource, target = to
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        self.add(COMMANDS, name, action="AbortJob", target={**kind, "name": target})

    def remove(self, resource: Resource, name: str) -> None:
        namespace = "ns" if resource.namespaced else ""
        uid = self.api.objects[resource, namespace, name]["metadata"]["uid"]
        self.api.remove(resource, name, namespace)
        self.caches[resource].discard(uid)

    async def run_for(self, seconds: float) -> list[str]:
        """The Commands that are there after that."""
        task = asyncio.create_task(self.controller.part().run())
        await self.clock.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [command["metadata"]["name"] for command in self.api.all(COMMANDS)]


def test_a_command_is_left_to_its_target_and_goes_with_nobody_there() -> None:
    async def scenario() -> None:
        world = _World()
        world.add(JOBS, "j")
        world.add(QUEUES, "q")
        for name, to in (("a", (JOBS, "j")), ("b", (QUEUES, "q")), ("c", (JOBS, "nobody"))):
            world.command(name, to=to)
        assert await world.run_for(PATIENCE.total_seconds() - 1) == ["a", "b", "c"]
        assert await world.run_for(2) == ["a", "b"]

    run(scenario())


def test_what_a_target_leaves_behind_is_taken_away() -> None:
    async def scenario() -> None:
        world = _World()
        world.add(JOBS, "j")
        world.add(QUEUES, "j")
        world.command("a", to=(JOBS, "j"))
        world.command("b", to=(QUEUES, "j"))
        assert await world.run_for(100) == ["a", "b"]
        world.remove(JOBS, "j")
        assert await world.run_for(1) == ["b"]
        world.remove(QUEUES, "j")
        assert await world.run_for(1) == []

    run(scenario())
