"""Making room for whole gangs: who goes, who stays, and who gets the room."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.domains import hard, hyper_node, racks, send
from vcbatch.scheduler import CycleResult, Policy, WaitReason, parse_policy

POLICY = """
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: {queues}
  - name: nodeorder
configurations:
- name: {action}
  arguments: {arguments}
"""


def policy(action: str = "gangpreempt", *, queues: str = "proportion", **arguments: Any) -> Policy:
    actions = f"allocate, {action}, backfill"
    given = "{" + ", ".join(f"{key}: {str(value).lower()}" for key, value in arguments.items()) + "}"
    return parse_policy(POLICY.format(actions=actions, action=action, queues=queues, arguments=given))


def cluster(made: Policy | None = None, *, nodes: int = 2, cpu: str = "4") -> Cluster:
    found = Cluster(made or policy())
    for i in range(nodes):
        found.node(f"n{i}", cpu=cpu)
    found.priority("low", 1)
    found.priority("mid", 5)
    found.priority("high", 10)
    return found


def running(found: Cluster, name: str, size: int, *, minimum: int | None = None, **given: Any) -> None:
    """A gang that runs where it found room."""
    found.gang(name, size, minimum=minimum, **{"priorityClassName": "low", **given})
    found.cycle()
    found.run(name)
    assert len(found.placed(name)) == size


def evicted(result: CycleResult) -> set[str]:
    return {eviction.name for eviction in result.evictions}


def go(found: Cluster, result: CycleResult) -> None:
    """The victims end, and are gone."""
    for eviction in result.evictions:
        found.change(eviction.name, deleting=True)
    found.cycle()
    for eviction in result.evictions:
        found.delete(eviction.name)


def test_what_is_free_is_promised_as_far_as_the_node_will_have_room_before_what_comes_free() -> None:
    """A promise takes nothing of what is free now, so a node with some of it stays ahead of one that has none."""
    found = cluster(nodes=1, cpu="2")
    running(found, "stays", 1, priorityClassName="high")
    running(found, "old0", 1)
    for name in ("n1", "n2"):
        found.node(name, cpu="1")
        running(found, f"old-{name}", 1)
    for name in ("n1", "n2"):
        found.node(name, cpu="2", event="MODIFIED")
    found.gang("new", 5, priorityClassName="mid")
    result = found.cycle()
    assert evicted(result) == {"old0-worker-0", "old-n1-worker-0", "old-n2-worker-0"}
    places = [held.node for held in sorted(result.held, key=lambda held: held.name)]
    assert places == ["n1", "n2", "n1", "n2", "n0"]


def test_a_gang_of_less_priority_goes_whole_and_the_other_takes_its_places() -> None:
    found = cluster()
    running(found, "old", 8)
    found.gang("new", 6, priorityClassName="high")
    result = found.cycle()
    assert evicted(result) == {f"old-worker-{i}" for i in range(8)}
    assert {h.name for h in result.held} == {f"new-worker-{i}" for i in range(6)}
    assert all(h.promised and h.nominated for h in result.held)
    places = {h.name: h.node for h in result.held}
    go(found, result)
    found.cycle()
    assert found.placed("new") == places


def test_a_gang_that_can_spare_pods_loses_these_alone() -> None:
    found = cluster()
    running(found, "old", 8, minimum=4)
    found.gang("new", 3, priorityClassName="high")
    result = found.cycle()
    assert evicted(result) == {f"old-worker-{i}" for i in range(4)}


def test_what_others_can_spare_goes_before_a_gang_ends() -> None:
    found = cluster()
    running(found, "whole", 4)
    running(found, "elastic", 4, minimum=2, priorityClassName="mid")
    found.gang("new", 2, priorityClassName="high")
    assert evicted(found.cycle()) == {"elastic-worker-0", "elastic-worker-1"}


def test_the_gang_of_least_priority_ends_first() -> None:
    found = cluster()
    running(found, "mid", 4, priorityClassName="mid")
    running(found, "low", 4)
    found.gang("new", 4, priorityClassName="high")
    assert evicted(found.cycle()) == {f"low-worker-{i}" for i in range(4)}


def test_each_victim_is_told_by_whom_and_why() -> None:
    found = cluster()
    running(found, "old", 8)
    found.gang("new", 6, priorityClassName="high")
    (eviction, *_) = found.cycle().evictions
    assert eviction.reason == "gangpreempt"
    assert eviction.message == (
        "makes room for gang ns/new of queue default, which lacks 6 pods: "
        "priority 10 is above 1; its gang ends, as it needs all its pods"
    )


def test_the_gang_is_told_that_its_places_are_being_cleared() -> None:
    found = cluster()
    running(found, "old", 8)
    found.gang("new", 6, priorityClassName="high")
    found.cycle()
    explanation = found.scheduler.explain("ns", "new")
    assert explanation is not None
    assert explanation.reason is WaitReason.WAITING_FOR_RELEASE
    assert "8 pods that are evicted for it" in explanation.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({"priorityClassName": "high"}, {}, id="equal priority"),
        pytest.param({"pod": {"priorityClassName": "system-node-critical"}}, {}, id="the cluster needs them"),
        pytest.param({}, {"cpu": "3", "size": 3}, id="it wouldn't fit even so"),
        pytest.param({}, {"cpu": "5", "size": 1}, id="larger than any node"),
        pytest.param({}, {"pod": {"preemptionPolicy": "Never"}}, id="its pods never preempt"),
    ],
)
def test_nobody_goes(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = cluster()
    running(found, "old", 8, **old)
    given = dict(new)
    found.gang("new", given.pop("size", 4), priorityClassName="high", **given)
    result = found.cycle()
    assert evicted(result) == set()
    assert not result.held


def test_a_gang_that_says_so_is_left_alone() -> None:
    found = cluster()
    running(found, "old", 8)
    found.groups["old"]["metadata"]["annotations"] = {"volcano.sh/preemptable": "false"}
    found.report_group("old")
    found.gang("new", 4, priorityClassName="high")
    assert evicted(found.cycle()) == set()


def test_gangs_are_not_broken_where_the_policy_forbids_it() -> None:
    found = cluster(policy(allowWholeBundle=False))
    running(found, "whole", 4)
    running(found, "elastic", 4, minimum=2)
    found.gang("small", 2, priorityClassName="high")
    found.gang("large", 4, priorityClassName="high")
    assert evicted(found.cycle()) == {"elastic-worker-0", "elastic-worker-1"}


def test_a_gang_looks_elsewhere_where_its_places_are_lost() -> None:
    found = cluster(nodes=3)
    running(found, "old", 12)
    found.gang("new", 4, priorityClassName="high", cpu="2")
    result = found.cycle()
    go(found, result)
    lost = {h.node for h in result.held}.pop()
    found.node(lost, event="DELETED")
    found.cycle()
    assert len(found.placed("new")) == 4
    assert lost not in found.placed("new").values()


def test_nobody_takes_the_places_of_a_gang_that_others_went_for() -> None:
    found = cluster()
    running(found, "old", 8)
    found.gang("new", 8, priorityClassName="high")
    result = found.cycle()
    for eviction in result.evictions:
        found.change(eviction.name, deleting=True)
    found.delete("old-worker-0")
    found.gang("quick", 1, priorityClassName="mid")
    assert not found.cycle().binds
    for eviction in result.evictions:
        if eviction.name != "old-worker-0":
            found.delete(eviction.name)
    found.cycle()
    assert len(found.placed("new")) == 8


def test_pods_that_turn_out_not_to_be_needed_stay_where_the_policy_says_so() -> None:
    """The first gang in order is on another node than the one that makes all the room."""
    found = cluster(policy(minimizeVictims=True))
    running(found, "big", 4, cpu="1", pod={"nodeName": "n0"}, priorityClassName="mid")
    running(found, "small", 1, cpu="1", pod={"nodeName": "n1"})
    running(found, "rest", 3, cpu="1", pod={"nodeName": "n1"}, priorityClassName="high")
    found.gang("new", 1, cpu="2", priorityClassName="high")
    assert evicted(found.cycle()) == {f"big-worker-{i}" for i in range(4)}


def test_gangs_spare_no_more_pods_than_are_needed_where_the_policy_says_so() -> None:
    found = cluster(policy(minimizeVictims=True))
    running(found, "old", 8, minimum=2)
    found.gang("new", 2, priorityClassName="high")
    assert evicted(found.cycle()) == {"old-worker-0", "old-worker-1"}


def test_a_gang_that_ends_ends_whole_though_not_all_its_pods_are_in_the_way() -> None:
    """It could spare the pod on the other node, which is of no use without the rest."""
    found = cluster(policy(minimizeVictims=True), nodes=1, cpu="2")
    found.node("n1", cpu="1")
    found.gang("old", 0, minimum=2, priorityClassName="low")
    for index, node in enumerate(("n1", "n0", "n0")):
        found.pod("old", index, nodeName=node)
    found.run("old")
    found.gang("new", 1, cpu="2", priorityClassName="high")
    result = found.cycle()
    assert evicted(result) == {f"old-worker-{i}" for i in range(3)}
    assert {held.node for held in result.held} == {"n0"}


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"gang": "new"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


@pytest.mark.parametrize("patience", [0, 1, 16])
def test_no_more_go_than_must_however_rarely_it_is_tried(monkeypatch: pytest.MonkeyPatch, patience: int) -> None:
    """The pods must be apart, so all that go from the first node are of no use until one goes from the second."""
    monkeypatch.setattr("vcbatch.scheduler.actions.gang_eviction._PATIENCE", patience)
    found = cluster(cpu="12")
    for i in range(24):
        running(found, f"old{23 - i:02}", 1, pod={"nodeName": f"n{i // 12}"})
    found.gang("new", 2, priorityClassName="high", pod={"affinity": APART})
    result = found.cycle()
    assert len(result.evictions) == 13, [e.name for e in result.evictions]
    assert {h.node for h in result.held} == {"n0", "n1"}


def test_an_eviction_is_decided_once() -> None:
    found = cluster()
    running(found, "old", 8)
    found.gang("new", 6, priorityClassName="high")
    assert evicted(found.cycle())
    assert not found.cycle().evictions
    assert not found.cycle().evictions


def test_a_gang_is_given_room_in_one_domain() -> None:
    found = cluster(nodes=0)
    racks(found, {"a": 1, "b": 2}, spines={"s": ["a", "b"]})
    running(found, "first", 8, pod={"nodeSelector": {"rack": "a"}})
    running(found, "second", 16)
    found.gang("new", 12, priorityClassName="high", networkTopology=hard(1))
    result = found.cycle()
    assert {h.node for h in result.held if h.name.startswith("new")} == {"b-0", "b-1"}
    gone = {eviction.name.split("-")[0] for eviction in result.evictions}
    assert gone == {"second"}, "the others are in another rack"
    go(found, result)
    found.cycle()
    assert set(found.placed("new").values()) == {"b-0", "b-1"}


def test_a_gang_looks_elsewhere_where_its_nodes_left_the_domain() -> None:
    found = cluster(nodes=0)
    racks(found, {"a": 2, "b": 2}, spines={"s": ["a", "b"]})
    for rack in ("a", "b"):
        running(found, f"old-{rack}", 16, pod={"nodeSelector": {"rack": rack}})
    found.gang("new", 12, priorityClassName="high", networkTopology=hard(1))
    result = found.cycle()
    go(found, result)
    (rack,) = {h.node.split("-")[0] for h in result.held}
    other = "b" if rack == "a" else "a"
    send(found, hyper_node(rack, 1, nodes=[f"{rack}-0"]), event="MODIFIED")
    send(found, hyper_node(other, 1, nodes=[f"{other}-0", f"{other}-1", f"{rack}-1"]), event="MODIFIED")
    found.cycle()
    assert not found.placed("new"), "neither rack has room for all of it"


def test_a_gang_that_fits_no_domain_evicts_nobody() -> None:
    found = cluster(nodes=0)
    racks(found, {"a": 1, "b": 1}, spines={"s": ["a", "b"]})
    running(found, "old", 16)
    found.gang("new", 12, priorityClassName="high", networkTopology=hard(1))
    assert evicted(found.cycle()) == set()


def two_racks(made: Policy, *, on_a: int, on_b: int, minimum: int, **given: Any) -> Cluster:
    """A gang with pods in both racks; queue `other` deserves half of what there is."""
    found = cluster(made, nodes=0)
    racks(found, {"a": 1, "b": 1}, spines={"s": ["a", "b"]})
    found.queue("other", deserved={"cpu": "8", "memory": "64Gi"})
    found.gang("old", 0, minimum=minimum, priorityClassName="low")
    for index in range(on_a + on_b):
        found.pod("old", index, nodeName="a-0" if index < on_a else "b-0", **given)
    found.run("old")
    found.cycle()
    return found


ACTIONS = [("gangpreempt", "proportion", "default"), ("gangreclaim", "capacity", "other")]


@pytest.mark.parametrize(("action", "queues", "queue"), ACTIONS)
@pytest.mark.parametrize("minimize", [False, True])
def test_a_gang_that_ends_in_a_domain_ends_everywhere(action: str, queues: str, queue: str, minimize: bool) -> None:
    found = two_racks(policy(action, queues=queues, minimizeVictims=minimize), on_a=8, on_b=4, minimum=12)
    found.gang("new", 6, priorityClassName="high", networkTopology=hard(1), queue=queue)
    result = found.cycle()
    assert evicted(result) == {f"old-worker-{i}" for i in range(12)}
    assert {h.node for h in result.held} == {"a-0"}


@pytest.mark.parametrize(("minimum", "gone"), [(5, 7), (6, 6), (7, 12), (11, 12)])
def test_what_a_gang_spares_in_a_domain_counts_its_pods_elsewhere(minimum: int, gone: int) -> None:
    """Of 8 pods in the rack 6 have to go: they are enough where the gang needs no more than the other 6."""
    found = two_racks(policy(), on_a=8, on_b=4, minimum=minimum)
    found.gang("new", 6, priorityClassName="high", networkTopology=hard(1))
    result = found.cycle()
    assert len(result.evictions) == gone
    left = "its gang keeps its minimum" if gone < 12 else "its gang ends, as it needs all its pods"
    assert {e.message.rpartition("; ")[2] for e in result.evictions} == {left}


def test_a_gang_goes_whole_or_not_at_all_where_one_of_its_pods_must_stay() -> None:
    found = two_racks(policy(), on_a=8, on_b=3, minimum=12)
    found.pod("old", 11, nodeName="b-0", notes={"volcano.sh/preemptable": "false"})
    found.run("old")
    found.gang("new", 6, priorityClassName="high", networkTopology=hard(1))
    assert evicted(found.cycle()) == set()


def test_a_plugin_that_keeps_a_pod_which_a_gang_could_spare_keeps_the_gang() -> None:
    """The gang can do without two pods, one of which is of the system's; ended, it would leave that one behind."""
    found = cluster(nodes=1)
    found.gang("old", 0, minimum=2, priorityClassName="low")
    for index, given in enumerate([{"priorityClassName": "system-node-critical"}, {}, {}, {}]):
        found.pod("old", index, nodeName="n0", **given)
    found.run("old")
    found.cycle()
    found.gang("small", 1, priorityClassName="high")
    found.gang("large", 3, priorityClassName="high")
    assert evicted(found.cycle()) == {"old-worker-1"}


