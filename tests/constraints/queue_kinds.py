"""Kinds of constraints beside nodes: queues, quotas, gates, order and what is kept for others."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.constraints.judge import Case
from tests.constraints.kinds import GROUP, Kind
from tests.constraints.world import GANG, World
from vcbatch.api.reasons import WaitReason as R

CAPACITY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""
HIERARCHY = CAPACITY.replace("{name: capacity}", "{name: capacity, enableHierarchy: true}")
QUOTAS = CAPACITY.replace("{name: capacity}", "{name: resourcequota}, {name: proportion}")
RESERVING = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit, enableJobEnqueued: false}, {name: predicates}, {name: nodeorder}]
configurations: [{name: allocate, arguments: {conservativeBackfill: true}}]
"""
GROUPS = CAPACITY.replace("{name: capacity}", "{name: nodegroup}")


def _room(world: World, rng: Random) -> None:
    """Nodes with much more room than anybody asks for."""
    for nth in range(rng.randint(2, 4)):
        world.node(f"n{nth}", cpu=32)


def queue_capability(rng: Random, *, policy: str, pending: bool) -> Case:
    world = World(policy)
    _room(world, rng)
    most, held = rng.randint(6, 12), rng.randint(3, 6)
    wanted = rng.randint(most - held + 1, most)
    world.queue("q", capability={"cpu": str(most)})
    world.gang("old", 1, {"cpu": held}, on="n0", queue="q")
    _waiting(world, rng, wanted, queue="q", pending=pending)
    short = {"cpu": str(wanted + held - most)}
    return Case(world=world, lift=lambda w: w.end("old"), reasons=[R.QUEUE_LIMIT], place="queue/q", short=short)


