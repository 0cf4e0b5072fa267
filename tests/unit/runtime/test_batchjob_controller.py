"""What the controller of Kubernetes' Jobs adds to the decisions: which Job is looked at, and what is asked first."""

from __future__ import annotations

from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.names import POD_TRACKING
from vcbatch.api.pod import Pod
from vcbatch.api.resources import BATCH_JOBS, PODS
from vcbatch.api.timestamps import format_time
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.batchjob import BatchJobController
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]
_LABELS = {"job": "j"}
_SPEC: Json = {
    "parallelism": 1,
    "completions": 1,
    "selector": {"matchLabels": _LABELS},
    "template": {"metadata": {"labels": _LABELS}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}},
}


class _World:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.clock = VirtualClock()
        self.jobs: Cache[Json] = Cache()
        self.pods: Cache[Pod] = Cache(model=Pod)
        random = SeededRandom(1)
        recorder = Recorder(self.api, clock=self.clock, random=random, component="test")
        caches = {BATCH_JOBS: self.jobs, PODS: self.pods}
        self.applier = Applier(self.api, caches, recorder, clock=self.clock, random=random)
        self.controller = BatchJobController(
            self.api, self.jobs, self.pods, self.applier, recorder, clock=self.clock, random=random
        )

    async def job(self, **spec: Any) -> str:
        body = {"metadata": {"name": "j", "namespace": "ns"}, "spec": {**_SPEC, **spec}}
        stored = await self.api.create(BATCH_JOBS, body, namespace="ns")
        return str(stored["metadata"]["uid"])

    async def pod(self, owner: str = "", *, kind: str = "Job", api_version: str = "batch/v1") -> Json:
        metadata: Json = {"name": "p", "namespace": "ns", "labels": _LABELS, "finalizers": [POD_TRACKING]}
        if owner:
            reference = {"apiVersion": api_version, "kind": kind, "name": "j", "uid": owner, "controller": True}
            metadata["ownerReferences"] = [reference]
        return await self.api.create(PODS, {"metadata": metadata, "spec": {}, "status": {}}, namespace="ns")

    async def hear(self, *, of_jobs: bool = True) -> None:
        if of_jobs:
            self.jobs.replace(await self.api.list(BATCH_JOBS))
        self.pods.replace(await self.api.list(PODS, model=Pod))

    async def reconcile(self, uid: str) -> None:
        decision = await self.controller.decide(uid, self.clock.now())
        if decision is not None:
            await self.applier.carry_out(decision)

    async def rest(self, uid: str) -> None:
        for _ in range(10):
            before = len(self.api.writes)
            await self.hear()
            await self.reconcile(uid)
            if len(self.api.writes) == before:
                return
        raise AssertionError("it doesn't come to rest")

    def finalizers(self) -> list[str]:
        (pod,) = self.api.all(PODS)
        return pod["metadata"].get("finalizers", [])


def test_at_rest_a_look_writes_nothing() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.job()
        await world.rest(uid)
        assert len(world.api.all(PODS)) == 1

    run(scenario())


def test_a_pod_that_is_heard_of_before_its_job_stays_tracked() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.job()
        await world.pod(uid)
        await world.hear(of_jobs=False)
        await world.reconcile(uid)
        assert world.finalizers() == [POD_TRACKING]

    run(scenario())


def test_pods_of_a_job_that_is_gone_are_held_back_no_more() -> None:
    async def scenario() -> None:
        world = _World()
        await world.pod("uid-of-a-job-that-was")
        await world.hear()
        await world.reconcile("uid-of-a-job-that-was")
        assert world.finalizers() == []

    run(scenario())


def test_a_namesake_does_not_count_as_the_job() -> None:
    async def scenario() -> None:
        world = _World()
        await world.job()
        await world.pod("uid-of-a-job-that-was")
        await world.hear()
        await world.reconcile("uid-of-a-job-that-was")
        assert world.finalizers() == []

    run(scenario())


def test_pods_of_other_kinds_are_left_alone() -> None:
    async def scenario() -> None:
        world = _World()
        await world.pod("uid-of-another", api_version="example.com/v1")
        await world.hear()
        await world.reconcile("uid-of-another")
        assert world.finalizers() == [POD_TRACKING]

    run(scenario())


def test_a_job_that_was_deleted_meanwhile_adopts_nothing() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.job()
        await world.pod()
        await world.hear()
        world.api.remove(BATCH_JOBS, "j", "ns")
        await world.reconcile(uid)
        (pod,) = world.api.all(PODS)
        assert "ownerReferences" not in pod["metadata"]

    run(scenario())


def test_a_pod_that_failed_and_is_gone_is_still_waited_after() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.job()
        await world.rest(uid)
        (pod,) = world.api.all(PODS)
        name = pod["metadata"]["name"]
        deleted = {"metadata": {"deletionTimestamp": format_time(world.clock.now())}, "status": {"phase": "Failed"}}
        await world.api.patch(PODS, name, deleted, namespace="ns")
        await world.hear()
        await world.reconcile(uid)
        world.api.remove(PODS, name, "ns")
        await world.rest(uid)
        assert world.api.all(PODS) == []
        assert (await world.api.get(BATCH_JOBS, "j", namespace="ns"))["status"]["failed"] == 1
        await world.clock.sleep(3600)
        await world.rest(uid)
        assert len(world.api.all(PODS)) == 1

    run(scenario())


def test_a_pod_never_has_the_name_of_one_that_is_gone() -> None:
    async def scenario() -> None:
        world = _World()
        uid = await world.job()
        await world.rest(uid)
        used = [pod["metadata"]["name"] for pod in world.api.all(PODS)]
        for parallelism in (0, 1, 0, 1):
            await world.api.patch(BATCH_JOBS, "j", {"spec": {"parallelism": parallelism}}, namespace="ns")
            await world.rest(uid)
            used += [pod["metadata"]["name"] for pod in world.api.all(PODS)]
            await world.clock.sleep(10)
        assert len(used) == len(set(used)) == 3

    run(scenario())
