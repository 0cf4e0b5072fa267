"""Queues of a tree in the order in which they can be deleted."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vcbatch.cli.resources.queue.order import all_below, lowest_first


def queue(name: str, parent: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"parent": parent} if parent else {}}


TREE = [queue("root"), queue("eng"), queue("eng-a", "eng"), queue("eng-a-x", "eng-a"), queue("ops")]


def test_all_that_is_below_at_any_depth() -> None:
    assert all_below("eng", TREE) == ["eng-a", "eng-a-x"]
    assert all_below("root", TREE) == ["eng", "eng-a", "eng-a-x", "ops"]
    assert all_below("ops", TREE) == []


def test_a_circle_ends() -> None:
    assert all_below("a", [queue("a", "b"), queue("b", "a")]) == ["b"]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10), st.randoms())
def test_each_comes_after_all_below_it(parents: list[int], random: Any) -> None:
    queues = [queue("q0")] + [queue(f"q{i + 1}", f"q{min(parent, i)}") for i, parent in enumerate(parents)]
    random.shuffle(queues)
    places = {one["metadata"]["name"]: place for place, one in enumerate(lowest_first(queues))}
    assert len(places) == len(queues)
    for one in queues:
        parent = one["spec"].get("parent")
        assert parent is None or places[one["metadata"]["name"]] < places[parent]
