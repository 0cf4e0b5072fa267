"""HyperNodes are looked at when what is below them changes, and made where labels ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import HYPERNODES
from vcbatch.core.hypernode import Discovery, Link, parse_discovery
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.configuration.followed_file import ConfigurationError, FollowedFile
from vcbatch.runtime.controllers.hypernode import HyperNodeController, NodeLabels
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]

RACKS = """\
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      racks: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]
"""


class _World:
    def __init__(self, discovery: FollowedFile[Discovery] | None = None) -> None:
        self.api = FakeApi()
        self.hyper_nodes: Cache[Json] = Cache()
        self.nodes: Cache[NodeLabels] = Cache(model=NodeLabels)
        self.clock = VirtualClock()
        self._version = 0
        recorder = Recorder(self.api, clock=self.clock, random=SeededRandom(1), component="test")
        applier = Applier(self.api, {HYPERNODES: self.hyper_nodes}, recorder, clock=self.clock, random=SeededRandom(1))
        self.controller = HyperNodeController(
            self.hyper_nodes,
            self.nodes,
            applier,
            clock=self.clock,
            random=SeededRandom(1),
            discovery=discovery,
        )

    def node(self, name: str, **labels: str) -> None:
        self._version += 1
        raw = {"metadata": {"name": name, "uid": name, "resourceVersion": str(self._version), "labels": labels}}
        self.nodes.put(msgspec.convert(raw, NodeLabels))

    async def hyper_node(self, name: str, *members: Json, tier: int = 1) -> None:
        body = {"metadata": {"name": name}, "spec": {"tier": tier, "members": list(members)}}
        await self.api.create(HYPERNODES, body)
        await self.listed()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The controller runs, and has done what there was to do."""
        task = asyncio.ensure_future(self.controller.part().run())
        try:
            await self.clock.sleep(1)
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def listed(self) -> None:
        """What a watch would have told by now."""
        self.hyper_nodes.replace(await self.api.list(HYPERNODES))

    async def counts(self) -> dict[str, int]:
        return {
            found["metadata"]["name"]: (found.get("status") or {}).get("nodeCount", 0)
            for found in (await self.api.list(HYPERNODES)).items
        }


def _by_label(**labels: str) -> Json:
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": labels}}}


def _below(name: str) -> Json:
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def test_counts_follow_the_nodes_and_reach_those_above() -> None:
    async def scenario() -> None:
        world = _World()
        world.node("a", rack="1")
        await world.hyper_node("rack", _by_label(rack="1"))
        await world.hyper_node("row", _below("rack"), tier=2)
        await world.hyper_node("other", _by_label(rack="2"))
        async with world.working():
            assert await world.counts() == {"rack": 1, "row": 1, "other": 0}
            await world.listed()
            writes = len(world.api.writes)
            world.node("b", rack="1")
            await world.clock.sleep(1)
            assert await world.counts() == {"rack": 2, "row": 2, "other": 0}
            assert len(world.api.writes) == writes + 2, "what didn't change isn't written"

    run(scenario())


def replace(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.fixture
def racks(tmp_path: Path) -> Path:
    path = tmp_path / "volcano-controller.conf"
    path.write_text(RACKS)
    return path


def test_hyper_nodes_are_made_from_labels_and_go_with_them(racks: Path) -> None:
    async def scenario() -> None:
        discovery = FollowedFile(racks, parse_discovery, clock=VirtualClock())
        world = _World(discovery)
        world.node("a", rack="1")
        world.node("b", rack="2")
        async with world.working():
            assert len(await world.counts()) == 2
            await world.listed()
            world.node("b", rack="1")
            await world.clock.sleep(1)
            await world.listed()
            await world.clock.sleep(1)
            assert list((await world.counts()).values()) == [2]
            replace(racks, "{}")
            discovery.refresh()
            await world.clock.sleep(1)
            assert await world.counts() == {}

    run(scenario())


UFM = """\
networkTopologyDiscovery:
- {source: ufm, enabled: true, config: {endpoint: ufm.example.com}}
"""


def test_hyper_nodes_are_made_from_what_a_fabric_manager_says(racks: Path) -> None:
    async def scenario() -> None:
        replace(racks, UFM)
        discovery = FollowedFile(racks, parse_discovery, clock=VirtualClock())
        world = _World(discovery)
        for name in ("a", "b", "c"):
            world.node(name)
        earlier = {"name": "leaf-hn-3", "labels": {"volcano.sh/network-topology-source": "ufm"}}
        await world.api.create(HYPERNODES, {"metadata": earlier, "spec": {"tier": 1}})
        await world.hyper_node("mine", tier=3)
        fabric = discovery.current.fabric
        assert fabric is not None
        async with world.working():
            assert await world.counts() == {"leaf-hn-3": 0, "mine": 0}, "before the first answer nothing is touched"
            world.controller.know_fabric(fabric, [Link("l1", "a"), Link("l1", "b"), Link("l2", "c")])
            await world.clock.sleep(1)
            await world.listed()
            await world.clock.sleep(1)
            counts = await world.counts()
            assert sorted(counts.values()) == [0, 1, 2, 3]
            assert counts.keys() >= {"mine", "spine-hn"}
            await world.api.delete(HYPERNODES, "spine-hn")
            await world.listed()
            await world.clock.sleep(1)
            assert "spine-hn" in await world.counts(), "one that somebody deletes comes back"
            replace(racks, "{}")
            discovery.refresh()
            await world.listed()
            await world.clock.sleep(1)
            assert await world.counts() == {"mine": 0}

    run(scenario())


def test_a_file_that_is_none_leaves_the_last_good_one_in_force(racks: Path) -> None:
    discovery = FollowedFile(racks, parse_discovery, clock=VirtualClock())
    before = discovery.current
    for text in ("networkTopologyDiscovery: 3", "a: [", "[" * 9000):
        racks.write_text(text)
        discovery.refresh()
        assert discovery.current == before
    with pytest.raises(ConfigurationError, match="networkTopologyDiscovery: want a list"):
        racks.write_text("networkTopologyDiscovery: 3")
        FollowedFile(racks, parse_discovery, clock=VirtualClock())
