"""Pods without a gang are looked at until they have one, and no others are."""

from __future__ import annotations

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.names import GROUP_NAME
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PODGROUPS, PODS
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.cache import Cache
from vcbatch.runtime.controllers.podgroup import PodGroupController
from vcbatch.runtime.recorder import Recorder


class _World:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.pods: Cache[Pod] = Cache(model=Pod)
        self.podgroups: Cache[dict] = Cache()
        clock, random = VirtualClock(), SeededRandom(1)
        recorder = Recorder(self.api, clock=clock, random=random, component="test")
        self.applier = Applier(
            self.api,
            {PODS: self.pods, PODGROUPS: self.podgroups},
            recorder,
            clock=clock,
            random=SeededRandom(1),
            without_status=[PODGROUPS],
        )
        self.clock = clock
        self.controller = PodGroupController(
            self.api, self.pods, self.podgroups, self.applier, clock=clock, random=random
        )

    async def add(self, name: str, **spec: object) -> str:
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        body = {
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"schedulerName": "volcano", "containers": [container], **spec},
        }
        stored = await self.api.create(PODS, body, namespace="ns")
        self.pods.replace(await self.api.list(PODS, model=Pod))
        return stored["metadata"]["uid"]

    def waiting(self) -> int:
        return len(self.controller.controller.queue)

    async def look(self, uid: str) -> None:
        decision = await self.controller.decide(uid, self.clock.now())
        assert decision is not None
        await self.applier.carry_out(decision)


def test_a_pod_gets_its_group_and_then_its_name() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.add("p")
        assert world.waiting() == 1
        await world.look(uid)
        group = await world.api.get(PODGROUPS, f"podgroup-{uid}", namespace="ns")
        assert group["spec"]["minResources"]["requests.cpu"] == "1"
        await world.look(uid)
        pod = await world.api.get(PODS, "p", namespace="ns")
        assert pod["metadata"]["annotations"][GROUP_NAME] == f"podgroup-{uid}"
        writes = len(world.api.writes)
        await world.look(uid)
        assert len(world.api.writes) == writes

    run(scenario())


def test_a_pod_of_another_scheduler_is_no_concern() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.add("p", schedulerName="default-scheduler")
        assert world.waiting() == 0
        await world.look(uid)
        assert world.api.writes == [("create", "pods", "p")]

    run(scenario())


def test_a_pod_that_is_gone_needs_no_group() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.add("p")
        await world.api.delete(PODS, "p", namespace="ns")
        assert await world.controller.decide(uid, world.clock.now()) is None
        await world.api.create(PODS, {"metadata": {"name": "p", "namespace": "ns"}}, namespace="ns")
        assert await world.controller.decide(uid, world.clock.now()) is None

    run(scenario())
