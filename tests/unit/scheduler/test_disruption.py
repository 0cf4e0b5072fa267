"""Limits to evictions: how early, how many, how often; and gangs that hold places for nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.test_gang_eviction import evicted, running
from vcbatch.api.timestamps import format_time
from vcbatch.scheduler import CycleResult, Policy, PolicyError

TEXT = """
actions: "allocate, {action}, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: {plugin}
    arguments: {arguments}
- plugins:
  - name: predicates
  - name: proportion
"""


def policy(action: str, plugin: str = "disruption", **arguments: Any) -> Policy:
    given = "{" + ", ".join(f"{key}: {value}" for key, value in arguments.items()) + "}"
    return Policy.parse(TEXT.format(action=action, plugin=plugin, arguments=given))


def made(found: Policy, *, nodes: int = 1) -> Cluster:
    cluster = Cluster(found)
    for i in range(nodes):
        cluster.node(f"n{i}", cpu="4")
    cluster.priority("low", 1)
    cluster.priority("high", 10)
    return cluster


def began(cluster: Cluster, *pods: str) -> None:
    """These pods begin to run now."""
    for pod in pods:
        cluster.pods[pod]["status"] = {"phase": "Running", "startTime": format_time(cluster.now)}
        cluster.change(pod)


def later(cluster: Cluster, minutes: float) -> CycleResult:
    return cluster.cycle(after=60 * minutes)


@pytest.mark.parametrize("action", ["gangpreempt", "preempt"])
def test_gangs_run_for_a_while_before_others_may_have_them_evicted(action: str) -> None:
    cluster = made(policy(action, minRuntime="30m"))
    running(cluster, "old", 4, minimum=1)
    began(cluster, *[f"old-worker-{i}" for i in range(4)])
    start = cluster.now
    cluster.gang("new", 2, priorityClassName="high")
    result = later(cluster, 10)
    assert not result.evictions
    assert result.look_again_at == start + timedelta(minutes=30)
    assert not later(cluster, 19).evictions
    assert len(later(cluster, 2).evictions) == (2 if action == "preempt" else 3)


def test_pods_that_came_later_share_the_time_of_their_gang() -> None:
    cluster = made(policy("gangpreempt", minRuntime="30m"))
    running(cluster, "old", 4)
    began(cluster, "old-worker-0")
    cluster.now += timedelta(minutes=29)
    began(cluster, "old-worker-1", "old-worker-2", "old-worker-3")
    cluster.gang("new", 2, priorityClassName="high")
    assert len(later(cluster, 2).evictions) == 4


def test_no_more_pods_go_in_a_cycle_than_the_policy_allows() -> None:
    cluster = made(policy("gangpreempt", maxVictimsPerCycle=3), nodes=2)
    running(cluster, "first", 4)
    running(cluster, "second", 4, minimum=2)
    cluster.gang("large", 4, priorityClassName="high")
    cluster.gang("small", 2, priorityClassName="high")
    assert evicted(cluster.cycle()) == {"second-worker-0", "second-worker-1"}
    assert not cluster.cycle().evictions, "the rest comes in fours"


def test_what_was_only_tried_does_not_count() -> None:
    cluster = made(policy("gangpreempt", maxVictimsPerCycle=4))
    running(cluster, "old", 4, minimum=1)
    cluster.gang("broken", 4, priorityClassName="high", cpu="3")
    cluster.gang("small", 4, priorityClassName="high")
    assert len(cluster.cycle().evictions) == 4


def test_a_gang_is_disturbed_no_more_often_in_an_hour_than_the_policy_allows() -> None:
    cluster = made(policy("gangpreempt", maxDisruptionsPerGangPerHour=1))
    running(cluster, "old", 4, minimum=1)
    cluster.gang("first", 1, priorityClassName="high")
    assert len(cluster.cycle().evictions) == 3
    first = cluster.now
    for name in list(cluster.pods):
        if name.startswith("old") and name != "old-worker-3":
            cluster.delete(name)
    cluster.cycle()
    cluster.run("first")
    cluster.gang("second", 3, priorityClassName="high")
    result = later(cluster, 30)
    assert not result.evictions
    assert result.look_again_at == first + timedelta(hours=1)
    assert evicted(later(cluster, 31)) == {"old-worker-3"}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"minRuntime": "soon"}, "minRuntime: must be a duration"),
        ({"minRuntime": "-1m"}, "minRuntime: must be a duration"),
        ({"maxVictimsPerCycle": -1}, "maxVictimsPerCycle: must be at least 0"),
        ({"maxVictims": 1}, "unknown argument 'maxVictims'"),
    ],
)
def test_limits_that_make_no_sense_are_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        policy("gangpreempt", **given)


# Gangs below their minimum


def stale(minutes: str = "10m") -> Cluster:
    """A gang of four that lost one pod for good."""
    cluster = made(policy("shuffle", "stale-gang", gracePeriod=minutes))
    running(cluster, "g", 4)
    cluster.delete("g-worker-0")
    return cluster


def test_a_gang_below_its_minimum_gives_its_places_back_in_the_end() -> None:
    cluster = stale()
    result = cluster.cycle()
    assert not result.evictions
    assert result.look_again_at is not None
    due = cluster.now + timedelta(minutes=10)
    assert not later(cluster, 9.9).evictions
    cluster.now = due - timedelta(seconds=2)
    result = cluster.cycle()
    assert evicted(result) == {f"g-worker-{i}" for i in range(1, 4)}
    assert result.evictions[0].message == (
        "its gang has had fewer pods than its minimum for longer than the policy allows"
    )


def test_pods_that_are_bound_and_do_not_start_count_as_well() -> None:
    cluster = stale()
    cluster.change("g-worker-1", phase="Pending")
    cluster.cycle()
    assert evicted(later(cluster, 11)) == {f"g-worker-{i}" for i in range(1, 4)}


def test_a_gang_that_recovers_in_time_stays() -> None:
    cluster = stale()
    cluster.cycle()
    cluster.pod("g", 0)
    later(cluster, 5)
    cluster.run("g")
    assert not later(cluster, 6).evictions
    cluster.delete("g-worker-0")
    assert not later(cluster, 1).evictions, "a new time begins"
    assert later(cluster, 11).evictions


def test_a_gang_that_waits_without_places_is_left_alone() -> None:
    cluster = made(policy("shuffle", "stale-gang"))
    cluster.gang("g", 8)
    cluster.cycle()
    assert not later(cluster, 60).evictions


def test_the_grace_period_must_be_one() -> None:
    with pytest.raises(PolicyError, match="gracePeriod: must be a duration longer than nothing"):
        policy("shuffle", "stale-gang", gracePeriod="0")


@pytest.mark.parametrize(("asked", "gone"), [("true", {"g-worker-0"}), ("false", set[str]())])
def test_a_refused_bind_sends_the_whole_gang_back_where_no_other_node_takes_the_member(
    asked: str, gone: set[str]
) -> None:
    cluster = made(policy("shuffle", "stale-gang", onRefusedBind=asked), nodes=2)
    cluster.gang("g", 2, cpu="3")
    cluster.scheduler.cycle(cluster.now)
    cluster.change("g-worker-0", node="n0", phase="Running")
    cluster.node("n1", cpu="4", unschedulable=True, event="MODIFIED")
    cluster.scheduler.bind_failed("pod-g-worker-1", "the node said no")
    first = cluster.cycle()
    assert evicted(first) == gone


def test_a_refused_bind_is_nothing_to_the_others_where_another_node_takes_the_member() -> None:
    cluster = made(policy("shuffle", "stale-gang", onRefusedBind="true"), nodes=3)
    cluster.gang("g", 2, cpu="3")
    cluster.scheduler.cycle(cluster.now)
    cluster.change("g-worker-0", node="n0", phase="Running")
    cluster.scheduler.bind_failed("pod-g-worker-1", "the node said no")
    result = cluster.cycle()
    assert [bind.name for bind in result.binds] == ["g-worker-1"]
    assert not result.evictions


def test_giving_places_back_takes_the_action_that_does_it() -> None:
    text = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: stale-gang}]}]"
    with pytest.raises(
        PolicyError, match=r"line 2, .*: stale-gang acts in the action shuffle, which policy.actions must"
    ):
        Policy.parse(text)
    Policy.parse(text.replace("allocate", "allocate, shuffle"))
