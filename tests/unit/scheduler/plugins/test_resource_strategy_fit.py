"""The resource-strategy-fit plugin: its three rules by value, and arguments that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, points, policy, requests, session, task_of
from vcbatch.scheduler import PolicyError
from vcbatch.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit

NAME = "resource-strategy-fit"
TYPE, WEIGHT = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"


def _points(arguments: dict[str, Any], annotations: dict[str, str] | None = None, **asked: str) -> dict[str, float]:
    """Of two nodes, of which `half` has 4 of 8 cores, 4 of 16 GPUs of type a taken, for a pod that asks so."""
    given = policy(NAME, arguments)
    cluster = Cluster(given)
    cluster.node("half", cpu="8", memory="32Gi", x_a="16")
    cluster.node("plain", cpu="16", memory="32Gi")
    cluster.gang("old", 1, phase="Running", pod={"nodeName": "half"})
    requests(cluster, "old-worker-0", cpu="4", memory="8Gi", x_a="4")
    cluster.change("old-worker-0", phase="Running")
    cluster.gang("new", 1)
    requests(cluster, "new-worker-0", annotations, **asked)
    opened = session(cluster, given)
    return points(opened, plugin_of(opened, ResourceStrategyFit), "new-worker-0")


def test_by_default_cpu_and_memory_are_spread() -> None:
    assert _points({}, cpu="2", memory="8Gi", x_a="4") == pytest.approx(
        {"half": 1000 * (2 / 8 + 16 / 32) / 2, "plain": 1000 * (14 / 16 + 24 / 32) / 2}
    )


def test_each_resource_has_its_strategy_and_weight() -> None:
    arguments = {
        "resourceStrategyFitWeight": 2,
        "resources": {"cpu": {"type": "LeastAllocated"}, "x/a": {"type": "MostAllocated", "weight": 3}},
    }
    got = _points(arguments, cpu="2", memory="8Gi", x_a="4")
    assert got == pytest.approx({"half": 200 * (2 / 8 + 3 * 8 / 16) / 4, "plain": 200 * (14 / 16) / 4})


@pytest.mark.parametrize(("given", "weight"), [(-3, 10), (7, 7)])
def test_a_negative_weight_is_the_default(given: int, weight: int) -> None:
    assert _points({"resourceStrategyFitWeight": given}, cpu="2")["plain"] == pytest.approx(100 * weight * 14 / 16)


def test_weights_of_resources_below_one_are_one() -> None:
    arguments = {"resources": {"cpu": {"weight": 0}, "memory": {"weight": -1}}}
    assert _points(arguments, cpu="2", memory="8Gi")["plain"] == pytest.approx(1000 * (14 / 16 + 24 / 32) / 2)


def test_what_does_not_fit_scores_nothing() -> None:
    assert _points({}, cpu="6", memory="1Gi")["half"] == 0


def test_the_exact_name_beats_the_longest_beginning_beats_a_shorter_one() -> None:
    resources = {"x/*": {"type": "LeastAllocated"}, "x*": {"type": "MostAllocated", "weight": 9}}
    assert _points({"resources": resources}, cpu="1", x_a="8")["half"] == pytest.approx(1000 * 4 / 16)
    elsewhere = {"cpu": {"type": "MostAllocated"}, "a*": {}, "/a*": {}}
    assert _points({"resources": elsewhere}, cpu="1", x_a="8")["half"] == pytest.approx(1000 * 5 / 8)
    resources["x/a"] = {"type": "MostAllocated"}
    assert _points({"resources": resources}, cpu="1", x_a="8")["half"] == pytest.approx(1000 * 12 / 16)


def test_a_pod_has_its_own_wishes() -> None:
    asked = {"cpu": "2", "memory": "8Gi"}
    strategies = {TYPE: "MostAllocated", WEIGHT: '{"cpu": 1, "memory": 3}'}
    got = _points({}, strategies, **asked)
    assert got["half"] == pytest.approx(1000 * (6 / 8 + 3 * 16 / 32) / 4)
    given = policy(NAME, {})
    cluster = Cluster(given)
    cluster.node("n")
    cluster.gang("g", 1)
    requests(cluster, "g-worker-0", {TYPE: "MostAllocated"}, **asked)
    opened = session(cluster, given)
    assert plugin_of(opened, ResourceStrategyFit)._fit(task_of(opened, "g-worker-0").cls) is None


@pytest.mark.parametrize(
    "strategies",
    [
        {TYPE: "Balanced", WEIGHT: '{"cpu": 1}'},
        {TYPE: "MostAllocated", WEIGHT: "{"},
        {TYPE: "MostAllocated", WEIGHT: '["cpu"]'},
        {TYPE: "MostAllocated", WEIGHT: '{"cpu": "1"}'},
        {TYPE: "MostAllocated", WEIGHT: '{"cpu": true}'},
        {WEIGHT: '{"cpu": 1}'},
    ],
)
def test_wishes_that_make_no_sense_leave_it_to_the_policy(strategies: dict[str, str]) -> None:
    assert _points({}, strategies, cpu="2", memory="8Gi") == _points({}, cpu="2", memory="8Gi")


def test_a_resource_of_weight_zero_counts_for_nothing_not_even_when_it_is_overdrawn() -> None:
    """Of `half` 24 of 32Gi are free; as in binpack's rules, a weight of 0 leaves a resource out."""
    preferences = {TYPE: "MostAllocated", WEIGHT: '{"cpu": 1, "memory": 0}'}
    assert _points({}, preferences, cpu="2", memory="25Gi")["half"] == pytest.approx(1000 * 6 / 8)
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.gang("g", 1)
    requests(cluster, "g-worker-0", {TYPE: "MostAllocated", WEIGHT: '{"cpu": 0}'}, cpu="2")
    opened = session(cluster, given)
    assert plugin_of(opened, ResourceStrategyFit)._fit(task_of(opened, "g-worker-0").cls) is None


