"""Points for domains of the network and for the nodes in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.scheduler.cluster import START, Cluster
from tests.unit.scheduler.domains import SOFT, hard, hyper_node, racks, send
from tests.unit.scheduler.scoring import plugin_of
from vcbatch.scheduler import Policy, parse_policy
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.framework.plugin import DomainRequest
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.domain import Purpose
from vcbatch.scheduler.plugins.network_topology_aware import (
    Filling,
    Fullness,
    Nearness,
    NetworkTopologyAware,
    Packing,
)
from vcbatch.scheduler.topology.domain_search import DomainSearch, domains_for

POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: network-topology-aware
    arguments: {}
"""


def policy(arguments: dict[str, Any] | None = None) -> Policy:
    """The plugin with these arguments beside gang and predicates."""
    text = ", ".join(f"{key}: {value}" for key, value in (arguments or {}).items())
    return parse_policy(POLICY.replace("{}", f"{{{text}}}"))


def session_of(cluster: Cluster, made: Policy) -> Session:
    state = cluster.scheduler._state  # pyright: ignore[reportPrivateUsage]
    state.settle()
    return Session(state, made, StaticCache(), now=START, uid="session")


def packing(session: Session, cpu: str) -> Packing:
    return Packing(Fullness(session, {0: 1}), session.dims.vector({"cpu": cpu}))


def used(cluster: Cluster, **cpus: int) -> None:
    """Pods of nobody's gang that take so much of these nodes."""
    for node, cpu in cpus.items():
        name = node.replace("_", "-")
        cluster.gang(f"on-{name}", 1, cpu=str(cpu), pod={"nodeSelector": {"kubernetes.io/hostname": name}})
    cluster.cycle()
    for node in cpus:
        assert cluster.placed(f"on-{node.replace('_', '-')}")


def racks_of(cluster: Cluster, gang: str) -> set[str]:
    return {node.rpartition("-")[0] for node in cluster.placed(gang).values()}


def test_the_fullest_domain_that_takes_the_gang_is_chosen() -> None:
    cluster = Cluster(policy())
    racks(cluster, {"a": 2, "b": 2, "c": 2})
    used(cluster, b_0=4, c_0=8, c_1=1)
    cluster.gang("g", 2, cpu="4", networkTopology=hard(1))
    cluster.cycle()
    assert racks_of(cluster, "g") == {"b"}


def test_without_the_plugin_the_first_domain_by_name_is_chosen() -> None:
    cluster = Cluster(parse_policy(POLICY.replace("  - name: network-topology-aware\n    arguments: {}\n", "")))
    racks(cluster, {"b": 2, "a": 2})
    used(cluster, b_0=4)
    cluster.gang("g", 2, cpu="4", networkTopology=hard(1))
    cluster.cycle()
    assert racks_of(cluster, "g") == {"a"}


@pytest.mark.parametrize(("best_fit", "chosen"), [(False, "b"), (True, "c")])
def test_best_fit_goes_by_slots_to_spare(best_fit: bool, chosen: str) -> None:
    """By cpu rack b is the fuller; of the gang's pods of 3 cpus it takes three, rack c two."""
    cluster = Cluster(policy({"hypernode.best-fit.enable": str(best_fit).lower()}))
    for rack, sizes in {"b": ["9", "3"], "c": ["5", "5", "2", "2"]}.items():
        for i, cpu in enumerate(sizes):
            cluster.node(f"{rack}-{i}", cpu=cpu)
        send(cluster, hyper_node(rack, 1, nodes=[f"{rack}-{i}" for i in range(len(sizes))]))
    used(cluster, b_0=2)
    cluster.gang("g", 2, cpu="3", networkTopology=hard(1))
    cluster.cycle()
    assert racks_of(cluster, "g") == {chosen}


def test_how_full_domains_would_be() -> None:
    made = policy({"hypernode.binpack.cpu": 3, "hypernode.binpack.memory": 1})
    cluster = Cluster(made)
    racks(cluster, {"a": 2, "b": 1}, spines={"s": ["a", "b"]})
    used(cluster, a_0=4)  # of 16 cpus, and 1Gi of 64Gi
    session = session_of(cluster, made)
    fullness = Fullness(session, {0: 3, 1: 1})
    amount = session.dims.vector({"cpu": "8", "memory": "15Gi"})
    spine = (1.5 + 16 / 96) / 4
    assert fullness.after(amount).tolist() == pytest.approx([(2.25 + 0.25) / 4, (3 + 15 / 32) / 4, spine, spine])
    too_much = session.dims.vector({"cpu": "9"})
    assert fullness.after(too_much).tolist() == pytest.approx([13 / 16, 0, 13 / 24, 13 / 24])
    one_too_much = session.dims.vector({"cpu": "1", "memory": "40Gi"})
    assert fullness.after(one_too_much).tolist()[:2] == pytest.approx([(3 * 5 / 16 + 41 / 64) / 4, 0])


