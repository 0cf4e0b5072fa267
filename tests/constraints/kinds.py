"""Kinds of constraints on nodes: each function makes a world in which one of them keeps a gang from its start."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from tests.constraints.judge import Case
from tests.constraints.world import GANG, World, quantity
from vcbatch.api.reasons import WaitReason as R

Kind = Callable[[Random], Case]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
GROUP = "volcano.sh/nodegroup-name"


def _spread(rng: Random, count: int, below: int) -> list[int]:
    """Different numbers of halves below `below`, the greatest first."""
    return sorted(rng.sample(range(below), count), reverse=True)


def _amounts(resource: str, count: int) -> str:
    units = {"memory": "Gi", "ephemeral-storage": "Gi", "hugepages-2Mi": "Mi"}
    return f"{count * 2}Mi" if resource == "hugepages-2Mi" else f"{count}{units.get(resource, '')}"


def node_is_full(rng: Random, *, resource: str) -> Case:
    """One pod; the node with the most left lacks so much of a resource."""
    world = World()
    wanted, size = rng.randint(4, 7), rng.randint(8, 12)
    left = _spread(rng, rng.randint(1, 4), wanted)
    for nth, free in enumerate(left):
        node = world.node(f"n{nth}")
        node["status"]["allocatable"][resource] = _amounts(resource, size)
        world.gang(f"old-{nth}", 1, {resource: _amounts(resource, size - free)}, on=f"n{nth}")
    world.gang(GANG, 1, {"cpu": "1", resource: _amounts(resource, wanted)} if resource != "cpu" else {"cpu": wanted})
    short = {resource: _amounts(resource, wanted - left[0])}
    return Case(world=world, lift=lambda w: w.end("old-0"), reasons=[R.INSUFFICIENT], place="node/n0", short=short)


def one_pod_of_a_gang(rng: Random) -> Case:
    """Several pods fit, one doesn't: the node on which the least is missing is named, not a sum."""
    world = World()
    wanted = rng.randint(2, 4)
    rests = _spread(rng, rng.randint(1, min(3, wanted)), wanted)
    fit = 0
    for nth, rest in enumerate(rests):
        here = rng.randint(0, 2)
        fit += here
        world.node(f"n{nth}", cpu=wanted * 4)
        world.gang(f"old-{nth}", 1, {"cpu": wanted * (4 - here) - rest}, on=f"n{nth}")
    world.gang(GANG, fit + 1, {"cpu": wanted})
    short = {"cpu": str(wanted - rests[0])}
    return Case(world=world, lift=lambda w: w.end("old-0"), reasons=[R.INSUFFICIENT], place="node/n0", short=short)


def several_places(rng: Random) -> Case:
    """Each node has lost one pod's place: something must become free on several."""
    world = World()
    wanted, nodes = rng.randint(2, 6), rng.randint(2, 4)
    rests = _spread(rng, min(nodes, wanted), wanted)
    for nth, rest in enumerate(rests):
        world.node(f"n{nth}", cpu=wanted)
        if wanted - rest:
            world.gang(f"old-{nth}", 1, {"cpu": wanted - rest}, on=f"n{nth}")
    world.gang(GANG, len(rests), {"cpu": wanted})

    def lift(changed: World) -> None:
        for nth in range(len(rests)):
            changed.end(f"old-{nth}")

    short = {"cpu": str(wanted - rests[0])}
    return Case(world=world, lift=lift, reasons=[R.INSUFFICIENT], place="node/n0", short=short)


def two_roles(rng: Random) -> Case:
    """Two kinds of pods, of which the larger lacks room."""
    world = World()
    small, large, rest = 1, rng.randint(4, 6), rng.randint(0, 3)
    world.node("n0", cpu=8)
    world.gang("old", 1, {"cpu": 8 - small - rest}, on="n0")
    world.gang(GANG, 2, {"cpu": large}, pods=1)
    world.pods_of(GANG)[0]["metadata"]["name"] = f"{GANG}-large"
    world.gang("helper", 1, {"cpu": small})
    pod = world.pods_of("helper")[0]
    world.remove("podGroups", "helper")
    pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = GANG
    short = {"cpu": str(large - rest)}
    return Case(world=world, lift=lambda w: w.end("old"), reasons=[R.INSUFFICIENT], place="node/n0", short=short)


def larger_than_any_node(rng: Random) -> Case:
    """A pod asks for more than the largest node has."""
    world = World()
    sizes = _spread(rng, rng.randint(1, 3), 8)
    for nth, size in enumerate(sizes):
        world.node(f"n{nth}", cpu=size + 1)
    wanted = rng.randint(10, 64)
    world.gang(GANG, 1, {"cpu": wanted})

    def lift(changed: World) -> None:
        changed.node("large", cpu=wanted * 2)

    short = {"cpu": str(wanted - sizes[0] - 1)}
    return Case(world=world, lift=lift, reasons=[R.IMPOSSIBLE], place="node/n0", short=short)


