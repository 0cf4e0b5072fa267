"""Gangs that are to be near together in the network."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.scheduler.cluster import START, Cluster
from tests.unit.scheduler.domains import SOFT, hard, hyper_node, racks, send
from vcbatch.api.resources import PODGROUPS
from vcbatch.api.scheduling import PodGroupView
from vcbatch.scheduler import DEFAULT_POLICY, build_policy, parse_policy
from vcbatch.scheduler.model.result import WaitReason


def cluster_with(sizes: Mapping[str, int], **spines: list[str]) -> Cluster:
    cluster = Cluster()
    racks(cluster, sizes, spines=spines)
    return cluster


def racks_of(cluster: Cluster, gang: str) -> set[str]:
    return {node.rpartition("-")[0] for node in cluster.placed(gang).values()}


def test_a_hard_gang_stays_in_one_domain_of_its_tier() -> None:
    cluster = cluster_with({"a": 2, "b": 4})
    cluster.gang("g", 3, cpu="8", networkTopology=hard(1))
    cluster.cycle()
    assert racks_of(cluster, "g") == {"b"}
    assert len(cluster.placed("g")) == 3


@pytest.mark.parametrize("topology", [hard(1), hard("rack"), {"highestTierAllowed": 1}])
def test_a_hard_gang_that_fits_no_domain_of_its_tier_waits_whole(topology: dict[str, Any]) -> None:
    cluster = cluster_with({"a": 2, "b": 2}, s=["a", "b"])
    cluster.gang("g", 3, cpu="8", networkTopology=topology)
    cluster.cycle()
    assert cluster.placed("g") == {}


@pytest.mark.parametrize("topology", [hard(2), hard("spine"), SOFT, {"mode": "hard"}])
def test_a_gang_that_may_spans_the_next_domain_up(topology: dict[str, Any]) -> None:
    cluster = cluster_with({"a": 2, "b": 2, "c": 2}, s=["b", "c"])
    cluster.gang("g", 3, cpu="8", networkTopology=topology)
    cluster.cycle()
    assert racks_of(cluster, "g") == {"b", "c"}


def test_a_soft_gang_that_fits_nowhere_near_goes_anywhere() -> None:
    cluster = cluster_with({"a": 1, "b": 1, "c": 1}, s=["a", "b"])
    cluster.gang("g", 3, cpu="8", networkTopology=SOFT)
    cluster.cycle()
    assert racks_of(cluster, "g") == {"a", "b", "c"}


def test_a_gang_grows_where_it_is() -> None:
    cluster = cluster_with({"a": 2, "b": 4})
    cluster.gang("g", 3, minimum=1, cpu="8", networkTopology=hard(1))
    cluster.gang("h", 2, cpu="8", networkTopology=hard(1))
    cluster.cycle()
    cluster.cycle()
    assert len(racks_of(cluster, "g")) == 1
    assert len(cluster.placed("h")) == 2


def test_a_lost_pod_is_replaced_near_the_others() -> None:
    cluster = cluster_with({"a": 3, "b": 4})
    cluster.gang("g", 3, cpu="8", networkTopology=hard(1))
    cluster.gang("filler", 0, cpu="8")
    cluster.cycle()
    assert racks_of(cluster, "g") == {"a"}
    cluster.delete("g-worker-0")
    cluster.pod("g", 3, cpu="8")
    cluster.cycle()
    assert racks_of(cluster, "g") == {"a"}
    assert len(cluster.placed("g")) == 3


def test_places_that_are_taken_are_not_looked_for_elsewhere() -> None:
    cluster = cluster_with({"a": 2, "b": 2})
    cluster.gang("g", 2, cpu="8", networkTopology=hard(1))
    cluster.cycle()
    cluster.delete("g-worker-0")
    cluster.gang("other", 1, cpu="8", networkTopology=hard(1), pod={"nodeSelector": {"rack": "a"}})
    cluster.cycle()
    assert racks_of(cluster, "other") == {"a"}
    cluster.pod("g", 2, cpu="8")
    result = cluster.cycle()
    assert not result.binds
    [said] = result.explain
    assert said.reason is WaitReason.TOPOLOGY
    assert "a is closest" in said.message


def test_what_is_short_in_the_closest_domain_is_said() -> None:
    cluster = cluster_with({"a": 3, "b": 4})
    cluster.gang("filler", 2, cpu="8", networkTopology=hard(1), pod={"nodeSelector": {"rack": "b"}})
    cluster.cycle()
    cluster.gang("g", 4, cpu="8", networkTopology=hard(1))
    [said] = cluster.cycle().explain
    assert said.reason is WaitReason.TOPOLOGY
    assert said.closest == ("a", 1, 1, 4, 3)
    assert [tuple(s) for s in said.shortages] == [("cpu", "16", "8", "8")]
    assert "no domain of tier 1 or lower has room for the gang: a is closest, it takes 3 of 4 pods" in said.message
    assert "short by cpu 8" in said.message


def test_a_gang_larger_than_any_domain_is_impossible() -> None:
    cluster = cluster_with({"a": 2, "b": 3}, s=["a", "b"])
    cluster.gang("g", 4, cpu="8", networkTopology=hard(1))
    [said] = cluster.cycle().explain
    assert said.reason is WaitReason.IMPOSSIBLE
    assert said.closest == ("b", 1, 1, 4, 3)
    assert "would take 3 of 4 pods were it empty, short by cpu 8" in said.message


@pytest.mark.parametrize(
    ("size", "reason", "says"),
    [
        (
            4,
            WaitReason.INSUFFICIENT,
            "there is no room for the gang: the whole cluster takes 2 of 4 pods, short by cpu 7 on node a-0",
        ),
        (
            6,
            WaitReason.IMPOSSIBLE,
            "the whole cluster would take 4 of 6 pods were it empty, short by cpu 6 on node a-0",
        ),
    ],
)
def test_a_soft_gang_lacks_room_and_no_domain(size: int, reason: WaitReason, says: str) -> None:
    """Two pods of 7 cpus don't fit a node of 8; two of the four nodes are taken."""
    cluster = cluster_with({"a": 2, "b": 2})
    cluster.gang("old", 2, cpu="8")
    cluster.cycle()
    cluster.gang("g", size, cpu="7", networkTopology=SOFT)
    [said] = cluster.cycle().explain
    assert said.reason is reason
    assert says in said.message


