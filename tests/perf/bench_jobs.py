"""What jobs cost their controller: how many decisions it makes per second, what a look at a very large job costs, and
what thousands of resident jobs cost in memory and after a restart.

Times are CPU times of the process, which others on the machine disturb least. The yardstick of the same run is one bare
pass over the pods of a job, counting how many of them run.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec
import psutil

from tests.fakes.api import FakeApi
from tests.support.job_world import World, job_object, task
from tests.support.virtual_time import SeededRandom
from vcbatch.api.pod import Pod
from vcbatch.api.quota import Quota
from vcbatch.api.resources import COMMANDS, JOBS, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.api.scheduling import PriorityClassView
from vcbatch.api.storage import Claim
from vcbatch.core.job import JobView, decide
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.controllers.children import Children
from vcbatch.runtime.controllers.claims import Claims
from vcbatch.runtime.controllers.job import JobController, JobSources
from vcbatch.runtime.controllers.references import References
from vcbatch.runtime.events.recorder import Recorder

Objects = Mapping[tuple[Resource, str], dict[str, Any]]


class CountingApi(FakeApi):
    """Counts what is asked of it, by verb."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def __getattribute__(self, name: str) -> Any:
        if name in ("create", "replace", "patch", "delete"):
            self.asked += 1
        return super().__getattribute__(name)


def running(pods: int, *, name: str = "j", **spec: Any) -> World:
    """A world with one job all of whose pods run."""
    world = World()
    world.submit(job_object(name, tasks=[task("w", pods)], plugins={"env": [], "svc": []}, **spec))
    while world.job(name).get("status", {}).get("running") != pods:
        world.settle(name)
        world.schedule()
    return world


def controller_of(
    *, having: Iterable[Objects], clock: Clock | None = None
) -> tuple[JobController, JobSources, CountingApi]:
    """A controller whose caches hold these objects, as after its start."""
    api, clock, random = CountingApi(), clock or SystemClock(), SeededRandom(1)
    children = Children(api, clock=clock)
    claims = Claims(api, Cache(model=Claim))
    priority_classes: Cache[PriorityClassView] = Cache(model=PriorityClassView)
    sources = JobSources(
        jobs=Cache(),
        pods=Cache(model=Pod),
        podgroups=Cache(),
        queues=Cache(),
        commands=Cache(),
        priority_classes=priority_classes,
        children=children,
        claims=claims,
        references=References(api, claims, priority_classes, clock=clock),
        quotas=Cache(model=Quota),
    )
    caches = {JOBS: sources.jobs, PODS: sources.pods, PODGROUPS: sources.podgroups}
    recorder = Recorder(api, clock=clock, random=random, component="bench")
    applier = Applier(
        api,
        caches | children.caches,
        recorder,
        clock=clock,
        random=random,
        without_status=[PODGROUPS],
        unfollowed=children.caches,
    )
    controller = JobController(sources, applier, recorder, clock=clock, random=random)
    held: dict[Resource, Cache[Any]] = {
        JOBS: sources.jobs, PODGROUPS: sources.podgroups, QUEUES: sources.queues, COMMANDS: sources.commands,
    }  # fmt: skip
    for objects in having:
        for (resource, _), stored in objects.items():
            if resource is PODS:
                sources.pods.put(msgspec.convert(stored, Pod))
            elif resource in held:
                held[resource].put(stored)
            else:
                api.seed(resource, stored)
    return controller, sources, api


def bare_pass(view: JobView, *, times: int = 20) -> float:
    began = time.process_time()
    for _ in range(times):
        sum(1 for pod in view.pods if pod.status.phase == "Running")
    return (time.process_time() - began) / times


