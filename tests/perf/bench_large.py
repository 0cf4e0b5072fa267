"""A large cluster as it is: 5,000 nodes, 140,000 pods that run, 10,000 that wait.

The resident pods are told to the scheduler as watch events and leave every node some room, so that a decision has
140,000 pods to be slowed down by. Cold start counts what a restart costs from the first event to the first binds.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from typing import Any

import psutil

from vcbatch.api.meta import ObjectMeta
from vcbatch.api.node import Node, NodeStatus
from vcbatch.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from vcbatch.api.resources import NODES, PODGROUPS, PODS, QUEUES
from vcbatch.api.scheduling import PodGroupSpecView, PodGroupStatusView, PodGroupView, QueueSpecView, QueueView
from vcbatch.scheduler import DEFAULT_POLICY, Policy, Scheduler, parse_policy

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SHAPES = {"1,250 gangs of 8": (1250, 8), "156 of 64": (156, 64), "10 of 1,000": (10, 1000), "10,000 of 1": (10_000, 1)}
"""Ten thousand waiting pods as gangs x pods."""
_LOADS = 3
"""How often they come, those before them being gone. The slower time after the first is told: by then the process has
the memory that it needs."""
AIMS = {"1,250 gangs of 8": 100_000, "156 of 64": 500_000}
"""Pods a second."""
POLICIES = {
    "proportion": DEFAULT_POLICY,
    "capacity hierarchy of 200 queues": DEFAULT_POLICY.replace(
        "  - name: proportion\n", "  - name: capacity\n    enableHierarchy: true\n"
    ),
}
"""The default policy, by its way of sharing between queues."""


def cluster(chosen: Policy, *, nodes: int = 5000, resident: int = 140_000, queues: int = 200) -> Scheduler:
    """A scheduler that knows nodes with running pods, in gangs of 28, spread over a tree of queues."""
    scheduler = Scheduler(chosen)
    for view in _queues(queues):
        scheduler.apply(QUEUES, "ADDED", view)
    for i in range(nodes):
        scheduler.apply(NODES, "ADDED", _node(i))
    per_node = resident // nodes
    for i in range(nodes):
        key = f"resident-{i}"
        scheduler.apply(PODGROUPS, "ADDED", _group(key, per_node, queue=_leaf(i, queues), phase="Running"))
        for k in range(per_node):
            cpu = "2" if k % 2 else "1"
            pod = _pod(key, k, cpu=cpu, node=f"node-{(i * 7 + k) % nodes:05}", phase="Running")
            scheduler.apply(PODS, "ADDED", pod)
    return scheduler


def wait(scheduler: Scheduler, *, gangs: int, size: int, queues: int = 200, name: str = "gang", cpu: str = "2") -> None:
    """Gangs come in."""
    for g in range(gangs):
        key = f"{name}-{g}"
        scheduler.apply(PODGROUPS, "ADDED", _group(key, size, queue=_leaf(g, queues), phase="Inqueue"))
        for k in range(size):
            scheduler.apply(PODS, "ADDED", _pod(key, k, cpu=cpu))


def _remove(scheduler: Scheduler, *, gangs: int, size: int, queues: int, name: str) -> None:
    """These gangs are gone."""
    for g in range(gangs):
        key = f"{name}-{g}"
        for k in range(size):
            scheduler.apply(PODS, "DELETED", _pod(key, k, cpu="2"))
        scheduler.apply(PODGROUPS, "DELETED", _group(key, size, queue=_leaf(g, queues), phase="Inqueue"))
    settle(scheduler)


def _queues(count: int) -> Iterator[QueueView]:
    """`root`, ten departments, and leaves below them."""
    big: dict[str, str | int | float] = {"cpu": "200000", "memory": "800Ti", "nvidia.com/gpu": "40000"}
    yield QueueView(metadata=ObjectMeta(name="root", uid="q-root"), spec=QueueSpecView())
    for d in range(10):
        spec = QueueSpecView(parent="root", deserved=big, capability=big)
        yield QueueView(metadata=ObjectMeta(name=f"department-{d}", uid=f"q-d{d}"), spec=spec)
    for q in range(count):
        spec = QueueSpecView(parent=f"department-{q % 10}", deserved={"cpu": "2000", "memory": "8Ti"}, capability=big)
        yield QueueView(metadata=ObjectMeta(name=f"queue-{q}", uid=f"q-{q}"), spec=spec)


def _leaf(number: int, queues: int) -> str:
    return f"queue-{number % queues}"


def _node(number: int) -> Node:
    name = f"node-{number:05}"
    amounts: dict[str, str | int | float] = {
        "cpu": str(64 + 16 * (number % 4)),
        "memory": f"{256 + 64 * (number % 3)}Gi",
        "nvidia.com/gpu": "8",
        "pods": "110",
    }
    meta = ObjectMeta(name=name, uid=f"n{number}", labels={"kubernetes.io/hostname": name})
    return Node(metadata=meta, status=NodeStatus(allocatable=amounts))


def _group(key: str, size: int, *, queue: str, phase: str) -> PodGroupView:
    return PodGroupView(
        metadata=ObjectMeta(name=key, namespace="bench", uid=f"g-{key}", creation_timestamp="2026-05-01T00:00:00Z"),
        spec=PodGroupSpecView(min_member=size, queue=queue, min_resources={"cpu": str(size)}),
        status=PodGroupStatusView(phase=phase),
    )


def _pod(key: str, index: int, *, cpu: str, node: str = "", phase: str = "Pending") -> Pod:
    name = f"{key}-worker-{index}"
    request: dict[str, str | int | float] = {"cpu": cpu, "memory": "4Gi"}
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="bench",
            uid=f"p-{name}",
            annotations={"scheduling.k8s.io/group-name": key, "volcano.sh/task-spec": "worker"},
        ),
        spec=PodSpec(
            scheduler_name="volcano",
            node_name=node,
            containers=[Container(name="main", image="trainer", resources=ResourceRequirements(requests=request))],
        ),
        status=PodStatus(phase=phase),
    )


def settle(scheduler: Scheduler) -> None:
    """Cycle until nothing more follows."""
    while scheduler.dirty:
        scheduler.cycle(NOW)


def seconds(scheduler: Scheduler) -> tuple[float, int]:
    """The CPU time of one cycle, without the collector's pauses, and how many pods it binds."""
    return _timed(scheduler, NOW)


