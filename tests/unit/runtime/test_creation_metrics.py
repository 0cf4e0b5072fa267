"""How long after their job pods are made."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tests.support.metrics import Scrape
from tests.support.virtual_time import run
from vcbatch.api.pod import Pod
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.metrics.creation import CreationMetrics

Json = dict[str, Any]
LATENCY = "volcano_controller_job_to_pod_creation_latency_milliseconds"


class _World:
    def __init__(self) -> None:
        self.meter, self.jobs, self.pods = PrometheusMeter(), Cache[Json](), Cache(model=Pod)
        self.metrics = CreationMetrics(self.meter, jobs=self.jobs, pods=self.pods)
        self._version = 0

    def job(self, uid: str, created: str = "2026-01-01T00:00:00Z") -> None:
        self.jobs.put({"metadata": self._metadata(uid, created)})

    def pod(self, name: str, second: int, *, job: str = "", kind: str = "Job") -> None:
        metadata = self._metadata(name, f"2026-01-01T00:00:{second:02}Z")
        if job:
            owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": kind, "name": job, "uid": job}
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        self.pods.put(msgspec.convert({"metadata": metadata}, Pod))

    def timed(self) -> tuple[float | None, float | None]:
        """How many, and their sum."""
        scrape = Scrape(self.meter)
        return scrape.value(f"{LATENCY}_count"), scrape.value(f"{LATENCY}_sum")

    def _metadata(self, name: str, created: str) -> Json:
        self._version += 1
        stamp = {"resourceVersion": str(self._version), "creationTimestamp": created}
        return {"name": name, "namespace": "ns", "uid": name, **stamp}


def test_each_pod_of_a_job_is_timed_once_from_the_jobs_creation() -> None:
    async def scenario() -> None:
        world = _World()
        world.job("j")
        world.pod("before", 1, job="j")
        running = asyncio.create_task(world.metrics.run())
        await asyncio.sleep(0)
        assert world.timed() == (0, 0), "it was there when the controllers started"
        world.pod("a", 2, job="j")
        world.pod("b", 5, job="j")
        world.pod("b", 5, job="j")  # changed
        world.pods.discard("a")
        assert world.timed() == (2, 7000)
        world.pod("a-again", 50, job="j")
        assert world.timed() == (3, 57_000)
        running.cancel()

    run(scenario())


def test_nothing_is_told_of_pods_without_a_known_job_or_times_that_make_no_sense() -> None:
    async def scenario() -> None:
        world = _World()
        world.job("strange", created="yesterday")
        world.job("late", created="2026-01-01T00:00:09Z")
        world.job("j")
        running = asyncio.create_task(world.metrics.run())
        await asyncio.sleep(0)
        world.pod("alone", 2)
        world.pod("another's", 2, job="j", kind="JobFlow")
        world.pod("orphan", 2, job="gone")
        world.pod("strange-0", 2, job="strange")
        assert world.timed() == (0, 0)
        world.pod("late-0", 8, job="late")
        assert world.timed() == (1, 0), "clocks of several servers may differ by a little"
        running.cancel()

    run(scenario())
