"""Every score of a node, of the arrays and of the slow oracle, on random nodes: the same number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import scores as oracle
from tests.oracle.scores import Place
from tests.oracle.worlds import NOW, scheduler
from tests.support.examples import examples
from tests.unit.scheduler.scoring import plugin_of, policy
from vcbatch.scheduler.framework.placing.heads import normalised
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.columns import Columns, Depths
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.plugins.binpack import Binpack
from vcbatch.scheduler.plugins.nodeorder import NodeOrder
from vcbatch.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit

Json = dict[str, Any]
MIB = 1024 * 1024
GPU = "nvidia.com/gpu"
WEIGHTS = ("leastrequested", "mostrequested", "nodeaffinity", "podaffinity", "balancedresource", "tainttoleration")
WEIGHTS += ("imagelocality", "podtopologyspread")

_labels = st.fixed_dictionaries({"app": st.sampled_from(["a", "b"])})
_taints = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from(["x", "y"]), "value": st.just("1"), "effect": st.just("PreferNoSchedule")}
    ),
    max_size=2,
    unique_by=lambda t: t["key"],
)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def _nodes(draw: st.DrawFn) -> list[Json]:
    out: list[Json] = []
    for i in range(draw(st.integers(1, 5))):
        allocatable = {"cpu": draw(st.sampled_from(["4", "7", "0"])), "memory": f"{draw(st.integers(1, 9))}Gi"}
        if draw(st.booleans()):
            allocatable[GPU] = draw(st.sampled_from(["0", "3", "8"]))
        labels = {k: v for k in ("zone", "rack") if (v := draw(_maybe(st.sampled_from(["1", "2"]))))}
        held = [
            {"names": [name], "sizeBytes": draw(st.integers(1, 1500)) * MIB}
            for name in ("small:1", "large:latest")
            if draw(st.booleans())
        ]
        status = {"allocatable": {**allocatable, "pods": "50"}, "images": held}
        meta = {"name": f"n{i}", "labels": {"kubernetes.io/hostname": f"n{i}", **labels}}
        out.append({"metadata": meta, "spec": {"taints": draw(_taints)}, "status": status})
    return out


@st.composite
def _pod(draw: st.DrawFn, name: str, node: str = "") -> Json:
    containers: list[Json] = []
    for _ in range(draw(st.integers(1, 2))):
        asked = {"cpu": draw(_maybe(st.sampled_from(["500m", "1", "3"]))), "memory": draw(_maybe(st.just("700Mi")))}
        asked[GPU] = draw(_maybe(st.sampled_from(["1", "2"])))
        image = draw(st.sampled_from(["small:1", "large:latest"]))
        resources = {"requests": {k: v for k, v in asked.items() if v}}
        containers.append({"name": "c", "image": image, "resources": resources})
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "labels": draw(_labels),
            "annotations": {"scheduling.k8s.io/group-name": "g"},
        },
        "spec": {"containers": containers, "nodeName": node, **draw(_preferences())},
        "status": {"phase": "Running" if node else "Pending"},
    }


@st.composite
def _preferences(draw: st.DrawFn) -> Json:
    def term() -> Json:
        return {"labelSelector": {"matchLabels": draw(_labels)}, "topologyKey": draw(st.sampled_from(["zone", "rack"]))}

    def soft() -> list[Json]:
        return [{"weight": draw(st.integers(1, 9)), "podAffinityTerm": term()} for _ in range(draw(st.integers(0, 1)))]

    terms = [
        {
            "weight": draw(st.integers(1, 9)),
            "preference": {
                "matchExpressions": [{"key": "zone", "operator": "In", "values": [draw(st.sampled_from("12"))]}]
            },
        }
        for _ in range(draw(st.integers(0, 2)))
    ]
    affinity: Json = {
        "nodeAffinity": {oracle._SOFT: terms},
        "podAffinity": {oracle._SOFT: soft(), oracle._HARD: [term()] if draw(st.integers(0, 3)) == 0 else []},
        "podAntiAffinity": {oracle._SOFT: soft()},
    }
    spread = [
        {**term(), "maxSkew": draw(st.integers(1, 3)), "whenUnsatisfiable": "ScheduleAnyway"}
        for _ in range(draw(st.integers(0, 2)))
    ]
    tolerations = [{"key": "x", "operator": "Exists"}] if draw(st.booleans()) else []
    return {"affinity": affinity, "topologySpreadConstraints": spread, "tolerations": tolerations}


@st.composite
def _worlds(draw: st.DrawFn) -> tuple[list[Place], Json]:
    places = [Place(node) for node in draw(_nodes())]
    for i in range(draw(st.integers(0, 5))):
        place = draw(st.sampled_from(places))
        place.pods.append(draw(_pod(f"p{i}", place.name)))
    return places, draw(_pod("new"))


def _session(places: list[Place], pod: Json, plugin: str, arguments: Json) -> tuple[Session, Task]:
    group = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 1, "queue": "default"}}
    world = {
        "nodes": [place.node for place in places],
        "queues": [{"metadata": {"name": "default"}}],
        "podGroups": [group],
        "pods": [*(p for place in places for p in place.pods), pod],
    }
    parsed = policy(plugin, arguments)
    state = scheduler(world, parsed)._state
    state.settle()
    opened = Session(state, parsed, StaticCache(), now=NOW, uid="s")
    return opened, next(task for task in state.tasks.values() if task.name == "new")


def _amounts(opened: Session, plugin: Plugin, task: Task) -> list[float]:
    nodes, rows = opened.nodes, np.arange(len(opened.nodes), dtype=np.intp)
    columns = Columns(nodes, task.cls, rows, Depths(nodes, task.cls, 0, 1), promising=False)
    found = plugin.scores(task.cls, columns)
    return [0.0] * len(nodes) if found is None else np.broadcast_to(found, columns.shape)[0].tolist()


def _whole(opened: Session, plugin: Plugin, task: Task) -> list[float]:
    """All that the plugin gives each node."""
    rows, everyone = np.arange(len(opened.nodes), dtype=np.intp), np.ones(len(opened.nodes), dtype=bool)
    total = np.array(_amounts(opened, plugin, task))
    for preference in plugin.preferences(task.cls.profile):
        total += preference.weight * normalised(preference.raw, everyone, preference.normalise)
    if plugin.couples(task):
        points = plugin.task_scores(task, rows, [])
        total += 0.0 if points is None else points
    return total.tolist()


def _only(score: str) -> Json:
    return {f"{name}.weight": int(name == score) for name in WEIGHTS}


ONE_BY_ONE = {"leastrequested": oracle.least, "mostrequested": oracle.most, "balancedresource": oracle.balanced}
TOGETHER = {
    "nodeaffinity": oracle.preferred_nodes,
    "imagelocality": oracle.images,
    "podaffinity": oracle.near_pods,
    "tainttoleration": oracle.tainted,
    "podtopologyspread": oracle.spread,
}


def _flat_where_alike(points: list[float]) -> list[float]:
    """Points that are the same for all nodes decide nothing, so a score may leave them away."""
    return [p - min(points) for p in points]


@settings(max_examples=examples(60))
@given(world=_worlds(), score=st.sampled_from([*ONE_BY_ONE, *TOGETHER]))
def test_scores_of_nodeorder(world: tuple[list[Place], Json], score: str) -> None:
    places, pod = world
    opened, task = _session(places, pod, "nodeorder", _only(score))
    got = _whole(opened, plugin_of(opened, NodeOrder), task)
    if score in ONE_BY_ONE:
        want = [float(ONE_BY_ONE[score](place, pod)) for place in places]
    else:
        want = [float(p) for p in TOGETHER[score](places, pod)]
    if len(set(got)) == 1 or len(set(want)) == 1:
        got, want = _flat_where_alike(got), _flat_where_alike(want)
    assert got == want


@settings(max_examples=examples(25))
@given(world=_worlds(), weights=st.fixed_dictionaries({n: st.integers(0, 3) for n in ("cpu", "memory", GPU)}))
def test_binpack(world: tuple[list[Place], Json], weights: dict[str, int]) -> None:
    places, pod = world
    arguments = {
        "binpack.cpu": weights["cpu"],
        "binpack.memory": weights["memory"],
        "binpack.resources": GPU,
        f"binpack.resources.{GPU}": weights[GPU],
    }
    opened, task = _session(places, pod, "binpack", arguments)
    got = _amounts(opened, plugin_of(opened, Binpack), task)
    assert got == pytest.approx([oracle.packed(place, pod, weights) for place in places])


@settings(max_examples=examples(25))
@given(
    world=_worlds(),
    preferences=st.dictionaries(
        st.sampled_from(["cpu", "memory", GPU]),
        st.tuples(st.sampled_from(["MostAllocated", "LeastAllocated"]), st.integers(1, 3)),
        min_size=1,
    ),
)
def test_resource_strategy_fit(world: tuple[list[Place], Json], preferences: dict[str, tuple[str, int]]) -> None:
    places, pod = world
    resources = {name: {"type": kind, "weight": weight} for name, (kind, weight) in preferences.items()}
    opened, task = _session(
        places, pod, "resource-strategy-fit", {"resourceStrategyFitWeight": 1, "resources": resources}
    )
    got = _amounts(opened, plugin_of(opened, ResourceStrategyFit), task)
    assert got == pytest.approx([oracle.fit(place, pod, preferences) for place in places])


def test_a_soft_spread_by_a_label_that_no_node_has_gives_no_points() -> None:
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "5"}}}
    constraint = {"labelSelector": {"matchLabels": {}}, "topologyKey": "zone", "maxSkew": 1}
    pod = {
        "metadata": {"name": "new", "namespace": "ns", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "topologySpreadConstraints": [{**constraint, "whenUnsatisfiable": "ScheduleAnyway"}],
        },
        "status": {"phase": "Pending"},
    }
    opened, task = _session([Place(node)], pod, "nodeorder", _only("podtopologyspread"))
    assert _whole(opened, plugin_of(opened, NodeOrder), task) == [0.0]
