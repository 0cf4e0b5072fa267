"""Kinds of constraints of plugins, of nodes that take no pods for now, and of who else was admitted."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import yaml

from tests.constraints.judge import Case
from tests.constraints.kinds import Kind
from tests.constraints.world import GANG, World
from vcbatch.api.reasons import WaitReason as R
from vcbatch.scheduler.simulation.simulation import MOMENT

ZONE = "volcano.sh/revocable-zone"
NUMA = "volcano.sh/numa-topology-policy"
READY = [{"type": "Ready", "status": "True"}]


def _policy(
    plugin: str, arguments: dict[str, Any], *, actions: str = "enqueue, allocate, backfill", **more: Any
) -> str:
    first = [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]
    named = {"name": plugin, "arguments": arguments}
    tiers = [[*first, named], [{"name": "predicates"}, {"name": "nodeorder"}]]
    return yaml.safe_dump({"actions": actions, "tiers": [{"plugins": plugins} for plugins in tiers], **more})


def _uncordon(world: World, name: str) -> None:
    world.find("nodes", name)["spec"].pop("unschedulable", None)


def cordoned(rng: Random) -> Case:
    """All nodes that would do are cordoned."""
    world = World()
    names = [f"n{nth}" for nth in range(rng.randint(1, 3))]
    for name in names:
        world.node(name)["spec"]["unschedulable"] = True
    if rng.random() < 0.5:
        world.node("other", cpu=16, labels={"pool": "b"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    world.gang(GANG, rng.randint(1, len(names)), {"cpu": rng.randint(5, 8)})
    return Case(world=world, lift=lambda w: [_uncordon(w, name) for name in names], reasons=[R.NODE_UNSCHEDULABLE])


def partly_cordoned(rng: Random) -> Case:
    """The nodes that aren't cordoned are too few, were they empty."""
    world = World()
    world.node("n0")
    world.node("n1")["spec"]["unschedulable"] = True
    wanted = rng.randint(5, 8)
    if rng.random() < 0.5:
        world.gang("old", 1, {"cpu": 1}, on="n1")
        wanted = min(wanted, 7)
    world.gang(GANG, 2, {"cpu": wanted})
    return Case(world=world, lift=lambda w: _uncordon(w, "n1"), reasons=[R.NODE_UNSCHEDULABLE])


def cordoned_and_busy(rng: Random) -> Case:
    """The one node is cordoned, and others' pods are on it."""
    world = World()
    held = rng.randint(2, 6)
    world.node("n0")["spec"]["unschedulable"] = True
    world.gang("old", 1, {"cpu": held}, on="n0")
    world.gang(GANG, 1, {"cpu": rng.randint(9 - held, 8)})

    def lift(changed: World) -> None:
        _uncordon(changed, "n0")
        changed.end("old")

    return Case(world=world, lift=lift, reasons=[R.NODE_UNSCHEDULABLE])


def not_ready(rng: Random) -> Case:
    world = World()
    for nth in range(rng.randint(1, 3)):
        world.node(f"n{nth}")["status"]["conditions"] = [{"type": "Ready", "status": rng.choice(["False", "Unknown"])}]
    world.gang(GANG, 1, {"cpu": rng.randint(1, 8)})

    def ready(changed: World, name: str) -> None:
        changed.find("nodes", name)["status"]["conditions"] = READY

    return Case(world=world, lift=lambda w: ready(w, "n0"), reasons=[R.TAINT_TOLERATION], passes=ready)


def busy_as_measured(rng: Random) -> Case:
    """More of the nodes is in use than the policy allows, whatever their pods ask for."""
    world = World(_policy("usage", {"thresholds": {"cpu": 60, "mem": 60}}, metrics={"type": "local"}))
    names = [f"n{nth}" for nth in range(rng.randint(1, 3))]
    for name in names:
        world.node(name)
        cpu, memory = rng.choice([(0.9, 0.1), (0.1, 0.7), (0.8, 0.8)])
        load = {"metadata": {"name": name}, "cpu": cpu, "memory": memory, "observedAt": MOMENT.timestamp()}
        world.add("nodeUsages", load)
    world.gang(GANG, rng.randint(1, 2), {"cpu": 2})

    def idle(changed: World, name: str) -> None:
        changed.find("nodeUsages", name).update(cpu=0.1, memory=0.1)

    return Case(
        world=world,
        lift=lambda w: [idle(w, name) for name in names],
        reasons=[R.NODE_USAGE],
        passes=idle,
        rounds=1,  # a measurement counts for five minutes
    )


