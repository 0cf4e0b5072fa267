"""Gangs that can't start even on empty nodes: their reason, and that they block no others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import Explanation, WaitReason, build_policy

Json = dict[str, Any]


def cluster(*sharing: str, actions: str = "enqueue, allocate, backfill", **queue: Any) -> Cluster:
    """Of two nodes with 8 cpus and one GPU each."""
    tiers = [["priority", "gang", "conformance"], [*sharing, "drf", "predicates", "nodeorder"]]
    named = [{"plugins": [{"name": name} for name in tier]} for tier in tiers]
    made = Cluster(build_policy({"actions": actions, "tiers": named}))
    if queue:
        made.queue("default", event="MODIFIED", **queue)
    for name in ("a", "b"):
        made.node(name, **{"nvidia.com/gpu": "1"})
    return made


def gpus(count: int) -> Json:
    requests = {"cpu": "1", "nvidia.com/gpu": str(count)}
    return {"containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}]}


def explained(made: Cluster, gang: str) -> Explanation:
    found = made.scheduler.explain("ns", gang)
    assert found is not None
    return found


@pytest.mark.parametrize("sharing", [("overcommit",), ("proportion",), ("capacity",), ("overcommit", "capacity")])
def test_the_admission_room_of_a_gang_that_cannot_start_is_left_to_others(sharing: tuple[str, ...]) -> None:
    made = cluster(*sharing)
    made.gang("never", 1, phase="Pending", pod=gpus(2), minResources={"nvidia.com/gpu": "2"})
    made.gang("next", 1, phase="Pending", pod=gpus(1), minResources={"nvidia.com/gpu": "1"})
    for _ in range(4):
        made.cycle()
    assert made.placed("next")
    assert explained(made, "never").reason is WaitReason.IMPOSSIBLE
    assert not made.scheduler.dirty


def test_its_admission_counts_again_once_a_node_came_that_takes_it() -> None:
    made = cluster("overcommit")
    made.gang("never", 1, phase="Pending", pod=gpus(2), minResources={"nvidia.com/gpu": "2"})
    made.cycle()
    made.node("c", **{"nvidia.com/gpu": "2"})
    made.cycle()
    assert made.placed("never") == {"never-worker-0": "c"}


@pytest.mark.parametrize("sharing", [(), ("overcommit",), ("capacity",)])
@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_it_does_not_hold_up_a_fifo_queue(sharing: tuple[str, ...], phase: str) -> None:
    made = cluster(*sharing, dequeueStrategy="fifo")
    made.gang("big", 3, phase=phase, cpu="5", minResources={"cpu": "15"})
    made.gang("small", 1, phase="Pending", minResources={"cpu": "1"})
    for _ in range(3):
        made.cycle()
    assert explained(made, "big").reason is WaitReason.IMPOSSIBLE
    assert made.placed("small")


def test_a_gang_refused_admission_that_could_never_start_holds_up_nobody() -> None:
    made = cluster("overcommit", dequeueStrategy="fifo")
    made.gang("running", 2, cpu="7")
    made.cycle()
    made.run("running")
    made.gang("big", 3, phase="Pending", cpu="5", minResources={"cpu": "15"})
    made.gang("small", 1, phase="Pending", minResources={"cpu": "1"})
    for _ in range(3):
        made.cycle()
    assert explained(made, "big").reason is WaitReason.IMPOSSIBLE
    assert made.placed("small")


@pytest.mark.parametrize(
    "state",
    [
        {"unschedulable": True},
        {"ready": "False"},
        {"ready": "Unknown"},
        {"taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]},
        {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]},
    ],
)
def test_states_that_pass_make_nothing_impossible(state: Json) -> None:
    made = Cluster()
    made.node("a", **state)
    made.gang("g", 2)
    made.gang("wide", 2, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    made.cycle()
    assert explained(made, "g").reason is not WaitReason.IMPOSSIBLE
    assert explained(made, "wide").reason is not WaitReason.IMPOSSIBLE
    made.gang("huge", 1, cpu="9")
    made.cycle()
    starting = "uninitialized" in str(state)
    assert (explained(made, "huge").reason is WaitReason.IMPOSSIBLE) is not starting


@pytest.mark.parametrize("sharing", ["overcommit", "proportion", "capacity"])
def test_nothing_is_too_large_for_a_cluster_to_which_a_node_is_being_added(sharing: str) -> None:
    made = cluster(sharing)
    made.gang("huge", 1, cpu="20", phase="Pending", minResources={"cpu": "20"})
    made.cycle()
    assert explained(made, "huge").reason is WaitReason.IMPOSSIBLE
    made.node("new", taints=[{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}])
    made.cycle()
    assert explained(made, "huge").reason is not WaitReason.IMPOSSIBLE
    made.node("new", cpu="64", event="MODIFIED")
    made.cycle()
    assert made.placed("huge") == {"huge-worker-0": "new"}


def test_a_taint_that_stays_does() -> None:
    made = Cluster()
    made.node("a", unschedulable=True, taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}])
    made.gang("g", 1)
    made.cycle()
    assert explained(made, "g").reason is WaitReason.IMPOSSIBLE


def test_a_member_that_fits_nowhere_and_is_not_needed_makes_nothing_impossible() -> None:
    made = Cluster()
    made.node("a")
    made.pod("other", 0, schedulerName="default-scheduler", nodeName="a", cpu="8")
    made.gang("g", 0, minimum=1)
    made.pod("g", 0, cpu="64", role="huge")
    made.pod("g", 1, cpu="1", role="small")
    made.cycle()
    assert explained(made, "g").reason is WaitReason.INSUFFICIENT


# Priority ------------------------------------------------------------------------------------------------------------


def busy(actions: str) -> Cluster:
    """Node `a` is taken by pods of low priority, `b` is idle; a gang of middle priority was admitted for both nodes and
    waits."""
    made = cluster("overcommit", actions=actions)
    for name, value in (("low", 1), ("middle", 10), ("high", 100)):
        made.priority(name, value)
    made.gang("running", 1, cpu="8", priorityClassName="low", pod={"priority": 1, "nodeSelector": HOST_A})
    made.cycle()
    made.run("running")
    made.gang("waits", 2, cpu="8", priorityClassName="middle", pod={"priority": 10}, minResources={"cpu": "11"})
    made.gang("first", 1, cpu="6", phase="Pending", priorityClassName="high", minResources={"cpu": "6"})
    return made


HOST_A = {"kubernetes.io/hostname": "a"}


def test_a_gang_of_higher_priority_with_idle_nodes_is_admitted_before_others_that_wait() -> None:
    made = busy("enqueue, allocate")
    made.cycle()
    assert made.placed("first") == {"first-worker-0": "b"}
    assert not made.placed("waits")


def test_nobody_is_evicted_for_a_gang_of_lower_priority_meanwhile() -> None:
    made = busy("enqueue, allocate, preempt")
    result = made.cycle()
    assert not result.evictions
    assert made.placed("first")


def test_a_gang_that_is_not_admitted_says_that_nobody_is_evicted_for_it() -> None:
    made = cluster("overcommit", actions="enqueue, allocate, preempt")
    made.gang("running", 2, cpu="8")
    made.cycle()
    made.run("running")
    made.gang("waits", 1, cpu="8", phase="Pending", minResources={"cpu": "8"})
    made.cycle()
    reported = explained(made, "waits")
    assert reported.reason is WaitReason.CLUSTER_OVERCOMMITTED
    assert "no pods are evicted for a gang before it is admitted" in reported.message
