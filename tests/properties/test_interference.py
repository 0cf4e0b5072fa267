"""The whole control plane while people interfere, nodes vanish and watches are late: what was promised still holds.

Jobs are aborted, resumed, terminated, restarted, scaled, deleted and made again under the same name; pods are deleted
by hand; a queue is closed and opened. As in `test_simulation`, a run is decided by its seed.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tests.fakes.faults import FaultyApi, by_chance
from tests.properties.test_simulation import NODES, Planned, check, plan
from tests.scenarios.simulated import SimulatedWorld, simulated
from tests.support import virtual_time
from tests.support.people import ENDED, People, StaleApi
from vcbatch.api.names import JOB_VERSION
from vcbatch.api.resources import COMMANDS, JOBS, PODGROUPS, PODS, QUEUES, SERVICES

Json = dict[str, Any]

SEEDS = range(8)
INTERFERENCE = 60.0  # seconds of virtual time
LONG_ENOUGH = 3600.0
HALF_BOUND = 60.0  # seconds of virtual time in which a gang that nobody disturbs must be bound whole


@dataclass
class Observer:
    """What must hold from one look to the next, by the UID of the job."""

    statuses: dict[str, Json] = field(default_factory=dict)
    incomplete: dict[tuple[str, str], float] = field(default_factory=dict)

    def reconcile(self, jobs: Sequence[Json], pods: Sequence[Json], *, now: float, disturbed: set[str]) -> None:
        check(pods)
        for job in jobs:
            uid, status = job["metadata"]["uid"], job.get("status") or {}
            before = self.statuses.get(uid, {})
            if phase_of(before) in ENDED:
                assert phase_of(status) == phase_of(before), f"{job['metadata']['name']} went on after its end"
            for count in ("version", "retryCount"):
                assert status.get(count, 0) >= before.get(count, 0), f"{count} of {job['metadata']['name']} shrank"
            self.statuses[uid] = status
            self._gang(job, pods, now=now, disturbed=uid in disturbed)

    def _gang(self, job: Json, pods: Sequence[Json], *, now: float, disturbed: bool) -> None:
        """Some members of a gang hold nodes while others can't be placed: only where something took them away."""
        uid, wanted = job["metadata"]["uid"], job["spec"]["minAvailable"]
        attempts: Counter[str] = Counter()
        for pod in pods:
            if pod["metadata"]["ownerReferences"][0]["uid"] == uid and pod["spec"].get("nodeName"):
                attempts[pod["metadata"]["annotations"][JOB_VERSION]] += 1
        newest = str((job.get("status") or {}).get("version", 0))
        if disturbed or attempts[newest] in (0, *range(wanted, 100)) or phase_of(job.get("status") or {}) in ENDED:
            self.incomplete.pop((uid, newest), None)
            return
        since = self.incomplete.setdefault((uid, newest), now)
        assert now - since < HALF_BOUND, f"{attempts[newest]} of {wanted} members of {job['metadata']['name']} bound"


def phase_of(status: Json) -> str:
    return (status.get("state") or {}).get("phase", "")


async def run(seed: int) -> None:
    random = Random(seed)
    jobs = {job.name: job for job in plan(random)}
    manifests = {name: _manifest(job, random) for name, job in jobs.items()}
    async with _world(seed) as world:
        await _side_queue(world)
        await world.pass_time(1)
        people = People(world=world, random=random, manifests=manifests, nodes=[node["name"] for node in NODES])
        observer = Observer()
        try:
            for manifest in manifests.values():
                await world.api.create(JOBS, copy.deepcopy(manifest), namespace=world.namespace)
            await _interfere(world, people, observer, random)
            await _let_end(world, people, observer, random)
            await _judge(world, people, jobs)
        except AssertionError as error:
            error.add_note("\n".join(people.story))
            raise


async def _side_queue(world: SimulatedWorld) -> None:
    body: Json = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": "side"}}
    await world.api.create(QUEUES, {**body, "spec": {"weight": 1}})


