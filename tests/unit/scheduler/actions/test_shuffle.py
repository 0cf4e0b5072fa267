"""Moving pods whose place is wanted back: by the time of the day, and by how busy nodes are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.resources import NODES
from vcbatch.api.usage import NodeUsage
from vcbatch.scheduler import CycleResult, Policy, PolicyError, parse_policy
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.model.objects import Task

TEXT = """
actions: "allocate, shuffle, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: {plugin}
    arguments: {arguments}
"""
NIGHT = {"tdm.revocable-zone.night": "22:00-06:00"}
LENT = {"volcano.sh/revocable-zone": "night"}


def policy(plugin: str, arguments: Mapping[str, Any], **plugins: type[Plugin]) -> Policy:
    given = msgspec.json.encode(arguments).decode()
    return parse_policy(TEXT.format(plugin=plugin, arguments=given), plugins=plugins)


def at(hour: int, minute: int = 0, *, day: int = 1) -> datetime:
    return datetime(2026, 6, day, hour, minute, tzinfo=UTC)


def cycle(cluster: Cluster, now: datetime) -> CycleResult:
    cluster.now = now - timedelta(seconds=2)
    return cluster.cycle()


def evicted(result: CycleResult) -> list[str]:
    return [eviction.name for eviction in result.evictions]


def test_evicts_what_plugins_name_and_tells_why() -> None:
    class Least(Plugin):
        UNWANTED = "it is of little importance"

        def unwanted(self, running: Sequence[Task]) -> Sequence[Task]:
            return [task for task in running if task.priority < 100]

    cluster = Cluster(policy("least", {}, least=Least))
    cluster.node("a")
    cluster.gang("g", 0, minimum=1)
    for index, priority in enumerate([10, 100, 10]):
        cluster.pod("g", index, priority=priority, nodeName="a")
    cluster.run("g")
    cluster.pod("g", 3, priority=10, nodeName="a")
    found = cluster.cycle().evictions
    assert [e.name for e in found] == ["g-worker-0", "g-worker-2"], "the last one doesn't run"
    assert {(e.reason, e.message) for e in found} == {("shuffle", "it is of little importance")}
    assert not cluster.cycle().evictions, "they are on their way out"


def test_nobody_is_moved_whom_another_plugin_keeps() -> None:
    class All(Plugin):
        def unwanted(self, running: Sequence[Task]) -> Sequence[Task]:
            return running

        def movable(self, unwanted: Sequence[Task]) -> Sequence[Task]:
            return [task for task in unwanted if not task.name.endswith("0")]

    cluster = Cluster(policy("all", {}, all=All))
    cluster.node("a")
    cluster.gang("g", 2, phase="Running", pod={"nodeName": "a"})
    cluster.run("g")
    assert evicted(cluster.cycle()) == ["g-worker-1"]


# Time of the day


def lending(**arguments: str) -> Cluster:
    """A node that is lent at night, and one that never is."""
    cluster = Cluster(policy("tdm", {**NIGHT, **arguments}))
    cluster.node("day")
    cluster.node("lent", labels=dict(LENT))
    return cluster


def batch(cluster: Cluster, name: str, size: int, **notes: str) -> None:
    """A gang of pods that may run on nodes that are lent."""
    cluster.gang(name, 0, minimum=1, annotations=notes)
    for index in range(size):
        cluster.pod(name, index, notes={"volcano.sh/revocable-zone": "*"})


@pytest.mark.parametrize(
    ("now", "node"),
    [
        pytest.param(at(23), "lent", id="before midnight"),
        pytest.param(at(0, day=2), "lent", id="at midnight"),
        pytest.param(at(5, 59, day=2), "lent", id="after midnight, of a window that opened the day before"),
        pytest.param(at(22), "lent", id="as it opens"),
        pytest.param(at(6), "day", id="as it closes"),
        pytest.param(at(12), "day", id="by day"),
    ],
)
def test_revocable_pods_run_on_lent_nodes_while_the_window_is_open(now: datetime, node: str) -> None:
    cluster = lending()
    batch(cluster, "g", 1)
    (bind,) = cycle(cluster, now).binds
    assert bind.node == node


def test_other_pods_never_run_on_nodes_that_are_lent() -> None:
    cluster = lending()
    cluster.node("day", event="DELETED")
    cluster.gang("g", 1)
    assert not cycle(cluster, at(23)).binds


def test_a_pod_that_says_that_it_may_be_evicted_is_revocable() -> None:
    cluster = lending()
    cluster.gang("g", 0, minimum=1)
    cluster.pod("g", 0, notes={"volcano.sh/preemptable": "true"})
    assert [b.node for b in cycle(cluster, at(23)).binds] == ["lent"]


def test_a_node_of_a_zone_that_nobody_opens_takes_no_pods() -> None:
    cluster = lending()
    cluster.node("day", event="DELETED")
    cluster.node("lent", event="MODIFIED", labels={"volcano.sh/revocable-zone": "other"})
    batch(cluster, "g", 1)
    assert not cycle(cluster, at(23)).binds


def test_the_scheduler_wakes_when_a_window_opens_and_places_who_waited() -> None:
    cluster = lending()
    cluster.node("day", event="DELETED")
    batch(cluster, "g", 1)
    result = cycle(cluster, at(21))
    assert not result.binds
    assert result.requeue_at == at(22)
    assert len(cycle(cluster, at(22)).binds) == 1


def test_times_are_those_of_the_given_distance_from_utc() -> None:
    cluster = lending(**{"tdm.utc-offset": "+02:00"})
    batch(cluster, "g", 1)
    result = cycle(cluster, at(20))
    assert [b.node for b in result.binds] == ["lent"]
    assert result.requeue_at == at(4, day=2)


def at_work(size: int, **notes: str) -> Cluster:
    cluster = lending()
    batch(cluster, "g", size, **notes)
    cycle(cluster, at(23))
    cluster.run("g")
    assert set(cluster.placed("g").values()) == {"lent"}
    return cluster


def test_pods_go_one_at_a_time_when_the_window_closed() -> None:
    cluster = at_work(2)
    assert not cycle(cluster, at(5, day=2)).evictions
    result = cycle(cluster, at(6, day=2))
    assert evicted(result) == ["g-worker-0"]
    assert result.evictions[0].message == "the time in which its node is lent to batch pods is over"
    assert result.requeue_at == at(6, 1, day=2)
    cluster.delete("g-worker-0")
    assert not cycle(cluster, at(6, 0, day=2) + timedelta(seconds=59)).evictions
    assert evicted(cycle(cluster, at(6, 1, day=2))) == ["g-worker-1"]


@pytest.mark.parametrize(
    ("notes", "count"),
    [
        ({"volcano.sh/jdb-max-unavailable": "2"}, 2),
        ({"volcano.sh/jdb-max-unavailable": "50%"}, 3),
        ({"volcano.sh/jdb-max-unavailable": "0"}, 0),
        ({"volcano.sh/jdb-min-available": "4"}, 1),
        ({"volcano.sh/jdb-min-available": "5"}, 0),
        ({"volcano.sh/jdb-min-available": "6"}, 0),
        ({"volcano.sh/jdb-min-available": "many"}, 1),
        ({}, 1),
    ],
)
def test_a_gang_loses_no_more_at_once_than_its_budget_says(notes: dict[str, str], count: int) -> None:
    cluster = at_work(5, **notes)
    assert len(cycle(cluster, at(7, day=2)).evictions) == count


def test_who_has_finished_is_not_missing_in_the_budget() -> None:
    cluster = at_work(5, **{"volcano.sh/jdb-max-unavailable": "2"})
    cluster.change("g-worker-0", phase="Succeeded")
    assert len(cycle(cluster, at(7, day=2)).evictions) == 2


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"tdm.revocable-zone.night": "22-6"}, "tdm.revocable-zone.night: must be two times of the day"),
        ({"tdm.revocable-zone.night": "24:00-06:00"}, "two times of the day"),
        ({**NIGHT, "tdm.evict.period": "often"}, "tdm.evict.period: must be a duration"),
        ({**NIGHT, "tdm.utc-offset": "CET"}, "tdm.utc-offset: must be a distance from UTC"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(given: dict[str, str], text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        policy("tdm", given)


# Load

LOW = {
    "strategies": [
        {"name": "lowNodeUtilization", "params": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}}}
    ]
}


def measure(cluster: Cluster, now: datetime, **cpu: float) -> None:
    for name, used in cpu.items():
        usage = {"metadata": {"name": name, "uid": f"use-{name}"}, "cpu": used, "observedAt": now.timestamp()}
        cluster.scheduler.apply(NODES, "ADDED", msgspec.convert(usage, NodeUsage))


def busy(arguments: Mapping[str, Any] = LOW) -> Cluster:
    """Six pods of 1 cpu run on a node of 8 cpus; another one is empty."""
    cluster = Cluster(policy("rescheduling", arguments))
    cluster.node("busy")
    cluster.gang("g", 0, minimum=1)
    for index in range(6):
        cluster.pod("g", index, priority=10 - index, nodeName="busy")
    cluster.run("g")
    cluster.node("idle")
    return cluster


def low(**params: Any) -> dict[str, Any]:
    """The same strategy with something else."""
    (strategy,) = LOW["strategies"]
    return {"strategies": [{**strategy, "params": {**strategy["params"], **params}}]}


def test_pods_leave_a_busy_node_until_it_is_no_longer_busy() -> None:
    cluster = busy()
    measure(cluster, at(12), busy=0.8, idle=0.1)
    result = cycle(cluster, at(12))
    assert evicted(result) == ["g-worker-5", "g-worker-4"], "the least important first, 2 of 8 cpus"
    assert result.evictions[0].message == "its node is busier than the policy wants, and others have room"


def test_no_more_leave_than_idle_nodes_have_room_for() -> None:
    cluster = busy()
    cluster.node("idle", event="MODIFIED", cpu="1")
    measure(cluster, at(12), busy=1.0, idle=0.1)
    assert len(cycle(cluster, at(12)).evictions) == 1


@pytest.mark.parametrize(
    "use",
    [
        pytest.param({"busy": 0.6, "idle": 0.1}, id="no node is busy"),
        pytest.param({"busy": 0.8, "idle": 0.3}, id="no node is idle"),
        pytest.param({"busy": 0.1, "idle": 0.1}, id="all are idle"),
        pytest.param({"busy": 0.8}, id="nobody measured the other"),
    ],
)
def test_nobody_is_moved_without_need(use: dict[str, float]) -> None:
    cluster = busy()
    measure(cluster, at(12), **use)
    assert not cycle(cluster, at(12)).evictions


def test_pods_leave_as_long_as_the_node_is_at_its_target() -> None:
    """A pod is an eighth of the node: 85, 72.5, 60, 47.5 %."""
    cluster = busy()
    measure(cluster, at(12), busy=0.85, idle=0.1)
    assert len(cycle(cluster, at(12)).evictions) == 3


def test_a_node_that_takes_no_pods_is_no_idle_one() -> None:
    cluster = busy(low(nodeFit=False))
    cluster.node("idle", event="MODIFIED", unschedulable=True)
    measure(cluster, at(12), busy=0.8, idle=0.1)
    assert not cycle(cluster, at(12)).evictions


def test_the_busiest_node_is_relieved_first() -> None:
    """The idle one has room for one pod up to its target."""
    cluster = busy()
    cluster.node("busiest")
    cluster.pod("g", 6, priority=100, nodeName="busiest")
    cluster.run("g")
    cluster.node("idle", event="MODIFIED", cpu="2")
    measure(cluster, at(12), busy=0.8, busiest=0.9, idle=0.1)
    assert evicted(cycle(cluster, at(12))) == ["g-worker-6"]


@pytest.mark.parametrize(("fit", "count"), [(True, 0), (False, 2)])
def test_only_those_go_that_an_idle_node_takes_where_that_is_asked_for(fit: bool, count: int) -> None:
    cluster = busy(low(nodeFit=fit))
    cluster.node("idle", event="MODIFIED", taints=[{"key": "kept", "effect": "NoSchedule"}])
    measure(cluster, at(12), busy=0.8, idle=0.1)
    assert len(cycle(cluster, at(12)).evictions) == count


def test_pods_of_the_spared_priority_and_above_stay() -> None:
    """The last has priority 5."""
    cluster = busy(low(thresholdPriorityClassName="kept"))
    cluster.priority("kept", 7)
    measure(cluster, at(12), busy=1.0, idle=0.1)
    assert evicted(cycle(cluster, at(12))) == ["g-worker-5", "g-worker-4"]


def test_of_pods_of_one_priority_those_go_first_that_are_promised_least() -> None:
    """The first has what it may use at most, the second no limit."""
    cluster = Cluster(policy("rescheduling", LOW))
    cluster.node("busy")
    amounts = {"cpu": "1", "memory": "1Gi"}
    cluster.gang("g", 0, minimum=1)
    for index, resources in enumerate(({"requests": amounts, "limits": amounts}, {"requests": amounts})):
        cluster.pod("g", index, nodeName="busy", containers=[{"name": "main", "resources": resources}])
    cluster.run("g")
    cluster.node("idle")
    measure(cluster, at(12), busy=0.7, idle=0.1)
    assert evicted(cycle(cluster, at(12))) == ["g-worker-1"]


def test_old_measurements_move_nobody() -> None:
    cluster = busy()
    measure(cluster, at(11), busy=0.8, idle=0.1)
    assert not cycle(cluster, at(12)).evictions


def test_it_looks_once_in_an_interval() -> None:
    cluster = busy()
    measure(cluster, at(12), busy=0.5, idle=0.1)
    assert cycle(cluster, at(12)).requeue_at == at(12, 5)
    measure(cluster, at(12, 4), busy=0.8, idle=0.1)
    assert not cycle(cluster, at(12, 4)).evictions
    assert cycle(cluster, at(12, 5)).evictions


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"strategies": [{"name": "offline"}]}, r"strategies\[0\].name: must be lowNodeUtilization"),
        ({"strategies": {}}, "strategies: must be a list"),
        ({"interval": "5"}, "interval: must be a duration"),
        (
            {"strategies": [{"name": "lowNodeUtilization", "params": {"thresholds": {"gpu": 3}}}]},
            r"params.thresholds: unknown key 'gpu'",
        ),
        (
            {"strategies": [{"name": "lowNodeUtilization", "params": {"targetThresholds": {"cpu": 30}}}]},
            "none may be above its targetThreshold",
        ),
        ({"nodes": 3}, "unknown argument 'nodes'"),
    ],
)
def test_what_rescheduling_does_not_understand_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        policy("rescheduling", given)