def lent_to_others(rng: Random) -> Case:
    """The nodes with room are for pods that may be evicted, and those of the gang don't say so."""
    world = World(_policy("tdm", {"tdm.revocable-zone.a": "00:00-00:00"}))
    for nth in range(rng.randint(1, 3)):
        world.node(f"n{nth}", labels={ZONE: "a"})
    world.gang(GANG, rng.randint(1, 2), {"cpu": 2})

    def lift(changed: World) -> None:
        for node in changed.lists["nodes"]:
            del node["metadata"]["labels"][ZONE]

    return Case(world=world, lift=lift, reasons=[R.REVOCABLE_ZONE])


def not_lent_now(rng: Random) -> Case:
    """The nodes with room are lent at other times."""
    world = World(_policy("tdm", {"tdm.revocable-zone.a": "12:00-13:00"}))
    for nth in range(rng.randint(1, 3)):
        world.node(f"n{nth}", labels={ZONE: "a"})
    world.gang(GANG, rng.randint(1, 2), {"cpu": 2}, notes={ZONE: "*"})

    def lent(changed: World, _: str = "") -> None:
        changed.policy = _policy("tdm", {"tdm.revocable-zone.a": "00:00-00:00"})

    return Case(world=world, lift=lent, reasons=[R.REVOCABLE_ZONE], passes=lent, rounds=1)


def extender(rng: Random) -> Case:
    """The server that the policy asks doesn't answer."""
    world = World(_policy("extender", {"extender.urlPrefix": "http://nobody", "extender.predicateVerb": "filter"}))
    for nth in range(rng.randint(1, 3)):
        world.node(f"n{nth}")
    world.gang(GANG, rng.randint(1, 2), {"cpu": 2})

    def without(changed: World, _: str = "") -> None:
        changed.policy = _policy("binpack", {})

    return Case(world=world, lift=without, reasons=[R.EXTENDER], passes=without)


def idle_devices(rng: Random) -> Case:
    """A gang without devices would leave too little beside those that are idle."""
    kept = {"enable": True, "resources": "nvidia.com/gpu", "resourceProportion": {"nvidia.com/gpu.cpu": 2}}
    world = World(_policy("resource-strategy-fit", {"proportional": kept}))
    gpus, wanted = rng.randint(2, 4), rng.randint(4, 8)
    world.node("n0", cpu=8)
    world.lists["nodes"][0]["status"]["allocatable"]["nvidia.com/gpu"] = str(gpus)
    world.gang(GANG, 1, {"cpu": max(wanted, 9 - 2 * gpus)})

    def without(changed: World, _: str = "") -> None:
        changed.policy = _policy("binpack", {})

    return Case(world=world, lift=without, reasons=[R.PROPORTIONAL], passes=without)