def test_pods_of_one_gang_may_wish_differently() -> None:
    cluster = Cluster(policy(NAME, {"resources": {"cpu": {}}}))
    cluster.node("busy", cpu="8")
    cluster.node("free", cpu="8")
    cluster.gang("old", 1, phase="Running", pod={"nodeName": "busy"})
    cluster.change("old-worker-0", phase="Running")
    cluster.gang("g", 2)
    requests(cluster, "g-worker-1", {TYPE: "MostAllocated", WEIGHT: '{"cpu": 1}'}, cpu="1", memory="1Gi")
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "free", "g-worker-1": "busy"}


SCARCE = {"enable": True, "resources": "x/t4, x/a10", "weight": 2, "resourceWeight": {"x/t4": 1, "x/a10": 1}}


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        ({}, {"node1": 200, "node2": 100, "node3": 0}),
        ({"x_t4": "2"}, {"node1": 0, "node2": 100, "node3": 0}),
        ({"x_t4": "1", "x_a10": "2"}, {"node1": 0, "node2": 0, "node3": 0}),
    ],
)
def test_scarce_resources_are_avoided(asked: dict[str, str], want: dict[str, float]) -> None:
    given = policy(NAME, {"resourceStrategyFitWeight": 0, "sra": SCARCE})
    cluster = Cluster(given)
    cluster.node("node1", cpu="32", memory="64Gi")
    cluster.node("node2", cpu="16", memory="32Gi", x_t4="10")
    cluster.node("node3", cpu="16", memory="32Gi", x_t4="5", x_a10="10")
    cluster.gang("g", 1)
    requests(cluster, "g-worker-0", None, cpu="2", memory="4Gi", **asked)
    opened = session(cluster, given)
    assert points(opened, plugin_of(opened, ResourceStrategyFit), "g-worker-0") == want


@pytest.mark.parametrize(
    ("sra", "t4", "plain"),
    [
        ({}, 500, 1000),
        ({"weight": -1}, 500, 1000),
        ({"weight": 2}, 100, 200),
        ({"resourceWeight": {"x/t4": 3}}, 250, 1000),
        ({"resourceWeight": {"x/t4": -3}}, 500, 1000),
        ({"resourceWeight": {"x/t4": 0}}, 1000, 1000),
    ],
)
def test_how_much_scarce_resources_are_avoided_by_default(sra: dict[str, Any], t4: float, plain: float) -> None:
    """100 * w * (1 - what is there of the weights); by docs/scheduler.md w is 10 and each resource's
    weight 1. No node has ever had an x/a10, which is absent therefore."""
    given = policy(NAME, {"resourceStrategyFitWeight": 0, "sra": {"enable": True, "resources": "x/t4,x/a10", **sra}})
    cluster = Cluster(given)
    cluster.node("t4", x_t4="1")
    cluster.node("plain")
    cluster.gang("g", 1)
    opened = session(cluster, given)
    assert points(opened, plugin_of(opened, ResourceStrategyFit), "g-worker-0") == {"t4": t4, "plain": plain}