def no_pod_slots(rng: Random) -> Case:
    """The node takes no more pods."""
    world = World()
    most, used, wanted = rng.randint(3, 6), rng.randint(1, 3), rng.randint(4, 6)
    world.node("n0", cpu=32, pods=most)
    for nth in range(used):
        world.gang(f"old-{nth}", 1, {"cpu": "100m"}, on="n0")
    wanted = max(wanted, most - used + 1)
    world.gang(GANG, wanted, {"cpu": "500m"})

    def lift(changed: World) -> None:
        changed.find("nodes", "n0")["status"]["allocatable"]["pods"] = "110"

    short = {"pods": str(wanted - most + used)}
    possible = [R.TOO_MANY_PODS] if wanted <= most else [R.TOO_MANY_PODS, R.IMPOSSIBLE]
    return Case(world=world, lift=lift, reasons=possible, place="node/n0", short=short)


def pool_is_busy(rng: Random) -> Case:
    """The nodes that the selector allows are full; others aren't."""
    world = World()
    wanted, left = rng.randint(3, 6), rng.randint(0, 2)
    world.node("n0", cpu=8, labels={"pool": "a"})
    for nth in range(rng.randint(1, 4)):
        world.node(f"other-{nth}", cpu=16, labels={"pool": "b"})
    world.gang("old", 1, {"cpu": 8 - left}, on="n0")
    selector: dict[str, Any] = {"nodeSelector": {"pool": "a"}}
    if rng.random() < 0.5:
        terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        selector = {"affinity": {"nodeAffinity": required}}
    world.gang(GANG, 1, {"cpu": wanted}, **selector)
    short = {"cpu": str(wanted - left)}
    return Case(world=world, lift=lambda w: w.end("old"), reasons=[R.INSUFFICIENT], place="node/n0", short=short)


def pool_is_busy_in_a_full_cluster(rng: Random) -> Case:
    """The pool is what is short, though the cluster as a whole is nearly full as well."""
    case = pool_is_busy(rng)
    world = case.world
    for raw in list(world.lists["nodes"]):
        name = raw["metadata"]["name"]
        if name != "n0":
            world.gang(f"old-{name}", 1, {"cpu": 15}, on=name)
    return case


def tainted_pool(rng: Random) -> Case:
    """Other nodes have a taint that the pods don't tolerate."""
    world = World()
    wanted, left = rng.randint(3, 6), rng.randint(0, 2)
    world.node("n0", cpu=8)
    world.node("other", cpu=16, taints=[{"key": "dedicated", "value": "infer", "effect": "NoSchedule"}])
    world.gang("old", 1, {"cpu": 8 - left}, on="n0")
    world.gang(GANG, 1, {"cpu": wanted})
    short = {"cpu": str(wanted - left)}
    return Case(world=world, lift=lambda w: w.end("old"), reasons=[R.INSUFFICIENT], place="node/n0", short=short)


def selector_matches_nothing(rng: Random) -> Case:
    world = World()
    for nth in range(rng.randint(1, 4)):
        world.node(f"n{nth}", labels={"pool": "a"})
    world.gang(GANG, rng.randint(1, 2), {"cpu": 1}, nodeSelector={"pool": "none"})
    return Case(world=world, lift=_without("nodeSelector"), reasons=[R.IMPOSSIBLE])


def affinity_matches_nothing(rng: Random) -> Case:
    world = World()
    for nth in range(rng.randint(1, 4)):
        world.node(f"n{nth}", labels={"pool": "a"})
    terms = [{"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["a"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    world.gang(GANG, 1, {"cpu": 1}, affinity={"nodeAffinity": required})
    return Case(world=world, lift=_without("affinity"), reasons=[R.IMPOSSIBLE])


def every_node_is_tainted(rng: Random) -> Case:
    world = World()
    for nth in range(rng.randint(1, 4)):
        world.node(f"n{nth}", taints=[{"key": "dedicated", "value": "infer", "effect": "NoSchedule"}])
    world.gang(GANG, 1, {"cpu": 1})

    def lift(changed: World) -> None:
        for node in changed.lists["nodes"]:
            node["spec"]["taints"] = None

    return Case(world=world, lift=lift, reasons=[R.IMPOSSIBLE])


def host_ports(rng: Random) -> Case:
    world = World()
    nodes, port = rng.randint(1, 3), rng.randint(8000, 9000)
    for nth in range(nodes):
        world.node(f"n{nth}")
        world.gang(f"old-{nth}", 1, {"cpu": 1}, on=f"n{nth}", ports=[port])
    world.gang(GANG, 1, {"cpu": 1}, ports=[port])
    return Case(world=world, lift=lambda w: w.end("old-0"), reasons=[R.NODE_PORTS])


def anti_affinity(rng: Random, *, existing: bool) -> Case:
    """On each node a pod that this gang, or that keeps away from it."""
    world = World()
    away = [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "old" if not existing else "new"}}}]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": away}}
    theirs: dict[str, Any] = {"affinity": affinity} if existing else {}
    ours: dict[str, Any] = {} if existing else {"affinity": affinity}
    for nth in range(rng.randint(1, 3)):
        world.node(f"n{nth}")
        world.gang(f"old-{nth}", 1, {"cpu": 1}, on=f"n{nth}", labels={"app": "old"}, **theirs)
    world.gang(GANG, 1, {"cpu": 1}, labels={"app": "new"}, **ours)
    return Case(world=world, lift=lambda w: w.end("old-0"), reasons=[R.INTER_POD_AFFINITY])


