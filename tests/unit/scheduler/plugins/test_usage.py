"""The usage plugin: nodes by their measured load, and by what was placed since."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.unit.scheduler.cluster import START, Cluster
from tests.unit.scheduler.scoring import plugin_of, points, policy, requests, session, task_of
from vcbatch.api.node import Node
from vcbatch.api.resources import NODE_USAGES, NODES
from vcbatch.api.usage import NodeUsage
from vcbatch.scheduler import Policy, PolicyError, build_policy
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.columns import Columns, Depths
from vcbatch.scheduler.plugins.usage import Usage

NAME = "usage"


def _measure(cluster: Cluster, node: str, cpu: float, memory: float, *, age: float = 0.0) -> None:
    at = cluster.now.timestamp() - age
    raw = {"metadata": {"name": node}, "cpu": cpu, "memory": memory, "observedAt": at}
    cluster.scheduler.apply(NODE_USAGES, "MODIFIED", msgspec.convert(raw, NodeUsage))


def _cluster(given: Policy) -> Cluster:
    cluster = Cluster(given)
    for name in ("a", "b", "c"):
        cluster.node(name, cpu="10", memory="100Gi")
    return cluster


def _scores(cluster: Cluster, given: Policy, name: str = "g-worker-0") -> dict[str, float]:
    opened = session(cluster, given)
    return points(opened, plugin_of(opened, Usage), name)


def test_the_less_busy_the_better_and_nothing_for_what_is_not_known() -> None:
    given = policy(NAME, {"usage.weight": 4, "cpu.weight": 3})
    cluster = _cluster(given)
    _measure(cluster, "a", 0.5, 0.1)
    _measure(cluster, "b", 0.5, 0.1, age=301)
    cluster.gang("g", 1)
    assert _scores(cluster, given) == pytest.approx({"a": 400 * (0.5 * 3 + 0.9) / 4, "b": 0, "c": 0})


def test_by_default_cpu_and_memory_count_alike_and_the_plugin_five_times() -> None:
    """`usage.weight` 5, `cpu.weight` and `memory.weight` 1."""
    cluster = _cluster(policy(NAME))
    _measure(cluster, "a", 0.5, 0.1)
    cluster.gang("g", 1)
    assert _scores(cluster, policy(NAME))["a"] == pytest.approx(500 * (0.5 + 0.9) / 2)


def test_a_measurement_of_five_minutes_ago_counts() -> None:
    """What is older says nothing."""
    cluster = _cluster(policy(NAME))
    _measure(cluster, "a", 0.5, 0.1, age=300)
    _measure(cluster, "b", 0.5, 0.1, age=300.5)
    cluster.gang("g", 1)
    found = _scores(cluster, policy(NAME))
    assert found["a"] > 0
    assert found["b"] == 0


@pytest.mark.parametrize(
    ("arguments", "admitted"),
    [
        ({}, {"b", "c"}),
        ({"thresholds": {"cpu": 90, "mem": 20}}, {"a", "c"}),
        ({"thresholds.cpu": 90, "thresholds.mem": 20.5}, {"a", "c"}),
        ({"thresholds": {"mem": 20}}, {"c"}),
    ],
)
def test_nodes_that_are_too_busy_take_nobody(arguments: dict[str, Any], admitted: set[str]) -> None:
    cluster = _cluster(policy(NAME, arguments))
    _measure(cluster, "a", 0.81, 0.1)
    _measure(cluster, "b", 0.1, 0.21)
    cluster.gang("g", 30, minimum=1)
    cluster.cycle()
    assert set(cluster.placed("g").values()) == admitted


def test_a_node_at_its_threshold_takes_pods() -> None:
    cluster = Cluster(policy(NAME))
    cluster.node("a", cpu="8")
    _measure(cluster, "a", 0.8, 0.8)
    cluster.gang("g", 1)
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "a"}


def test_without_the_filter_busy_nodes_are_only_the_last_choice() -> None:
    cluster = Cluster(policy(NAME, enablePredicate=False))
    cluster.node("a", cpu="8")
    _measure(cluster, "a", 0.99, 0.99)
    cluster.gang("g", 1)
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "a"}


def test_a_gang_that_waits_for_busy_nodes_starts_when_they_are_known_as_busy_no_more() -> None:
    cluster = Cluster(policy(NAME))
    cluster.node("a", cpu="8")
    _measure(cluster, "a", 0.9, 0.1)
    cluster.gang("g", 1)
    result = cluster.cycle()
    assert "1 node(s) had more than 80% of their cpu in use" in result.pod_conditions[0].message
    assert result.requeue_at == START + timedelta(minutes=5, seconds=1)
    cluster.cycle(after=400)
    assert cluster.placed("g") == {"g-worker-0": "a"}


def test_of_several_busy_nodes_the_oldest_measurement_is_waited_for() -> None:
    cluster = _cluster(policy(NAME))
    for name, age in (("a", 10), ("b", 100), ("c", 50)):
        _measure(cluster, name, 0.9, 0.1, age=age)
    cluster.gang("g", 1)
    assert cluster.cycle(after=0).requeue_at == START + timedelta(seconds=300 - 100 + 1)


def test_a_new_measurement_frees_who_waited() -> None:
    cluster = Cluster(policy(NAME))
    cluster.node("a", cpu="8")
    _measure(cluster, "a", 0.9, 0.1)
    cluster.gang("g", 1)
    cluster.cycle()
    _measure(cluster, "a", 0.2, 0.1)
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "a"}


def test_tasks_of_one_batch_count_on_each_other() -> None:
    cluster = _cluster(policy(NAME))
    for name, load in (("a", 0.1), ("b", 0.2), ("c", 0.3)):
        _measure(cluster, name, load, 0.0)
    cluster.gang("g", 6)
    cluster.cycle()
    placed = list(cluster.placed("g").values())
    assert sorted(placed) == ["a"] * 3 + ["b"] * 2 + ["c"]


@pytest.mark.parametrize(
    ("load", "asked", "limits", "estimator", "shadow"),
    [
        (0.1, {"cpu": "2", "memory": "10Gi"}, {}, {}, (1400, 7 * 2**30)),
        (0.9, {"cpu": "2", "memory": "10Gi"}, {}, {}, (1680, 8.4 * 2**30)),
        (0.6, {"cpu": "2", "memory": "10Gi"}, {}, {}, (1680, 8.4 * 2**30)),
        (0.9, {"cpu": "2", "memory": "10Gi"}, {}, {"risk_factor": 2}, (2000, 10 * 2**30)),
        (0.9, {"cpu": "2", "memory": "10Gi"}, {}, {"risk_factor": 0.5}, (1680, 8.4 * 2**30)),
        (0.9, {"cpu": "2", "memory": "10Gi"}, {}, {"risk_factor": 1}, (1400, 7 * 2**30)),
        (0.59, {"cpu": "2", "memory": "10Gi"}, {}, {}, (1400, 7 * 2**30)),
        (0.1, {"cpu": "2"}, {"cpu": "4"}, {"burst_ratio": 0.5}, (2400, 0)),
        (0.1, {"cpu": "2"}, {"cpu": "4"}, {"request_ratio": 3}, (4000, 0)),
        (0.1, {}, {}, {}, (250, 200 * 2**20)),
        (0.9, {}, {}, {"be_cpu": "1", "be_mem": "1Gi"}, (1200, 1.2 * 2**30)),
    ],
)
def test_what_was_placed_since_is_estimated(
    load: float, asked: dict[str, str], limits: dict[str, str], estimator: dict[str, Any], shadow: tuple[float, float]
) -> None:
    given = policy(NAME, {"estimator": estimator, "memory.weight": 0})
    cluster = _cluster(given)
    _measure(cluster, "a", load, 0.0)
    cluster.gang("new", 1)
    requests(cluster, "new-worker-0", None, **asked)
    cluster.pods["new-worker-0"]["spec"]["containers"][0]["resources"]["limits"] = limits
    cluster.change("new-worker-0", node="a")
    opened = session(cluster, given)
    assert plugin_of(opened, Usage)._shadow[:, 0].tolist() == pytest.approx(shadow, abs=1)


def test_a_node_is_busy_by_what_was_placed_there_too() -> None:
    given = policy(NAME, {"estimator": {"request_ratio": 1, "risk_factor": 2}, "memory.weight": 0})
    cluster = _cluster(given)
    _measure(cluster, "a", 0.4, 0.0)
    cluster.gang("new", 3)
    for i in range(3):
        requests(cluster, f"new-worker-{i}", None, cpu="1")
        cluster.pods[f"new-worker-{i}"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "2"}
        cluster.change(f"new-worker-{i}", node="a")
    opened = session(cluster, given)
    # The first two find less than 60% of 10 cores in use, the third doesn't.
    assert plugin_of(opened, Usage)._shadow[0, 0] == 1000 + 1000 + 2000


def _in_turn(cluster: Cluster, given: Policy, count: int, *, promising: bool = False) -> list[float]:
    """The points of node a for so many pods alike of gang g, each after those before it were placed there."""
    opened = session(cluster, given)
    cls, row = task_of(opened, "g-worker-0").cls, np.array([0], dtype=np.intp)
    columns = Columns(opened.nodes, cls, row, Depths(opened.nodes, cls, 0, count), promising=promising)
    found = plugin_of(opened, Usage).scores(cls, columns)
    assert found is not None
    return found[:, 0].tolist()


def test_each_of_a_batch_finds_the_node_as_those_before_it_leave_it() -> None:
    """60% of 10 cores in use make the first count for 2 * 0.7 * 1.2, and so those after it, until
    nothing is left. What is only promised leaves the node as it is."""
    given = policy(NAME, {"usage.weight": 1, "memory.weight": 0})
    cluster = _cluster(given)
    _measure(cluster, "a", 0.6, 0.0)
    cluster.gang("g", 1, cpu="2")
    assert _in_turn(cluster, given, 4) == pytest.approx([40, 40 - 16.8, 40 - 2 * 16.8, 0])
    assert _in_turn(cluster, given, 3, promising=True) == pytest.approx([40, 40, 40])
    _measure(cluster, "a", 0.59, 0.0)
    assert _in_turn(cluster, given, 3) == pytest.approx([41, 41 - 14, 41 - 14 - 16.8])


def test_what_was_placed_is_a_part_of_the_capacity_and_not_of_what_may_be_given_away() -> None:
    """What was placed since counts as shadow / capacity. The kubelet keeps 6 of 16 cores for the system."""
    given = policy(NAME, {"usage.weight": 1, "memory.weight": 0})
    cluster = Cluster(given)
    status = {"allocatable": {"cpu": "10", "memory": "1Gi"}, "capacity": {"cpu": "16", "memory": "1Gi"}}
    node = {"metadata": {"name": "a", "uid": "a"}, "status": status}
    cluster.scheduler.apply(NODES, "ADDED", msgspec.convert(node, Node))
    _measure(cluster, "a", 0.0, 0.0)
    cluster.gang("g", 1, cpu="2")
    assert _in_turn(cluster, given, 2) == pytest.approx([100, 100 - 100 * 1.4 / 16])


def test_without_weights_there_are_no_points() -> None:
    given = policy(NAME, {"cpu.weight": 0, "memory.weight": 0})
    cluster = _cluster(given)
    _measure(cluster, "a", 0.5, 0.5)
    cluster.gang("g", 1)
    opened = session(cluster, given)
    cls = task_of(opened, "g-worker-0").cls
    columns = Columns(opened.nodes, cls, np.arange(3), Depths(opened.nodes, cls, 0, 1), promising=False)
    assert plugin_of(opened, Usage).scores(cls, columns) is None
    assert len(cluster.cycle().binds) == 1


def test_a_pod_counts_until_it_ran_for_an_interval() -> None:
    document = {"actions": "allocate", "tiers": [{"plugins": [{"name": NAME}]}]}
    given = build_policy({**document, "metrics": {"type": "local", "interval": "1m"}})
    cluster = _cluster(given)
    cluster.gang("g", 1)
    cluster.change("g-worker-0", node="a")
    seen: list[float] = []
    for started, later in ((None, 0), (START, 59), (START, 2)):
        if started is not None:
            cluster.pods["g-worker-0"]["status"] = {"phase": "Running", "startTime": "2026-06-01T00:00:00Z"}
            cluster.change("g-worker-0")
        cluster.now += timedelta(seconds=later)
        opened = session(cluster, given)
        seen.append(float(plugin_of(opened, Usage)._shadow[0, 0]))
        Cycle(opened).close()
        opened.state.finish()
    assert seen == [700, 700, 0]


def test_an_eviction_that_is_taken_back_leaves_the_estimate_as_it_was() -> None:
    given = policy(NAME)
    cluster = _cluster(given)
    cluster.gang("on", 1)
    cluster.change("on-worker-0", node="a")
    opened = session(cluster, given)
    plugin, seen = plugin_of(opened, Usage), list[float]()
    statement = Statement(opened)
    seen.append(float(plugin._shadow[0, 0]))
    statement.evict(task_of(opened, "on-worker-0"), reason="preempt", message="")
    seen.append(float(plugin._shadow[0, 0]))
    statement.discard()
    seen.append(float(plugin._shadow[0, 0]))
    assert seen == [700, 0, 700]


@pytest.mark.parametrize(("seconds", "shadow"), [(29, 700), (30, 0)])
def test_a_pod_counts_for_half_a_minute_where_no_interval_is_given(seconds: int, shadow: float) -> None:
    """Pods that run for less than the metrics interval, which is 30 s by default."""
    given = policy(NAME)
    cluster = _cluster(given)
    cluster.gang("g", 1)
    cluster.pods["g-worker-0"]["status"] = {"phase": "Running", "startTime": "2026-06-01T00:00:00Z"}
    cluster.change("g-worker-0", node="a")
    cluster.now += timedelta(seconds=seconds)
    assert plugin_of(session(cluster, given), Usage)._shadow[0, 0] == shadow


def test_what_was_placed_a_cycle_ago_counts_before_it_is_seen() -> None:
    given = policy(NAME)
    cluster = _cluster(given)
    _measure(cluster, "a", 0.0, 0.0)
    cluster.gang("g", 1)
    (bind,) = cluster.scheduler.cycle(cluster.now).binds
    assert bind.node == "a"
    assert plugin_of(session(cluster, given), Usage)._shadow[0].tolist() == [700, 0, 0]


def test_what_is_taken_back_counts_no_more() -> None:
    given = policy(NAME)
    cluster = _cluster(given)
    for name in ("a", "b"):
        _measure(cluster, name, 0.1, 0.1)
    cluster.gang("run", 1, phase="Running")
    cluster.change("run-worker-0", node="b")
    cluster.change("run-worker-0", phase="Running")
    cluster.gang("g", 1)
    opened = session(cluster, given)
    plugin = plugin_of(opened, Usage)
    before = points(opened, plugin, "g-worker-0")
    statement = Statement(opened)
    statement.allocate([task_of(opened, "g-worker-0")], [0])
    assert points(opened, plugin, "g-worker-0")["a"] < before["a"]
    statement.evict(task_of(opened, "run-worker-0"), reason="preempt", message="")
    assert points(opened, plugin, "g-worker-0")["b"] == before["b"]
    statement.discard()
    assert points(opened, plugin, "g-worker-0") == before


def test_what_is_only_promised_counts_once_it_is_placed() -> None:
    given = policy(NAME)
    cluster = _cluster(given)
    _measure(cluster, "a", 0.1, 0.1)
    cluster.gang("g", 2)
    opened = session(cluster, given)
    plugin = plugin_of(opened, Usage)
    before = points(opened, plugin, "g-worker-0")
    statement = Statement(opened)
    statement.pipeline([task_of(opened, "g-worker-0")], [0])
    assert points(opened, plugin, "g-worker-1") == before
    statement.discard()
    opened.bind([task_of(opened, "g-worker-0")], [0])
    assert points(opened, plugin, "g-worker-1")["a"] < before["a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"usage.weight": 1.5}, "arguments.usage.weight: must be an integer, got 1.5"),
        ({"cpu.weight": -1}, "arguments.cpu.weight: must be at least 0, got -1"),
        ({"thresholds": {"gpu": 1}}, "arguments.thresholds: unknown key 'gpu'; allowed: cpu, mem"),
        ({"thresholds": {"cpu": "80"}}, "arguments.thresholds.cpu: must be a number, got '80'"),
        ({"estimator": {"be_cpu": "much"}}, "arguments.estimator.be_cpu: must be a quantity of cpu, got 'much'"),
        ({"estimator.be_mem": True}, "arguments.estimator.be_mem: must be a quantity of memory, got True"),
        ({"estimator.risk_factor": "x"}, "arguments.estimator.risk_factor: must be a number, got 'x'"),
    ],
)
def test_ill_typed_arguments_are_refused_with_their_place(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policy(NAME, arguments)
    assert message in str(refused.value)