@pytest.mark.parametrize("enable", [{}, {"enable": False}])
def test_scarce_resources_are_avoided_and_proportions_kept_only_where_that_is_enabled(enable: dict[str, Any]) -> None:
    """Both are off by default."""
    given = policy(NAME, {"sra": {"resources": "x/a", **enable}, "proportional": {"resources": "x/a", **enable}})
    cluster = Cluster(given)
    cluster.node("a", cpu="8", memory="32Gi", x_a="16")
    cluster.node("none", cpu="8", memory="32Gi")
    cluster.gang("g", 1)
    opened = session(cluster, given)
    plugin = plugin_of(opened, ResourceStrategyFit)
    fit = pytest.approx(1000 * (7 / 8 + 31 / 32) / 2)
    assert points(opened, plugin, "g-worker-0") == {"a": fit, "none": fit}
    assert plugin.caps(task_of(opened, "g-worker-0").cls, np.array([0])) == ()


KEPT = {
    "enable": True,
    "resources": "x/gpu",
    "resourceProportion": {"x/gpu.cpu": 8, "x/gpu.memory": 8},
}


def test_idle_devices_keep_their_part_of_cpu_and_memory() -> None:
    cluster = Cluster(policy(NAME, {"proportional": KEPT}, "predicates"))
    cluster.node("n", cpu="74", memory="128G", x_gpu="8")
    for name in ("a", "b"):
        cluster.gang(name, 1)
        requests(cluster, f"{name}-worker-0", cpu="8", memory="8G")
    result = cluster.cycle()
    assert (cluster.placed("a"), cluster.placed("b")) == ({"a-worker-0": "n"}, {})
    reported = next(c.message for c in result.pod_conditions if c.name == "b-worker-0")
    assert "1 proportional of resource x/gpu check failed" in reported


