"""What very many jobs of one pod cost the controllers from submission until they run: CPU and writes for each, against
the least that there is to do, which is to make its objects and to change them as often.

All controllers with their caches, in one process under virtual time: no server, no HTTP and no kopf. A scheduler and a
kubelet are pretended: they let each PodGroup in and have its pod run a moment later.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tests.fakes.api import FakeApi
from tests.support.job_world import job_object, task
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.names import GROUP_NAME
from vcbatch.api.pod import Pod
from vcbatch.api.resources import EVENTS, JOBS, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.handlers import Feed
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.control_plane import ControlPlane

Json = dict[str, Any]
_STEP_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallJobs:
    """For each job: `cpu` in seconds and `writes` of the controllers without events. `baseline`: the CPU of making its
    objects and changing them as often with no controller at all."""

    cpu: float
    writes: float
    baseline: float


def small_jobs(count: int, *, each_second: int = 100) -> SmallJobs:
    """So many jobs, so many of them submitted in each second, until the status of all says that they run."""
    return run(_small_jobs(count, each_second))


async def _small_jobs(count: int, each_second: int) -> SmallJobs:
    world = _World()
    parts = [part.part() for part in (world.plane.jobs, world.plane.queues, world.plane.podgroups)]
    running = [asyncio.ensure_future(part.run()) for part in parts]
    gc.collect()
    gc.freeze()
    began = time.process_time()
    submitted = 0
    while len(world.reported) < count:
        for _ in range(min(int(each_second * _STEP_SECONDS), count - submitted)):
            submitted += 1
            world.submit(submitted)
        await world.clock.sleep(_STEP_SECONDS)
        await world.move()
    cpu = time.process_time() - began
    for task_ in running:
        task_.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    own = [write for write in world.api.writes if write[1] != EVENTS.plural]
    return SmallJobs(
        cpu=cpu / count, writes=len(own) / count - _World.MOVES, baseline=await _baseline(min(count, 1000))
    )


async def _baseline(count: int) -> float:
    """CPU of the same objects without a controller, each."""
    api = _Api()
    gc.collect()
    gc.freeze()
    began = time.process_time()
    for number in range(count):
        api.seed(JOBS, _job(number))
        for resource, body in ((PODGROUPS, _job(number)), (PODS, _job(number))):
            await api.create(resource, body, namespace="ns")
        for resource in (JOBS, PODGROUPS, PODGROUPS, PODS, PODS):
            patch: Json = {"status": {"number": number, "of": resource.plural + str(api.version)}}
            await api.patch(resource, f"j{number}", patch, namespace="ns")
    took = time.process_time() - began
    gc.unfreeze()
    return took / count


class _Api(FakeApi):
    """Keeps no history, since nobody watches it, and copies by way of JSON, which costs least."""

    def seed(self, resource: Resource, body: Json) -> Json:
        body = _copy(body)
        self.uids += 1
        body["metadata"].setdefault("uid", f"uid-{self.uids}")
        return self._store("ADDED", resource, body)

    def _store(self, event: str, resource: Resource, body: Json) -> Json:
        self.version += 1
        metadata = body["metadata"]
        metadata["resourceVersion"] = str(self.version)
        self.objects[(resource, metadata.get("namespace", ""), metadata["name"])] = body
        return _copy(body)


class _Source:
    """Implements `handlers.CustomResourceSource`: nobody fills the caches but the world."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self.feeds = feeds
        self.listed, self.watching = asyncio.Event(), asyncio.Event()

    async def audit(self) -> None:
        await asyncio.Event().wait()

    async def watch(self) -> None:
        await asyncio.Event().wait()


class _World:
    """The controllers over a server that is only pretended, and what others do to the objects that they make."""

    MOVES = 4
    """Writes of the others for each job: its PodGroup is let in and runs, its pod is bound and runs."""

    def __init__(self) -> None:
        self.api, self.clock = _Api(), VirtualClock()
        informers = Informers(self.api, clock=self.clock, random=SeededRandom(1))
        found: list[_Source] = []

        def followed_by(feeds: Sequence[Feed]) -> _Source:
            found.append(_Source(feeds))
            return found[0]

        self.plane = ControlPlane(
            self.api,
            Connection(server="https://nowhere.invalid"),
            informers,
            clock=self.clock,
            random=SeededRandom(2),
            meter=PrometheusMeter(),
            followed_by=followed_by,
        )
        caches = {feed.resource: feed.cache for feed in found[0].feeds}
        self._jobs = caches[JOBS]
        self._groups: Cache[Json] = caches[PODGROUPS] if PODGROUPS in caches else informers.follow(PODGROUPS)
        self._pods = informers.follow(PODS, Pod)
        caches[QUEUES].put(self.api.seed(QUEUES, _queue()))
        self.reported: set[str] = set()
        """The jobs whose status says that they run."""
        self._groups_to_move: list[str] = []
        self._pods_to_move: list[str] = []
        self._jobs.listen(lambda change: self._look_at_job(change.current))
        self._groups.listen(
            lambda change: self._note(change.old, change.current["metadata"]["name"], self._groups_to_move)
        )
        self._pods.listen(lambda change: self._note(change.old, change.current.metadata.name, self._pods_to_move))

    def submit(self, number: int) -> None:
        self._jobs.put(self.api.seed(JOBS, _job(number)))

    async def move(self) -> None:
        """The PodGroups that are new are let in, the pods that are new are bound and run."""
        groups, self._groups_to_move[:] = list(self._groups_to_move), []
        pods, self._pods_to_move[:] = list(self._pods_to_move), []
        for name in groups:
            await self._patch_group(name, "Inqueue")
        for name in pods:
            for patch in ({"spec": {"nodeName": "n"}}, {"status": {"phase": "Running"}}):
                self._pods.put(msgspec.convert(await self.api.patch(PODS, name, patch, namespace="ns"), Pod))
            owner = self._pods.by_key(f"ns/{name}")
            assert owner is not None
            annotations = owner.metadata.annotations or {}
            await self._patch_group(annotations[GROUP_NAME], "Running")

    async def _patch_group(self, name: str, phase: str) -> None:
        patch = {"status": {"phase": phase}}
        self._groups.put(await self.api.patch(PODGROUPS, name, patch, namespace="ns"))

    def _look_at_job(self, job: Json) -> None:
        if ((job.get("status") or {}).get("state") or {}).get("phase") == "Running":
            self.reported.add(job["metadata"]["uid"])

    @staticmethod
    def _note(old: object, name: str, to_move: list[str]) -> None:
        if old is None:
            to_move.append(name)


def _copy(body: Json) -> Json:
    copied: Json = msgspec.json.decode(msgspec.json.encode(body))
    return copied


def _job(number: int) -> Json:
    return job_object(f"j{number}", tasks=[task("worker", 1)], uid=f"job-{number}")


def _queue() -> Json:
    return {"metadata": {"name": "default"}, "spec": {"weight": 1}, "status": {"state": "Open"}}


if __name__ == "__main__":
    print(small_jobs(2000))  # noqa: T201