def test_room_in_pieces_is_short_on_one_node() -> None:
    cluster = cluster_with({"a": 3})
    cluster.gang("g", 4, cpu="5", networkTopology=hard(1))
    [said] = cluster.cycle().explain
    assert "it would take 3 of 4 pods were it empty, short by cpu 2 on node a-0" in said.message


def test_where_nothing_fits_the_nodes_of_the_closest_domain_are_counted() -> None:
    cluster = cluster_with({"a": 2})
    cluster.gang("g", 1, cpu="9", networkTopology=hard(1))
    [said] = cluster.cycle().explain
    assert "In hyperNode a: 0/2 nodes are unavailable: 2 Insufficient cpu." in said.message


def test_hyper_nodes_that_make_no_tree_hold_up_those_that_ask_for_one() -> None:
    cluster = cluster_with({"a": 2, "b": 2})
    send(cluster, hyper_node("c", 1, nodes=["a-0"]))
    cluster.gang("g", 2, cpu="8", networkTopology=SOFT)
    cluster.gang("plain", 1, cpu="8")
    [said] = cluster.cycle().explain
    assert said.reason is WaitReason.TOPOLOGY_INCONSISTENT
    assert "HyperNode c doesn't fit into a tree" in said.message
    assert cluster.placed("plain")
    send(cluster, hyper_node("c", 1, nodes=["a-0"]), event="DELETED")
    cluster.cycle()
    assert len(racks_of(cluster, "g")) == 1


def test_a_tier_name_that_nobody_has_is_said() -> None:
    cluster = cluster_with({"a": 2})
    cluster.gang("g", 2, networkTopology=hard("row"))
    [said] = cluster.cycle().explain
    assert said.reason is WaitReason.TOPOLOGY_INCONSISTENT
    assert "no HyperNode has the tier name 'row'" in said.message


def test_a_gang_waits_for_a_domain_that_is_being_left() -> None:
    cluster = cluster_with({"a": 2})
    cluster.gang("old", 2, cpu="8")
    cluster.cycle()
    cluster.run("old")
    cluster.gang("g", 2, cpu="8", networkTopology=hard(1))
    cluster.change("old-worker-0", deleting=True)
    cluster.change("old-worker-1", deleting=True)
    result = cluster.cycle()
    assert {h.node for h in result.held if h.promised} == {"a-0", "a-1"}
    assert [e.reason for e in result.explain] == [WaitReason.WAITING_FOR_RELEASE]