@pytest.mark.parametrize(("cpu", "slots"), [("10", 1), ("0", np.inf)])
def test_several_tasks_leave_the_reserve_together(cpu: str, slots: float) -> None:
    given = policy(NAME, {"proportional": KEPT})
    cluster = Cluster(given)
    cluster.node("n", cpu="74", memory="1280G", x_gpu="7")
    cluster.gang("g", 1)
    requests(cluster, "g-worker-0", cpu=cpu, memory="8G")
    opened = session(cluster, given)
    (cap,) = plugin_of(opened, ResourceStrategyFit).caps(task_of(opened, "g-worker-0").cls, np.array([0]))
    assert cap.slots.tolist() == [min(slots, (1280 - 56) // 8)]


def _kept(rates: dict[str, Any], asked: dict[str, str], held: dict[str, str] | None = None) -> float:
    """How many pods that ask for so much are let onto a node of 40 cores, 40 GB and 8 GPUs, of which another pod has
    what is `held`."""
    proportional = {"enable": True, "resources": "x/gpu", "resourceProportion": rates}
    given = policy(NAME, {"proportional": proportional})
    cluster = Cluster(given)
    cluster.node("n", cpu="40", memory="40G", x_gpu="8")
    if held is not None:
        cluster.gang("old", 1, phase="Running", pod={"nodeName": "n"})
        requests(cluster, "old-worker-0", None, **held)
        cluster.change("old-worker-0", phase="Running")
    cluster.gang("g", 1)
    requests(cluster, "g-worker-0", None, **asked)
    opened = session(cluster, given)
    (cap,) = plugin_of(opened, ResourceStrategyFit).caps(task_of(opened, "g-worker-0").cls, np.array([0]))
    return float(cap.slots[0])


@pytest.mark.parametrize(
    ("rates", "asked", "slots"),
    [
        # A core and a GB for each of 8 GPUs where nothing else is said: 32 of each are left.
        ({}, {"cpu": "4", "memory": "1G"}, 8),
        ({}, {"cpu": "1", "memory": "4G"}, 8),
        ({"x/gpu.cpu": -2}, {"cpu": "4", "memory": "1G"}, 8),
        ({"x/gpu.cpu": 0.5, "x/gpu.memory": 0}, {"cpu": "4", "memory": "1G"}, 9),
        # What is left may be used up: 40 cores less 8 * 4 are 8.
        ({"x/gpu.cpu": 4}, {"cpu": "8", "memory": "1G"}, 1),
        ({"x/gpu.cpu": 4}, {"cpu": "8001m", "memory": "1G"}, 0),
        ({"x/gpu.cpu": 5}, {"cpu": "0", "memory": "4G"}, 8),
        ({"x/gpu.cpu": 5.1}, {"cpu": "0", "memory": "4G"}, 0),
    ],
)
def test_what_is_kept_for_each_idle_device(rates: dict[str, Any], asked: dict[str, str], slots: float) -> None:
    """Idle cpu less the request >= idle devices * rate, and so for memory; a missing rate is 1."""
    assert _kept(rates, asked) == slots


def test_nothing_is_kept_for_devices_that_are_in_use() -> None:
    """Of 8 GPUs 6 are idle, and of 40 cores and GB 36: 6 * 4 are kept of these, and 12 are left."""
    held = {"cpu": "4", "memory": "4G", "x_gpu": "2"}
    assert _kept({"x/gpu.cpu": 4, "x/gpu.memory": 0}, {"cpu": "3", "memory": "1G"}, held) == 4
    assert _kept({"x/gpu.cpu": 0, "x/gpu.memory": 4}, {"cpu": "1", "memory": "3G"}, held) == 4


def test_who_asks_for_one_of_the_devices_is_free_of_what_is_kept_for_the_others() -> None:
    cluster = Cluster(policy(NAME, {"proportional": {**KEPT, "resources": "x/gpu,x/fpga"}}, "predicates"))
    cluster.node("n", cpu="8", memory="32G", x_gpu="8", x_fpga="1")
    cluster.gang("g", 1)
    requests(cluster, "g-worker-0", cpu="8", memory="1G", x_fpga="1")
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "n"}


def test_a_full_node_without_the_device_is_refused_by_what_is_full_alone() -> None:
    """The rule is of devices that the node has, so it doesn't keep a pod from a node that others
    are leaving."""
    given = policy(NAME, {"proportional": KEPT})
    cluster = Cluster(given)
    cluster.node("full", cpu="2")
    cluster.node("gpus", x_gpu="1")
    cluster.gang("old", 2, phase="Running", pod={"nodeName": "full"})
    cluster.gang("g", 1)
    opened = session(cluster, given)
    (cap,) = plugin_of(opened, ResourceStrategyFit).caps(task_of(opened, "g-worker-0").cls, np.array([0]))
    assert cap.slots.tolist() == [np.inf]


def test_tasks_with_devices_and_nodes_without_are_free() -> None:
    cluster = Cluster(policy(NAME, {"proportional": KEPT}, "predicates"))
    cluster.node("gpus", cpu="8", memory="8G", x_gpu="8")
    cluster.node("none", cpu="8", memory="8G")
    cluster.gang("plain", 1, cpu="8")
    cluster.gang("devices", 1)
    requests(cluster, "devices-worker-0", cpu="8", memory="1G", x_gpu="1")
    cluster.cycle()
    assert cluster.placed("plain") == {"plain-worker-0": "none"}
    assert cluster.placed("devices") == {"devices-worker-0": "gpus"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"resourceStrategyFitWeight": "1"}, "arguments.resourceStrategyFitWeight: must be an integer, got '1'"),
        ({"resources": ["cpu"]}, "arguments.resources: must be a mapping, got ['cpu']"),
        ({"resources": {"cpu": {"kind": 1}}}, "arguments.resources.cpu: unknown key 'kind'; allowed: type, weight"),
        ({"resources": {"cpu": {"weight": 1.5}}}, "arguments.resources.cpu.weight: must be an integer, got 1.5"),
        (
            {"resources": {"cpu": {"type": "Most"}}},
            "arguments.resources.cpu.type: must be one of LeastAllocated, MostAllocated, got 'Most'",
        ),
        ({"resources": {"*": {}}}, "arguments.resources: '*' must be a resource name"),
        ({"resources": {"x/*y": {}}}, "arguments.resources: 'x/*y' must be a resource name"),
        ({"resources": {"x/**": {}}}, "arguments.resources: 'x/**' must be a resource name"),
        ({"sra": {"enable": "maybe"}}, "arguments.sra.enable: must be true or false, got 'maybe'"),
        ({"sra": {"resources": ["x/y"]}}, "arguments.sra.resources: must be a string of names separated by commas"),
        (
            {"sra": {"resources": "x/y", "resourceWeight": {"x/z": 1}}},
            "arguments.sra.resourceWeight: 'x/z' isn't among the resources; listed: x/y",
        ),
        (
            {"proportional": {"resources": "x/y", "resourceProportion": {"x/y": 1}}},
            "arguments.proportional.resourceProportion: 'x/y' must be the name of a resource followed by .cpu",
        ),
        (
            {"proportional": {"resources": "x/y", "resourceProportion": {"x/y.cpu": "8"}}},
            "arguments.proportional.resourceProportion.x/y.cpu: must be a number, got '8'",
        ),
    ],
)
def test_ill_typed_arguments_are_refused_with_their_place(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policy(NAME, arguments)
    assert message in str(refused.value)
