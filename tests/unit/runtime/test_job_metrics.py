"""Jobs by queue and phase, and the pods and restarts of each."""

from __future__ import annotations

from typing import Any

from tests.support.metrics import Scrape
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.metrics.jobs import JobMetrics

Json = dict[str, Any]


class World:
    def __init__(self) -> None:
        self.meter = PrometheusMeter()
        self.jobs: Cache[Json] = Cache()
        self.queues: Cache[Json] = Cache()
        JobMetrics(self.meter, jobs=self.jobs, queues=self.queues)
        self._version = 0

    def job(self, name: str, phase: str, queue: str = "q", **status: Any) -> None:
        self.jobs.put(
            {
                "metadata": self._metadata(name, namespace="ns"),
                "spec": {"queue": queue},
                "status": {"state": {"phase": phase}, **status},
            }
        )

    def queue(self, name: str) -> None:
        self.queues.put({"metadata": self._metadata(name)})

    def _metadata(self, name: str, **more: str) -> Json:
        self._version += 1
        return {"name": name, "uid": name, "resourceVersion": str(self._version), **more}

    def value(self, metric: str, **labels: str) -> float | None:
        return Scrape(self.meter).value(f"vcbatch_{metric}", **labels)

    def names(self, metric: str) -> list[dict[str, str]]:
        return Scrape(self.meter).labels(f"vcbatch_{metric}")


def test_jobs_are_counted_by_queue_and_phase() -> None:
    world = World()
    world.job("a", "Pending")
    world.job("b", "Pending")
    world.job("c", "Pending", queue="other")
    world.job("a", "Running")
    assert world.value("jobs", queue="q", phase="Pending") == 1
    assert world.value("jobs", queue="q", phase="Running") == 1
    world.job("b", "Running", queue="other")
    assert world.value("jobs", queue="q", phase="Pending") is None, "none is left"
    world.jobs.discard("a")
    assert world.names("jobs") == [
        {"queue": "other", "phase": "Pending"},
        {"queue": "other", "phase": "Running"},
    ]


def test_an_end_is_counted_once_and_only_where_it_was_seen() -> None:
    world = World()
    world.job("old", "Completed")
    world.job("new", "Running")
    world.job("new", "Completed")
    world.job("new", "Completed", succeeded=3)
    world.job("bad", "Running")
    world.job("bad", "Failed")
    assert world.value("jobs_finished_total", queue="q", phase="Completed") == 1
    assert world.value("jobs_finished_total", queue="q", phase="Failed") == 1
    world.queue("q")
    world.queues.discard("q")
    assert world.names("jobs_finished_total") == []


def test_pods_and_restarts_of_a_job_end_with_it() -> None:
    world = World()
    gang = {"job_namespace": "ns", "job_name": "a"}
    world.job("a", "Pending", pending=2)
    world.job("a", "Running", running=2, retryCount=1)
    assert world.value("job_pods", **gang, phase="pending") == 0
    assert world.value("job_pods", **gang, phase="running") == 2
    assert world.value("job_pods", **gang, phase="failed") is None, "there never was one"
    assert world.value("job_restarts", **gang) == 1
    world.jobs.discard("a")
    assert world.names("job_pods") == world.names("job_restarts") == []


def test_a_status_that_isnt_one_is_counted_all_the_same() -> None:
    world = World()
    world.job("a", "Odd phase of a stranger", running="two", retryCount=None)
    assert world.value("jobs", queue="q", phase="Unknown") == 1
    assert world.value("job_restarts", job_namespace="ns", job_name="a") == 0
