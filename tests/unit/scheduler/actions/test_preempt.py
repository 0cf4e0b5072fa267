"""Making room for single tasks: who goes for whom in a queue, who never does, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.resources import PODGROUPS, PODS
from vcbatch.scheduler import CycleResult, Policy, PolicyError, WaitReason, build_policy, parse_policy

POLICY = """
actions: "allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: {gang}
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: nodeorder
configurations:
- name: preempt
  arguments: {arguments}
"""


def policy(*, gang: bool = False, **arguments: Any) -> Policy:
    given = "{" + ", ".join(f"{key}: {str(value).lower()}" for key, value in arguments.items()) + "}"
    return parse_policy(POLICY.format(gang=str(gang).lower(), arguments=given))


def cluster(made: Policy | None = None, *, nodes: int = 1, cpu: str = "4") -> Cluster:
    found = Cluster(made or policy())
    for i in range(nodes):
        found.node(f"n{i}", cpu=cpu)
    for name, value in (("low", 1), ("mid", 5), ("high", 10)):
        found.priority(name, value)
    return found


def running(found: Cluster, name: str, size: int, **given: Any) -> None:
    """A gang that runs where it found room."""
    found.gang(name, size, **{"priorityClassName": "low", **given})
    found.cycle()
    found.run(name)
    assert len(found.placed(name)) == size


def evicted(result: CycleResult) -> list[str]:
    return sorted(eviction.name for eviction in result.evictions)


def promised(result: CycleResult) -> dict[str, str]:
    return {held.name: held.node for held in result.held if held.promised}


BOTH = pytest.mark.parametrize("dry", [False, True])


@BOTH
def test_as_many_pods_of_lower_priority_go_as_the_gang_needs(dry: bool) -> None:
    found = cluster(policy(enableTopologyAwarePreemption=dry))
    running(found, "old", 4)
    found.gang("new", 2, priorityClassName="high")
    result = found.cycle()
    assert len(evicted(result)) == 2
    assert promised(result) == {"new-worker-0": "n0", "new-worker-1": "n0"}
    assert all(held.nominated for held in result.held)
    assert not result.binds


@BOTH
def test_nobody_goes_for_a_gang_that_would_still_lack_members(dry: bool) -> None:
    found = cluster(policy(enableTopologyAwarePreemption=dry))
    running(found, "old", 2)
    running(found, "peer", 2, priorityClassName="high")
    found.gang("new", 3, priorityClassName="high")
    result = found.cycle()
    assert evicted(result) == []
    assert promised(result) == {}


def test_pods_of_equal_priority_stay() -> None:
    found = cluster()
    running(found, "old", 4)
    found.gang("new", 1, priorityClassName="low")
    assert evicted(found.cycle()) == []


def test_what_says_that_it_is_not_preemptable_stays() -> None:
    found = cluster()
    running(found, "kept", 2, pod={"notes": {"volcano.sh/preemptable": "false"}})
    running(found, "old", 2)
    found.gang("new", 2, priorityClassName="high")
    assert evicted(found.cycle()) == ["old-worker-0", "old-worker-1"]


def test_a_pod_that_never_preempts_waits() -> None:
    found = cluster()
    running(found, "old", 4)
    found.gang("new", 1, priorityClassName="high", pod={"preemptionPolicy": "Never"})
    assert evicted(found.cycle()) == []


def test_another_queue_loses_nothing() -> None:
    found = cluster()
    found.queue("other")
    running(found, "old", 4, queue="other")
    found.gang("new", 1, priorityClassName="high")
    assert evicted(found.cycle()) == []


def test_a_gang_with_a_network_topology_is_left_to_gangpreempt() -> None:
    found = cluster()
    running(found, "old", 4)
    found.gang("new", 1, priorityClassName="high", networkTopology={"mode": "soft", "highestTierAllowed": 1})
    assert evicted(found.cycle()) == []


def test_where_gangs_keep_their_minimum_only_what_they_have_beyond_it_goes() -> None:
    found = cluster(policy(gang=True))
    running(found, "old", 4, minimum=3)
    found.gang("new", 1, priorityClassName="high")
    assert evicted(found.cycle()) == ["old-worker-3"]
    found = cluster(policy(gang=True))
    running(found, "old", 4, minimum=3)
    found.gang("new", 2, priorityClassName="high")
    assert evicted(found.cycle()) == []


def test_the_gang_that_comes_last_loses_its_last_pods_first() -> None:
    found = cluster()
    running(found, "older", 2)
    running(found, "younger", 2)
    found.gang("new", 1, priorityClassName="high")
    assert evicted(found.cycle()) == ["younger-worker-1"]


def test_a_pod_that_asks_for_nothing_takes_the_place_of_no_other_kind() -> None:
    found = Cluster(policy())
    found.node("n0", cpu="4", pods="2")
    found.priority("low", 1)
    found.priority("high", 10)
    running(found, "old", 2)
    found.gang("new", 1, priorityClassName="high", cpu=None)
    assert evicted(found.cycle()) == []
    found.gang("more", 1, priorityClassName="high")
    assert evicted(found.cycle()) == ["old-worker-1"]


def test_who_is_not_needed_in_the_end_is_spared_where_the_policy_says_so() -> None:
    for minimize, gone in ((False, ["large-worker-0", "small-worker-0"]), (True, ["large-worker-0"])):
        found = cluster(policy(minimizeVictims=minimize))
        running(found, "large", 1, cpu="3", priorityClassName="mid")
        running(found, "small", 1, cpu="1")
        found.gang("new", 1, priorityClassName="high", cpu="3")
        assert evicted(found.cycle()) == gone


def test_the_node_whose_victims_matter_least_is_taken_where_several_are_tried() -> None:
    found = Cluster(policy(enableTopologyAwarePreemption=True, minCandidateNodesAbsolute=2))
    for name, value in (("low", 1), ("mid", 5), ("high", 10)):
        found.priority(name, value)
    found.node("n0", cpu="2")
    running(found, "mid", 1, cpu="2", priorityClassName="mid", pod={"priority": 5})
    found.node("n1", cpu="2")
    running(found, "low", 2, cpu="1", pod={"priority": 1})
    found.gang("new", 1, cpu="2", priorityClassName="high")
    assert evicted(found.cycle()) == ["low-worker-0", "low-worker-1"]


def test_inside_a_gang_a_task_of_higher_priority_takes_the_place_of_a_lower_one() -> None:
    found = cluster(cpu="2")
    found.gang("one", 0, minimum=3, phase="Running")
    for index in range(2):
        found.pod("one", index, role="small", priority=1, nodeName="n0")
        found.change(f"one-small-{index}", phase="Running")
    found.pod("one", 0, role="large", priority=9)
    result = found.cycle()
    assert evicted(result) == ["one-small-1"]
    assert promised(result) == {"one-large-0": "n0"}


def test_a_free_node_is_looked_at_again_once_the_queue_has_room_for_it() -> None:
    """Who goes on one node gives the queue room for the place that is free on another."""
    found = cluster(parse_policy(POLICY.format(gang="false", arguments="{}").replace("nodeorder", "capacity")), nodes=0)
    found.queue("default", event="MODIFIED", capability={"cpu": "4"})
    found.node("n1", cpu="4")
    running(found, "old", 2, cpu="2")
    found.node("n0", cpu="1")
    port = {"containers": [{"name": "main", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]}
    found.gang("new", 2, priorityClassName="high", pod=port)
    result = found.cycle()
    assert evicted(result) == ["old-worker-1"]
    assert {held.name: held.node for held in result.held} == {"new-worker-0": "n1", "new-worker-1": "n0"}


def test_a_role_sees_what_other_roles_of_its_gang_were_promised() -> None:
    """Turn about, pods of two roles go to the node that is emptied until the other one is the better."""
    found = cluster(nodes=0)
    found.node("n0", cpu="2", memory="16Gi")
    running(found, "stays", 1, priorityClassName="high")
    found.node("n1", cpu="6", memory="8Gi")
    running(found, "old", 2, cpu="3")
    found.gang("new", 0, minimum=5, priorityClassName="mid")
    for role, count in (("a", 2), ("b", 3)):
        for index in range(count):
            found.pod("new", index, role=role)
    result = found.cycle()
    assert evicted(result) == ["old-worker-0", "old-worker-1"]
    places = {held.name: held.node for held in result.held}
    assert places == {"new-a-0": "n1", "new-b-0": "n1", "new-a-1": "n0", "new-b-1": "n1", "new-b-2": "n1"}


def test_a_pod_that_anti_affinity_keeps_out_gets_in_once_the_other_is_gone() -> None:
    found = cluster(nodes=1)
    term = {"labelSelector": {"matchLabels": {"gang": "old"}}, "topologyKey": "kubernetes.io/hostname"}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    running(found, "old", 1)
    found.gang("new", 1, priorityClassName="high", pod={"affinity": away})
    result = found.cycle()
    assert evicted(result) == ["old-worker-0"]
    assert promised(result) == {"new-worker-0": "n0"}


def test_a_full_node_counts_pods_that_go() -> None:
    found = Cluster(policy())
    found.node("n0", cpu="8", pods="1")
    found.priority("low", 1)
    found.priority("high", 10)
    running(found, "old", 1)
    found.gang("new", 1, priorityClassName="high")
    assert evicted(found.cycle()) == ["old-worker-0"]


def test_the_gang_starts_once_its_victims_are_gone_and_nobody_else_goes_meanwhile() -> None:
    found = cluster()
    running(found, "old", 4)
    found.gang("new", 2, priorityClassName="high")
    first = found.cycle()
    for eviction in first.evictions:
        found.change(eviction.name, deleting=True)
    second = found.cycle()
    assert evicted(second) == []
    assert promised(second) == promised(first)
    for eviction in first.evictions:
        found.delete(eviction.name)
    assert {bind.name: bind.node for bind in found.cycle().binds} == promised(first)


def test_a_failed_eviction_gives_the_place_back_and_is_decided_again() -> None:
    found = cluster(cpu="1")
    running(found, "old", 1)
    found.gang("new", 1, priorityClassName="high")
    (eviction,) = found.cycle().evictions
    found.scheduler.eviction_failed(eviction.uid, "no")
    (reported,) = found.cycle().pod_conditions
    assert (reported.name, reported.nominated) == ("new-worker-0", "")
    assert evicted(found.cycle()) == ["old-worker-0"]


def test_gangs_that_took_turns_before_do_not_take_them_again() -> None:
    """Without priorities drf lets a gang with less take from one with more; what it took isn't taken back by the other
    as long as nothing but pods changes."""
    text = """
