"""Pods without a gang are looked at until they have one, and no others are."""

from __future__ import annotations

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.names import GROUP_NAME
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PODGROUPS, PODS, REPLICASETS
from vcbatch.api.workload import Workload
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.cache import Cache
from vcbatch.runtime.controllers.podgroup import PodGroupController
from vcbatch.runtime.recorder import Recorder


class _World:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.pods: Cache[Pod] = Cache(model=Pod)
        self.podgroups: Cache[dict] = Cache()
        self.replica_sets: Cache[Workload] = Cache(model=Workload)
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
            self.api,
            self.pods,
            self.podgroups,
            {REPLICASETS: self.replica_sets},
            self.applier,
            clock=clock,
            random=random,
        )

    async def add(self, name: str, *, owner: dict | None = None, **spec: object) -> str:
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        metadata: dict = {"name": name, "namespace": "ns"}
        if owner is not None:
            reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["metadata"]["name"]}
            metadata["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
        body = {"metadata": metadata, "spec": {"schedulerName": "volcano", "containers": [container], **spec}}
        stored = await self.api.create(PODS, body, namespace="ns")
        await self.list_pods()
        return stored["metadata"]["uid"]

    async def list_pods(self) -> None:
        self.pods.replace(await self.api.list(PODS, model=Pod))

    async def replica_set(self, replicas: int = 2, **annotations: str) -> dict:
        named = {f"scheduling.volcano.sh/{key.replace('_', '-')}": value for key, value in annotations.items()}
        body = {"metadata": {"name": "r", "namespace": "ns", "annotations": named}, "spec": {"replicas": replicas}}
        return await self.api.create(REPLICASETS, body, namespace="ns")

    def waiting(self) -> int:
        return len(self.controller.controller.queue)

    async def look(self, uid: str) -> None:
        decision = await self.controller.decide(f"ns/podgroup-{uid}", self.clock.now())
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
        await world.list_pods()
        await world.look(uid)
        assert len(world.api.writes) == writes

    run(scenario())


def test_a_pod_of_another_scheduler_is_no_concern() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.add("p", schedulerName="default-scheduler")
        assert world.waiting() == 0
        assert await world.controller.decide(f"ns/podgroup-{uid}", world.clock.now()) is None
        assert world.api.writes == [("create", "pods", "p")]

    run(scenario())


def test_a_pod_that_is_gone_needs_no_group() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.add("p")
        await world.api.delete(PODS, "p", namespace="ns")
        await world.look(uid)
        await world.api.create(PODS, {"metadata": {"name": "p", "namespace": "ns"}}, namespace="ns")
        await world.look(uid)
        assert not [write for write in world.api.writes if write[1] == "podgroups"]

    run(scenario())


def test_a_workload_that_no_watch_has_told_of_yet_is_asked_for() -> None:
    async def scenario() -> None:
        world = _World()
        owner = await world.replica_set(group_min_member="2")
        await world.add("a", owner=owner)
        await world.add("b", owner=owner)
        uid = owner["metadata"]["uid"]
        await world.look(uid)
        group = await world.api.get(PODGROUPS, f"podgroup-{uid}", namespace="ns")
        assert group["spec"]["minMember"] == 2
        await world.look(uid)
        marked = [write for write in world.api.writes if write[:2] == ("patch", "pods")]
        assert sorted(name for _, _, name in marked) == ["a", "b"]

    run(scenario())


def test_an_edit_of_the_workload_reaches_the_group_and_its_end_ends_it() -> None:
    async def scenario() -> None:
        world = _World()
        owner = await world.replica_set()
        uid = owner["metadata"]["uid"]
        world.replica_sets.replace(await world.api.list(REPLICASETS, model=Workload))
        assert world.waiting() == 0, "it has no pods"
        await world.add("a", owner=owner)
        for _ in range(2):
            await world.look(uid)
        edited = {"metadata": {"annotations": {"scheduling.volcano.sh/group-min-member": "4"}}, "spec": {"replicas": 0}}
        await world.api.patch(REPLICASETS, "r", edited, namespace="ns")
        world.replica_sets.replace(await world.api.list(REPLICASETS, model=Workload))
        assert world.waiting() == 1
        await world.list_pods()
        await world.look(uid)
        group = await world.api.get(PODGROUPS, f"podgroup-{uid}", namespace="ns")
        assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (4, "4")
        await world.api.delete(PODS, "a", namespace="ns")
        await world.list_pods()
        await world.look(uid)
        assert world.api.writes[-1] == ("delete", "podgroups", f"podgroup-{uid}")

    run(scenario())
