"""Preemption with all parts at work: a job of higher priority gets the place of another, which waits and comes back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.simulated import SimulatedWorld, simulated
from tests.support import virtual_time
from vcbatch.api.resources import EVENTS, JOBS, PODS, PRIORITYCLASSES
from vcbatch.scheduler import parse_policy

Json = dict[str, Any]

KIND = {"apiVersion": PRIORITYCLASSES.api_version, "kind": PRIORITYCLASSES.kind}
POLICY = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: predicates
  - name: nodeorder
"""


def job(name: str, replicas: int, priority: str, seconds: int) -> Json:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", str(seconds)],
        "resources": {"requests": {"cpu": "1"}},
    }
    task = {
        "name": "w",
        "replicas": replicas,
        "template": {"spec": {"containers": [container], "restartPolicy": "Never", "priorityClassName": priority}},
    }
    spec = {
        "minAvailable": replicas,
        "schedulerName": "volcano",
        "priorityClassName": priority,
        "policies": [{"event": "PodEvicted", "action": "RestartPod"}],
        "tasks": [task],
    }
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": name}, "spec": spec}


async def until(world: SimulatedWorld, name: str, phase: str) -> None:
    for _ in range(600):
        found = await world.api.get(JOBS, name, namespace=world.namespace)
        if (found.get("status") or {}).get("state", {}).get("phase") == phase:
            return
        await world.clock.sleep(1)
    pytest.fail(f"job {name} isn't {phase}: {found.get('status')}")


async def play() -> None:
    nodes = [{"name": f"n{i}", "cpu": "2", "memory": "8Gi"} for i in range(2)]
    async with simulated(nodes, policy=parse_policy(POLICY)) as world:
        for name, value in (("low", 1), ("high", 100)):
            await world.api.create(PRIORITYCLASSES, {**KIND, "metadata": {"name": name}, "value": value})
        await world.api.create(JOBS, job("old", 4, "low", 300), namespace=world.namespace)
        await until(world, "old", "Running")
        before = await world.api.list(PODS, namespace=world.namespace)
        await world.api.create(JOBS, job("new", 2, "high", 60), namespace=world.namespace)
        await until(world, "new", "Running")
        pods = (await world.api.list(PODS, namespace=world.namespace)).items
        running = sorted(p["metadata"]["name"] for p in pods if p["status"].get("phase") == "Running")
        assert [name for name in running if name.startswith("new")] == ["new-w-0", "new-w-1"]
        assert len(running) == 4
        gone = {p["metadata"]["uid"] for p in before.items} - {p["metadata"]["uid"] for p in pods}
        assert len(gone) == 2, "nobody goes but whom it takes"
        events = (await world.api.list(EVENTS, namespace=world.namespace)).items
        evicted = [e for e in events if e["reason"] == "Evict" and e["involvedObject"]["kind"] == "Pod"]
        assert {e["involvedObject"]["uid"] for e in evicted} == gone
        assert all("gang scenario/new-" in e["message"] for e in evicted)
        await until(world, "new", "Completed")
        await until(world, "old", "Completed")
        events = (await world.api.list(EVENTS, namespace=world.namespace)).items
        assert sum(e["reason"] == "Evict" and e["involvedObject"]["kind"] == "Pod" for e in events) == 2


def test_a_job_of_higher_priority_gets_the_place_of_another_which_comes_back() -> None:
    virtual_time.run(play())