actions: "allocate, preempt"
tiers:
- plugins:
  - name: gang
    enablePreemptable: false
  - name: drf
  - name: predicates
"""
    found = Cluster(parse_policy(text))
    found.node("n0", cpu="3")
    running(found, "one", 3, minimum=2)
    found.gang("two", 1)
    result = found.cycle()
    assert evicted(result) == ["one-worker-2"]
    for _ in range(5):
        for eviction in result.evictions:
            found.delete(eviction.name)
            found.pod("one", 9)
        result = found.cycle()
        found.run("two")
        assert evicted(result) == []


def test_nobody_goes_for_a_gang_of_which_a_pod_that_asks_for_nothing_has_no_place() -> None:
    """It needs all of them, whichever comes first."""
    for roles in (("idle", "busy"), ("busy", "idle")):
        found = cluster()
        running(found, "old", 4)
        found.gang("new", 0, minimum=2, priorityClassName="high")
        for index, role in enumerate(roles):
            nowhere = {"cpu": None, "nodeSelector": {"zone": "nowhere"}} if role == "idle" else {}
            found.pod("new", index, role=role, **nowhere)
        assert evicted(found.cycle()) == []


def test_who_lost_pods_in_a_cycle_is_too_few_for_the_rest_of_it() -> None:
    """A pod that asks for nothing isn't put anywhere for a gang that can't be whole any more."""
    found = cluster()
    found.gang("old", 4, minimum=5, priorityClassName="low")
    found.pod("old", 4, cpu=None, role="idle", nodeSelector={"zone": "late"})
    for index in range(4):
        found.change(f"old-worker-{index}", phase="Running", node="n0")
    found.node("n1", cpu="0", labels={"zone": "late"})
    found.gang("new", 4, priorityClassName="high")
    result = found.cycle()
    assert len(evicted(result)) == 4
    assert not [held for held in result.held if held.name.startswith("old-")]


# What is said ---------------------------------------------------------------------------------------------------------


def test_victims_and_their_gang_are_told_for_whom() -> None:
    found = cluster()
    running(found, "old", 4)
    found.gang("new", 2, priorityClassName="high")
    result = found.cycle()
    pods = [e for e in result.events if e.resource == PODS and e.reason == "Evict"]
    assert sorted(e.name for e in pods) == evicted(result)
    assert {e.type for e in pods} == {"Warning"}
    assert all(e.message.startswith("preempt: makes room for pod new-worker-") for e in pods)
    assert all("ns/new" in e.message for e in pods)
    (gang,) = [e for e in result.events if e.resource == PODGROUPS and e.reason == "Evict"]
    assert (gang.name, gang.type) == ("old", "Normal")
    assert gang.message.startswith("preempt: 2 pods evicted: ")


def test_a_pod_says_which_node_is_kept_for_it_as_long_as_it_is() -> None:
    found = cluster(nodes=2, cpu="2")
    running(found, "old", 4)
    found.gang("new", 1, priorityClassName="high", cpu="2")
    first = found.cycle()
    (node,) = promised(first).values()
    reported = {c.name: c for c in first.pod_conditions}["new-worker-0"]
    assert reported.nominated == node
    assert reported.message.startswith(f"pod can possibly be assigned to {node}")
    assert found.scheduler.explain("ns", "new").reason is WaitReason.WAITING_FOR_RELEASE  # type: ignore[union-attr]
    for eviction in first.evictions:
        found.change(eviction.name, deleting=True)
    assert [c for c in found.cycle().pod_conditions if c.name == "new-worker-0"] == []
    found.node(node, event="MODIFIED", cpu="2", unschedulable=True)
    found.node("n1" if node == "n0" else "n0", event="MODIFIED", cpu="2", unschedulable=True)
    (cleared,) = [c for c in found.cycle().pod_conditions if c.name == "new-worker-0"]
    assert cleared.nominated == ""


def test_a_pod_waits_on_its_kept_node_for_who_ends_there_of_lower_priority_only() -> None:
    for priority, gone in ((None, ["old-worker-1"]), (5, [])):
        found = cluster()
        found.node("n0", event="MODIFIED", cpu="2", pods="2")
        running(found, "old", 2)
        found.change("old-worker-0", deleting=True)
        found.gang("new", 0, minimum=1, priorityClassName="high")
        found.pod("new", 0, cpu="2", **({} if priority is None else {"priority": priority}))
        found.pods["new-worker-0"]["status"]["nominatedNodeName"] = "n0"
        found.change("new-worker-0")
        assert evicted(found.cycle()) == gone


def test_where_priority_alone_says_who_starves_a_gang_does_until_all_its_pods_have_a_place() -> None:
    plugins = [{"plugins": [{"name": "priority"}]}, {"plugins": [{"name": "predicates"}]}]
    found = cluster(build_policy({"actions": "allocate, preempt", "tiers": plugins}), cpu="2")
    running(found, "old", 2)
    found.gang("new", 2, minimum=1, priorityClassName="high")
    assert evicted(found.cycle()) == ["old-worker-0", "old-worker-1"]


def test_arguments_are_checked() -> None:
    with pytest.raises(PolicyError, match="maxCandidateNodesAbsolute: must be at least 1"):
        policy(maxCandidateNodesAbsolute=0)
    with pytest.raises(PolicyError, match="unknown argument 'minimiseVictims'"):
        policy(minimiseVictims=True)
