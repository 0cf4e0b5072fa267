"""What ten thousand jobs of flows cost: CPU and writes for each, in many flows and in few large ones, against the least
that there is to do: a job is made, and what becomes of it is written down.

All is done in one process under virtual time; the CPU is that of the process, the jobs' own controller left out.
"""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from dataclasses import dataclass
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import EPOCH, SeededRandom, VirtualClock, run
from vcbatch.api.pod import Pod
from vcbatch.api.resources import COMMANDS, EVENTS, JOBFLOWS, JOBS, JOBTEMPLATES, Resource
from vcbatch.api.timestamps import format_time
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.jobflow import JobFlowController, JobFlowSources
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.probes import Prober, Sockets

Json = dict[str, Any]
_PHASES = ("Running", "Completed")
_LAYERS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """For each job: `cpu` in seconds, and `writes` of the controller without events. `baseline`: the CPU of making a
    job and changing it twice with no controller at all. `twice`: jobs that were made more than once."""

    cpu: float
    writes: float
    baseline: float
    twice: int


def flows(count: int, *, nodes: int) -> Flows:
    """So many flows of so many jobs each, from the first look until all have succeeded."""
    return run(_flows(count, nodes))


async def _flows(count: int, nodes: int) -> Flows:
    world = _World()
    for number in range(nodes):
        world.caches[JOBTEMPLATES].put(world.api.seed(JOBTEMPLATES, _template(f"n{number}")))
    for number in range(count):
        world.caches[JOBFLOWS].put(world.api.seed(JOBFLOWS, _flow(f"f{number}", nodes)))
    began = time.process_time()
    running = asyncio.ensure_future(world.controller.part().run())
    while not world.all_succeeded(count):
        await world.clock.sleep(0.1)
        await world.move_jobs()
    cpu = time.process_time() - began
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    jobs = count * nodes
    writes = [write for write in world.api.writes if write[1] != EVENTS.plural]
    made = [name for verb, plural, name in writes if (verb, plural) == ("create", JOBS.plural)]
    own = len(writes) - len(_PHASES) * jobs
    return Flows(cpu=cpu / jobs, writes=own / jobs, baseline=await _baseline(jobs), twice=len(made) - len(set(made)))


async def _baseline(jobs: int) -> float:
    """CPU of the same jobs without a controller, each."""
    world, sample = _World(), min(jobs, 2000)
    began = time.process_time()
    for number in range(sample):
        body = {"metadata": {"name": f"j{number}", "namespace": "ns"}, "spec": _template("x")["spec"]}
        world.caches[JOBS].put(await world.api.create(JOBS, body, namespace="ns"))
    for _ in _PHASES:
        await world.move_jobs()
    return (time.process_time() - began) / sample


def memory(count: int, *, nodes: int) -> float:
    """Bytes for each job that the controller holds once all are made, beside the stored objects."""
    return run(_memory(count, nodes))


async def _memory(count: int, nodes: int) -> float:
    world = _World()
    for number in range(nodes):
        world.caches[JOBTEMPLATES].put(world.api.seed(JOBTEMPLATES, _template(f"n{number}")))
    for number in range(count):
        world.caches[JOBFLOWS].put(world.api.seed(JOBFLOWS, _flow(f"f{number}", nodes, chained=False)))
    tracemalloc.start()
    running = asyncio.ensure_future(world.controller.part().run())
    while len(world.caches[JOBS]) < count * nodes:
        await world.clock.sleep(0.1)
    await world.clock.sleep(1.0)
    gc.collect()
    held = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.Filter(True, "*/core/jobflow/*"), tracemalloc.Filter(True, "*/controllers/jobflow.py")]
    )
    tracemalloc.stop()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return sum(statistic.size for statistic in held.statistics("filename")) / (count * nodes)


class _Api(FakeApi):
    """Keeps no history, since nobody watches it."""

    def _store(self, event: str, resource: Resource, body: Json) -> Json:
        self.version += 1
        metadata = body["metadata"]
        metadata["resourceVersion"] = str(self.version)
        self.objects[(resource, metadata.get("namespace", ""), metadata["name"])] = body
        return body


class _World:
    """The controller over a server that is only pretended, and jobs that run and complete by themselves."""

    def __init__(self) -> None:
        self.api, self.clock, random = _Api(), VirtualClock(), SeededRandom(1)
        self.caches: dict[Any, Cache[Json]] = {each: Cache() for each in (JOBFLOWS, JOBTEMPLATES, JOBS, COMMANDS)}
        recorder = Recorder(self.api, clock=self.clock, random=random, component="bench")
        applier = Applier(self.api, self.caches, recorder, clock=self.clock, random=random)
        sources = JobFlowSources(
            flows=self.caches[JOBFLOWS],
            templates=self.caches[JOBTEMPLATES],
            jobs=self.caches[JOBS],
            pods=Cache(model=Pod),
            commands=self.caches[COMMANDS],
        )
        prober = Prober(Sockets(), clock=self.clock)
        self.controller = JobFlowController(sources, prober, applier, recorder, clock=self.clock, random=random)

    async def move_jobs(self) -> None:
        """Each job that isn't completed comes into its next phase."""
        for job in self.caches[JOBS]:
            at = ((job.get("status") or {}).get("state") or {}).get("phase")
            if at == _PHASES[-1]:
                continue
            phase = _PHASES[_PHASES.index(at) + 1 if at else 0]
            now = format_time(self.clock.now())
            status = {"state": {"phase": phase, "lastTransitionTime": now}}
            name = job["metadata"]["name"]
            patch = {"status": status}
            self.caches[JOBS].put(await self.api.patch(JOBS, name, patch, namespace="ns", subresource="status"))

    def all_succeeded(self, count: int) -> bool:
        phases = [((flow.get("status") or {}).get("state") or {}).get("phase") for flow in self.caches[JOBFLOWS]]
        return phases.count("Succeed") == count


def _template(name: str) -> Json:
    container = {"name": "main", "image": "none", "command": ["true"]}
    task = {"name": "w", "replicas": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    metadata = {"name": name, "namespace": "ns", "creationTimestamp": format_time(EPOCH)}
    return {"metadata": metadata, "spec": {"minAvailable": 1, "tasks": [task]}}


def _flow(name: str, nodes: int, *, chained: bool = True) -> Json:
    """Ten layers, each job after two of the layer before; without `chained` all jobs at once."""
    width = max(nodes // _LAYERS, 1)
    entries: list[Json] = []
    for number in range(nodes):
        entry: Json = {"name": f"n{number}"}
        if chained and number >= width:
            first = (number // width - 1) * width
            targets = {first + number % width, first + (number + 1) % width}
            entry["dependsOn"] = {"targets": [f"n{target}" for target in sorted(targets)]}
        entries.append(entry)
    metadata = {"name": name, "namespace": "ns", "creationTimestamp": format_time(EPOCH)}
    return {"metadata": metadata, "spec": {"flows": entries}}
