"""Limits to evictions: how early, how many, how often; and gangs that hold places for nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.scheduler.actions.test_gang_eviction import evicted, running
from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.messages import protected_until
from vcbatch.api.reasons import DisruptionLimit
from vcbatch.api.timestamps import format_time
from vcbatch.scheduler import CycleResult, Explanation, Policy, PolicyError, WaitReason, parse_policy

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
    return parse_policy(TEXT.format(action=action, plugin=plugin, arguments=given))


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
    assert result.requeue_at == start + timedelta(minutes=30)
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
    assert result.requeue_at == first + timedelta(hours=1)
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


# What a gang is told that waits for a limit to pass


def reported(cluster: Cluster, gang: str = "new") -> Explanation:
    found = cluster.scheduler.explain("ns", gang)
    assert found is not None
    return found


@pytest.mark.parametrize("action", ["gangpreempt", "preempt"])
def test_a_gang_is_told_from_when_on_others_may_be_evicted_for_it(action: str) -> None:
    cluster = made(policy(action, minRuntime="30m"))
    running(cluster, "old", 4, minimum=4)
    began(cluster, *[f"old-worker-{i}" for i in range(4)])
    end = cluster.now + timedelta(minutes=30)
    cluster.gang("new", 2, priorityClassName="high")
    later(cluster, 10)
    gone = 2 if action == "preempt" else 4
    found = reported(cluster)
    assert found.reason is WaitReason.VICTIMS_PROTECTED
    assert found.protected == (gone, ("ns/old",), DisruptionLimit.MIN_RUNTIME, "30m", end)
    sentence = (
        f"VictimsProtected: it could have its place by evicting {gone} pods of gang ns/old, which may go from "
        f"{format_time(end)} on (minRuntime 30m); the gang needs cpu 2 with 4 held of 4"
    )
    assert sentence in found.message
    assert protected_until(found.message) == end
    condition = cluster.condition("new", "Unschedulable")
    assert condition is not None and condition["message"] == found.message


def test_what_keeps_victims_is_said_until_it_does_not() -> None:
    cluster = made(policy("preempt", minRuntime="30m"))
    running(cluster, "old", 4, minimum=4)
    began(cluster, *[f"old-worker-{i}" for i in range(4)])
    end = cluster.now + timedelta(minutes=30)
    cluster.gang("new", 2, priorityClassName="high")
    cluster.cycle()
    cluster.node("other", cpu="1")
    cluster.cycle()
    result = later(cluster, 1)
    assert reported(cluster).reason is WaitReason.VICTIMS_PROTECTED
    assert result.requeue_at == end, "whatever else happens meanwhile"
    cluster.priority("low", 99)
    cluster.cycle()
    assert reported(cluster).reason is WaitReason.INSUFFICIENT, "they are no victims of it any more"
    assert reported(cluster).protected is None


def test_gangs_alike_are_told_alike_and_others_are_not() -> None:
    cluster = made(policy("gangpreempt", minRuntime="30m"))
    running(cluster, "old", 4, minimum=4)
    began(cluster, *[f"old-worker-{i}" for i in range(4)])
    for name in ("new", "like"):
        cluster.gang(name, 2, priorityClassName="high")
    cluster.gang("vast", 5, priorityClassName="high")
    cluster.gang("equal", 2)
    cluster.cycle()
    assert reported(cluster).protected == reported(cluster, "like").protected
    assert reported(cluster, "like").reason is WaitReason.VICTIMS_PROTECTED
    for name in ("vast", "equal"):
        assert reported(cluster, name).reason is not WaitReason.VICTIMS_PROTECTED


def test_a_gang_that_takes_more_evictions_than_a_cycle_may_have_is_told_so() -> None:
    cluster = made(policy("preempt", maxVictimsPerCycle=3))
    running(cluster, "a", 2)
    running(cluster, "b", 1)
    running(cluster, "c", 1)
    cluster.gang("new", 4, priorityClassName="high")
    result = cluster.cycle()
    assert not result.evictions
    assert reported(cluster).protected == (4, ("ns/a", "ns/b", "ns/c"), DisruptionLimit.PER_CYCLE, "3", None)
    assert (
        "VictimsProtected: it could have its place by evicting 4 pods of gangs ns/a, ns/b and 1 more, "
        "and the policy lets no more than 3 go in a cycle (maxVictimsPerCycle); "
    ) in reported(cluster).message


def test_a_gang_that_is_left_alone_for_what_it_lost_is_named_with_the_time() -> None:
    cluster = made(policy("preempt", maxDisruptionsPerGangPerHour=1))
    running(cluster, "old", 4, minimum=1)
    cluster.gang("first", 1, priorityClassName="high")
    cluster.cycle()
    end = cluster.now + timedelta(hours=1)
    cluster.delete("old-worker-3")
    cluster.cycle()
    cluster.run("first")
    cluster.gang("new", 1, priorityClassName="high")
    cluster.cycle()
    assert reported(cluster).protected == (1, ("ns/old",), DisruptionLimit.PER_GANG_AND_HOUR, "1", end)


def test_what_is_said_of_protected_victims_stays_below_a_kilobyte_and_legible() -> None:
    cluster = made(policy("preempt", minRuntime="30m"))
    names = [f"{letter * 63}" for letter in "abcd"]
    for name in names:
        running(cluster, name, 1)
        began(cluster, f"{name}-worker-0")
    cluster.gang("n" * 63, 4, priorityClassName="high")
    cluster.cycle()
    found = reported(cluster, "n" * 63)
    assert len(found.message.encode()) <= 1024
    assert protected_until(found.message) is not None


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
    assert result.requeue_at is not None
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
        parse_policy(text)
    parse_policy(text.replace("allocate", "allocate, shuffle"))
