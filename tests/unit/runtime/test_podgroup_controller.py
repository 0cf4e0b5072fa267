"""Pods without a gang are looked at until they have one, and no others are."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.names import GROUP_NAME
from vcbatch.api.pod import Pod
from vcbatch.api.resources import EVENTS, PODGROUPS, PODS, REPLICASETS, Resource
from vcbatch.api.workload import Workload
from vcbatch.interfaces.api import ApiError, Json
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.podgroup import PodGroupController
from vcbatch.runtime.events.recorder import Recorder


class _Api(FakeApi):
    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.refusal: ApiError | None = None

    async def get(self, resource: Resource, name: str, **options: Any) -> Any:
        self.reads.append(resource.plural)
        return await super().get(resource, name, **options)

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        if resource == PODGROUPS and self.refusal is not None:
            raise self.refusal
        return await super().create(resource, body, namespace=namespace)


class _World:
    def __init__(self, api: _Api | None = None) -> None:
        self.api = api or _Api()
        self.pods: Cache[Pod] = Cache(model=Pod)
        self.podgroups: Cache[dict] = Cache()
        self.replica_sets: Cache[Workload] = Cache(model=Workload)
        clock, random = VirtualClock(), SeededRandom(1)
        self.recorder = Recorder(self.api, clock=clock, random=random, component="test")
        self.applier = Applier(
            self.api,
            {PODS: self.pods, PODGROUPS: self.podgroups},
            self.recorder,
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
            self.recorder,
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

    async def reconcile(self, uid: str) -> None:
        decision = await self.controller.decide(f"ns/podgroup-{uid}", self.clock.now())
        assert decision is not None
        await self.applier.carry_out(decision)


def test_a_pod_gets_its_group_and_then_its_name() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.add("p")
        assert world.waiting() == 1
        await world.reconcile(uid)
        group = await world.api.get(PODGROUPS, f"podgroup-{uid}", namespace="ns")
        assert group["spec"]["minResources"]["requests.cpu"] == "1"
        await world.reconcile(uid)
        pod = await world.api.get(PODS, "p", namespace="ns")
        assert pod["metadata"]["annotations"][GROUP_NAME] == f"podgroup-{uid}"
        writes = len(world.api.writes)
        await world.list_pods()
        await world.reconcile(uid)
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
        await world.reconcile(uid)
        await world.api.create(PODS, {"metadata": {"name": "p", "namespace": "ns"}}, namespace="ns")
        await world.reconcile(uid)
        assert not [write for write in world.api.writes if write[1] == "podgroups"]

    run(scenario())


def test_a_workload_that_no_watch_has_told_of_yet_is_asked_for() -> None:
    async def scenario() -> None:
        world = _World()
        owner = await world.replica_set(group_min_member="2")
        await world.add("a", owner=owner)
        await world.add("b", owner=owner)
        uid = owner["metadata"]["uid"]
        await world.reconcile(uid)
        group = await world.api.get(PODGROUPS, f"podgroup-{uid}", namespace="ns")
        assert group["spec"]["minMember"] == 2
        await world.reconcile(uid)
        marked = [write for write in world.api.writes if write[:2] == ("patch", "pods")]
        assert sorted(name for _, _, name in marked) == ["a", "b"]

    run(scenario())


def test_what_is_known_isnt_asked_for_and_one_pod_is_read_for_all() -> None:
    async def scenario() -> None:
        world = _World()
        owner = await world.replica_set(group_min_member="3")
        world.replica_sets.replace(await world.api.list(REPLICASETS, model=Workload))
        for name in ("a", "b", "c"):
            await world.add(name, owner=owner)
        for _ in range(3):
            await world.reconcile(owner["metadata"]["uid"])
            await world.list_pods()
        assert [write for write in world.api.writes if write[1] == "podgroups"] == [
            ("create", "podgroups", f"podgroup-{owner['metadata']['uid']}")
        ]
        assert world.api.reads == ["pods"]

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
            await world.reconcile(uid)
        edited = {"metadata": {"annotations": {"scheduling.volcano.sh/group-min-member": "4"}}, "spec": {"replicas": 0}}
        await world.api.patch(REPLICASETS, "r", edited, namespace="ns")
        world.replica_sets.replace(await world.api.list(REPLICASETS, model=Workload))
        assert world.waiting() == 1
        await world.list_pods()
        await world.reconcile(uid)
        group = await world.api.get(PODGROUPS, f"podgroup-{uid}", namespace="ns")
        assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (4, "4")
        await world.api.delete(PODS, "a", namespace="ns")
        await world.list_pods()
        await world.reconcile(uid)
        assert world.api.writes[-1] == ("delete", "podgroups", f"podgroup-{uid}")

    run(scenario())


def test_pods_whose_group_isnt_taken_are_told_once_and_again_when_there_is_news() -> None:
    async def scenario() -> None:
        world = _World()
        owner = await world.replica_set()
        for number in range(12):
            await world.add(f"p-{number:02}", owner=owner)
        key = f"ns/podgroup-{owner['metadata']['uid']}"

        async def reported_after(refusal: ApiError | None) -> Counter[str]:
            world.api.refusal = refusal
            await world.controller.controller.reconcile(key)
            world.api.refusal = None
            await world.recorder.flush()
            return Counter(event["message"].rpartition(": ")[2] for event in world.api.all(EVENTS))

        shut = ApiError(403, "Forbidden", "the queue is Closed")
        assert await reported_after(shut) == {"the queue is Closed": 10}
        assert await reported_after(shut) == {"the queue is Closed": 10}
        assert await reported_after(ApiError(500, "InternalError", "no webhook")) == {
            "the queue is Closed": 10,
            "no webhook": 10,
        }
        event = world.api.all(EVENTS)[0]
        assert (event["reason"], event["type"], event["involvedObject"]["name"]) == (
            "FailedScheduling",
            "Warning",
            "p-00",
        )
        assert event["message"] == "no PodGroup can be made for it: the queue is Closed"
        await reported_after(None)
        assert [group["metadata"]["name"] for group in world.api.all(PODGROUPS)] == [key.partition("/")[2]]

    run(scenario())


def test_a_group_that_went_while_nobody_looked_is_made_anew() -> None:
    """Of a program that has just started: it may hear of the workload before it hears of the pods."""

    async def scenario() -> None:
        world = _World()
        owner = await world.replica_set()
        await world.add("a", owner=owner)
        uid = owner["metadata"]["uid"]
        for _ in range(2):
            await world.reconcile(uid)
        await world.api.delete(PODGROUPS, f"podgroup-{uid}", namespace="ns")

        started = _World(world.api)
        started.replica_sets.replace(await world.api.list(REPLICASETS, model=Workload))
        await started.list_pods()
        assert started.waiting() == 1
        await started.reconcile(uid)
        assert (await world.api.get(PODGROUPS, f"podgroup-{uid}", namespace="ns"))["spec"]["minMember"] == 1

    run(scenario())
