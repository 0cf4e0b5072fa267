"""Gang placement at scale: how many pods a cycle places per second, everything that a cycle does included."""

from __future__ import annotations

import gc
import time
from datetime import UTC, datetime
from typing import Any

from vcbatch.api.meta import ObjectMeta
from vcbatch.api.node import Node, NodeStatus
from vcbatch.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from vcbatch.api.resources import NODES, PODGROUPS, PODS, PRIORITYCLASSES, QUEUES
from vcbatch.api.scheduling import (
    PodGroupSpecView,
    PodGroupStatusView,
    PodGroupView,
    PriorityClassView,
    QueueSpecView,
    QueueView,
)
from vcbatch.scheduler import DEFAULT_POLICY, Scheduler, parse_policy

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def cluster(*, nodes: int, gangs: int, size: int, kinds: int) -> Scheduler:
    """A scheduler that knows empty nodes and waiting gangs, whose pods are of `kinds` different sizes."""
    scheduler = Scheduler()
    scheduler.apply(QUEUES, "ADDED", QueueView(metadata=ObjectMeta(name="default", uid="q"), spec=QueueSpecView()))
    for i in range(nodes):
        amounts: dict[str, str | int | float] = {
            "cpu": str(16 + 16 * (i % 4)),
            "memory": f"{64 + 64 * (i % 3)}Gi",
            "nvidia.com/gpu": "8",
            "pods": "110",
        }
        meta = ObjectMeta(name=f"node-{i:05}", uid=f"n{i}", labels={"kubernetes.io/hostname": f"node-{i:05}"})
        scheduler.apply(NODES, "ADDED", Node(metadata=meta, status=NodeStatus(allocatable=amounts)))
    scheduler.cycle(NOW)
    for g in range(gangs):
        group = PodGroupView(
            metadata=ObjectMeta(name=f"gang-{g}", namespace="bench", uid=f"g{g}", creation_timestamp=f"{g:08}"),
            spec=PodGroupSpecView(min_member=size, queue="default"),
            status=PodGroupStatusView(phase="Inqueue"),
        )
        scheduler.apply(PODGROUPS, "ADDED", group)
        request: dict[str, str | int | float] = {
            "cpu": str(1 + g % kinds),
            "memory": f"{2 + g % kinds}Gi",
            "nvidia.com/gpu": "1",
        }
        for i in range(size):
            meta = ObjectMeta(
                name=f"gang-{g}-worker-{i}",
                namespace="bench",
                uid=f"p{g}-{i}",
                annotations={"scheduling.k8s.io/group-name": f"gang-{g}", "volcano.sh/task-spec": "worker"},
            )
            container = Container(name="main", image="trainer", resources=ResourceRequirements(requests=request))
            spec = PodSpec(scheduler_name="volcano", containers=[container])
            scheduler.apply(PODS, "ADDED", Pod(metadata=meta, spec=spec, status=PodStatus(phase="Pending")))
    return scheduler


def run(*, nodes: int = 5000, gangs: int = 1000, size: int = 8, kinds: int = 1, tries: int = 3) -> dict[str, Any]:
    """Place all gangs in one cycle, the best of some tries. Returns what was placed, what the deltas, the cycle
    and a cycle in which nothing changed took (seconds of CPU), and the pods placed per second of cycle."""
    return min(
        (_once(nodes=nodes, gangs=gangs, size=size, kinds=kinds) for _ in range(tries)), key=lambda r: r["cycle_s"]
    )


def _once(*, nodes: int, gangs: int, size: int, kinds: int) -> dict[str, Any]:
    started = time.process_time()
    scheduler = cluster(nodes=nodes, gangs=gangs, size=size, kinds=kinds)
    loaded = time.process_time()
    gc.collect()
    gc.freeze()
    begun = time.process_time()
    result = scheduler.cycle(NOW)
    placed = time.process_time()
    while scheduler.dirty:
        scheduler.cycle(NOW)
    quiet = time.process_time()
    scheduler.cycle(NOW)
    idle = time.process_time()
    gc.unfreeze()
    return {
        "nodes": nodes,
        "gangs": gangs,
        "pods": gangs * size,
        "placed": len(result.binds),
        "deltas_s": round(loaded - started, 3),
        "cycle_s": round(placed - begun, 4),
        "idle_cycle_s": round(idle - quiet, 4),
        "pods_per_s": round(len(result.binds) / (placed - begun)),
    }


