"""The whole control plane under faults: whatever is lost, doubled, refused or killed, what was promised holds.

A run is decided by its seed: the jobs, the fault of every call, and the moments at which the controllers or the
scheduler are killed. A seed that fails is the report of a bug, and plays again exactly so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from tests.fakes.faults import Fault, FaultyApi, by_chance
from tests.scenarios.simulated import SimulatedWorld, simulated
from tests.support import virtual_time
from vcbatch.api.names import JOB_VERSION
from vcbatch.api.resources import JOBS, PODS

Json = dict[str, Any]

SEEDS = range(12)
ENDED = frozenset({"Completed", "Failed"})
NODE_CPUS = 4
NODES = [{"name": f"n{number}", "cpu": str(NODE_CPUS), "memory": "8Gi"} for number in range(3)]
LONG_ENOUGH = 3600.0  # seconds of virtual time in which every job must have ended


@dataclass(frozen=True, slots=True)
class Planned:
    """A job and the phase in which it must end."""

    name: str
    members: int
    seconds: int
    exit_code: int
    retries: int

    @property
    def end(self) -> str:
        return "Failed" if self.exit_code else "Completed"

    def manifest(self) -> Json:
        command = f"sleep {self.seconds} && exit {self.exit_code}"
        container = {"name": "main", "image": "img", "command": ["sh", "-c", command]}
        container["resources"] = {"requests": {"cpu": "1"}}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        spec: Json = {
            "minAvailable": self.members,
            "tasks": [{"name": "worker", "replicas": self.members, "template": template}],
            "maxRetry": max(self.retries, 1),
        }
        if self.retries:
            spec["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
        return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": self.name}, "spec": spec}


def plan(random: Random) -> list[Planned]:
    return [
        Planned(
            name=f"j{number}",
            members=random.randint(1, 6),
            seconds=random.randint(0, 30),
            exit_code=random.choice([0, 0, 0, 3]),
            retries=random.choice([0, 1, 3]),
        )
        for number in range(6)
    ]


def check(pods: Sequence[Json]) -> None:
    """What must hold at every moment."""
    used: Counter[str] = Counter()
    alive: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        phase = (pod.get("status") or {}).get("phase", "Pending")
        node = pod["spec"].get("nodeName")
        if phase in ("Succeeded", "Failed"):
            continue
        if node:
            used[node] += 1
            owner = pod["metadata"]["ownerReferences"][0]["uid"]
            alive[owner].add(pod["metadata"]["annotations"][JOB_VERSION])
    assert all(count <= NODE_CPUS for count in used.values()), f"a node is over-committed: {used}"
    mixed = {owner: versions for owner, versions in alive.items() if len(versions) > 1}
    assert not mixed, f"members of two attempts run at once: {mixed}"


async def run(seed: int) -> None:
    random = Random(seed)
    errors = by_chance(seed, share=0.05)
    jobs = plan(random)
    async with simulated(
        NODES, seed=seed, api=lambda api: FaultyApi(api, errors, verbs=("create", "patch", "delete", "bind", "watch"))
    ) as world:
        for job in jobs:
            await world.api.create(JOBS, job.manifest(), namespace=world.namespace)
            await world.pass_time(random.random() * 2)
        await until_ended(world, random, jobs)
        phases = {job["metadata"]["name"]: job["status"]["state"]["phase"] for job in await all_jobs(world)}
        assert phases == {job.name: job.end for job in jobs}
        statuses = {job["metadata"]["name"]: job["status"] for job in await all_jobs(world)}
        for job in jobs:
            status = statuses[job.name]
            if job.end == "Completed":
                assert status["succeeded"] == job.members, (job, status)
                assert not status.get("retryCount"), (job, status)
            assert status.get("retryCount", 0) <= max(job.retries, 1), (job, status)


async def until_ended(world: SimulatedWorld, random: Random, jobs: Sequence[Planned]) -> None:
    elapsed = 0.0
    while elapsed < LONG_ENOUGH:
        pause = random.random() * 5
        await world.pass_time(pause)
        elapsed += pause
        check((await world.api.list(PODS, namespace=world.namespace)).items)
        if random.random() < 0.1 and elapsed < LONG_ENOUGH / 4:
            await world.restart(random.choice(["controllers", "scheduler"]))
        ended = [job for job in await all_jobs(world) if phase_of(job) in ENDED]
        if len(ended) == len(jobs):
            return
    raise AssertionError(
        f"still not ended: {[(j['metadata']['name'], j.get('status')) for j in await all_jobs(world)]}"
    )


async def all_jobs(world: SimulatedWorld) -> list[Json]:
    return list((await world.api.list(JOBS, namespace=world.namespace)).items)


def phase_of(job: Json) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase", "")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_job_ends_as_it_must(seed: int) -> None:
    virtual_time.run(run(seed))


def test_the_same_seed_plays_the_same_story() -> None:
    """Without this a failing seed would be no report."""

    async def story() -> list[tuple[str, str]]:
        errors = by_chance(5, share=0.1, faults=(Fault.BUSY, Fault.LOST))
        async with simulated(NODES, seed=5, api=lambda api: FaultyApi(api, errors)) as world:
            for job in plan(Random(5)):
                await world.api.create(JOBS, job.manifest(), namespace=world.namespace)
            await world.pass_time(20)
            pods = (await world.api.list(PODS, namespace=world.namespace)).items
            return sorted((pod["metadata"]["name"], pod["spec"].get("nodeName", "")) for pod in pods)

    assert virtual_time.run(story()) == virtual_time.run(story())
