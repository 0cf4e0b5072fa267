"""Which nodes a HyperNode stands for, however the cluster came to be as it is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.api.hypernode import HyperNodeSpec
from vcbatch.api.reasons import HyperNodeReason
from vcbatch.api.topology import Topology

Json = dict[str, Any]


def exact(kind: str, *names: str) -> list[Json]:
    return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names]


def spec(tier: int, *members: Json) -> HyperNodeSpec:
    return HyperNodeSpec.model_validate({"tier": tier, "members": list(members)})


def topology(nodes: list[str], **hyper_nodes: HyperNodeSpec) -> Topology:
    made = Topology()
    for name, given_spec in hyper_nodes.items():
        made.set_hyper_node(name, given_spec)
    for node in nodes:
        made.set_node(node, {"rack": node[0]})
    return made


def flaws(made: Topology) -> dict[str, list[tuple[str, str]]]:
    found = {name: [(str(flaw.reason), flaw.message) for flaw in place.flaws] for name, place in made.places().items()}
    return {name: reported for name, reported in found.items() if reported}


def test_a_tree_by_name_pattern_and_label() -> None:
    made = topology(
        ["a1", "a2", "b1", "c1"],
        left=spec(1, *exact("Node", "a1", "a2")),
        right=spec(1, {"type": "Node", "selector": {"regexMatch": {"pattern": "^b"}}}),
        third=spec(1, {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "c"}}}}),
        top=spec(
            2, *exact("HyperNode", "left"), {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "ight"}}}
        ),
    )
    places = made.places()
    assert {name: set(place.nodes) for name, place in places.items()} == {
        "left": {"a1", "a2"},
        "right": {"b1"},
        "third": {"c1"},
        "top": {"a1", "a2", "b1"},
    }
    assert places["top"].children == ("left", "right")
    assert not flaws(made)


def test_nodes_that_come_change_and_go() -> None:
    made = topology(
        ["a1"],
        rack=spec(1, {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "a"}}}}),
        named=spec(1, {"type": "Node", "selector": {"regexMatch": {"pattern": "2$"}}}),
    )
    made.set_node("b2", {"rack": "a"})
    assert {name: set(place.nodes) for name, place in made.places().items()} == {"rack": {"a1", "b2"}, "named": {"b2"}}
    made.set_node("b2", {"rack": "b"})
    made.remove_node("a1")
    assert {name: set(place.nodes) for name, place in made.places().items()} == {"rack": set(), "named": {"b2"}}


def test_nothing_is_computed_again_where_nothing_changed() -> None:
    made = topology(["a1"], rack=spec(1, *exact("Node", "a1")))
    before = made.places()
    made.set_node("a1", {"rack": "a"})
    made.set_hyper_node("rack", spec(1, *exact("Node", "a1")))
    made.remove_node("never-there")
    assert made.places() is before


@pytest.mark.parametrize(
    ("hyper_nodes", "expected"),
    [
        (
            {"a": spec(2, *exact("HyperNode", "b")), "b": spec(1, *exact("HyperNode", "a"))},
            {
                "a": [("Cycle", "it is a member of itself, by way of a, b")],
                "b": [
                    ("Cycle", "it is a member of itself, by way of a, b"),
                    ("TierOrder", "tier 1 is not above that of its members a"),
                ],
            },
        ),
        ({"a": spec(1, *exact("HyperNode", "a"))}, {"a": [("Cycle", "it is a member of itself, by way of a")]}),
        (
            {
                "a": spec(2, *exact("HyperNode", "leaf")),
                "b": spec(2, *exact("HyperNode", "leaf")),
                "leaf": spec(1, *exact("Node", "a1")),
            },
            {"leaf": [("SeveralParents", "it is a member of a, b, want one")]},
        ),
        (
            {"a": spec(1, *exact("HyperNode", "b")), "b": spec(1, *exact("Node", "a1"))},
            {"a": [("TierOrder", "tier 1 is not above that of its members b")]},
        ),
        (
            {"a": spec(1, *exact("Node", "a1", "b1")), "b": spec(1, *exact("Node", "b1"))},
            {
                "a": [("SharedNodes", "b has b1 as well")],
                "b": [("SharedNodes", "a has b1 as well")],
            },
        ),
        (
            {"a": spec(1, *exact("Node", "x1", "x2", "x3", "x4", "a1"), *exact("HyperNode", "none"))},
            {"a": [("MemberNotFound", "there is no HyperNode none, Node x1, Node x2 and 2 more")]},
        ),
    ],
)
def test_what_keeps_it_from_being_a_tree(hyper_nodes: dict[str, HyperNodeSpec], expected: Json) -> None:
    assert flaws(topology(["a1", "b1"], **hyper_nodes)) == expected


def test_of_a_circle_each_stands_for_what_is_below_it_outside_of_the_circle() -> None:
    made = topology(
        ["a1", "b1", "c1"],
        a=spec(3, *exact("HyperNode", "b"), *exact("Node", "a1")),
        b=spec(2, *exact("HyperNode", "a", "leaf")),
        leaf=spec(1, *exact("Node", "b1")),
        top=spec(4, *exact("HyperNode", "a")),
    )
    assert {name: set(place.nodes) for name, place in made.places().items()} == {
        "a": {"a1"},
        "b": {"b1"},
        "leaf": {"b1"},
        "top": {"a1"},
    }


def test_selectors_that_choose_nothing() -> None:
    made = topology(
        ["a1"],
        empty=spec(1, {"type": "Node", "selector": {"labelMatch": {}}}),
        broken=spec(1, {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}),
        labels=spec(1, {"type": "HyperNode", "selector": {"labelMatch": {"matchLabels": {"rack": "a"}}}}),
    )
    assert {name: set(place.nodes) for name, place in made.places().items()} == {
        "empty": set(),
        "broken": set(),
        "labels": set(),
    }


def test_a_chain_of_thousands_is_no_deep_recursion() -> None:
    made = Topology()
    made.set_node("n")
    made.set_hyper_node("h0", spec(0, *exact("Node", "n")))
    for number in range(1, 5000):
        made.set_hyper_node(f"h{number}", spec(number, *exact("HyperNode", f"h{number - 1}")))
    assert made.places()["h4999"].nodes == {"n"}
    made.set_hyper_node("h0", spec(0, *exact("HyperNode", "h4999")))
    assert made.places()["h17"].flaws[0].reason is HyperNodeReason.CYCLE


NODES, HYPER_NODES = ["a1", "a2", "b1", "b2"], ["h1", "h2", "h3", "h4"]
MEMBERS = st.one_of(
    st.builds(lambda name: exact("Node", name)[0], st.sampled_from(NODES)),
    st.builds(lambda name: exact("HyperNode", name)[0], st.sampled_from(HYPER_NODES)),
    st.builds(
        lambda kind, pattern: {"type": kind, "selector": {"regexMatch": {"pattern": pattern}}},
        st.sampled_from(["Node", "HyperNode"]),
        st.sampled_from(["^a", "[12]$", "h3"]),
    ),
    st.builds(
        lambda rack: {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": rack}}}},
        st.sampled_from(["r1", "r2"]),
    ),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(NODES), st.sampled_from(["r1", "r2"])),
        st.tuples(st.just("no node"), st.sampled_from(NODES), st.none()),
        st.tuples(
            st.just("hyper node"),
            st.sampled_from(HYPER_NODES),
            st.builds(lambda tier, members: spec(tier, *members), st.integers(0, 3), st.lists(MEMBERS, max_size=3)),
        ),
        st.tuples(st.just("no hyper node"), st.sampled_from(HYPER_NODES), st.none()),
    ),
    max_size=20,
)


@settings(max_examples=150)
@given(STEPS)
def test_what_it_says_is_about_what_there_is_and_not_about_how_it_came(steps: list[tuple[str, str, Any]]) -> None:
    made = Topology()
    nodes: dict[str, str] = {}
    hyper_nodes: dict[str, HyperNodeSpec] = {}
    for kind, name, what in steps:
        match kind:
            case "node":
                made.set_node(name, {"rack": what})
                nodes[name] = what
            case "no node":
                made.remove_node(name)
                nodes.pop(name, None)
            case "hyper node":
                made.set_hyper_node(name, what)
                hyper_nodes[name] = what
            case _:
                made.remove_hyper_node(name)
                hyper_nodes.pop(name, None)
        made.places()
    fresh = Topology()
    for name, given_spec in sorted(hyper_nodes.items(), reverse=True):
        fresh.set_hyper_node(name, given_spec)
    for name, rack in sorted(nodes.items()):
        fresh.set_node(name, {"rack": rack})
    assert made.places() == fresh.places()
    for name, place in made.places().items():
        if not any(flaw.reason is HyperNodeReason.CYCLE for other in made.places().values() for flaw in other.flaws):
            assert place.nodes == _reached(name, nodes, hyper_nodes)


def _reached(name: str, nodes: dict[str, str], hyper_nodes: dict[str, HyperNodeSpec]) -> set[str]:
    """By the definition, one member after the other."""
    found: set[str] = set()
    for member in hyper_nodes[name].members:
        for other in nodes if member.type == "Node" else hyper_nodes:
            selector = member.selector
            if selector.exact_match is not None:
                chosen = other == selector.exact_match.name
            elif selector.regex_match is not None:
                chosen = bool(re.search(selector.regex_match.pattern, other))
            else:
                chosen = nodes[other] == (selector.label_match or {})["matchLabels"]["rack"]
            if chosen:
                found |= {other} if member.type == "Node" else _reached(other, nodes, hyper_nodes)
    return found
