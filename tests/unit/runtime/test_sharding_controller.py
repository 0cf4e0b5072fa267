"""NodeShards are kept as the configuration says, from the nodes and the pods on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import EVENTS, NODES, NODESHARDS, PODS
from vcbatch.core.sharding import parse_sharding
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.configuration.followed_file import FollowedFile
from vcbatch.runtime.controllers.sharding import ShardingController
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]
_BUSY = """
shardSyncPeriod: 30s
schedulerConfigs:
- {name: busy, policies: [{name: allocation-rate, arguments: {minCPUUtil: 0.5}}]}
- {name: volcano}
"""


class _World:
    def __init__(self, folder: Path, text: str = _BUSY) -> None:
        self.api = FakeApi()
        self.clock, random = VirtualClock(), SeededRandom(1)
        self.file = folder / "sharding.yaml"
        self.file.write_text(text)
        self.configuration = FollowedFile(self.file, parse_sharding, clock=self.clock)
        self.shards: Cache[Json] = Cache()
        self.nodes: Cache[Node] = Cache(model=Node)
        self.pods: Cache[Pod] = Cache(model=Pod)
        self.recorder = Recorder(self.api, clock=self.clock, random=random, component="test")
        self.applier = Applier(self.api, {NODESHARDS: self.shards}, self.recorder, clock=self.clock, random=random)
        self.controller = ShardingController(
            self.configuration, self.shards, self.nodes, self.pods, self.applier, clock=self.clock, random=random
        )

    async def node(self, name: str) -> None:
        body = {"metadata": {"name": name}, "status": {"capacity": {"cpu": "4"}}}
        await self.api.create(NODES, body)
        self.nodes.replace(await self.api.list(NODES, model=Node))

    async def pod(self, name: str, node: str, cpu: str, phase: str = "Running", **annotations: str) -> None:
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
        notes = {key.replace("_", "/"): value for key, value in annotations.items()}
        body = {
            "metadata": {"name": name, "annotations": notes},
            "spec": {"nodeName": node, "containers": containers},
            "status": {"phase": phase},
        }
        await self.api.create(PODS, body, namespace="ns")
        self.pods.replace(await self.api.list(PODS, model=Pod))

    async def shards_after_reconcile(self) -> dict[str, list[str]]:
        decision = await self.controller.decide("", self.clock.now())
        assert decision is not None
        assert decision.requeue_at is not None
        assert (decision.requeue_at - self.clock.now()) == self.configuration.current.period
        await self.applier.carry_out(decision)
        return {each["metadata"]["name"]: each["spec"]["nodesDesired"] for each in self.api.all(NODESHARDS)}


def test_a_node_moves_when_its_pods_ask_for_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = _World(tmp_path)
        for name in ("a", "b"):
            await world.node(name)
        await world.pod("half", "a", "2")
        await world.pod("over", "b", "4", phase="Succeeded")
        assert await world.shards_after_reconcile() == {"busy": ["a"], "volcano": ["b"]}
        assert await world.shards_after_reconcile() == {"busy": ["a"], "volcano": ["b"]}
        assert [write for write in world.api.writes if write[1] == "nodeshards"] == [
            ("create", "nodeshards", "busy"),
            ("create", "nodeshards", "volcano"),
        ]
        await world.pod("much", "b", "3")
        assert await world.shards_after_reconcile() == {"busy": ["a", "b"], "volcano": []}

    run(scenario())


def test_another_configuration_takes_the_shards_of_the_old_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = _World(tmp_path)
        await world.node("a")
        await world.shards_after_reconcile()
        world.file.write_text("schedulerConfigs: [{name: other, policies: [{name: node-limit}]}]\n")
        waiting = len(world.controller.controller.queue)
        world.configuration.refresh()
        assert await world.shards_after_reconcile() == {"other": ["a"]}
        assert waiting == 1

    run(scenario())


def test_that_nodes_are_missing_is_told_once(tmp_path: Path) -> None:
    few = "schedulerConfigs: [{name: volcano, policies: [{name: node-limit, arguments: {minNodes: 2}}]}]\n"

    async def scenario() -> None:
        world = _World(tmp_path, few)
        await world.node("a")

        async def reported_after_reconcile() -> int:
            assert await world.controller.controller.reconcile("")
            await world.recorder.flush()
            return sum(event["count"] for event in world.api.all(EVENTS))

        assert await reported_after_reconcile() == 0, "the NodeShard was only just made"
        assert await reported_after_reconcile() == 1
        assert await reported_after_reconcile() == 1
        await world.node("b")
        await reported_after_reconcile()
        await world.api.delete(NODES, "b")
        world.nodes.replace(await world.api.list(NODES, model=Node))
        assert await reported_after_reconcile() == 2

    run(scenario())
