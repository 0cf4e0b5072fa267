"""What thousands of CronJobs cost that are due in the same minute: how long the last one waits for its job, where every
write takes its time, and how much CPU and how many writes each costs.

The wait is virtual time, the CPU is that of the process.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import EPOCH, SeededRandom, VirtualClock, run
from vcbatch.api.resources import CRONJOBS, EVENTS, JOBS
from vcbatch.api.timestamps import format_time
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.cronjob import CronJobController
from vcbatch.runtime.events.recorder import Recorder

LATENCY_SECONDS = 0.05


class _SlowApi(FakeApi):
    """Every write takes its time."""

    async def create(self, *arguments: Any, **options: Any) -> Any:
        await asyncio.sleep(LATENCY_SECONDS)
        return await super().create(*arguments, **options)

    async def patch(self, *arguments: Any, **options: Any) -> Any:
        await asyncio.sleep(LATENCY_SECONDS)
        return await super().patch(*arguments, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rush:
    """`seconds` from the slot until the last job was made; `cpu` and `writes` (without events) are per CronJob."""

    seconds: float
    cpu: float
    writes: float
    twice: int


def rush(cron_jobs: int) -> Rush:
    """So many, all due at the next full minute."""
    return run(_rush(cron_jobs))


async def _rush(count: int) -> Rush:
    api, clock, random = _SlowApi(), VirtualClock(), SeededRandom(1)
    recorder = Recorder(api, clock=clock, random=random, component="bench")
    cron_jobs: Cache[Any] = Cache()
    jobs: Cache[Any] = Cache()
    applier = Applier(api, {CRONJOBS: cron_jobs, JOBS: jobs}, recorder, clock=clock, random=random)
    controller = CronJobController(cron_jobs, jobs, applier, recorder, clock=clock, random=random)
    for number in range(count):
        cron_jobs.put(api.seed(CRONJOBS, _cron_job(f"c{number}")))
    slot = EPOCH + timedelta(minutes=1)
    began = time.process_time()
    running = asyncio.ensure_future(controller.part().run())
    while len(jobs) < count:
        await clock.sleep(0.1)
    waited = (clock.now() - slot).total_seconds()
    while any("lastScheduleTime" not in stored.get("status", {}) for stored in cron_jobs):
        await clock.sleep(0.5)
    cpu = time.process_time() - began
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    writes = [write for write in api.writes if write[1] != EVENTS.plural]
    made = [name for verb, plural, name in writes if (verb, plural) == ("create", JOBS.plural)]
    return Rush(seconds=waited, cpu=cpu / count, writes=len(writes) / count, twice=len(made) - count)


def _cron_job(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "command": ["true"]}
    task = {"name": "w", "replicas": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {
        "metadata": {"name": name, "namespace": "ns", "creationTimestamp": format_time(EPOCH)},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"minAvailable": 1, "tasks": [task]}}},
    }
