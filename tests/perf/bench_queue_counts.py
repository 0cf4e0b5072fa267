"""What the counts of a tree of queues cost: CPU and writes while all PodGroups start at once, and when a few change
later. The settling time is virtual, the CPU is that of the process."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import EVENTS, QUEUES
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.queue import QueueController
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]

_PHASES = ("Pending", "Inqueue", "Running")
_FEW = 100
_CHILDREN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """`cpu` seconds for each PodGroup that starts, `writes` in all; `later_writes` after `few` more changed. `seconds`
    from the last change until the counts are true."""

    cpu: float
    writes: int
    seconds: float
    few: int
    later_writes: int


def counted(queues: int, *, pod_groups: int) -> Counted:
    """So many queues in a tree, the PodGroups spread evenly over them."""
    return run(_counted(queues, pod_groups))


async def _counted(queues: int, pod_groups: int) -> Counted:
    world = _World(queues)
    async with world.at_work():
        before, began = world.writes, time.process_time()
        seconds = await world.start(pod_groups)
        cpu, writes = time.process_time() - began, world.writes - before
        for number in range(_FEW):
            world.move(number, "Completed")
        await world.settled(pod_groups)
        later = world.writes - before - writes
    return Counted(cpu=cpu / pod_groups, writes=writes, seconds=seconds, few=_FEW, later_writes=later)


def memory(queues: int, *, pod_groups: int) -> float:
    """Bytes for each queue that the controller holds when all run, beside the stored objects."""
    return run(_memory(queues, pod_groups))


async def _memory(queues: int, pod_groups: int) -> float:
    ours = [tracemalloc.Filter(True, f"*/vcbatch/runtime/{name}.py") for name in ("controllers/queue", "pace")]
    tracemalloc.start()
    world = _World(queues)
    async with world.at_work():
        await world.start(pod_groups)
        gc.collect()
        held = tracemalloc.take_snapshot().filter_traces(ours).statistics("filename")
    tracemalloc.stop()
    return sum(each.size for each in held) / queues


class _World:
    """The controller over a server that is only pretended."""

    def __init__(self, queues: int) -> None:
        self.api, self.clock, random = FakeApi(), VirtualClock(), SeededRandom(1)
        self.queues: Cache[Json] = Cache()
        self.pod_groups: Cache[Json] = Cache()
        self.count = queues
        self._version = 0
        recorder = Recorder(self.api, clock=self.clock, random=random, component="bench")
        applier = Applier(self.api, {QUEUES: self.queues}, recorder, clock=self.clock, random=random)
        commands: Cache[Json] = Cache()
        self.controller = QueueController(
            self.queues, self.pod_groups, commands, applier, clock=self.clock, random=random
        )
        self.queues.put(self.api.seed(QUEUES, _queue("root", "")))
        for number in range(queues):
            parent = f"q{(number - 1) // _CHILDREN}" if number else "root"
            self.queues.put(self.api.seed(QUEUES, _queue(f"q{number}", parent)))

    @property
    def writes(self) -> int:
        return sum(plural != EVENTS.plural for _, plural, _ in self.api.writes)

    def move(self, number: int, phase: str) -> None:
        """That PodGroup, new or not, is in this phase."""
        self._version += 1
        metadata = {"name": f"g{number}", "namespace": "ns", "uid": f"g{number}", "resourceVersion": str(self._version)}
        spec = {"queue": f"q{number % self.count}", "minMember": 1}
        self.pod_groups.put({"metadata": metadata, "spec": spec, "status": {"phase": phase}})

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """The controller runs, and has looked at every queue once."""
        running = asyncio.ensure_future(self.controller.part().run())
        await self.clock.sleep(10.0)
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def start(self, pod_groups: int) -> float:
        """So many PodGroups come and go through all phases until they run; seconds until the counts say so."""
        for phase in _PHASES:
            for number in range(pod_groups):
                self.move(number, phase)
            await self.clock.sleep(0.1)
        return await self.settled(pod_groups)

    async def settled(self, pod_groups: int) -> float:
        """Seconds until the statuses of all queues count every PodGroup in the phase that it has."""
        began = self.clock.monotonic()
        want = {"running": 0, "completed": 0}
        for group in self.pod_groups:
            want[group["status"]["phase"].lower()] += 1
        while self._reported() != want:
            await self.clock.sleep(0.1)
        assert sum(want.values()) == pod_groups
        return self.clock.monotonic() - began

    def _reported(self) -> dict[str, int]:
        stored = [queue.get("status") or {} for queue in self.queues]
        return {key: sum(int(status.get(key) or 0) for status in stored) for key in ("running", "completed")}


def _queue(name: str, parent: str) -> Json:
    spec = {"weight": 1, "parent": parent} if parent else {"weight": 1}
    return {"metadata": {"name": name, "uid": name}, "spec": spec, "status": {"state": "Open"}}
