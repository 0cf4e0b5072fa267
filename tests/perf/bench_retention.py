"""What it costs that thousands of finished jobs are due for deletion at the same moment: CPU and writes for each, and
what waiting for it holds in memory. The waiting is virtual time, the CPU is that of the process."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.perf.bench_jobs import CountingApi, controller_of
from tests.support.job_world import job_object, task
from tests.support.virtual_time import EPOCH, VirtualClock, run
from vcbatch.api.resources import JOBS
from vcbatch.api.timestamps import format_time

_KEPT_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """`cpu` seconds and `writes` for each job, `early` of which were deleted before their time; `late` seconds from the
    end of their time until the last one was deleted."""

    cpu: float
    writes: float
    early: int
    late: float


def retention(jobs: int) -> Retention:
    """So many jobs whose time ends in the same second."""
    return run(_retention(jobs))


async def _retention(count: int) -> Retention:
    async with _waiting(count) as (api, clock):
        early, began = len(_deleted(api)), time.process_time()
        while len(_deleted(api)) < count and clock.now() < EPOCH + timedelta(hours=1):
            await clock.sleep(0.1)
        cpu = time.process_time() - began
        assert len(_deleted(api)) == count
        late = (clock.now() - EPOCH).total_seconds() - _KEPT_SECONDS
    return Retention(cpu=cpu / count, writes=api.asked / count, early=early, late=late)


def memory(jobs: int) -> float:
    """Bytes for each waiting job in the controller and its queue, beside the stored objects."""
    return run(_memory(jobs))


async def _memory(count: int) -> float:
    ours = [tracemalloc.Filter(True, f"*/vcbatch/runtime/{name}.py") for name in ("workqueue", "controllers/job")]
    tracemalloc.start()
    async with _waiting(count):
        held = tracemalloc.take_snapshot().filter_traces(ours).statistics("filename")
    tracemalloc.stop()
    return sum(each.size for each in held) / count


@asynccontextmanager
async def _waiting(count: int) -> AsyncIterator[tuple[CountingApi, VirtualClock]]:
    """The controller at work, a second before the time of all is over."""
    clock = VirtualClock()
    controller, sources, api = controller_of(having=(), clock=clock)
    for number in range(count):
        sources.jobs.put(api.seed(JOBS, _finished(number)))
    running = asyncio.ensure_future(controller.controller.part().run())
    await clock.sleep(_KEPT_SECONDS - 1.0)
    yield api, clock
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _deleted(api: CountingApi) -> list[str]:
    return [name for verb, plural, name in api.writes if (verb, plural) == ("delete", JOBS.plural)]


def _finished(number: int) -> dict[str, Any]:
    job = job_object(f"j{number}", tasks=[task("w", 1)], ttlSecondsAfterFinished=_KEPT_SECONDS)
    state = {"phase": "Completed", "lastTransitionTime": format_time(EPOCH)}
    return job | {"status": {"state": state, "succeeded": 1, "minAvailable": 1}}