def full(action: str, *, nodes: int, pods_per_node: int, priority: int) -> Scheduler:
    """A scheduler by the default policy with an action that evicts, with full nodes, whose pods are gangs of 8 of a low
    priority and of one queue, each with one more than its minimum; `priority` is the value of the class `asked`."""
    policy = DEFAULT_POLICY.replace("allocate, backfill", f"allocate, {action}, backfill")
    scheduler = Scheduler(parse_policy(policy))
    for queue in ("default", "other"):
        scheduler.apply(QUEUES, "ADDED", QueueView(metadata=ObjectMeta(name=queue, uid=queue), spec=QueueSpecView()))
    for name, value in (("low", 10), ("asked", priority)):
        meta = ObjectMeta(name=name, uid=name)
        scheduler.apply(PRIORITYCLASSES, "ADDED", PriorityClassView(metadata=meta, value=value))
    amounts: dict[str, str | int | float] = {"cpu": str(pods_per_node), "memory": "512Gi", "pods": "110"}
    for i in range(nodes):
        meta = ObjectMeta(name=f"node-{i:05}", uid=f"n{i}", labels={"kubernetes.io/hostname": f"node-{i:05}"})
        scheduler.apply(NODES, "ADDED", Node(metadata=meta, status=NodeStatus(allocatable=amounts)))
    for g in range(nodes * pods_per_node // 8):
        _gang(scheduler, f"held-{g}", size=8, minimum=7, queue="default", priority="low", request="1", phase="Running")
        for i in range(8):
            node = f"node-{(g * 8 + i) // pods_per_node:05}"
            _pod(scheduler, f"held-{g}", i, request="1", node=node, priority=10)
    return scheduler


def _gang(
    scheduler: Scheduler, name: str, *, size: int, minimum: int, queue: str, priority: str, request: str, phase: str
) -> None:
    group = PodGroupView(
        metadata=ObjectMeta(name=name, namespace="bench", uid=f"g-{name}", creation_timestamp=f"{len(name)}"),
        spec=PodGroupSpecView(min_member=minimum, queue=queue, priority_class_name=priority),
        status=PodGroupStatusView(phase=phase, running=size if phase == "Running" else 0),
    )
    scheduler.apply(PODGROUPS, "ADDED", group)


def _pod(scheduler: Scheduler, gang: str, index: int, *, request: str, node: str, priority: int) -> None:
    meta = ObjectMeta(
        name=f"{gang}-worker-{index}",
        namespace="bench",
        uid=f"p-{gang}-{index}",
        annotations={"scheduling.k8s.io/group-name": gang, "volcano.sh/task-spec": "worker"},
    )
    resources = ResourceRequirements(requests={"cpu": request, "memory": "1Gi"})
    container = Container(name="main", image="trainer", resources=resources)
    spec = PodSpec(scheduler_name="volcano", containers=[container], node_name=node, priority=priority)
    scheduler.apply(
        PODS, "ADDED", Pod(metadata=meta, spec=spec, status=PodStatus(phase="Running" if node else "Pending"))
    )


def relieve(
    action: str,
    *,
    nodes: int = 5000,
    pods_per_node: int = 28,
    waiting: int = 1,
    size: int = 64,
    priority: int = 100,
    request: str = "2",
) -> dict[str, Any]:
    """Evict for gangs that wait, on a full cluster. Returns what the cycle took in which that was decided, and one
    in which nothing had changed (seconds of CPU), the pods evicted and those promised a place. With a priority of 10
    nobody may be evicted in the same queue."""
    scheduler = full(action, nodes=nodes, pods_per_node=pods_per_node, priority=priority)
    scheduler.cycle(NOW)
    while scheduler.dirty:
        scheduler.cycle(NOW)
    queue = "other" if action.endswith("reclaim") else "default"
    for g in range(waiting):
        name = f"waits-{g}"
        _gang(scheduler, name, size=size, minimum=size, queue=queue, priority="asked", request=request, phase="Inqueue")
        for i in range(size):
            _pod(scheduler, name, i, request=request, node="", priority=priority)
    gc.collect()
    gc.freeze()
    begun = time.process_time()
    result = scheduler.cycle(NOW)
    decided = time.process_time()
    while scheduler.dirty:
        scheduler.cycle(NOW)
    quiet = time.process_time()
    scheduler.cycle(NOW)
    idle = time.process_time()
    gc.unfreeze()
    return {
        "action": action,
        "bound": nodes * pods_per_node,
        "waiting": waiting,
        "evicted": len(result.evictions),
        "promised": sum(h.promised for h in result.held),
        "cycle_s": round(decided - begun, 4),
        "idle_cycle_s": round(idle - quiet, 4),
    }


if __name__ == "__main__":
    for kinds in (1, 4):
        print(run(kinds=kinds))  # noqa: T201 - this is what it is for
    print(run(gangs=100, size=80))  # noqa: T201
    print(run(nodes=500, gangs=2000))  # noqa: T201 - most gangs don't fit
    for action in ("preempt", "reclaim"):
        print(relieve(action))  # noqa: T201
    print(relieve("preempt", waiting=100, priority=10))  # noqa: T201 - nobody can be helped