def test_a_gang_below_its_minimum_goes_whole_and_first() -> None:
    found = cluster()
    running(found, "whole", 4)
    found.gang("broken", 3, minimum=4, priorityClassName="mid", pod={"nodeName": "n1"})
    found.run("broken")
    found.gang("new", 2, priorityClassName="high")
    result = found.cycle()
    assert evicted(result) == {f"broken-worker-{i}" for i in range(3)}
    assert result.evictions[0].message.endswith("; its gang ends, as it was below its minimum")


def test_a_gang_that_is_taken_back_goes_with_pods_that_do_not_run_yet() -> None:
    found = reclaiming()
    found.gang("old", 8, queue="lender")
    found.cycle()
    for index in range(7):
        found.change(f"old-worker-{index}", phase="Running")
    found.queue("lender", event="MODIFIED", deserved={"cpu": "0", "memory": "0"})
    found.gang("new", 3, queue="owner")
    assert evicted(found.cycle()) == {f"old-worker-{i}" for i in range(8)}


def test_a_gang_that_straddles_the_share_keeps_no_other_from_going() -> None:
    """Queue `lender` holds 8 of which it deserves 4: the first gang would leave it 2, the second one 6."""
    found = reclaiming()
    running(found, "first", 6, queue="lender")
    running(found, "second", 2, queue="lender")
    found.gang("new", 1, queue="owner")
    assert evicted(found.cycle()) == {"second-worker-0", "second-worker-1"}
    found.gang("more", 1, queue="owner")
    assert evicted(found.cycle()) == set()


