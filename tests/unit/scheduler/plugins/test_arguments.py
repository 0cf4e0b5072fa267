"""Every argument of the plugins that choose nodes does what it is for: with it a pod goes elsewhere than without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import Cluster, Json
from tests.unit.scheduler.plugins.test_filters import Rules
from vcbatch.api.node import Node
from vcbatch.api.resources import NODES
from vcbatch.scheduler import build_policy
from vcbatch.scheduler.actions import ACTIONS
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.switches import HOOKS, Switch
from vcbatch.scheduler.plugins import PLUGINS
from vcbatch.scheduler.policy.text import gates

ZONE = "topology.kubernetes.io/zone"
DB = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
SILENT = {
    f"{name}.weight": 0
    for name in (
        *("leastrequested", "mostrequested", "balancedresource", "nodeaffinity"),
        *("podaffinity", "tainttoleration", "imagelocality", "podtopologyspread"),
    )
}


class Scored(Rules):
    """Two nodes, `a` before `b` where nothing tells them apart; nothing but `arguments` of nodeorder does."""

    def __init__(self, plugin: str, **arguments: Any) -> None:
        given = {**SILENT, **arguments} if plugin == "nodeorder" else arguments
        plugins: list[Json] = [{"name": "gang"}, {"name": "predicates"}, {"name": plugin, "arguments": given}]
        Cluster.__init__(self, build_policy({"actions": "allocate", "tiers": [{"plugins": plugins}]}))
        self.node("a", cpu="8", nvidia_gpu="8", labels={ZONE: "x"})
        self.node("b", cpu="8", nvidia_gpu="8", labels={ZONE: "y"})

    def taken(self, node: str, name: str = "taken", **amounts: str) -> None:
        """Somebody holds this much of a node."""
        resources = {"requests": {key.replace("_", "/"): value for key, value in amounts.items()}}
        containers = [{"name": "main", "resources": resources}]
        self.stranger(f"{name}-{node}", node, labels={"app": "db"}, containers=containers)


def _requests_for_a_zone(world: Scored) -> Json:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["y"]}]}
    preferences = [{"weight": 1, "preference": term}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferences}}}


def _requests_for_company(world: Scored) -> Json:
    world.taken("b")
    preferences = [{"weight": 1, "podAffinityTerm": DB}]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferences}}}


def _bears_no_taint(world: Scored) -> Json:
    taints = [{"key": "slow", "effect": "PreferNoSchedule"}]
    world.node("a", event="MODIFIED", cpu="8", labels={ZONE: "x"}, taints=taints)
    return {}


def _image_is_there(world: Scored) -> Json:
    status: Json = {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "20"}}
    status["images"] = [{"names": ["big:1"], "sizeBytes": 900 << 20}]
    status["conditions"] = [{"type": "Ready", "status": "True"}]
    raw = {"metadata": {"name": "b", "uid": "node-b"}, "spec": {}, "status": status}
    world.scheduler.apply(NODES, "MODIFIED", msgspec.convert(raw, Node))
    requests = {"cpu": "1", "memory": "1Gi"}
    return {"containers": [{"name": "main", "image": "big:1", "resources": {"requests": requests}}]}


def _spreads_softly(world: Scored) -> Json:
    world.taken("a")
    return {"topologySpreadConstraints": [{**DB, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]}


def _first_is_fuller(world: Scored) -> Json:
    world.taken("a", cpu="4", memory="16Gi")
    return {}


def _second_is_fuller(world: Scored) -> Json:
    world.taken("b", cpu="4", memory="16Gi")
    return {}


def _first_is_lopsided(world: Scored) -> Json:
    world.taken("a", cpu="6")
    world.taken("b", memory="16Gi")
    return {}


@pytest.mark.parametrize(
    ("argument", "build"),
    [
        ("nodeaffinity.weight", _requests_for_a_zone),
        ("podaffinity.weight", _requests_for_company),
        ("tainttoleration.weight", _bears_no_taint),
        ("imagelocality.weight", _image_is_there),
        ("podtopologyspread.weight", _spreads_softly),
        ("leastrequested.weight", _first_is_fuller),
        ("mostrequested.weight", _second_is_fuller),
        ("balancedresource.weight", _first_is_lopsided),
    ],
)
def test_each_weight_of_nodeorder_counts(argument: str, build: Callable[[Scored], Json]) -> None:
    for weight, node in ((0, "a"), (1, "b")):
        world = Scored("nodeorder", **{argument: weight})
        world.gang("g", 1, pod=build(world))
        assert world.nodes("g") == {node}


@pytest.mark.parametrize(
    ("arguments", "node"),
    [
        ({"binpack.cpu": 1, "binpack.memory": 0}, "a"),
        ({"binpack.cpu": 0, "binpack.memory": 1}, "b"),
        ({"binpack.cpu": 1, "binpack.memory": 3}, "b"),
        ({"binpack.cpu": 3, "binpack.memory": 1}, "a"),
        ({"binpack.resources": "nvidia/gpu"}, "b"),
        ({"binpack.resources": "nvidia/gpu", "binpack.resources.nvidia/gpu": 0, "binpack.cpu": 2}, "a"),
        ({"binpack.resources.nvidia/gpu": 9, "binpack.cpu": 2}, "a"),
        ({"binpack.weight": 0}, "a"),
    ],
)
def test_each_weight_of_binpack_counts(arguments: Json, node: str) -> None:
    world = Scored("binpack", **arguments)
    world.taken("a", cpu="4")
    world.taken("b", memory="16Gi", nvidia_gpu="4")
    requests = {"cpu": "1", "memory": "4Gi", "nvidia/gpu": "1"}
    world.gang("g", 1, pod={"containers": [{"name": "main", "resources": {"requests": requests}}]})
    assert world.nodes("g") == {node}


def _tainted(world: Rules) -> Json:
    for name in ("a", "b"):
        world.node(name, event="MODIFIED", taints=[{"key": "k", "effect": "NoSchedule"}])
    return {}


def _spread(world: Rules) -> Json:
    world.stranger("db", "a", labels={"app": "db"})
    world.node("b", event="DELETED")
    world.node("c", labels={ZONE: "y"}, unschedulable=True)
    return {"topologySpreadConstraints": [{**DB, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}


def _of_another_zone(world: Rules) -> Json:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["elsewhere"]}]}
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.mark.parametrize(
    ("argument", "build"),
    [
        ("predicate.TaintTolerationEnable", _tainted),
        ("predicate.PodTopologySpreadEnable", _spread),
        ("predicate.NodeAffinityEnable", _of_another_zone),
    ],
)
def test_each_filter_of_predicates_can_be_turned_off(argument: str, build: Callable[[Rules], Json]) -> None:
    for on in (True, False):
        world = Rules(**{argument: on})
        pod = build(world)
        labels = {"app": "db"} if "Spread" in argument else {}
        world.gang("g", 0, minimum=1)
        world.pod("g", 0, **pod)
        if labels:
            world.pods["g-worker-0"]["metadata"]["labels"] |= labels
            world.change("g-worker-0")
        assert world.nodes("g") == (set() if on else {"a"})


def test_the_documents_name_every_argument() -> None:
    documents = ("scheduler", "queues", "hypernodes")
    text = "".join(Path(f"docs/{name}.md").read_text(encoding="utf-8") for name in documents)
    specs = [
        *((name, cls.ARGUMENTS) for name, cls in PLUGINS.items()),
        *((name, action.arguments) for name, action in ACTIONS.items()),
    ]
    missing = [
        f"{name}: {argument}"
        for name, spec in specs
        for argument in (*spec.named, *spec.structured)
        if f"`{argument}`" not in text and f"`.{argument.rpartition('.')[2]}`" not in text
    ]
    assert missing == []


@pytest.mark.parametrize("switch", [s for s in Switch if s in HOOKS])
def test_a_switch_that_gates_something_gates_it_in_some_plugin(switch: Switch) -> None:
    assert any(gates(switch, cls) for cls in PLUGINS.values())
    assert not gates(switch, Plugin)