def _timed(scheduler: Scheduler, now: datetime) -> tuple[float, int]:
    gc.collect()
    gc.freeze()
    began = time.process_time()
    result = scheduler.cycle(now)
    spent = time.process_time() - began
    gc.unfreeze()
    return spent, len(result.binds)


def alone(shape: str, name: str) -> dict[str, Any]:
    """`placing` in a new process, whose memory is its own."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(placing, shape, name).result()


def placing(shape: str, name: str, **world: int) -> dict[str, Any]:
    """Ten thousand pods on the large cluster, in one cycle; the same twice more once they are gone, as in a scheduler
    that has been at work; then a cycle with nothing to do, and one after 1 % of the running pods ended."""
    gangs, size = SHAPES[shape]
    began = time.process_time()
    scheduler = cluster(parse_policy(POLICIES[name]), **world)
    reported = time.process_time() - began
    first, _ = seconds(scheduler)
    settle(scheduler)
    queues = world.get("queues", 200)
    spent: list[float] = []
    placed = 0
    for nth in range(_LOADS):
        wait(scheduler, gangs=gangs, size=size, queues=queues, name=f"load-{nth}")
        cost, placed = seconds(scheduler)
        spent.append(cost)
        settle(scheduler)
        if nth < _LOADS - 1:
            _remove(scheduler, gangs=gangs, size=size, queues=queues, name=f"load-{nth}")
    idle, _ = seconds(scheduler)
    changed = _one_percent(scheduler, resident=world.get("resident", 140_000), nodes=world.get("nodes", 5000))
    return {
        "shape": shape,
        "policy": name,
        "placed": placed,
        "cycle_s": round(max(spent[1:]), 4),
        "pods_per_s": round(placed / max(spent[1:])),
        "first_load_s": round(spent[0], 4),
        "idle_s": round(idle, 5),
        "changed_s": round(changed, 4),
        "told_s": round(reported, 1),
        "first_cycle_s": round(first, 2),
        "memory_mb": round(psutil.Process().memory_info().rss / 1e6),
    }


def _one_percent(scheduler: Scheduler, *, resident: int, nodes: int) -> float:
    per_node = resident // nodes
    for i in range(resident // 100):
        key = f"resident-{i % nodes}"
        k = i // nodes
        node = f"node-{(i % nodes * 7 + k) % nodes:05}"
        ended = _pod(key, k % per_node, cpu="2" if k % 2 else "1", node=node, phase="Succeeded")
        scheduler.apply(PODS, "MODIFIED", ended)
    return _timed(scheduler, NOW + timedelta(seconds=60))[0]


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(SHAPES)
    for way in POLICIES:
        for form in chosen:
            try:
                print(placing(form, way), flush=True)  # noqa: T201 - this is what it is for
            except ValueError as error:
                print(way, error)  # noqa: T201