def pod_affinity(rng: Random) -> Case:
    """Where the pod that it must be near is there is no room by affinity: there is none such pod."""
    world = World()
    for nth in range(rng.randint(1, 3)):
        world.node(f"n{nth}")
    near = [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "absent"}}}]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}}
    world.gang(GANG, 1, {"cpu": 1}, labels={"app": "new"}, affinity=affinity)
    return Case(world=world, lift=_without("affinity"), reasons=[R.INTER_POD_AFFINITY, R.IMPOSSIBLE])


def topology_spread(rng: Random) -> Case:
    """The one zone with room has as many pods of the kind as it may."""
    world = World()
    there = rng.randint(1, 3)
    world.node("n0", cpu=16, labels={ZONE: "a"})
    world.node("n1", cpu=4, labels={ZONE: "b"})
    world.gang("old", there, {"cpu": 1}, on="n0", labels={"app": "x"})
    world.gang("full", 1, {"cpu": 4}, on="n1")
    spread = {
        "maxSkew": there,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    world.gang(GANG, 1, {"cpu": 1}, labels={"app": "x"}, topologySpreadConstraints=[spread])
    return Case(world=world, lift=_without("topologySpreadConstraints"), reasons=[R.POD_TOPOLOGY_SPREAD])


def _volume(world: World, claim: str, *, modes: str = "ReadWriteOnce", of_class: str = "", **pv: Any) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "storageClassName": of_class, "accessModes": [modes], **pv}
    world.add("pvs", {"metadata": {"name": f"pv-{claim}"}, "spec": spec})
    world.add(
        "pvcs",
        {
            "metadata": {"name": claim, "namespace": "default"},
            "spec": {"volumeName": f"pv-{claim}", "accessModes": [modes], "storageClassName": of_class},
            "status": {"phase": "Bound"},
        },
    )


