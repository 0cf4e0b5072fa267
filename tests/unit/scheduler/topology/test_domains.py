"""The HyperNodes as a tree over the nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tests.unit.scheduler.domains import hyper_node
from vcbatch.api.node import Node
from vcbatch.api.scheduling import HyperNodeView
from vcbatch.scheduler.snapshot.cluster_events import ClusterEvents
from vcbatch.scheduler.snapshot.snapshot import Snapshot
from vcbatch.scheduler.topology.domains import Domains, domains_of

Json = dict[str, Any]

TREE = [
    hyper_node("a", 1, nodes=["n0", "n1"], tier_name="rack"),
    hyper_node("b", 1, nodes=["n2"], tier_name="rack"),
    hyper_node("c", 2, nodes=["n3"], tier_name="rack"),
    hyper_node("s", 5, below=["a", "b"], tier_name="spine"),
]
"""Two racks below a spine, a domain of its own, and a node `n4` in none."""


def state_with(hyper_nodes: list[Json], nodes: int = 5) -> Snapshot:
    state = Snapshot(scheduler_names=["volcano"], default_queue="default")
    for i in range(nodes):
        put_node(state, f"n{i}")
    for raw in hyper_nodes:
        state.facts.put(msgspec.convert(raw, HyperNodeView))
    state.settle()
    return state


def put_node(state: Snapshot, name: str, **labels: str) -> None:
    raw = {"metadata": {"name": name, "uid": name, "labels": labels}, "status": {"allocatable": {"cpu": "1"}}}
    ClusterEvents(state).apply_node(msgspec.convert(raw, Node))


def tree_of(hyper_nodes: list[Json], nodes: int = 5) -> Domains:
    return domains_of(state_with(hyper_nodes, nodes))


def named(tree: Domains, numbers: Any) -> list[str]:
    return [tree.names[int(i)] for i in numbers]


def test_domains_are_numbered_by_tier_and_name_the_whole_cluster_last() -> None:
    tree = tree_of(TREE)
    assert tree.names == ["a", "b", "c", "s", "<cluster-top-hypernode>"]
    assert tree.tiers.tolist() == [1, 1, 2, 5, 6]
    assert tree.levels == [1, 2, 5, 6]
    assert named(tree, tree.parent[:-1]) == ["s", "s", tree.names[-1], tree.names[-1]]
    assert [rows.tolist() for rows in tree.rows] == [[0, 1], [2], [3], [0, 1, 2], [0, 1, 2, 3, 4]]
    assert named(tree, tree.leaf) == ["a", "a", "b", "c", tree.names[-1]]
    assert tree.tier_names == {"rack": 1, "spine": 5}
    assert tree.error is None


def test_a_cluster_without_hyper_nodes_is_one_domain() -> None:
    tree = tree_of([])
    assert (tree.names, tree.tiers.tolist()) == (["<cluster-top-hypernode>"], [1])
    assert tree.rows[0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("rows", "around"),
    [([0], "a"), ([0, 1], "a"), ([0, 2], "s"), ([2, 3], "<cluster-top-hypernode>"), ([4], "<cluster-top-hypernode>")],
)
def test_the_lowest_domain_around_nodes(rows: list[int], around: str) -> None:
    tree = tree_of(TREE)
    found = tree.around(rows)
    assert found is not None
    assert tree.names[found] == around


def test_nothing_is_around_no_nodes() -> None:
    assert tree_of(TREE).around([]) is None


@pytest.mark.parametrize(("tier", "found"), [(0, None), (1, "a"), (4, "a"), (5, "s"), (9, "<cluster-top-hypernode>")])
def test_the_highest_domain_up_to_a_tier(tier: int, found: str | None) -> None:
    tree = tree_of(TREE)
    number = tree.highest(tree.index["a"], tier)
    assert (None if number is None else tree.names[number]) == found


@pytest.mark.parametrize(
    ("root", "tier", "below"),
    [("s", 5, ["a", "b", "s"]), ("s", 1, ["a", "b"]), ("c", 9, ["c"]), ("<cluster-top-hypernode>", 2, ["a", "b", "c"])],
)
def test_domains_below_one(root: str, tier: int, below: list[str]) -> None:
    tree = tree_of(TREE)
    assert named(tree, tree.below(tree.index[root], tier)) == below


def test_the_tiers_at_which_domains_meet() -> None:
    tree = tree_of(TREE)
    assert tree.meeting_tiers(tree.index["a"]).tolist() == [1, 5, 6, 5, 6]
    assert tree.meeting_tiers(tree.index["s"]).tolist() == [5, 5, 6, 5, 6]


def test_sums_over_domains() -> None:
    assert tree_of(TREE).sums(np.array([1.0, 2.0, 4.0, 8.0, 16.0])).tolist() == [3, 4, 8, 7, 31]


def test_a_node_may_be_named_by_the_domain_above_its_own_as_well() -> None:
    tree = tree_of([*TREE[:3], hyper_node("s", 5, below=["a", "b"], nodes=["n0", "n4"])])
    assert tree.error is None
    assert named(tree, tree.leaf) == ["a", "a", "b", "c", "s"]


@pytest.mark.parametrize(
    ("hyper_nodes", "at", "says"),
    [
        ([hyper_node("a", 1, nodes=["n0"]), hyper_node("b", 1, nodes=["n0"])], "b", "is in a as well"),
        ([hyper_node("a", 2, below=["b"]), hyper_node("b", 1, below=["a"])], "a", "member of itself"),
        ([hyper_node("a", 1, below=["b"]), hyper_node("b", 1, nodes=["n0"])], "a", "tier 1 is not above"),
        (
            [hyper_node("a", 1, nodes=["n0"]), hyper_node("b", 2, below=["a"]), hyper_node("c", 2, below=["a"])],
            "a",
            "it is a member of b, c, want one",
        ),
    ],
)
def test_what_is_no_tree_says_where(hyper_nodes: list[Json], at: str, says: str) -> None:
    error = tree_of(hyper_nodes).error
    assert error is not None
    assert error.hyper_node == at
    assert says in error.message


def test_a_member_that_isn_t_there_is_no_fault() -> None:
    assert tree_of([hyper_node("a", 1, nodes=["n0", "elsewhere"], below=["nobody"])]).error is None


def test_the_tree_is_made_again_only_when_members_may_have_changed() -> None:
    state = state_with(TREE)
    tree = domains_of(state)
    assert domains_of(state) is tree
    put_node(state, "n5")
    state.settle()
    assert domains_of(state).rows[-1].tolist() == [0, 1, 2, 3, 4, 5]


def test_members_by_label_follow_the_labels() -> None:
    chosen = {"labelMatch": {"matchLabels": {"rack": "a"}}}
    raw = hyper_node("a", 1)
    raw["spec"]["members"] = [{"type": "Node", "selector": chosen}]
    state = state_with([raw])
    assert domains_of(state).rows[0].tolist() == []
    put_node(state, "n1", rack="a")
    assert domains_of(state).rows[0].tolist() == [1]
    ClusterEvents(state).delete_node("n0")
    state.settle()
    assert domains_of(state).rows[0].tolist() == [0]


def test_a_hyper_node_that_goes_takes_its_domain_along() -> None:
    state = state_with(TREE)
    domains_of(state)
    state.facts.drop(msgspec.convert(TREE[3], HyperNodeView))
    assert domains_of(state).names == ["a", "b", "c", "<cluster-top-hypernode>"]
