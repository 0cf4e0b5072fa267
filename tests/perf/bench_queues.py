"""A tree of 200 queues: placing gangs of all of them, and deciding who of 10,000 waiting gangs is admitted."""

from __future__ import annotations

import gc
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from vcbatch.api.meta import ObjectMeta
from vcbatch.api.node import Node, NodeStatus
from vcbatch.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from vcbatch.api.resources import NODES, PODGROUPS, PODS, QUEUES
from vcbatch.api.scheduling import (
    GuaranteeView,
    PodGroupSpecView,
    PodGroupStatusView,
    PodGroupView,
    Quantities,
    QueueSpecView,
    QueueView,
)
from vcbatch.scheduler import DEFAULT_POLICY, Scheduler, parse_policy

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DEPARTMENTS, TEAMS = 10, 19
"""The root's children, and the children of each, 200 queues in all; gangs are in the queues of teams."""

CAPACITY = DEFAULT_POLICY.replace("name: proportion", "name: capacity\n    enableHierarchy: true")


def scheduler(*, nodes: int, cpu: int = 64) -> Scheduler:
    """One that knows the queues and empty nodes. What departments and teams deserve sums to the cluster, and each may
    borrow up to twice that."""
    made = Scheduler(parse_policy(CAPACITY))
    total = nodes * cpu
    for d in range(DEPARTMENTS):
        _queue(made, f"department-{d}", "", cpu=total // DEPARTMENTS)
        for t in range(TEAMS):
            _queue(made, f"team-{d}-{t}", f"department-{d}", cpu=total // DEPARTMENTS // TEAMS)
    amounts: Quantities = {"cpu": str(cpu), "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
    for i in range(nodes):
        meta = ObjectMeta(name=f"node-{i:05}", uid=f"n{i}", labels={"kubernetes.io/hostname": f"node-{i:05}"})
        made.apply(NODES, "ADDED", Node(metadata=meta, status=NodeStatus(allocatable=amounts)))
    made.cycle(NOW)
    return made


def _queue(made: Scheduler, name: str, parent: str, *, cpu: int) -> None:
    spec = QueueSpecView(
        parent=parent,
        deserved={"cpu": str(cpu)},
        capability={"cpu": str(2 * cpu)},
        guarantee=GuaranteeView(resource={"cpu": str(cpu // 4)}),
    )
    made.apply(QUEUES, "ADDED", QueueView(metadata=ObjectMeta(name=name, uid=name), spec=spec))


def _team(g: int) -> str:
    return f"team-{g % DEPARTMENTS}-{g // DEPARTMENTS % TEAMS}"


def _gang(made: Scheduler, g: int, *, minimum: int, phase: str, asks: Quantities | None = None) -> None:
    group = PodGroupView(
        metadata=ObjectMeta(name=f"gang-{g}", namespace="bench", uid=f"g{g}", creation_timestamp=f"{g:08}"),
        spec=PodGroupSpecView(min_member=minimum, queue=_team(g), min_resources=asks),
        status=PodGroupStatusView(phase=phase),
    )
    made.apply(PODGROUPS, "ADDED", group)


def _pods(made: Scheduler, g: int, size: int) -> None:
    request: Quantities = {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1"}
    container = Container(name="main", image="trainer", resources=ResourceRequirements(requests=request))
    for i in range(size):
        meta = ObjectMeta(
            name=f"gang-{g}-worker-{i}",
            namespace="bench",
            uid=f"p{g}-{i}",
            annotations={"scheduling.k8s.io/group-name": f"gang-{g}", "volcano.sh/task-spec": "worker"},
        )
        spec = PodSpec(scheduler_name="volcano", containers=[container])
        made.apply(PODS, "ADDED", Pod(metadata=meta, spec=spec, status=PodStatus(phase="Pending")))


def placing(*, nodes: int = 5000, gangs: int = 1250, size: int = 8) -> dict[str, Any]:
    """Place gangs of 190 queues in one cycle. Returns how many pods a second of cycle places, and what a cycle costs
    after it in which nothing changed, and one in which one gang came (seconds)."""
    made = scheduler(nodes=nodes)
    for g in range(gangs):
        _gang(made, g, minimum=size, phase="Inqueue")
        _pods(made, g, size)
    gc.collect()
    gc.freeze()
    spent, placed = _cycle(made)
    while made.dirty:
        made.cycle(NOW)
    idle, _ = _cycle(made)
    _gang(made, gangs, minimum=size, phase="Inqueue")
    _pods(made, gangs, size)
    one, _ = _cycle(made)
    gc.unfreeze()
    return {
        "nodes": nodes,
        "queues": DEPARTMENTS * (TEAMS + 1),
        "placed": placed,
        "cycle_s": round(spent, 4),
        "pods_per_s": round(placed / spent),
        "idle_cycle_s": round(idle, 4),
        "one_more_gang_s": round(one, 4),
    }


def admitting(*, gangs: int = 10_000, kinds: int = 5, nodes: int = 500) -> dict[str, Any]:
    """Decide about gangs that all ask to be admitted, most of which can't be. Returns the seconds of the first cycle,
    which tells each gang why it waits, of one in which nothing changed, and of one in which another gang came."""
    made = scheduler(nodes=nodes)
    for g in range(gangs):
        _gang(made, g, minimum=8, phase="Pending", asks={"cpu": str(8 * (1 + g % kinds)), "memory": "64Gi"})
    gc.collect()
    gc.freeze()
    first, _ = _cycle(made)
    later = NOW + timedelta(seconds=40)
    while made.dirty:
        made.cycle(later)
    idle, _ = _cycle(made, later)
    _gang(made, gangs, minimum=8, phase="Pending", asks={"cpu": "8"})
    one, _ = _cycle(made, later)
    gc.unfreeze()
    admitted = sum(made.phase("bench", f"gang-{g}") == "Inqueue" for g in range(gangs))
    return {
        "gangs": gangs,
        "admitted": admitted,
        "first_cycle_s": round(first, 4),
        "idle_cycle_s": round(idle, 4),
        "one_more_gang_s": round(one, 4),
    }


def _cycle(made: Scheduler, now: datetime = NOW) -> tuple[float, int]:
    """The seconds that a cycle took, and how many pods it placed."""
    begun = time.perf_counter()
    result = made.cycle(now)
    return time.perf_counter() - begun, len(result.binds)


if __name__ == "__main__":
    print("placing", placing())  # noqa: T201 - this is what it is for
    print("admitting", admitting())  # noqa: T201
