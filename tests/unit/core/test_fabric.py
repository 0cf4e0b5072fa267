"""HyperNodes from the links of a fabric."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.hypernode import HyperNode
from vcbatch.core.hypernode import Link, reconcile, wanted_of_fabric

Json = dict[str, Any]


def _members(body: Json) -> list[str]:
    return [member["selector"]["exactMatch"]["name"] for member in body["spec"]["members"]]


def _leaves(links: list[Link]) -> list[list[str]]:
    return sorted(_members(body) for body in wanted_of_fabric(links) if body["spec"]["tier"] == 1)


def test_the_nodes_of_a_leaf_are_a_hypernode_and_the_spine_has_all() -> None:
    found = wanted_of_fabric([Link("l1", "a"), Link("l1", "b"), Link("l2", "c")])
    assert [body["spec"]["tier"] for body in found] == [1, 1, 2]
    assert sorted(map(_members, found[:2])) == [["a", "b"], ["c"]]
    assert found[2]["metadata"]["name"] == "spine-hn"
    assert _members(found[2]) == sorted(body["metadata"]["name"] for body in found[:2])
    assert {body["metadata"]["labels"]["volcano.sh/network-topology-source"] for body in found} == {"ufm"}
    assert {member["type"] for body in found[:2] for member in body["spec"]["members"]} == {"Node"}
    assert {member["type"] for member in found[2]["spec"]["members"]} == {"HyperNode"}


def test_leaves_that_share_a_node_are_one() -> None:
    links = [Link("l1", "a"), Link("l2", "b"), Link("l3", "c"), Link("l3", "a"), Link("l2", "c"), Link("l4", "d")]
    assert _leaves(links) == [["a", "b", "c"], ["d"]]


def test_what_no_node_can_be_called_is_left_out() -> None:
    assert _leaves([Link("l1", "a"), Link("l1", "NODE 7"), Link("", "b"), Link("l2", "")]) == [["a"]]
    assert wanted_of_fabric([Link("l1", "NODE 7")]) == []


def test_a_node_that_comes_changes_its_leaf_only() -> None:
    before = wanted_of_fabric([Link("l1", "a"), Link("l2", "c")])
    after = wanted_of_fabric([Link("l2", "c"), Link("l1", "b"), Link("l1", "a")])
    decision = reconcile(after, [HyperNode.parse(body) for body in before], source="ufm")
    assert not decision.creates
    assert not decision.deletes
    (mark,) = decision.marks
    (changed,) = [body for body in after if body["metadata"]["name"] == mark.ref.name]
    assert mark.patch["spec"]["members"] == changed["spec"]["members"]
    assert _members(changed) == ["a", "b"]


LINKS = st.lists(st.builds(Link, st.sampled_from("lmnopq"), st.sampled_from(["a", "b", "c", "d", "e"])), max_size=12)


@given(LINKS, st.randoms(use_true_random=False))
def test_each_node_is_in_one_leaf_with_all_that_it_reaches(links: list[Link], random: Any) -> None:
    leaves = _leaves(links)
    nodes = [node for leaf in leaves for node in leaf]
    assert sorted(nodes) == sorted({link.node for link in links})
    home = {node: number for number, leaf in enumerate(leaves) for node in leaf}
    for one in links:
        for other in links:
            if one.leaf == other.leaf:
                assert home[one.node] == home[other.node]
    shuffled = random.sample(links, len(links))
    assert wanted_of_fabric(shuffled) == wanted_of_fabric(links), "the order of the ports says nothing"
