"""Claims that wait for their first consumer are bound before the pods of their gang, all of them or none."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tests.fakes.api import FakeApi
from tests.support.virtual_time import VirtualClock, run
from vcbatch.api.names import BOUND_BY_CONTROLLER, SELECTED_NODE
from vcbatch.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES
from vcbatch.api.storage import Claim, PersistentVolume
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.scheduling.volume_binder import VolumeBinder
from vcbatch.scheduler.model.result import Bind, ClaimBinding

Json = dict[str, Any]


class World:
    """A server, the binder's caches of it, and a volume controller that does what it is told."""

    def __init__(self) -> None:
        self.server = FakeApi()
        self.claims: Cache[Claim] = Cache(model=Claim)
        self.volumes: Cache[PersistentVolume] = Cache(model=PersistentVolume)
        self.ready: list[str] = []
        self.failed: dict[str, str] = {}
        self.unreached = ""
        self.clock = VirtualClock()
        self.binder = VolumeBinder(
            self.server,
            self.claims,
            self.volumes,
            clock=self.clock,
            ready=lambda binds: self.ready.extend(bind.name for bind in binds),
            failed=lambda uid, error: self.failed.update({uid: error}),
            reaches=lambda uid: self.unreached,
        )

    def claim(self, name: str) -> str:
        stored = self.server.seed(
            PERSISTENTVOLUMECLAIMS, {"metadata": {"name": name, "namespace": "ns"}, "status": {"phase": "Pending"}}
        )
        self.see()
        return stored["metadata"]["uid"]

    def volume(self, name: str, **spec: Any) -> None:
        self.server.seed(PERSISTENTVOLUMES, {"metadata": {"name": name}, "spec": spec})
        self.see()

    def see(self) -> None:
        for resource, cache in ((PERSISTENTVOLUMECLAIMS, self.claims), (PERSISTENTVOLUMES, self.volumes)):
            for stored in self.server.all(resource):
                cache.put(msgspec.convert(stored, cache.model))

    def stored(self, name: str) -> Json:
        return next(c for c in self.server.all(PERSISTENTVOLUMECLAIMS) if c["metadata"]["name"] == name)

    async def bound(self, name: str, volume: str) -> None:
        patch = {"spec": {"volumeName": volume}, "status": {"phase": "Bound"}}
        await self.server.patch(PERSISTENTVOLUMECLAIMS, name, patch, namespace="ns")
        self.see()

    async def play(self, *binds: Bind, then: Any = None) -> None:
        running = asyncio.create_task(self.binder.run())
        self.binder.submit(binds)
        await self.clock.sleep(1)
        if then is not None:
            await then
        await self.clock.sleep(1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _bind(name: str, *claims: ClaimBinding) -> Bind:
    return Bind("ns", name, f"uid-{name}", "n1", "ns/g" if claims or name.startswith("g") else "", claims)


def test_pods_without_claims_to_bind_are_bound_at_once() -> None:
    world = World()
    world.binder.submit([_bind("a"), _bind("b")])
    assert world.ready == ["a", "b"]


def test_a_gang_waits_until_its_volume_is_made() -> None:
    async def play() -> None:
        world = World()
        uid = world.claim("data")
        binds = (_bind("g0", ClaimBinding("ns", "data", uid, "", "n1")), _bind("g1"))
        running = asyncio.create_task(world.binder.run())
        world.binder.submit(binds)
        await world.clock.sleep(1)
        world.see()
        assert world.stored("data")["metadata"]["annotations"] == {SELECTED_NODE: "n1"}
        assert not world.ready
        await world.bound("data", "v")
        await world.clock.sleep(1)
        assert not world.ready, "where the volume is isn't known yet"
        world.volume("v")
        await world.clock.sleep(1)
        assert world.ready == ["g0", "g1"]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(play())


def test_a_volume_that_is_there_is_given_to_its_claim() -> None:
    async def play() -> None:
        world = World()
        uid = world.claim("data")
        world.volume("v", capacity={"storage": "1Gi"})
        await world.play(_bind("g0", ClaimBinding("ns", "data", uid, "v", "n1")), then=world.bound("data", "v"))
        volume = world.server.all(PERSISTENTVOLUMES)[0]
        kept = volume["spec"]["claimRef"]
        assert (kept["namespace"], kept["name"], kept["uid"]) == ("ns", "data", uid)
        assert volume["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
        assert world.ready == ["g0"]

    run(play())


def test_a_volume_that_somebody_else_got_fails_the_gang_as_a_whole() -> None:
    async def play() -> None:
        world = World()
        uid = world.claim("data")
        world.volume("v", claimRef={"namespace": "ns", "name": "other", "uid": "other"})
        await world.play(_bind("g0", ClaimBinding("ns", "data", uid, "v", "n1")), _bind("g1"))
        assert not world.ready
        assert set(world.failed) == {"uid-g0", "uid-g1"}
        assert "was given to another claim" in world.failed["uid-g0"]

    run(play())


def test_a_node_taken_off_a_claim_again_means_that_no_volume_can_be_made_there() -> None:
    async def play() -> None:
        world = World()
        uid = world.claim("data")

        async def give_up() -> None:
            world.see()
            await world.clock.sleep(1)
            patch = {"metadata": {"annotations": {SELECTED_NODE: None}}}
            await world.server.patch(PERSISTENTVOLUMECLAIMS, "data", patch, namespace="ns")
            world.see()

        await world.play(_bind("g0", ClaimBinding("ns", "data", uid, "", "n1")), then=give_up())
        assert "no volume could be made" in world.failed["uid-g0"]

    run(play())


def test_a_volume_that_does_not_reach_every_node_of_the_gang_or_never_comes_fails_it() -> None:
    async def play() -> None:
        world = World()
        world.unreached = "node(s) didn't match PersistentVolume's node affinity"
        uid = world.claim("data")
        world.volume("v")
        await world.play(_bind("g0", ClaimBinding("ns", "data", uid, "v", "n1")), then=world.bound("data", "v"))
        assert world.failed == {"uid-g0": world.unreached}
        late = world.claim("late")
        await world.play(_bind("g1", ClaimBinding("ns", "late", late, "", "n1")), then=world.clock.sleep(601))
        assert "wasn't bound within" in world.failed["uid-g1"]

    run(play())
