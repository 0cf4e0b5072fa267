"""Gangs that are to be near together, at scale: what looking for domains costs on top of placing.

Run: python -m tests.perf.bench_topology
"""

from __future__ import annotations

import gc
import json
import time
from datetime import UTC, datetime
from typing import Any

from vcbatch.api.meta import ObjectMeta
from vcbatch.api.node import Node, NodeStatus
from vcbatch.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from vcbatch.api.resources import HYPERNODES, NODES, PODGROUPS, PODS, QUEUES
from vcbatch.api.scheduling import (
    HyperNodeSpecView,
    HyperNodeView,
    MemberSelectorView,
    MemberView,
    NameMatchView,
    PodGroupSpecView,
    PodGroupStatusView,
    PodGroupView,
    QueueSpecView,
    QueueView,
)
from vcbatch.scheduler import DEFAULT_POLICY, Policy, Scheduler, parse_policy
from vcbatch.scheduler.topology.domains import domains_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
AWARE = parse_policy(DEFAULT_POLICY + "  - name: network-topology-aware\n")


def hyper_node(name: str, tier: int, kind: str, members: list[str]) -> HyperNodeView:
    chosen = [
        MemberView(type=kind, selector=MemberSelectorView(exact_match=NameMatchView(name=one))) for one in members
    ]
    return HyperNodeView(
        metadata=ObjectMeta(name=name, uid=f"h-{name}"), spec=HyperNodeSpecView(tier=tier, members=chosen)
    )


def cluster(*, nodes: int, rack: int, racks_per_spine: int, spines_per_core: int, policy: Policy | None) -> Scheduler:
    """Nodes with 8 devices each, in racks (tier 1), spines (tier 2) and cores (tier 3)."""
    scheduler = Scheduler(policy)
    scheduler.apply(QUEUES, "ADDED", QueueView(metadata=ObjectMeta(name="default", uid="q"), spec=QueueSpecView()))
    names = [f"node-{i:05}" for i in range(nodes)]
    amounts: dict[str, str | int | float] = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
    for name in names:
        meta = ObjectMeta(name=name, uid=name, labels={"kubernetes.io/hostname": name})
        scheduler.apply(NODES, "ADDED", Node(metadata=meta, status=NodeStatus(allocatable=amounts)))
    level, kind = names, "Node"
    for tier, (word, width) in enumerate(
        [("rack", rack), ("spine", racks_per_spine), ("core", spines_per_core)], start=1
    ):
        made: list[str] = []
        for i in range(0, len(level), width):
            made.append(f"{word}-{i // width:04}")
            scheduler.apply(HYPERNODES, "ADDED", hyper_node(made[-1], tier, kind, level[i : i + width]))
        level, kind = made, "HyperNode"
    scheduler.cycle(NOW)
    return scheduler


def add_gangs(scheduler: Scheduler, *, count: int, size: int, topology: dict[str, Any] | None, kind: str) -> None:
    request: dict[str, str | int | float] = {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"}
    for g in range(count):
        name = f"{kind}-{g:05}"
        group = PodGroupView(
            metadata=ObjectMeta(name=name, namespace="bench", uid=name, creation_timestamp=f"{g:08}"),
            spec=PodGroupSpecView(min_member=size, queue="default", network_topology=topology),
            status=PodGroupStatusView(phase="Inqueue"),
        )
        scheduler.apply(PODGROUPS, "ADDED", group)
        for i in range(size):
            notes = {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": "worker"}
            meta = ObjectMeta(name=f"{name}-worker-{i}", namespace="bench", uid=f"{name}-{i}", annotations=notes)
            container = Container(name="main", image="trainer", resources=ResourceRequirements(requests=request))
            spec = PodSpec(scheduler_name="volcano", containers=[container])
            scheduler.apply(PODS, "ADDED", Pod(metadata=meta, spec=spec, status=PodStatus(phase="Pending")))


def run(
    *,
    nodes: int = 5000,
    gangs: int = 156,
    size: int = 64,
    topology: dict[str, Any] | None = None,
    aware: bool = True,
) -> dict[str, Any]:
    """Place the gangs in one cycle, then have one in which nothing changed, and make the tree again after a HyperNode
    came. Times are seconds of the processor."""
    policy = AWARE if aware else None
    scheduler = cluster(nodes=nodes, rack=16, racks_per_spine=20, spines_per_core=4, policy=policy)
    add_gangs(scheduler, count=gangs, size=size, topology=topology, kind="gang")
    gc.collect()
    gc.freeze()
    begun = time.process_time()
    result = scheduler.cycle(NOW)
    placed = time.process_time() - begun
    while scheduler.dirty:
        scheduler.cycle(NOW)
    begun = time.process_time()
    scheduler.cycle(NOW)
    idle = time.process_time() - begun
    scheduler.apply(HYPERNODES, "ADDED", hyper_node("another", 1, "Node", []))
    begun = time.process_time()
    domains_of(scheduler._state)  # pyright: ignore[reportPrivateUsage]
    rebuilt = time.process_time() - begun
    return {
        "nodes": nodes,
        "gangs": gangs,
        "size": size,
        "topology": topology,
        "aware": aware,
        "bound": len(result.binds),
        "cycle_s": round(placed, 4),
        "pods_per_s": round(len(result.binds) / placed) if placed else 0,
        "idle_s": round(idle, 5),
        "tree_made_again_s": round(rebuilt, 4),
    }


def main() -> None:
    one = {"mode": "hard", "highestTierAllowed": 1}
    cases: list[dict[str, Any]] = [
        {"topology": None, "aware": False},
        {"topology": None},
        {"topology": one, "aware": False},
        {"topology": one},
        {"topology": {"mode": "hard", "highestTierAllowed": 2}},
        {"topology": {"mode": "soft"}},
        {"topology": one, "gangs": 700},
        {"topology": {"mode": "hard", "highestTierAllowed": 2}, "gangs": 10, "size": 1000},
        {"topology": None, "gangs": 10000, "size": 1, "aware": False},
        {"topology": None, "gangs": 10000, "size": 1},
        {"topology": one, "gangs": 1250, "size": 8},
    ]
    for given in cases:
        print(json.dumps(run(**given)))  # noqa: T201


if __name__ == "__main__":
    main()