def _claims(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def claim_is_missing(rng: Random) -> Case:
    world = World()
    for nth in range(rng.randint(1, 3)):
        world.node(f"n{nth}")
    world.gang(GANG, 1, {"cpu": 1}, volumes=_claims("data"))
    return Case(world=world, lift=_without("volumes"), reasons=[R.VOLUMES])


def claim_is_in_use(rng: Random) -> Case:
    """A claim for one pod only (ReadWriteOncePod) that another pod uses."""
    world = World()
    for nth in range(rng.randint(1, 3)):
        world.node(f"n{nth}")
    _volume(world, "data", modes="ReadWriteOncePod")
    world.gang("old", 1, {"cpu": 1}, on="n0", volumes=_claims("data"))
    world.gang(GANG, 1, {"cpu": 1}, volumes=_claims("data"))
    return Case(world=world, lift=lambda w: w.end("old"), reasons=[R.VOLUME_RESTRICTIONS])


def volumes_are_attached(rng: Random) -> Case:
    """The node attaches no more volumes of the driver."""
    world = World()
    world.node("n0")
    most = rng.randint(1, 3)
    world.add("csiNodes", {"metadata": {"name": "n0"}, "spec": {"drivers": [_driver(most)]}})
    for nth in range(most):
        _volume(world, f"old-{nth}", csi={"driver": "example.com/disk", "volumeHandle": f"old-{nth}"})
        world.gang(f"old-{nth}", 1, {"cpu": 1}, on="n0", volumes=_claims(f"old-{nth}"))
    _volume(world, "data", csi={"driver": "example.com/disk", "volumeHandle": "data"})
    world.gang(GANG, 1, {"cpu": 1}, volumes=_claims("data"))
    return Case(world=world, lift=lambda w: w.end("old-0"), reasons=[R.NODE_VOLUME_LIMITS])


def _driver(count: int) -> dict[str, Any]:
    return {"name": "example.com/disk", "nodeID": "n0", "allocatable": {"count": count}}


def volume_of_another_node(rng: Random) -> Case:
    """The node from which the volume can be reached is full."""
    world = World()
    wanted, left = rng.randint(3, 6), rng.randint(0, 2)
    world.node("n0")
    world.node("n1")
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n0"]}]}]
    _volume(world, "data", nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    world.gang("old", 1, {"cpu": 8 - left}, on="n0")
    world.gang(GANG, 1, {"cpu": wanted}, volumes=_claims("data"))
    short = {"cpu": str(wanted - left)}
    return Case(world=world, lift=lambda w: w.end("old"), reasons=[R.INSUFFICIENT], place="node/n0", short=short)


def _without(field: str) -> Callable[[World], object]:
    def lift(world: World) -> None:
        for pod in world.pods_of(GANG):
            pod["spec"].pop(field, None)

    return lift


def devices_by_claim(rng: Random) -> Case:
    """All devices of the class are given to others."""
    world = World()
    world.add("deviceClasses", {"metadata": {"name": "gpu"}, "spec": {}})
    have = rng.randint(1, 3)
    world.node("n0")
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"d{nth}"} for nth in range(have)]
    spec = {"driver": "gpu.example.com", "nodeName": "n0", "pool": pool, "devices": devices}
    world.add("resourceSlices", {"metadata": {"name": "s0"}, "spec": spec})
    for nth in range(have):
        _device_claim(world, f"old-{nth}", given=f"d{nth}")
        claims = [{"name": "d", "resourceClaimName": f"old-{nth}"}]
        world.gang(f"old-{nth}", 1, {"cpu": 1}, on="n0", resourceClaims=claims)
    _device_claim(world, "data")
    world.gang(GANG, 1, {"cpu": 1}, resourceClaims=[{"name": "d", "resourceClaimName": "data"}])

    def lift(changed: World) -> None:
        changed.end("old-0")
        changed.remove("resourceClaims", "old-0")

    return Case(world=world, lift=lift, reasons=[R.DYNAMIC_RESOURCES])


def _device_claim(world: World, name: str, given: str = "") -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    raw: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }
    if given:
        result = {"request": "r", "driver": "gpu.example.com", "pool": "n0", "device": given}
        raw["status"] = {"allocation": {"devices": {"results": [result]}}}
    world.add("resourceClaims", raw)


def network_domain(rng: Random) -> Case:
    """The racks have room for so many pods in all, and none for all that have to be together."""
    world = World()
    wanted, rest = rng.randint(2, 4), rng.randint(0, 1)
    for nth in range(4):
        world.node(f"n{nth}", cpu=wanted * 2)
    for rack, members in (("r0", ("n0", "n1")), ("r1", ("n2", "n3"))):
        items = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in members]
        world.add("hyperNodes", {"metadata": {"name": rack}, "spec": {"tier": 1, "members": items}})
    world.gang("old-0", 1, {"cpu": wanted * 2 - wanted - rest}, on="n0")  # one place and the rest of another
    world.gang("old-1", 1, {"cpu": wanted * 2}, on="n1")
    world.gang("old-2", 1, {"cpu": wanted * 2}, on="n2")
    world.gang("old-3", 1, {"cpu": wanted * 2}, on="n3")
    world.gang(GANG, 2, {"cpu": wanted}, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}})
    short = {"cpu": str(wanted - rest)}
    return Case(world=world, lift=lambda w: w.end("old-0"), reasons=[R.TOPOLOGY], place="node/n0", short=short)


RESOURCES = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi")
KINDS: dict[str, Kind] = {
    **{f"a node is full of {name}": partial(node_is_full, resource=name) for name in RESOURCES},
    "one pod of a gang": one_pod_of_a_gang,
    "several places": several_places,
    "two roles": two_roles,
    "larger than any node": larger_than_any_node,
    "no pod slots": no_pod_slots,
    "the pool is busy": pool_is_busy,
    "the pool is busy in a full cluster": pool_is_busy_in_a_full_cluster,
    "others are tainted": tainted_pool,
    "a selector that matches nothing": selector_matches_nothing,
    "an affinity that matches nothing": affinity_matches_nothing,
    "every node is tainted": every_node_is_tainted,
    "host ports": host_ports,
    "anti-affinity": partial(anti_affinity, existing=False),
    "anti-affinity of others": partial(anti_affinity, existing=True),
    "pod affinity": pod_affinity,
    "topology spread": topology_spread,
    "a claim is missing": claim_is_missing,
    "a claim is in use": claim_is_in_use,
    "volumes are attached": volumes_are_attached,
    "a volume of another node": volume_of_another_node,
    "devices by claim": devices_by_claim,
    "a domain of the network": network_domain,
}
__all__ = ["KINDS", "Kind", "quantity"]