def test_where_the_gang_is_counts_among_the_fullest_domains_only() -> None:
    """Pods of the gang are in racks a and c; with the other two, b and c would be equally full."""
    made = policy()
    cluster = Cluster(made)
    racks(cluster, {"a": 2, "b": 2, "c": 2})
    used(cluster, b_0=8, c_0=6)
    cluster.gang("g", 4, cpu="2", networkTopology=SOFT)
    for i, node in enumerate(("a-0", "c-0")):
        cluster.change(f"g-worker-{i}", phase="Running", node=node)
    session = session_of(cluster, made)
    plugin = plugin_of(session, NetworkTopologyAware)
    tree = session.shared(DomainSearch).tree
    amount = session.dims.vector({"cpu": "4"})
    wanted = DomainRequest(session.state.jobs["ns/g"], None, 2, amount, np.zeros(len(tree)))
    assert plugin.domain_scores(wanted, np.arange(3)) == pytest.approx(
        [100 * 6 / 16, 100 * 12 / 16, 100 * (12 / 16 + 0.25)]
    )


@pytest.mark.parametrize("weight", [1, 3])
def test_a_part_s_share_is_of_its_own_pods(weight: int) -> None:
    """Of the first part's two pods one is in rack c; of the gang's five, of which it needs one, two are in rack a.
    With what is missing, b and c would be equally full, and then where pods are decides."""
    made = policy({"weight": weight})
    cluster = Cluster(made)
    racks(cluster, {"a": 2, "b": 2, "c": 2})
    used(cluster, b_0=8, c_0=6)
    rule = {"name": "w", "subGroupSize": 2, "minSubGroups": 2, "matchLabelKeys": ["part"], "networkTopology": SOFT}
    cluster.gang("g", 0, minimum=1, networkTopology=SOFT, subGroupPolicy=[rule])
    for index, (part, node) in enumerate([(0, "c-0"), (0, ""), (1, "a-0"), (1, "a-0"), (1, "")]):
        cluster.pod("g", index, part=part, cpu="2")
        if node:
            cluster.change(f"g-worker-{index}", phase="Running", node=node)
    session = session_of(cluster, made)
    plugin = plugin_of(session, NetworkTopologyAware)
    amount = session.dims.vector({"cpu": "2"})
    spare = np.zeros(len(session.shared(DomainSearch).tree))
    job = session.state.jobs["ns/g"]
    assert {sub: sum(counts) for sub, counts in job.subs.items()} == {(0, ("0",)): 2, (0, ("1",)): 3}
    of_part = DomainRequest(job, (0, ("0",)), 1, amount, spare)
    assert plugin.domain_scores(of_part, np.arange(3)) == pytest.approx(
        [weight * 100 * 6 / 16, weight * 100 * 10 / 16, weight * 100 * (10 / 16 + 1 / 2)]
    )
    of_gang = DomainRequest(job, None, 1, amount, spare)
    assert plugin.domain_scores(of_gang, np.array([0, 2])) == pytest.approx(
        [weight * 100 * 6 / 16, weight * 100 * (10 / 16 + 1 / 5)]
    )


def test_other_resources_count_where_they_are_named() -> None:
    """`hypernode.binpack.resources` is empty by default, and a resource named there weighs 1."""
    named = {
        "hypernode.binpack.cpu": 0,
        "hypernode.binpack.memory": 0,
        "hypernode.binpack.resources": '"x/a, x/b, x/none"',
        "hypernode.binpack.resources.x/a": 3,
    }
    made = policy(named)
    cluster = Cluster(made)
    cluster.node("n", x_a="8", x_b="8")
    send(cluster, hyper_node("a", 1, nodes=["n"]))
    session = session_of(cluster, made)
    amount = session.dims.vector({"cpu": "8", "x/a": "4", "x/b": "2"})
    assert plugin_of(session, NetworkTopologyAware).fullness.after(amount)[0] == pytest.approx((3 / 2 + 1 / 4) / 4)
    bare = session_of(cluster, policy())
    assert plugin_of(bare, NetworkTopologyAware).fullness.after(amount)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "cpu", "memory", "weight"),
    [
        ({}, 1, 1, 1),
        ({"weight": 2}, 1, 1, 2),
        ({"hypernode.binpack.cpu": 3}, 3, 1, 1),
        ({"hypernode.binpack.memory": 0}, 1, 0, 1),
        ({"hypernode.binpack.cpu": -3, "hypernode.binpack.memory": -1}, 1, 1, 1),
    ],
)
def test_points_of_pods_without_a_topology_by_default(
    arguments: dict[str, Any], cpu: int, memory: int, weight: int
) -> None:
    """The mean over the tiers, of which the second counts 0.8. Racks a and b are below a spine, rack
    c and node d below none; a pod of 1 cpu and 1Gi is in rack a, and one more is looked at."""
    made = policy(arguments)
    cluster = Cluster(made)
    racks(cluster, {"a": 1, "b": 1, "c": 1}, spines={"s": ["a", "b"]})
    cluster.node("d")
    used(cluster, a_0=1)
    cluster.gang("g", 1)
    session = session_of(cluster, made)
    job = session.state.jobs["ns/g"]
    leaning = plugin_of(session, NetworkTopologyAware).leaning(job, None, job.tasks["pod-g-worker-0"].cls, None)
    assert leaning is not None

    def full(pods: int, nodes: int) -> float:
        return (cpu * pods / (8 * nodes) + memory * pods / (32 * nodes)) / (cpu + memory)

    want = [(full(2, 1) + 0.8 * full(2, 2)) / 1.8, (full(1, 1) + 0.8 * full(2, 2)) / 1.8, (full(1, 1) + 0.8) / 1.8, 1]
    found = leaning.points(np.arange(4), np.ones(4, dtype=bool))
    assert found.tolist() == pytest.approx([100 * weight * points for points in want])


