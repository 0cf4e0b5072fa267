"""Counts of a job's pods are written soon, and less and less often while they change; everything else at once."""

from __future__ import annotations

import copy
from datetime import timedelta

import msgspec
import pytest

from tests.fakes.api import FakeApi
from tests.support.job_world import World, job_object, task
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.pod import Pod
from vcbatch.api.quota import Quota
from vcbatch.api.resources import JOBS, PODGROUPS, PODS, QUEUES
from vcbatch.api.scheduling import PriorityClassView
from vcbatch.api.storage import Claim
from vcbatch.core.machine import Decision
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.children import Children
from vcbatch.runtime.controllers.claims import Claims
from vcbatch.runtime.controllers.job import JobController, JobSources
from vcbatch.runtime.controllers.references import References
from vcbatch.runtime.events.recorder import Recorder


class _Controller:
    """A job controller whose caches show a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        clock, random, api = VirtualClock(), SeededRandom(1), FakeApi()
        claims = Claims(api, Cache(model=Claim))
        priority_classes: Cache[PriorityClassView] = Cache(model=PriorityClassView)
        self._sources = JobSources(
            jobs=Cache(),
            pods=Cache(model=Pod),
            podgroups=Cache(),
            queues=Cache(),
            commands=Cache(),
            priority_classes=priority_classes,
            children=Children(api, clock=clock),
            claims=claims,
            references=References(api, claims, priority_classes, clock=clock),
            quotas=Cache(model=Quota),
        )
        recorder = Recorder(api, clock=clock, random=random, component="test")
        applier = Applier(api, {}, recorder, clock=clock, random=SeededRandom(1))
        self._controller = JobController(self._sources, applier, recorder, clock=clock, random=random)

    def crowd(self, jobs: int) -> None:
        """So many other jobs wait for their turn."""
        for number in range(jobs):
            self._controller.controller.queue.add(f"other-{number}")

    async def reconcile(self) -> Decision:
        for resource, cache in (
            (JOBS, self._sources.jobs),
            (PODGROUPS, self._sources.podgroups),
            (QUEUES, self._sources.queues),
        ):
            for body in self._world.all(resource):
                cache.put(copy.deepcopy(body))
        for pod in self._world.all(PODS):
            pod["metadata"]["resourceVersion"] = str(int(pod["metadata"]["resourceVersion"]) + 1)
            self._sources.pods.put(msgspec.convert(pod, Pod))
        decision = await self._controller.decide(self._world.job()["metadata"]["uid"], self._world.now)
        assert decision is not None
        if (status := decision.status) is not None:
            self._world.change(JOBS, "j", lambda job: job.update(status=status.status))
        return decision


def _starting() -> World:
    """A job of ten pods, one of which it needs, that are about to start."""
    world = World(binds=False)
    world.submit(job_object(tasks=[task("w", 10)], minAvailable=1))
    world.settle()
    world.schedule()
    world.settle()
    world.start_pod(world.pods()["j-w-0"])
    world.settle()
    assert world.phase() == "Running"
    return world


def test_counts_are_written_at_growing_distances() -> None:
    async def scenario() -> None:
        world = _starting()
        controller = _Controller(world)
        written = 0
        for number in range(1, 10):
            world.now += timedelta(milliseconds=200)
            world.start_pod(world.pods()[f"j-w-{number}"])
            decision = await controller.reconcile()
            written += decision.status is not None
            if decision.status is None:
                assert decision.requeue_at is not None
                assert world.now < decision.requeue_at <= world.now + timedelta(seconds=2)
        assert written == 1
        world.now += timedelta(seconds=2)
        await controller.reconcile()
        assert world.job()["status"]["running"] == 10
        assert (await controller.reconcile()).requeue_at is None

    run(scenario())


def test_news_is_written_at_once() -> None:
    async def scenario() -> None:
        world = _starting()
        controller = _Controller(world)
        world.start_pod(world.pods()["j-w-1"])
        assert (await controller.reconcile()).status is None
        world.end_pod("j-w-1", 3)
        assert (await controller.reconcile()).status is not None
        assert world.job()["status"]["ledger"]["losses"]

    run(scenario())


def test_a_clock_that_is_set_back_holds_nothing_up() -> None:
    async def scenario() -> None:
        world = _starting()
        controller = _Controller(world)
        world.start_pod(world.pods()["j-w-1"])
        assert (await controller.reconcile()).status is None
        for _ in range(2):
            world.now -= timedelta(hours=1)
            assert (await controller.reconcile()).status is None
            world.now += timedelta(seconds=1)
            assert (await controller.reconcile()).status is not None
            world.start_pod(world.pods()["j-w-2"])

    run(scenario())


def test_a_new_job_is_pending_before_long() -> None:
    async def scenario() -> None:
        world = World(binds=False)
        world.submit(job_object(tasks=[task("w", 2)]))
        controller = _Controller(world)
        first = await controller.reconcile()
        assert first.status is None
        assert [ensure.resource for ensure in first.ensures] == [PODGROUPS]
        assert first.requeue_at == world.now + timedelta(milliseconds=500)
        world.now += timedelta(milliseconds=500)
        assert (await controller.reconcile()).status is not None
        assert world.phase() == "Pending"

    run(scenario())


def test_a_job_is_pending_before_it_has_pods_and_what_is_seen_of_them_goes_with_the_next_news() -> None:
    async def scenario() -> None:
        world = World(binds=False)
        world.submit(job_object(tasks=[task("w", 2)]))
        controller = _Controller(world)
        creating = await _let_in(world, controller)
        assert creating.status is not None
        assert world.job()["status"]["pending"] == 2
        assert (await controller.reconcile()).status is None
        for pod in world.pods().values():
            world.start_pod(pod)
        assert (await controller.reconcile()).status is not None
        assert world.phase() == "Running"
        assert world.job()["status"]["ledger"]["tasks"]["w"]["seen"] == "0-1"

    run(scenario())


async def _let_in(world: World, controller: _Controller) -> Decision:
    """The look that makes the pods of a new job, which is carried out."""
    (ensure,) = (await controller.reconcile()).ensures
    world.put(PODGROUPS, {**ensure.body, "status": {"phase": "Inqueue"}})
    creating = await controller.reconcile()
    assert len(creating.creates) == 2
    for create in creating.creates:
        world.put(PODS, create.body)
    return creating


def test_in_a_crowd_a_job_whose_pods_start_soon_is_written_once() -> None:
    async def scenario() -> None:
        world = World(binds=False)
        world.submit(job_object(tasks=[task("w", 2)]))
        controller = _Controller(world)
        controller.crowd(100)
        assert (await _let_in(world, controller)).status is None
        world.now += timedelta(seconds=1)
        assert (await controller.reconcile()).status is None
        for pod in world.pods().values():
            world.start_pod(pod)
        assert (await controller.reconcile()).status is not None
        status = world.job()["status"]
        assert [condition["status"] for condition in status["conditions"]] == ["Pending", "Running"]
        assert status["ledger"]["tasks"]["w"]["seen"] == "0-1"

    run(scenario())


@pytest.mark.parametrize(("others", "waits"), [(10, 0.5), (99, 2.0), (10_000, 5.0)])
def test_in_a_crowd_a_job_tells_later_that_it_is_pending_but_in_five_seconds(others: int, waits: float) -> None:
    async def scenario() -> None:
        world = World(binds=False)
        world.submit(job_object(tasks=[task("w", 2)]))
        controller = _Controller(world)
        controller.crowd(others)
        assert (await controller.reconcile()).requeue_at == world.now + timedelta(seconds=waits)
        world.now += timedelta(seconds=waits + 0.1)
        assert (await controller.reconcile()).status is not None
        assert world.phase() == "Pending"

    run(scenario())


def test_what_a_new_job_is_told_is_remembered_at_once() -> None:
    async def scenario() -> None:
        world = World(binds=False)
        world.submit(job_object(tasks=[task("w", 2)], queue="nowhere"))
        controller = _Controller(world)
        decision = await controller.reconcile()
        assert [event.reason for event in decision.events] == ["QueueNotFound"]
        assert decision.status is not None
        assert not (await controller.reconcile()).events

    run(scenario())