def reclaiming(**lender: Any) -> Cluster:
    """A queue holds all there is, and another one that deserves half of it waits."""
    found = Cluster(policy("gangreclaim", queues="capacity"))
    for i in range(2):
        found.node(f"n{i}", cpu="4")
    found.queue("lender", deserved={"cpu": "4", "memory": "32Gi"}, **lender)
    found.queue("owner", deserved={"cpu": "4", "memory": "32Gi"})
    return found


def test_a_queue_takes_back_what_it_deserves() -> None:
    found = reclaiming()
    running(found, "first", 4, queue="lender")
    running(found, "second", 4, queue="lender")
    found.gang("new", 3, queue="owner")
    result = found.cycle()
    assert evicted(result) == {f"first-worker-{i}" for i in range(4)}, "of equal worth, the first by UID"
    assert {h.name for h in result.held} == {f"new-worker-{i}" for i in range(3)}
    assert "queue owner takes back what queue lender holds beyond its share" in result.evictions[0].message


def test_the_gang_whose_end_is_of_most_use_for_what_it_costs_goes() -> None:
    found = reclaiming()
    running(found, "large", 6, queue="lender")
    running(found, "small", 2, queue="lender")
    found.gang("new", 2, queue="owner")
    assert evicted(found.cycle()) == {"small-worker-0", "small-worker-1"}


def test_a_queue_that_does_not_lend_loses_nothing() -> None:
    found = reclaiming(reclaimable=False)
    running(found, "first", 8, queue="lender")
    found.gang("new", 3, queue="owner")
    assert evicted(found.cycle()) == set()


def test_pods_that_do_not_run_yet_are_not_taken_back() -> None:
    found = reclaiming()
    found.gang("first", 8, queue="lender")
    found.cycle()
    found.gang("new", 3, queue="owner")
    assert evicted(found.cycle()) == set()


def test_a_gang_that_asks_for_more_than_its_queue_deserves_takes_nothing_back() -> None:
    """It may have that much, but only of what is free."""
    found = cluster(policy("gangreclaim", queues="capacity"), nodes=1)
    found.queue("a", deserved={"cpu": "2"})
    found.queue("b", deserved={"cpu": "1"})
    running(found, "old", 4, minimum=1, queue="b")
    found.gang("new", 3, queue="a", priorityClassName="low")
    assert evicted(found.cycle()) == set()
    found.gang("less", 2, queue="a", priorityClassName="low")
    assert evicted(found.cycle()) == {f"old-worker-{i}" for i in range(3)}, "what a gang can spare goes together"