@pytest.mark.parametrize(
    ("fading", "points"),
    [
        (0.5, {"a": (2 / 8 + 0.5 * 2 / 16) / 1.5, "b": (1 / 8 + 0.5 * 2 / 16) / 1.5, "c": (1 / 8 + 0.5) / 1.5, "d": 1}),
        (0.0, {"a": 2 / 8, "b": 1 / 8, "c": 1 / 8, "d": 1}),
    ],
)
def test_nodes_of_pods_without_a_topology(fading: float, points: dict[str, float]) -> None:
    """Racks a and b below a spine, rack c below none, node d in no domain; one cpu is used in rack a."""
    made = policy()
    cluster = Cluster(made)
    racks(cluster, {"a": 1, "b": 1, "c": 1}, spines={"s": ["a", "b"]})
    cluster.node("d")
    used(cluster, a_0=1)
    session = session_of(cluster, made)
    filling = Filling(packing(session, "1"), fading=fading, points=100)
    rows = np.arange(4)
    assert filling.points(rows, np.ones(4, dtype=bool)).tolist() == pytest.approx([100 * p for p in points.values()])


def test_what_is_placed_counts_for_the_next_pod() -> None:
    made = policy()
    cluster = Cluster(made)
    racks(cluster, {"a": 1, "b": 1})
    session = session_of(cluster, made)
    filling = Filling(packing(session, "2"), fading=1, points=8)
    everyone = np.ones(2, dtype=bool)
    assert filling.points(np.arange(2), everyone).tolist() == [2, 2]
    filling.placed(1)
    assert filling.points(np.arange(2), everyone).tolist() == [2, 4]


@pytest.mark.parametrize(("enabled", "chosen"), [(True, "b-0"), (False, "a-0")])
def test_pods_without_a_topology_fill_domains_that_are_in_use(enabled: bool, chosen: str) -> None:
    cluster = Cluster(policy({"hypernode.binpack.normal-pod.enable": str(enabled).lower()}))
    racks(cluster, {"a": 1, "b": 2})
    used(cluster, b_1=8)
    cluster.gang("g", 1, cpu="1")
    cluster.cycle()
    assert list(cluster.placed("g").values()) == [chosen]


def test_what_other_gangs_got_in_the_same_cycle_counts() -> None:
    """Rack b is the fuller until the second gang is in rack a; the first and the third are alike."""
    cluster = Cluster(policy())
    racks(cluster, {"a": 2, "b": 2})
    used(cluster, b_1=1)
    cluster.gang("one", 1)
    cluster.gang("two", 1, cpu="6", pod={"nodeSelector": {"rack": "a"}})
    cluster.gang("three", 1)
    cluster.gang("four", 2, networkTopology=hard(1))
    cluster.cycle()
    assert [racks_of(cluster, name) for name in ("one", "two", "three", "four")] == [{"b"}, {"a"}, {"a"}, {"a"}]


def test_pods_that_ask_for_nothing_go_near_the_gang_s_other_pods() -> None:
    cluster = Cluster(policy())
    racks(cluster, {"a": 2, "b": 2})
    used(cluster, b_1=2)
    cluster.gang("g", 1, minimum=2, cpu="1", networkTopology=SOFT)
    cluster.pod("g", 1, cpu=None)
    cluster.cycle()
    assert len(cluster.placed("g")) == 2
    assert racks_of(cluster, "g") == {"b"}