def test_a_domain_with_room_now_is_better_than_one_that_is_being_left() -> None:
    cluster = cluster_with({"a": 2, "b": 2})
    cluster.gang("old", 2, cpu="8", pod={"nodeSelector": {"rack": "a"}})
    cluster.cycle()
    cluster.run("old")
    cluster.change("old-worker-0", deleting=True)
    cluster.change("old-worker-1", deleting=True)
    cluster.gang("g", 2, cpu="8", networkTopology=hard(1))
    cluster.cycle()
    assert racks_of(cluster, "g") == {"b"}


def test_a_queue_s_limit_is_told_as_such() -> None:
    cluster = cluster_with({"a": 4})
    cluster.queue("small", capability={"cpu": "8"})
    cluster.gang("g", 2, cpu="8", queue="small", networkTopology=hard(1))
    [said] = cluster.cycle().explain
    assert said.reason in (WaitReason.QUEUE_LIMIT, WaitReason.IMPOSSIBLE)
    assert "queue small" in said.message


def test_a_gang_grows_by_what_its_queue_has_room_for() -> None:
    """The next task in order is too large for the queue; those behind it aren't."""
    cluster = cluster_with({"a": 4})
    cluster.queue("small", capability={"cpu": "8"})
    cluster.gang("g", 0, minimum=1, queue="small", networkTopology=SOFT)
    cluster.pod("g", 0, cpu="2", role="ps")
    cluster.pod("g", 1, cpu="8", role="ps")
    for index in (2, 3):
        cluster.pod("g", index, cpu="3", role="worker")
    cluster.cycle()
    assert cluster.placed("g").keys() == {"g-ps-0", "g-worker-2", "g-worker-3"}


def test_what_the_queue_refuses_in_one_domain_another_may_not_need() -> None:
    """In the first rack the large member uses up the queue's room; in the second it finds no node, and the gang can do
    without it."""
    cluster = Cluster()
    for name, cpu in (("a", "8"), ("b", "2")):
        cluster.node(name, cpu=cpu)
        send(cluster, hyper_node(f"rack-{name}", 1, nodes=[name]))
    cluster.queue("small", capability={"cpu": "3"})
    cluster.gang("g", 0, minimum=2, queue="small", networkTopology=hard(1))
    cluster.pod("g", 0, cpu="3", role="large")
    cluster.pod("g", 1, cpu="1", role="small")
    cluster.pod("g", 2, cpu="1", role="small")
    cluster.cycle()
    assert cluster.placed("g") == {"g-small-1": "b", "g-small-2": "b"}


def test_without_a_say_about_gangs_each_pod_is_of_use_alone() -> None:
    """Where no plugin says when a gang is ready, domains needn't hold all that it would need."""
    cluster = Cluster(build_policy({"actions": "allocate", "tiers": [{"plugins": [{"name": "predicates"}]}]}))
    racks(cluster, {"a": 1})
    rule = {"name": "w", "matchLabelKeys": ["part"], "subGroupSize": 1, "minSubGroups": 2}
    cluster.gang("g", 0, minimum=2, networkTopology=SOFT, subGroupPolicy=[rule])
    cluster.pod("g", 0, part=0)
    cluster.cycle()
    assert cluster.placed("g").keys() == {"g-worker-0"}


def test_the_domain_of_a_gang_is_written_as_it_changes() -> None:
    cluster = cluster_with({"a": 2, "b": 2}, s=["a", "b"])
    cluster.gang("g", 3, minimum=2, cpu="8", networkTopology=hard(2))
    cluster.gang("plain", 1, cpu="1", pod={"nodeSelector": {"rack": "b"}})
    cluster.cycle()
    assert domain(cluster, "g") == "s"
    assert domain(cluster, "plain") is None
    outside = next(name for name, node in cluster.placed("g").items() if node.startswith("b"))
    cluster.delete(outside)
    cluster.cycle()
    assert domain(cluster, "g") == "a"
    for name in cluster.placed("g"):
        cluster.delete(name)
    cluster.cycle()
    assert domain(cluster, "g") is None


def domain(cluster: Cluster, gang: str) -> str | None:
    notes: dict[str, str] = cluster.groups[gang]["metadata"].get("annotations") or {}
    return notes.get("volcano.sh/job-allocated-hypernode")


@pytest.mark.parametrize("said", [None, "a", "gone"])
def test_the_domain_that_a_podgroup_names_is_put_right(said: str | None) -> None:
    """As after a restart: pods run in rack b, whatever the PodGroup says."""
    cluster = cluster_with({"a": 2, "b": 2})
    cluster.gang("g", 2, cpu="8", networkTopology=hard(1))
    cluster.change("g-worker-0", phase="Running", node="b-1")
    raw = cluster.groups["g"]
    raw["metadata"]["annotations"] = {} if said is None else {"volcano.sh/job-allocated-hypernode": said}
    cluster._send(PODGROUPS, PodGroupView, "MODIFIED", raw)  # pyright: ignore[reportPrivateUsage]
    cluster.cycle()
    assert domain(cluster, "g") == "b"
    assert cluster.placed("g") == {"g-worker-0": "b-1", "g-worker-1": "b-0"}


