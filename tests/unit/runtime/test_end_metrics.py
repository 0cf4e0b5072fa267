"""What Volcano's dashboards are told of jobs, flows and the PodGroups of queues."""

from __future__ import annotations

from typing import Any

from tests.fakes.api import FakeApi
from tests.support.metrics import Scrape
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.queue import QueueController
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.ends import EndMetrics

Json = dict[str, Any]


class _World:
    def __init__(self) -> None:
        self.meter = PrometheusMeter()
        self.jobs: Cache[Json] = Cache()
        self.flows: Cache[Json] = Cache()
        EndMetrics(self.meter, jobs=self.jobs, flows=self.flows)
        self._version = 0

    def put(self, cache: Cache[Json], name: str, *phases: str, queue: str = "q") -> None:
        for phase in phases:
            self._version += 1
            metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(self._version)}
            cache.put({"metadata": metadata, "spec": {"queue": queue}, "status": {"state": {"phase": phase}}})

    def jobs_counted(self, end: str, name: str, queue: str = "q") -> float | None:
        return Scrape(self.meter).counted(f"volcano_job_{end}_phase_count", job_name=f"ns/{name}", queue_name=queue)

    def flows_counted(self, end: str) -> float | None:
        return Scrape(self.meter).counted(f"volcano_jobflow_{end}_phase_count", jobflow_namespace="ns")


def test_each_end_of_a_job_is_counted_once() -> None:
    world = _World()
    world.put(world.jobs, "a", "Pending", "Running", "Completed", "Completed")
    world.put(world.jobs, "b", "Running", "Failed", "Pending", "Running", "Failed")
    assert (world.jobs_counted("completed", "a"), world.jobs_counted("failed", "a")) == (1, None)
    assert (world.jobs_counted("completed", "b"), world.jobs_counted("failed", "b")) == (None, 2)


def test_what_had_ended_before_is_not_counted() -> None:
    world = _World()
    world.put(world.jobs, "a", "Completed", "Completed")
    world.put(world.flows, "f", "Succeed", "Succeed")
    assert (world.jobs_counted("completed", "a"), world.flows_counted("succeed")) == (None, None)


def test_the_series_of_a_job_go_with_it_or_its_queue() -> None:
    world = _World()
    world.put(world.jobs, "a", "Running", "Failed")
    world.put(world.jobs, "a", "Pending", queue="other")
    assert world.jobs_counted("failed", "a") is None
    world.put(world.jobs, "a", "Completed", queue="other")
    assert world.jobs_counted("completed", "a", "other") == 1
    world.jobs.discard("a")
    assert world.jobs_counted("completed", "a", "other") is None


def test_flows_are_counted_by_namespace_until_the_last_is_gone() -> None:
    world = _World()
    world.put(world.flows, "f", "Pending", "Running", "Succeed")
    world.put(world.flows, "g", "Running", "Failed", "Pending", "Succeed")
    assert (world.flows_counted("succeed"), world.flows_counted("failed")) == (2, 1)
    world.flows.discard("f")
    assert world.flows_counted("succeed") == 2
    world.flows.discard("g")
    assert (world.flows_counted("succeed"), world.flows_counted("failed")) == (None, None)


def test_the_pod_groups_of_a_queue_are_counted_by_phase_while_it_is_there() -> None:
    async def scenario() -> None:
        meter, clock, random = PrometheusMeter(), VirtualClock(), SeededRandom(1)
        queues, groups = Cache[Json](), Cache[Json]()
        api = FakeApi()
        recorder = Recorder(api, clock=clock, random=random, component="test")
        applier = Applier(api, {}, recorder, clock=clock, random=random)
        QueueController(queues, groups, Cache(), applier, clock=clock, random=random, meter=meter)

        def group(name: str, phase: str, version: int) -> None:
            metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}
            groups.put({"metadata": metadata, "spec": {"queue": "q"}, "status": {"phase": phase}})

        def counted(phase: str) -> float | None:
            return Scrape(meter).value(f"volcano_queue_pod_group_{phase}_count", queue_name="q")

        group("early", "Pending", 1)
        assert counted("pending") is None
        queues.put({"metadata": {"name": "q", "uid": "q", "resourceVersion": "2"}})
        assert [counted(phase) for phase in ("pending", "running", "unknown", "inqueue", "completed")] == [
            1,
            0,
            0,
            0,
            0,
        ]
        group("early", "Running", 3)
        group("late", "", 4)
        group("late", "Inqueue", 5)
        assert [counted(phase) for phase in ("pending", "running", "inqueue")] == [0, 1, 1]
        groups.discard("early")
        assert counted("running") == 0
        queues.discard("q")
        group("late", "Running", 6)
        assert counted("running") is None

    run(scenario())