def _waiting(world: World, rng: Random, cpus: int, *, queue: str = "default", pending: bool = False) -> None:
    """The gang, with so many cpus in one pod or one in each of so many."""
    pods = rng.choice([1, cpus])
    group: dict[str, Any] = {"minResources": {"cpu": str(cpus)}} if pending else {}
    world.gang(GANG, pods, {"cpu": cpus // pods}, queue=queue, group=group, phase="Pending" if pending else "")


def ancestor_capability(rng: Random) -> Case:
    world = World(HIERARCHY)
    _room(world, rng)
    most, held = rng.randint(6, 12), rng.randint(3, 6)
    wanted = rng.randint(most - held + 1, most)
    world.queue("root")
    world.queue("team", parent="root", capability={"cpu": str(most)})
    world.queue("q", parent="team")
    world.queue("p", parent="team")
    world.gang("old", 1, {"cpu": held}, on="n0", queue="p")
    _waiting(world, rng, wanted, queue="q")
    short = {"cpu": str(wanted + held - most)}
    return Case(world=world, lift=lambda w: w.end("old"), reasons=[R.QUEUE_LIMIT], place="queue/team", short=short)


def guarantee_of_another(rng: Random, *, policy: str) -> Case:
    """What is free is guaranteed to another queue."""
    world = World(policy)
    world.node("n0", cpu=16)
    kept, held = rng.randint(4, 8), rng.randint(2, 4)
    left = 16 - kept - held
    wanted = rng.randint(left + 1, 16 - held)
    world.queue("q")
    world.queue("other", guarantee={"resource": {"cpu": str(kept)}})
    world.gang("old", 1, {"cpu": held}, on="n0", queue="q")
    _waiting(world, rng, wanted, queue="q")

    def lift(changed: World) -> None:
        changed.find("queues", "other")["spec"] = {}

    short = {"cpu": str(wanted - left)}
    reasons = [R.QUEUE_LIMIT] if wanted <= 16 - kept else [R.QUEUE_LIMIT, R.IMPOSSIBLE]
    return Case(world=world, lift=lift, reasons=reasons, place="queue/q", short=short)


def quota(rng: Random) -> Case:
    world = World(QUOTAS)
    _room(world, rng)
    hard, used = rng.randint(6, 12), rng.randint(3, 6)
    wanted = rng.randint(hard - used + 1, hard)
    status = {"hard": {"cpu": str(hard)}, "used": {"cpu": str(used)}}
    meta = {"name": "quota", "namespace": "default"}
    world.add("resourceQuotas", {"metadata": meta, "spec": {"hard": {"cpu": str(hard)}}, "status": status})
    world.gang("old", 1, {"cpu": used}, on="n0")
    _waiting(world, rng, wanted, pending=True)

    def lift(changed: World) -> None:
        changed.lists.pop("resourceQuotas")

    short = {"cpu": str(wanted + used - hard)}
    return Case(world=world, lift=lift, reasons=[R.RESOURCE_QUOTA], place="resourcequota/default/quota", short=short)


def admission(rng: Random) -> Case:
    """What runs, and what was admitted, leaves too little to admit more."""
    world = World()
    world.node("n0", cpu=10)
    held = rng.randint(8, 10)
    wanted = rng.randint(13 - held, 9)
    world.gang("old", 1, {"cpu": held}, on="n0")
    _waiting(world, rng, wanted, pending=True)
    short = {"cpu": str(wanted + held - 10)}
    return Case(
        world=world,
        lift=lambda w: w.end("old"),
        reasons=[R.CLUSTER_OVERCOMMITTED],
        place="cluster",
        short=short,
    )


def queue_is_closed(rng: Random) -> Case:
    world = World(rng.choice(["", CAPACITY]))
    _room(world, rng)
    world.queue("q", state="Closed")
    _waiting(world, rng, 2, queue="q", pending=rng.random() < 0.5)

    def lift(changed: World) -> None:
        changed.find("queues", "q")["status"]["state"] = "Open"

    return Case(world=world, lift=lift, reasons=[R.QUEUE_NOT_OPEN])


def queue_is_missing(rng: Random) -> Case:
    world = World()
    _room(world, rng)
    _waiting(world, rng, 2, queue="absent")
    return Case(world=world, lift=lambda w: w.queue("absent"), reasons=[R.QUEUE_MISSING])


def first_in_line(rng: Random) -> Case:
    """The queue is first in, first out, and its first can't start yet."""
    world = World()
    world.node("n0", cpu=8)
    world.queue("q", dequeueStrategy="fifo")
    world.gang("old", 1, {"cpu": 4}, on="n0")
    world.gang("first", 1, {"cpu": rng.randint(5, 8)}, queue="q")
    world.gang(GANG, 1, {"cpu": rng.randint(1, 3)}, queue="q")
    return Case(world=world, lift=lambda w: w.end("first"), reasons=[R.QUEUE_LIMIT])


def reservation(rng: Random) -> Case:
    """What is free is kept for a gang of which it is known when it starts."""
    world = World(RESERVING)
    world.node("n0", cpu=8)
    held = rng.randint(3, 5)
    limit = {"vcbatch.dev/max-run-seconds": "5000000"}
    world.gang("old", 1, {"cpu": held}, on="n0", group_notes=limit, notes=limit)
    world.gang("first", 1, {"cpu": 8}, group={"priorityClassName": "high"})
    world.add("priorityClasses", {"metadata": {"name": "high"}, "value": 10})
    world.gang(GANG, 1, {"cpu": rng.randint(1, 3)})
    return Case(world=world, lift=lambda w: w.end("first"), reasons=[R.RESERVED])


def gate(rng: Random) -> Case:
    world = World()
    _room(world, rng)
    _waiting(world, rng, 3)
    for pod in world.pods_of(GANG):
        pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]

    def lift(changed: World) -> None:
        for pod in changed.pods_of(GANG):
            del pod["spec"]["schedulingGates"]

    return Case(world=world, lift=lift, reasons=[R.GATED])


def some_are_gated(rng: Random) -> Case:
    world = World()
    _room(world, rng)
    world.gang(GANG, 3, {"cpu": 1})
    world.pods_of(GANG)[rng.randrange(3)]["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]

    def lift(changed: World) -> None:
        for pod in changed.pods_of(GANG):
            pod["spec"].pop("schedulingGates", None)

    return Case(world=world, lift=lift, reasons=[R.GATED])


def pods_are_missing(rng: Random) -> Case:
    world = World()
    _room(world, rng)
    there = rng.randint(1, 3)
    least = there + rng.randint(1, 2)
    world.gang(GANG, least, {"cpu": 1}, pods=there)

    def lift(changed: World) -> None:
        changed.find("podGroups", GANG)["spec"]["minMember"] = there

    return Case(
        world=world,
        lift=lift,
        reasons=[R.NOT_ENOUGH_PODS],
        place=f"podgroup/default/{GANG}",
        short={"pods": str(least - there)},
    )


def priority(rng: Random) -> Case:
    """A gang of higher priority takes what is free; what it leaves isn't enough."""
    world = World()
    world.add("priorityClasses", {"metadata": {"name": "high"}, "value": 10})
    world.node("n0", cpu=8)
    first, wanted = rng.randint(4, 7), rng.randint(5, 8)
    world.gang(GANG, 1, {"cpu": wanted})
    world.gang("first", 1, {"cpu": first}, group={"priorityClassName": "high"})
    short = {"cpu": str(wanted + first - 8)}
    return Case(world=world, lift=lambda w: w.end("first"), reasons=[R.INSUFFICIENT], place="node/n0", short=short)


def node_group(rng: Random) -> Case:
    """The queue may only use a group of nodes, which is full."""
    world = World(GROUPS)
    wanted, left = rng.randint(3, 6), rng.randint(0, 2)
    world.node("n0", labels={GROUP: "a"})
    world.node("n1", labels={GROUP: "b"})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": ["a"]}
    world.queue("q", affinity={"nodeGroupAffinity": required})
    world.gang("old", 1, {"cpu": 8 - left}, on="n0", queue="q")
    world.gang(GANG, 1, {"cpu": wanted}, queue="q")
    short = {"cpu": str(wanted - left)}
    return Case(world=world, lift=lambda w: w.end("old"), reasons=[R.INSUFFICIENT], place="node/n0", short=short)


def _queue(policy: str, *, pending: bool) -> Kind:
    return lambda rng: queue_capability(rng, policy=policy, pending=pending)


KINDS: dict[str, Kind] = {
    "a queue's capability (capacity)": _queue(CAPACITY, pending=False),
    "a queue's capability (proportion)": _queue("", pending=False),
    "admission to a queue (capacity)": _queue(CAPACITY, pending=True),
    "admission to a queue (proportion)": _queue("", pending=True),
    "an ancestor's capability": ancestor_capability,
    "another queue's guarantee (capacity)": lambda rng: guarantee_of_another(rng, policy=CAPACITY),
    "another queue's guarantee (proportion)": lambda rng: guarantee_of_another(rng, policy=""),
    "a quota": quota,
    "admission to the cluster": admission,
    "a closed queue": queue_is_closed,
    "a missing queue": queue_is_missing,
    "first in, first out": first_in_line,
    "a reservation": reservation,
    "a scheduling gate": gate,
    "a scheduling gate of one pod": some_are_gated,
    "missing pods": pods_are_missing,
    "a gang of higher priority": priority,
    "a group of nodes": node_group,
}