def _world(seed: int) -> Any:
    errors = by_chance(seed, share=0.03)
    verbs = ("create", "patch", "delete", "bind", "watch")
    late = Random(seed)

    def around(api: Any) -> Any:
        return StaleApi(api=FaultyApi(api, errors, verbs=verbs), clock=virtual_time.VirtualClock(), random=late)

    return simulated(NODES, seed=seed, api=around)


def _manifest(job: Planned, random: Random) -> Json:
    manifest = job.manifest()
    manifest["spec"]["queue"] = random.choice(["default", "default", "side"])
    manifest["spec"]["plugins"] = random.choice([{}, {"svc": [], "env": []}])
    return manifest


async def _interfere(world: SimulatedWorld, people: People, observer: Observer, random: Random) -> None:
    started = world.clock.monotonic()
    while world.clock.monotonic() - started < INTERFERENCE:
        await world.pass_time(random.random() * 3)
        await people.act()
        if random.random() < 0.05:
            await world.restart(random.choice(["controllers", "scheduler"]))
        await _reconcile(world, people, observer)
    await people.settle_everything()


async def _let_end(world: SimulatedWorld, people: People, observer: Observer, random: Random) -> None:
    started, resumed = world.clock.monotonic(), 0
    while world.clock.monotonic() - started < LONG_ENOUGH:
        await world.pass_time(random.random() * 10)
        jobs = await _reconcile(world, people, observer)
        going = [job for job in jobs if phase_of(job.get("status") or {}) not in ENDED]
        if not going:
            return
        # A resume that reached a job before an abort of the same moment leaves it suspended: ask once more.
        if resumed < 3 and all(phase_of(job.get("status") or {}) == "Aborted" for job in going):
            resumed += 1
            for job in going:
                await people.command("ResumeJob", job)
    raise AssertionError(f"still not ended: {[(job['metadata']['name'], job.get('status')) for job in going]}")


async def _reconcile(world: SimulatedWorld, people: People, observer: Observer) -> list[Json]:
    jobs = list((await world.api.list(JOBS, namespace=world.namespace)).items)
    pods = (await world.api.list(PODS, namespace=world.namespace)).items
    observer.reconcile(jobs, pods, now=world.clock.monotonic(), disturbed=people.disturbed)
    return jobs


async def _judge(world: SimulatedWorld, people: People, planned: dict[str, Planned]) -> None:
    await world.pass_time(30)
    api, namespace = world.api, world.namespace
    jobs = {job["metadata"]["uid"]: job for job in (await api.list(JOBS, namespace=namespace)).items}
    for uid, job in jobs.items():
        name, status, asked = job["metadata"]["name"], job["status"], people.asked.get(uid, Counter())
        allowed = {planned[name].end}
        allowed |= {"Terminated"} if asked["TerminateJob"] else set()
        allowed |= {"Failed"} if asked["RestartJob"] else set()
        assert phase_of(status) in allowed, (name, phase_of(status), allowed, status)
        assert status.get("ledger", {}).get("resumes", 0) <= asked["ResumeJob"], (name, asked, status)
        if phase_of(status) == "Completed" and uid not in people.disturbed:
            assert status["succeeded"] == planned[name].members, (name, status)
        alive = [status.get(key, 0) for key in ("pending", "running", "terminating", "unknown")]
        assert not any(alive), (name, status)
    pods = (await api.list(PODS, namespace=namespace)).items
    assert not [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]
    for resource in (PODS, PODGROUPS, SERVICES):
        for item in (await api.list(resource, namespace=namespace)).items:
            owners = {owner["uid"] for owner in item["metadata"].get("ownerReferences", ())}
            assert owners <= jobs.keys(), f"{resource.kind} {item['metadata']['name']} outlived its job"
    left = [command["metadata"]["name"] for command in (await api.list(COMMANDS, namespace=namespace)).items]
    assert not left, f"Commands that nobody took: {left}"


@pytest.mark.parametrize("seed", SEEDS)
def test_interference_breaks_no_promise(seed: int) -> None:
    virtual_time.run(run(seed))
