"""Random cluster states for plugins beyond the default policy, with the additional fields of nodes, queues and pods."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from tests.oracle.rules import HARD, SOFT
from tests.oracle.strategies import near, networks, policies, worlds
from tests.oracle.thin import BY_AMOUNTS, thin_policy, thin_world
from tests.oracle.worlds import NOW

Json = dict[str, Any]
GROUP = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
GROUPS = ("a", "b", "c")
LOADS = (0.0713, 0.1337, 0.2219, 0.2641, 0.3127, 0.3559, 0.4373, 0.5, 0.8311)
"""Similar values, so that recent placements change their order, with irregular differences, so that two nodes never
differ only by rounding."""
RISKY = (0, 0.151, 0.253, 0.307, 0.407, 0.5, 2)
"""Values between the loads, which some nodes reach by placements; never so close that rounding decides."""


@st.composite
def _policies(draw: st.DrawFn) -> Json:
    """Any policy of the others, or one in which the tested plugin decides nearly everything."""
    if draw(st.integers(0, 2)) == 0:
        return draw(policies())
    plugins: list[Json] = [{"name": "gang"}, {"name": "predicates"}]
    if draw(st.booleans()):
        plugins.append({"name": "nodeorder", "arguments": {f"{name}.weight": 0 for name in BY_AMOUNTS}})
    return {"actions": "allocate, backfill", "tiers": [{"plugins": plugins}]}


@st.composite
def grouped(draw: st.DrawFn) -> tuple[Json, Json]:
    """Nodes in groups, and a policy that uses them."""
    world, policy = draw(worlds()), draw(_policies())
    for node in world["nodes"]:
        group = draw(st.sampled_from([*GROUPS, *GROUPS, None]))
        if group:
            node["metadata"]["labels"][GROUP] = group
    for i, queue in enumerate(world["queues"]):
        if draw(st.integers(0, 3)):
            near = {HARD: draw(_some(GROUPS, least=1)), SOFT: draw(_some(GROUPS))}
            far = {HARD: draw(_some(GROUPS, most=1)), SOFT: draw(_some(GROUPS, most=1))}
            queue["spec"]["affinity"] = {"nodeGroupAffinity": near, "nodeGroupAntiAffinity": far}
        if i and draw(st.booleans()):
            queue["spec"]["parent"] = "q0"
        if draw(st.integers(0, 2)) == 0:
            limits = {group: {"cpu": draw(st.sampled_from(["1", "3", "5"]))} for group in draw(_some(GROUPS))}
            said = "{" if draw(st.integers(0, 5)) == 0 else json.dumps(limits)
            queue["metadata"]["annotations"] = {LIMITS: said}
    arguments = {"strict": draw(st.booleans()), "enablePreferredOrder": draw(st.booleans())}
    _add(policy, {"name": "nodegroup", "arguments": arguments, "enableHierarchy": draw(st.booleans())})
    return world, policy


def _some(names: Iterable[str], *, least: int = 0, most: int = 2) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(sorted(names)), unique=True, min_size=least, max_size=most)


@st.composite
def measured(draw: st.DrawFn) -> tuple[Json, Json]:
    """Nodes with measured usage, and a policy that uses it. No pod is being released: the rules don't say whether
    pipelined pods count as placed."""
    world, policy = (draw(worlds()), draw(_policies())) if draw(st.integers(0, 3)) == 0 else _few(draw)
    now = NOW.timestamp()
    world["moment"], world["young"], world["nodeUsages"] = now, [], []
    for i, node in enumerate(world["nodes"]):
        node["status"]["capacity"] = node["status"]["allocatable"]
        if draw(st.integers(0, 7)):
            usage = {name: draw(st.sampled_from(LOADS)) + 0.0017 * i for name in ("cpu", "memory")}
            at = now - draw(st.sampled_from([10, 10, 10, 300, 301]))
            world["nodeUsages"].append({"metadata": {"name": node["metadata"]["name"]}, **usage, "observedAt": at})
    for pods in _roles(world):
        limits = draw(st.sampled_from([None, {"cpu": "4"}, {"cpu": "3", "memory": "6Gi"}]))
        for pod in pods:
            resources = pod["spec"]["containers"][0]["resources"]
            if limits and resources["requests"]:
                pod["spec"]["containers"] = [
                    {**pod["spec"]["containers"][0], "resources": {**resources, "limits": limits}}
                ]
            pod["metadata"].pop("deletionTimestamp", None)
            if pod["status"]["phase"] == "Running":
                young = draw(st.booleans())
                pod["status"]["startTime"] = "2026-05-31T23:59:45Z" if young else "2026-05-31T23:00:00Z"
                world["young"] += [pod["metadata"]["uid"]] if young else []
    arguments = {
        "usage.weight": draw(st.integers(1, 5)),
        "cpu.weight": draw(st.integers(1, 3)),
        "memory.weight": draw(st.integers(0, 1)),
        "thresholds.cpu": draw(st.sampled_from([80, 80, 49])),
        "estimator.request_ratio": draw(st.sampled_from([0.7, 0.3])),
        "estimator.burst_ratio": draw(st.sampled_from([0, 0, 0.2, 1.5])),
        "estimator.risk_factor": draw(st.sampled_from([0.5, 1.3, 3])),
        "estimator.risk_threshold": draw(st.sampled_from(RISKY)),
        "estimator.be_cpu": draw(st.sampled_from(["250m", "1"])),
    }
    _add(policy, {"name": "usage", "arguments": arguments})
    return world, policy


def _few(draw: st.DrawFn) -> tuple[Json, Json]:
    """Few nodes, and gangs with more pods, so that earlier placements decide the later ones."""
    return thin_world(draw, most_nodes=3, most_pods=7), thin_policy(draw)


@st.composite
def networked(draw: st.DrawFn) -> tuple[Json, Json]:
    """A network topology, and a policy that fills its domains. Gangs with a topology constraint need all their pods
    then, and all nodes are in HyperNodes: the rules define neither whether domains get points for pods above a gang's
    minimum, nor the distance of nodes outside."""
    world, policy = _wired(draw) if draw(st.booleans()) else _tree(draw)
    if not any(plugin["name"] == "gang" for plugin in policy["tiers"][0]["plugins"]):
        policy["tiers"][0]["plugins"].append({"name": "gang"})
    arguments = {
        "weight": draw(st.integers(1, 2)),
        "hypernode.binpack.cpu": draw(st.integers(0, 2)),
        "hypernode.binpack.resources": draw(st.sampled_from(["", "nvidia.com/gpu"])),
        "hypernode.binpack.normal-pod.enable": draw(st.sampled_from([True, True, False])),
        "hypernode.binpack.normal-pod.fading": draw(st.sampled_from([0, 0.3, 1, 1.7])),
    }
    _add(policy, {"name": "network-topology-aware", "arguments": arguments})
    return world, policy


def _wired(draw: st.DrawFn) -> tuple[Json, Json]:
    world, policy = draw(worlds()), draw(_policies())
    for key in ("pvcs", "pvs", "storageClasses"):
        world.pop(key, None)
    world["hyperNodes"] = draw(networks([node["metadata"]["name"] for node in world["nodes"]]))
    for pod in world["pods"]:
        pod["spec"].pop("volumes", None)
    for group in world["podGroups"]:
        group["spec"].pop("subGroupPolicy", None)
        group["spec"].pop("networkTopology", None)
        near(draw, world, group["spec"])
        if "networkTopology" in group["spec"]:
            mine = f"pod-{group['metadata']['name'].removeprefix('g')}-"
            group["spec"]["minMember"] = sum(pod["metadata"]["uid"].startswith(mine) for pod in world["pods"])
    if any("networkTopology" in group["spec"] for group in world["podGroups"]):
        _add_rack(world)
    return world, policy


def _tree(draw: st.DrawFn) -> tuple[Json, Json]:
    """Gangs without a topology constraint on two spines with racks of one or two nodes, so that a full rack may be
    below an empty spine."""
    world = thin_world(draw, cpus=("2", "4", "7"), most_nodes=6, guests=True)
    racks: dict[str, list[str]] = {}
    for node in world["nodes"]:
        racks.setdefault(draw(st.sampled_from(["ra", "rb", "rc", "rd"])), []).append(node["metadata"]["name"])
    spines = {"sa": [r for r in sorted(racks) if r < "rc"], "sb": [r for r in sorted(racks) if r >= "rc"]}
    tier = draw(st.integers(2, 3))
    named = [(name, 1, "Node", members) for name, members in racks.items()]
    named += [(name, tier, "HyperNode", members) for name, members in spines.items() if members]
    world["hyperNodes"] = [
        {
            "metadata": {"name": name, "uid": f"hyper-{name}"},
            "spec": {
                "tier": at,
                "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members],
            },
        }
        for name, at, kind, members in named
    ]
    return world, thin_policy(draw)


def _add_rack(world: Json) -> None:
    """Add a HyperNode for the nodes that are in none."""
    known = {m["selector"]["exactMatch"]["name"] for h in world["hyperNodes"] for m in h["spec"]["members"]}
    others = [node["metadata"]["name"] for node in world["nodes"] if node["metadata"]["name"] not in known]
    members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in others]
    if members:
        meta = {"name": "r3", "uid": "hyper-r3"}
        world["hyperNodes"].append({"metadata": meta, "spec": {"tier": 1, "members": members}})


def _roles(world: Json) -> list[list[Json]]:
    """The pods of each role of each gang."""
    roles: dict[str, list[Json]] = {}
    for pod in world["pods"]:
        roles.setdefault(pod["metadata"]["name"].rpartition("-")[0], []).append(pod)
    return list(roles.values())


def _add(policy: Json, plugin: Json) -> None:
    policy["tiers"].append({"plugins": [plugin]})
