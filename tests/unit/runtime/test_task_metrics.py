"""How long after its creation a pod is seen, placed and bound."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec

from tests.fakes.api import FakeApi
from tests.support.metrics import Scrape
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PODS
from vcbatch.api.timestamps import format_time
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.metrics.tasks import TaskMetrics
from vcbatch.scheduler.model.result import Bind

LATENCY = "volcano_task_scheduling_latency_milliseconds_sum"
STAGE = "volcano_scheduling_stage_duration_milliseconds_sum"


class World:
    def __init__(self) -> None:
        self.server, self.clock, self.meter = FakeApi(), VirtualClock(), PrometheusMeter()
        informers = Informers(self.server, clock=self.clock, random=SeededRandom(1))
        self.pods = informers.follow(PODS, Pod)
        self.metrics = TaskMetrics(self.meter, self.pods, clock=self.clock, scheduler_names={"volcano"})

    def appear(self, name: str, *, scheduler: str = "volcano", node: str = "") -> Bind:
        meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}
        meta["creationTimestamp"] = format_time(self.clock.now() - timedelta(seconds=2))
        spec = {"schedulerName": scheduler, "nodeName": node}
        self.pods.put(msgspec.convert({"metadata": meta, "spec": spec}, Pod))
        return Bind("ns", name, name, "n")

    def value(self, name: str, stage: str) -> float | None:
        return Scrape(self.meter).value(name, stage=stage)


def test_each_stage_counts_from_the_pods_creation() -> None:
    async def main() -> None:
        world = World()
        world.appear("before")
        world.metrics.watch()
        bind = world.appear("p")
        world.appear("another's", scheduler="default-scheduler")
        world.appear("placed", node="n")
        await asyncio.sleep(1)
        world.metrics.placed([bind])
        await asyncio.sleep(4)
        world.metrics.prepared([bind])
        await asyncio.sleep(8)
        world.metrics.bound(bind)
        assert world.value(LATENCY, "Watched") == 2000, "of the pod alone that was new and ours"
        assert world.value(LATENCY, "Assumed") == 3000
        assert world.value(LATENCY, "PreBound") == 7000
        assert world.value(LATENCY, "Bound") == 15_000
        assert world.value(STAGE, "PreBind") == 4000

    run(main())


def test_a_refused_bind_is_an_error_once() -> None:
    async def main() -> None:
        world = World()
        bind = world.appear("p")
        world.metrics.placed([bind])
        world.metrics.failed(bind.uid)
        world.metrics.failed(bind.uid)
        world.metrics.bound(bind)
        assert Scrape(world.meter).value("volcano_schedule_attempts_total", result="error") == 1
        assert world.value(LATENCY, "Bound") is None

    run(main())