def test_a_domain_that_couldn_t_be_written_is_written_again() -> None:
    cluster = cluster_with({"a": 2})
    cluster.gang("g", 1, cpu="8", networkTopology=hard(1))
    [first] = cluster.scheduler.cycle(START).podgroup_updates
    cluster.scheduler.podgroup_write_failed("group-g")
    [second] = cluster.scheduler.cycle(START + timedelta(seconds=1)).podgroup_updates
    assert first.annotations == second.annotations == {"volcano.sh/job-allocated-hypernode": "a"}


def test_members_that_ask_for_nothing_stay_with_the_others() -> None:
    cluster = cluster_with({"a": 1, "b": 2})
    cluster.gang("g", 2, minimum=8, cpu="8", networkTopology=hard(1))
    for index in range(2, 8):
        cluster.pod("g", index, cpu=None)
    cluster.cycle()
    assert racks_of(cluster, "g") == {"b"}
    assert len(cluster.placed("g")) == 8


def test_a_gang_that_asks_for_nothing_stays_together() -> None:
    cluster = cluster_with({"a": 2, "b": 2})
    cluster.gang("g", 0, minimum=30, networkTopology=hard(1))
    for index in range(30):
        cluster.pod("g", index, cpu=None)
    cluster.cycle()
    assert len(cluster.placed("g")) == 30
    assert len(racks_of(cluster, "g")) == 1


def parts(least: int, size: int, topology: dict[str, Any] | None) -> list[dict[str, Any]]:
    rule = {"name": "w", "subGroupSize": size, "minSubGroups": least, "matchLabelKeys": ["part"]}
    return [rule if topology is None else {**rule, "networkTopology": topology}]