def test_nodes_near_the_gang_s_other_pods() -> None:
    """Racks a, b below spine s, rack c below none: the tiers are 1, 2 and 3."""
    cluster = Cluster(policy())
    racks(cluster, {"a": 1, "b": 1, "c": 1}, spines={"s": ["a", "b"]})
    session = session_of(cluster, policy())
    tree = session.shared(DomainSearch).tree
    nearness = Nearness(tree, [], size=4, points=100)
    rows, everyone = np.arange(3), np.ones(3, dtype=bool)
    assert nearness.points(rows, everyone).tolist() == [0, 0, 0]
    nearness.placed(0)
    assert nearness.points(rows, everyone).tolist() == [125, 50, 0]
    assert nearness.points(rows, np.array([False, True, True])).tolist() == [100, 50, 0]
    nearness.placed(1)
    assert nearness.points(rows, everyone).tolist() == [75, 75, 0]
    nearness.placed(1)
    assert nearness.points(rows, everyone).tolist() == [75, 100, 0]


def test_nodes_of_the_gang_s_own_domain_are_as_near_as_can_be_whatever_its_tier() -> None:
    """1 where the node's domain is the gang's, else by the tier at which they meet, of 1 to 3."""
    cluster = Cluster(policy())
    for name in ("a", "b", "c"):
        cluster.node(name)
    send(cluster, hyper_node("low", 1, nodes=["a"]))
    send(cluster, hyper_node("high", 2, nodes=["b"]))
    session = session_of(cluster, policy())
    nearness = Nearness(session.shared(DomainSearch).tree, [1], size=4, points=100)
    assert nearness.points(np.arange(3), np.ones(3, dtype=bool)).tolist() == [0, 125, 0]


def test_what_the_gang_is_promised_is_held_and_what_it_says_counts_where_its_nodes_are_gone() -> None:
    """The search starts from the domain that the gang has, which its PodGroup names."""
    cluster = Cluster(policy())
    racks(cluster, {"a": 2, "b": 2})
    cluster.gang("g", 2, networkTopology=hard(1))
    cluster.gang("lost", 2, networkTopology=hard(1), annotations={"volcano.sh/job-allocated-hypernode": "b"})
    cluster.change("lost-worker-0", phase="Running", node="gone")
    session = session_of(cluster, policy())
    search, jobs = session.shared(DomainSearch), session.state.jobs
    assert search.allocated(jobs["ns/g"]) is None
    Statement(session).pipeline([session.state.tasks["pod-g-worker-0"]], [2])
    for name in ("g", "lost"):
        assert search.allocated(jobs[f"ns/{name}"]) == search.tree.index["b"]
        assert search.allowed(jobs[f"ns/{name}"]).tolist() == [search.tree.index["b"]]


def test_a_soft_gang_that_needs_several_racks_takes_few() -> None:
    cluster = Cluster(policy())
    racks(cluster, {"a": 1, "b": 2, "c": 1, "d": 2}, spines={"s": ["b", "d"]})
    cluster.gang("g", 4, cpu="8", networkTopology=SOFT)
    cluster.cycle()
    assert racks_of(cluster, "g") == {"b", "d"}


def test_to_evict_wide_domains_come_first_and_not_too_many() -> None:
    made = policy({"hypernode.gradient.evict.max-hypernodes": 2})
    cluster = Cluster(made)
    racks(cluster, {"a": 2, "b": 2, "c": 1}, spines={"s": ["a", "b"]})
    used(cluster, a_0=8, a_1=8, b_0=8, b_1=8)
    cluster.gang("g", 2, cpu="8", networkTopology=hard(2))
    session = session_of(cluster, made)
    job = session.state.jobs["ns/g"]
    assert domains_for(session, job, Purpose.ALLOCATE) == []
    found = domains_for(session, job, Purpose.EVICT)
    assert [[(d.name, d.tier) for d in group] for group in found] == [[("s", 2)], [("a", 1)]]
    assert [d.rows.tolist() for d in found[0]] == [[0, 1, 2, 3]]
    assert isinstance(session.shared(DomainSearch), DomainSearch)


def test_room_by_eviction_is_looked_for_in_eight_domains_by_default() -> None:
    """`hypernode.gradient.evict.max-hypernodes` is 8, counted over all tiers."""
    cluster = Cluster(policy())
    cluster.gang("g", 1)
    session = session_of(cluster, policy())
    plugin, job = plugin_of(session, NetworkTopologyAware), session.state.jobs["ns/g"]
    groups = [np.arange(7), np.arange(7, 12)]
    found = plugin.domain_order(job, None, groups, evicting=True)
    assert found is not None
    assert [group.tolist() for group in found] == [[7, 8, 9, 10, 11], [0, 1, 2]]
    assert plugin.domain_order(job, None, groups, evicting=False) is None


@pytest.mark.parametrize("arguments", [{"weight": -1}, {"hypernode.binpack.normal-pod.fading": -0.1}, {"nobody": 1}])
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"policy\.tiers"):
        policy(arguments)
