"""Pods whose node is gone."""

from __future__ import annotations

from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import NODES, PODS
from vcbatch.core.machine import Decision
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.stranded import StrandedPodController
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]
READY: Json = {"type": "Ready", "status": "True"}


class _World:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.clock = VirtualClock()
        self.nodes: Cache[Node] = Cache(model=Node)
        self.pods: Cache[Pod] = Cache(model=Pod)
        random = SeededRandom(1)
        recorder = Recorder(self.api, clock=self.clock, random=random, component="test")
        self.applier = Applier(self.api, {PODS: self.pods}, recorder, clock=self.clock, random=random)
        self.controller = StrandedPodController(
            self.api, self.nodes, self.pods, self.applier, clock=self.clock, random=random
        )

    async def node(self) -> None:
        await self.api.create(NODES, {"metadata": {"name": "n"}})

    async def pod(self, *, phase: str = "Running") -> str:
        body: Json = {
            "metadata": {"name": "p", "namespace": "ns"},
            "spec": {"nodeName": "n"},
            "status": {"phase": phase, "conditions": [READY]},
        }
        return (await self.api.create(PODS, body, namespace="ns"))["metadata"]["uid"]

    async def hear(self) -> None:
        self.nodes.replace(await self.api.list(NODES, model=Node))
        self.pods.replace(await self.api.list(PODS, model=Pod))

    async def reconcile(self, uid: str) -> Decision | None:
        decision = await self.controller.decide(uid, self.clock.now())
        if decision is not None:
            await self.applier.carry_out(decision)
        return decision

    @property
    def waiting(self) -> int:
        return len(self.controller.controller.queue)


def test_pods_of_a_node_that_goes_fail_and_are_removed() -> None:
    async def scenario() -> None:
        world = _World()
        await world.node()
        uid = await world.pod()
        await world.hear()
        assert await world.reconcile(uid) is None
        world.api.remove(NODES, "n")
        await world.hear()
        assert world.waiting == 1
        early = await world.reconcile(uid)
        assert early is not None
        assert early.requeue_at is not None
        assert (early.requeue_at - world.clock.now()).total_seconds() == 40
        assert [pod["status"]["phase"] for pod in world.api.all(PODS)] == ["Running"]
        await world.clock.sleep(40)
        last = await world.reconcile(uid)
        assert last is not None
        (mark,) = last.marks
        assert mark.subresource == "status"
        assert mark.patch["status"]["phase"] == "Failed"
        ready, target = mark.patch["status"]["conditions"]
        assert ready == READY
        assert (target["type"], target["reason"]) == ("DisruptionTarget", "DeletionByPodGC")
        assert [delete.grace_seconds for delete in last.deletes] == [0]
        assert world.api.writes[-2:] == [("patch", "pods/status", "p"), ("delete", "pods", "p")]
        assert not world.api.all(PODS)

    run(scenario())


def test_a_pod_that_had_ended_goes_as_it_is() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.pod(phase="Succeeded")
        await world.hear()
        await world.reconcile(uid)
        await world.clock.sleep(40)
        last = await world.reconcile(uid)
        assert last is not None
        assert not last.marks
        assert not world.api.all(PODS)

    run(scenario())


def test_a_node_that_comes_back_keeps_its_pods() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.pod()
        await world.hear()
        await world.reconcile(uid)
        await world.clock.sleep(39)
        await world.node()
        await world.hear()
        assert await world.reconcile(uid) is None
        world.api.remove(NODES, "n")
        await world.hear()
        await world.clock.sleep(2)
        again = await world.reconcile(uid)
        assert again is not None
        assert again.requeue_at is not None, "it is missed anew from now on"

    run(scenario())


def test_a_node_that_wasnt_heard_of_yet_is_asked_for() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.pod()
        await world.hear()
        await world.reconcile(uid)
        await world.clock.sleep(40)
        await world.node()
        assert await world.reconcile(uid) is None
        assert [pod["status"]["phase"] for pod in world.api.all(PODS)] == ["Running"]

    run(scenario())