def _numa(world: World, node: str, free: Sequence[int], policy: str) -> None:
    """A node of 8 cpus on two NUMA nodes."""
    detail = {str(cpu): {"numa": cpu // 4, "socket": cpu // 4, "core": cpu} for cpu in range(8)}
    spec = {
        "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": policy},
        "numares": {"cpu": {"allocatable": ",".join(map(str, free)), "capacity": 8}},
        "cpuDetail": detail,
    }
    world.add("numatopologies", {"metadata": {"name": node}, "spec": spec})


def numa(rng: Random, *, asked: bool) -> Case:
    """Each of the two NUMA nodes has cpus left, together enough, and neither has enough alone. The pod asks for one
    (`asked`), or the kubelet insists on it."""
    world = World(_policy("numa-aware", {"weight": 1}))
    world.node("n0")
    left = rng.randint(2, 3)
    free = [*range(left), *range(4, 4 + left)]
    _numa(world, "n0", free, "single-numa-node")
    amounts = {"cpu": str(left + 1), "memory": "1Gi"}
    notes = {NUMA: "single-numa-node"} if asked else {}
    world.gang("old", 1, {"cpu": 8 - 2 * left}, on="n0")
    pods = world.gang(GANG, 1, amounts, notes=notes)
    pods[0]["spec"]["containers"][0]["resources"]["limits"] = amounts

    def lift(changed: World) -> None:
        changed.end("old")
        _all_cpus_free(changed)

    return Case(world=world, lift=lift, reasons=[R.NUMA], ended=lambda w, _: _all_cpus_free(w))


def _all_cpus_free(world: World) -> None:
    world.lists.pop("numatopologies")
    _numa(world, "n0", range(8), "single-numa-node")


def shared_cards(rng: Random) -> Case:
    """The cards have enough memory left together, and none has enough alone."""
    world = World(_policy("deviceshare", {"deviceshare.GPUSharingEnable": True}))
    cards, size = rng.randint(2, 3), 8
    held = rng.randint(5, 7)
    for nth in range(rng.randint(1, 2)):
        amounts = {"volcano.sh/gpu-number": str(cards), "volcano.sh/gpu-memory": str(cards * size)}
        node = world.node(f"n{nth}")
        node["status"]["allocatable"] |= amounts
        node["status"]["capacity"] = dict(node["status"]["allocatable"])
        for card in range(cards):
            note = {"volcano.sh/gpu-index": str(card), "volcano.sh/predicate-time": "1"}
            gang = f"old-{nth}-{card}"
            pods = world.gang(gang, 1, {"volcano.sh/gpu-memory": held}, on=f"n{nth}", notes=note)
            pods[0]["spec"]["containers"][0]["resources"]["limits"] = {"volcano.sh/gpu-memory": str(held)}
    wanted = rng.randint(size - held + 1, min(cards * (size - held), size))
    pods = world.gang(GANG, 1, {"volcano.sh/gpu-memory": wanted})
    pods[0]["spec"]["containers"][0]["resources"]["limits"] = {"volcano.sh/gpu-memory": str(wanted)}

    def lift(changed: World) -> None:
        for card in range(cards):
            changed.end(f"old-0-{card}")

    return Case(world=world, lift=lift, reasons=[R.DEVICE_SHARE])


def protected(rng: Random, *, plugin: str) -> Case:
    """Pods of lower priority would go, if they didn't run for too short a time."""
    arguments = {"minRuntime": "10m"} if plugin == "disruption" else {}
    world = World(_policy(plugin, arguments, actions="enqueue, allocate, preempt"))
    world.add("priorityClasses", {"metadata": {"name": "high"}, "value": 10})
    world.node("n0", cpu=8)
    held = rng.randint(3, 8)
    wanted = rng.randint(9 - held, 8)
    pods = world.gang("old", 1, {"cpu": held}, on="n0", notes={"volcano.sh/preemptable": "true"})
    since = MOMENT.strftime("%Y-%m-%dT%H:%M:%SZ")
    pods[0]["status"] |= {
        "startTime": since,
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": since}],
    }
    if plugin == "cdp":
        pods[0]["metadata"]["annotations"]["volcano.sh/cooldown-time"] = "10m"
    world.gang(GANG, 1, {"cpu": wanted}, group={"priorityClassName": "high"}, priority=10)

    def lift(changed: World) -> None:
        changed.policy = _policy("binpack", {}, actions="enqueue, allocate, preempt")

    short = {"cpu": str(wanted + held - 8)}
    return Case(world=world, lift=lift, reasons=[R.VICTIMS_PROTECTED], place="node/n0", short=short, rounds=1)


def behind_an_admitted_gang(rng: Random) -> Case:
    """What is free was promised to a gang that was admitted before, and can't start yet."""
    world = World()
    world.node("n0", cpu=20)
    held = rng.randint(6, 10)
    first = rng.randint(21 - held, 20)
    wanted = rng.randint(max(25 - held - first, 1), 20 - held)
    world.gang("old", 1, {"cpu": held}, on="n0")
    world.gang("first", 1, {"cpu": first}, group={"minResources": {"cpu": str(first)}})
    world.gang(GANG, 1, {"cpu": wanted}, group={"minResources": {"cpu": str(wanted)}}, phase="Pending")
    return Case(
        world=world, lift=lambda w: w.end("first"), reasons=[R.CLUSTER_OVERCOMMITTED], place="cluster", rounds=2
    )


KINDS: dict[str, Kind] = {
    "cordoned nodes": cordoned,
    "too few nodes that aren't cordoned": partly_cordoned,
    "a busy node that is cordoned": cordoned_and_busy,
    "nodes that aren't ready": not_ready,
    "nodes that are busy as measured": busy_as_measured,
    "nodes that are lent to others": lent_to_others,
    "nodes that aren't lent now": not_lent_now,
    "an extender that doesn't answer": extender,
    "room beside idle devices": idle_devices,
    "a pod's NUMA policy": lambda rng: numa(rng, asked=True),
    "a kubelet's NUMA policy": lambda rng: numa(rng, asked=False),
    "memory of shared cards": shared_cards,
    "victims that cool down": lambda rng: protected(rng, plugin="cdp"),
    "victims that run for too short a time": lambda rng: protected(rng, plugin="disruption"),
    "a gang that was admitted before": behind_an_admitted_gang,
}