def gang_of_parts(cluster: Cluster, *, count: int, size: int, own: dict[str, Any] | None, **given: Any) -> None:
    cluster.gang("g", 0, minimum=count * size, subGroupPolicy=parts(count, size, own), **given)
    for index in range(count * size):
        cluster.pod("g", index, part=index // size, cpu="8")


def racks_by_part(cluster: Cluster, size: int) -> list[set[str]]:
    found: dict[int, set[str]] = {}
    for name, node in cluster.placed("g").items():
        found.setdefault(int(name.rpartition("-")[2]) // size, set()).add(node.rpartition("-")[0])
    return [racks for _, racks in sorted(found.items())]


def test_each_part_is_in_a_domain_of_its_own_tier() -> None:
    cluster = cluster_with({"a": 1, "b": 2, "c": 3}, s=["a", "b", "c"])
    gang_of_parts(cluster, count=2, size=2, own=hard(1))
    cluster.cycle()
    assert racks_by_part(cluster, 2) == [{"b"}, {"c"}]


def test_parts_stay_in_the_domain_of_their_gang() -> None:
    """Racks c and d would do for the parts, but not the spine around c alone."""
    cluster = cluster_with({"a": 2, "b": 2, "c": 2, "d": 1}, s=["c", "d"], t=["a", "b"])
    gang_of_parts(cluster, count=2, size=2, own=hard(1), networkTopology=hard(2))
    cluster.cycle()
    assert racks_by_part(cluster, 2) == [{"a"}, {"b"}]


def test_a_soft_part_goes_as_far_as_its_gang_may() -> None:
    cluster = cluster_with({"a": 1, "b": 1, "c": 2, "d": 1}, s=["a", "b"], t=["c", "d"])
    gang_of_parts(cluster, count=1, size=3, own=SOFT, networkTopology=hard(2))
    cluster.cycle()
    assert racks_by_part(cluster, 3) == [{"c", "d"}]


def test_a_part_that_fits_no_domain_is_named() -> None:
    cluster = cluster_with({"a": 1, "b": 2, "c": 1}, s=["a", "b", "c"])
    gang_of_parts(cluster, count=2, size=2, own=hard(1))
    [said] = cluster.cycle().explain
    assert cluster.placed("g") == {}
    assert said.reason is WaitReason.IMPOSSIBLE
    assert "Impossible: no domain of tier 1 or lower has room for sub-group 'w' (1): a is" in said.message
    other = cluster_with({"a": 1, "b": 1}, s=["a", "b"])
    gang_of_parts(other, count=1, size=2, own=hard(1))
    [said] = other.cycle().explain
    assert said.reason is WaitReason.IMPOSSIBLE
    assert "no domain of tier 1 or lower is large enough for sub-group 'w' (0): a is closest" in said.message
    assert said.closest == ("a", 1, 1, 2, 1)


def test_a_lost_member_of_a_part_comes_back_to_its_rack() -> None:
    cluster = cluster_with({"a": 2, "b": 3}, s=["a", "b"])
    gang_of_parts(cluster, count=2, size=2, own=hard(1))
    cluster.cycle()
    assert racks_by_part(cluster, 2) == [{"a"}, {"b"}]
    cluster.delete("g-worker-0")
    cluster.cycle()
    cluster.pod("g", 4, part=0, cpu="8")
    cluster.cycle()
    assert cluster.placed("g")["g-worker-4"].startswith("a-")


def test_places_further_apart_than_allowed_are_told() -> None:
    cluster = cluster_with({"a": 3, "b": 2}, s=["a", "b"])
    cluster.gang("g", 3, cpu="8", networkTopology=hard(1))
    cluster.change("g-worker-0", phase="Running", node="a-0")
    cluster.change("g-worker-1", phase="Running", node="b-0")
    [said] = cluster.cycle().explain
    assert said.reason is WaitReason.TOPOLOGY
    assert "the gang holds places in s of tier 2, above tier 1, the highest that it may span" in said.message


def test_parked_gangs_are_tried_again_when_a_domain_grows() -> None:
    cluster = cluster_with({"a": 1})
    cluster.gang("g", 2, cpu="8", networkTopology=hard(1))
    cluster.cycle()
    cluster.node("b-0", labels={"rack": "b"})
    cluster.cycle()
    assert cluster.placed("g") == {}
    send(cluster, hyper_node("a", 1, nodes=["a-0", "b-0"]), event="MODIFIED")
    assert cluster.scheduler.dirty
    cluster.cycle()
    assert set(cluster.placed("g").values()) == {"a-0", "b-0"}


def test_pods_that_depend_on_others_stay_in_the_domain() -> None:
    apart = {
        "labelSelector": {"matchLabels": {"gang": "g"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    cluster = cluster_with({"a": 1, "b": 3}, s=["a", "b"])
    cluster.gang("g", 3, cpu="1", networkTopology=hard(1), pod={"affinity": affinity})
    cluster.cycle()
    assert set(cluster.placed("g").values()) == {"b-0", "b-1", "b-2"}


def test_nobody_is_reclaimed_from_for_a_confined_gang_whose_room_would_be_in_pieces() -> None:
    made = parse_policy(DEFAULT_POLICY.replace("allocate, backfill", "allocate, reclaim"))
    for topology, evicted in ((hard(1), 0), (SOFT, 1)):
        cluster = Cluster(made)
        racks(cluster, {"a": 1, "b": 1})
        cluster.queue("other")
        cluster.gang("old", 2, minimum=1, cpu="8", queue="other")
        cluster.cycle()
        cluster.run("old")
        cluster.gang("g", 1, cpu="8", networkTopology=topology)
        assert len(cluster.cycle().evictions) == evicted


def test_others_go_for_a_gang_from_one_domain_that_is_large_enough() -> None:
    made = parse_policy(DEFAULT_POLICY.replace("allocate, backfill", "allocate, gangpreempt"))
    cluster = Cluster(made)
    racks(cluster, {"a": 2, "b": 2, "c": 3}, spines={"s": ["a", "b"]})
    cluster.priority("high", 10)
    cluster.gang("old", 7, minimum=1, cpu="8")
    cluster.cycle()
    cluster.run("old")
    cluster.gang("g", 3, cpu="8", networkTopology=hard(1), priorityClassName="high")
    evicted = {eviction.name for eviction in cluster.cycle().evictions}
    assert {node for name, node in cluster.placed("old").items() if name in evicted} == {"c-0", "c-1", "c-2"}
    for name in evicted:
        cluster.delete(name)
    cluster.cycle()
    assert set(cluster.placed("g").values()) == {"c-0", "c-1", "c-2"}


def test_a_soft_topology_does_not_wait_for_a_tier_name_that_nobody_has() -> None:
    cluster = cluster_with({"a": 2})
    cluster.gang("g", 2, networkTopology={"mode": "soft", "highestTierName": "row"})
    cluster.cycle()
    assert len(cluster.placed("g")) == 2