def best_of(tries: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest try: the others were disturbed."""
    times: list[float] = []
    for _ in range(tries):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


async def timed(work: Awaitable[object]) -> float:
    began = time.process_time()
    await work
    return time.process_time() - began


def decisions(pods: int = 1000) -> dict[str, float]:
    """Decisions per second of the pure machine: nothing to do, one pod failed, all pods to be created."""
    world = running(pods, policies=[{"event": "PodFailed", "action": "RestartJob"}], maxRetry=3)
    view = world.view()
    quiet = best_of(20, lambda: decide(view, now=world.now))
    assert decide(view, now=world.now).nothing_to_do
    world.end_pod("j-w-7", 1)
    failed = world.view()
    assert len(decide(failed, now=world.now).deletes) > pods
    restart = best_of(20, lambda: decide(failed, now=world.now))
    fresh = World()
    fresh.submit(job_object(tasks=[task("w", pods)], plugins={"env": [], "svc": []}))
    fresh.reconcile()
    fresh.schedule()
    begun = fresh.view()
    assert len(decide(begun, now=fresh.now).creates) == pods
    start = best_of(10, lambda: decide(begun, now=fresh.now))
    return {
        "pods": pods,
        "quiet_per_s": 1 / quiet,
        "restart_per_s": 1 / restart,
        "start_per_s": 1 / start,
        "bare_pass_s": bare_pass(view),
    }


async def large_job(pods: int = 10_000) -> dict[str, float]:
    """Seconds of a look at one large job: the first after a restart, one without any change, one after one change; and
    the API writes of all of them together."""
    world = running(pods)
    controller, sources, api = controller_of(having=[world.objects])
    uid = world.job()["metadata"]["uid"]
    gc.collect()
    gc.freeze()
    first = await timed(controller.controller.reconcile(uid))
    unchanged = min([await timed(controller.controller.reconcile(uid)) for _ in range(20)])
    changed: list[float] = []
    for number in range(5):
        pod = sources.pods.indexed("job that controls it", uid)[number]
        newer = msgspec.structs.replace(
            pod, metadata=msgspec.structs.replace(pod.metadata, resource_version=str(10**9 + number))
        )
        sources.pods.put(newer)
        changed.append(await timed(controller.controller.reconcile(uid)))
    gc.unfreeze()
    return {
        "pods": pods,
        "first_s": first,
        "unchanged_s": unchanged,
        "changed_s": min(changed),
        "writes": api.asked,
        "bare_pass_s": bare_pass(world.view()),
    }


async def many_jobs(jobs: int = 10_000, pods: int = 2) -> dict[str, float]:
    """Bytes per resident job with its pods, and the seconds of one look at each after a restart."""
    pattern = running(pods)
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    controller, sources, api = controller_of(having=(_renamed(pattern, number) for number in range(jobs)))
    gc.collect()
    held = process.memory_info().rss - before
    uids = [job["metadata"]["uid"] for job in sources.jobs]
    gc.freeze()
    began = time.process_time()
    for uid in uids:
        await controller.controller.reconcile(uid)
    took = time.process_time() - began
    gc.unfreeze()
    return {"jobs": jobs, "pods": jobs * pods, "bytes": held / jobs, "all_s": took, "writes": api.asked}


def _renamed(pattern: World, number: int) -> Objects:
    """The objects of another job that is just like this one."""
    text = msgspec.json.encode(
        [[resource.plural, stored] for (resource, _), stored in pattern.objects.items()]
    ).decode()
    uid = pattern.job()["metadata"]["uid"]
    own = text.replace(uid, f"job-{number}").replace('"uid":"uid-', f'"uid":"of-{number}-')
    own = own.replace('"namespace":"ns"', f'"namespace":"ns-{number}"')
    resources = {resource.plural: resource for resource, _ in pattern.objects}
    return {(resources[plural], stored["metadata"]["name"]): stored for plural, stored in msgspec.json.decode(own)}


def run() -> dict[str, dict[str, float]]:
    return {
        "decisions": decisions(),
        "large": asyncio.run(large_job()),
        "many": asyncio.run(many_jobs()),
    }


if __name__ == "__main__":
    for what, figures in run().items():
        print(what, {name: float(f"{value:.4g}") for name, value in figures.items()})  # noqa: T201
