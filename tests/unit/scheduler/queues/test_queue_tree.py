"""Parents, cycles and orphans among queues, and sums over what is below."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.meta import ObjectMeta
from vcbatch.api.scheduling import GuaranteeView, QueueSpecView, QueueView
from vcbatch.scheduler.model.objects import Queue
from vcbatch.scheduler.model.resources import CPU, MEMORY, Dimensions
from vcbatch.scheduler.queues.quotas import quotas_of, tree_limits
from vcbatch.scheduler.queues.tree import ErrorKind, QueueTree


def tree(parents: dict[str, str], **given: bool) -> QueueTree:
    """Queues with these parents, in rows that have nothing to do with their names."""
    rows = {name: row for row, name in enumerate(sorted(parents, reverse=True))}
    views = {n: QueueView(metadata=ObjectMeta(name=n, uid=n), spec=QueueSpecView(parent=p)) for n, p in parents.items()}
    return QueueTree({n: Queue(view, rows[n]) for n, view in views.items()}, **given)


def names(tree: QueueTree, queue: str) -> list[str]:
    return [tree.names[i] for i in tree.chains[tree.at(queue)]]


def test_chains_lead_to_the_root_whether_it_exists_or_not() -> None:
    for extra in ({}, {"root": ""}):
        found = tree({"a": "", "b": "a", "c": "b", "d": "root", **extra})
        assert names(found, "c") == ["c", "b", "a", "root"]
        assert names(found, "d") == ["d", "root"]
        assert names(found, "root") == ["root"]
        assert found.errors == {}
        assert [n for n, leaf in zip(found.names, found.leaf, strict=True) if leaf] == ["c", "d"]
        assert found.depth[found.at("c")] == 3


def test_a_flat_tree_knows_no_parents() -> None:
    found = tree({"a": "nowhere", "b": "a", "c": "c"}, hierarchical=False)
    assert [names(found, q) for q in ("a", "b", "c")] == [["a"], ["b"], ["c"]]
    assert found.errors == {}
    assert found.leaf.all()
    queue = found.queues[found.at("a")]
    assert queue is not None
    assert found.error(queue) is None


def test_a_missing_parent_costs_only_those_below_it() -> None:
    found = tree({"a": "gone", "b": "a", "c": "b", "d": ""})
    assert {name: (f.kind, f.culprits) for name, f in found.errors.items()} == {
        "a": (ErrorKind.UNKNOWN_PARENT, ("gone",)),
        "b": (ErrorKind.BELOW_ERROR, ("a",)),
        "c": (ErrorKind.BELOW_ERROR, ("a",)),
    }
    assert found.errors["a"].sentence == (
        "queue a has the parent gone, which doesn't exist; create it or change spec.parent"
    )
    assert found.errors["c"].sentence == "queue c is below queue a, which has no place in the tree of queues"
    assert names(found, "d") == ["d", "root"]
    assert list(found.place) == [name not in ("a", "b", "c") for name in found.names]


@pytest.mark.parametrize(
    ("parents", "loop"),
    [
        ({"a": "a"}, {"a": ("a", "a")}),
        ({"a": "b", "b": "a"}, {"a": ("a", "b", "a"), "b": ("b", "a", "b")}),
        ({"a": "c", "b": "a", "c": "b"}, {"a": ("a", "c", "b", "a"), "b": ("b", "a", "c", "b")}),
    ],
)
def test_a_cycle_is_told_to_each_of_its_queues(parents: dict[str, str], loop: dict[str, tuple[str, ...]]) -> None:
    found = tree({**parents, "x": "a", "y": ""})
    for name, culprits in loop.items():
        assert found.errors[name].kind is ErrorKind.CYCLE
        assert found.errors[name].culprits == culprits
    assert found.errors["x"].kind is ErrorKind.BELOW_ERROR
    assert "y" not in found.errors


def test_a_long_cycle_is_named_in_few_words() -> None:
    found = tree({"a": "b", "b": "c", "c": "d", "d": "a"})
    assert found.errors["a"].sentence == (
        "queue a is above itself (a below b below c and 2 more); change spec.parent of one of them"
    )


def test_a_queue_with_others_below_it_takes_no_gangs() -> None:
    found = tree({"a": "", "b": "a", "c": "a", "d": "a", "e": "a"})
    inner, leaf = found.queues[found.at("a")], found.queues[found.at("b")]
    assert inner is not None
    assert leaf is not None
    error = found.error(inner)
    assert error is not None
    assert error.kind is ErrorKind.NOT_LEAF
    assert error.sentence == (
        "queue a takes no gangs, as it has queues below it (b, c, d and 1 more); use one of those"
    )
    assert found.error(leaf) is None


def test_the_nearest_common_queue() -> None:
    found = tree({"a": "", "a1": "a", "a2": "a", "a1x": "a1", "b": ""})
    depth = {pair: found.common_depth(*map(found.at, pair)) for pair in (("a1x", "a2"), ("a1x", "a1"), ("a1", "b"))}
    assert depth == {("a1x", "a2"): 1, ("a1x", "a1"): 2, ("a1", "b"): 0}
    assert tree({"a": "", "b": ""}, hierarchical=False).common_depth(0, 1) == -1


@given(st.lists(st.integers(-1, 9), min_size=1, max_size=10))
def test_every_queue_has_a_chain_to_the_root_or_a_fault(numbers: list[int]) -> None:
    """-1 is the root; numbers beyond the last queue are parents that don't exist."""
    parents = {f"q{i}": "" if p < 0 else f"q{p}" for i, p in enumerate(numbers)}
    found = tree(parents)
    for name in parents:
        chain = names(found, name)
        walked, at = [name], name
        while at != "root" and len(walked) <= len(parents) + 1 and (parents.get(at) or "root") in {*parents, "root"}:
            at = parents[at] or "root"
            walked.append(at)
        if at == "root":
            assert chain == walked
            assert name not in found.errors
        else:
            assert chain == [name]
            assert name in found.errors


@given(st.lists(st.integers(-1, 5), min_size=1, max_size=6), st.data())
def test_sums_upwards_are_sums_over_all_below(numbers: list[int], data: st.DataObject) -> None:
    found = tree({f"q{i}": "" if p < 0 else f"q{p}" for i, p in enumerate(numbers)})
    own = np.array([[float(data.draw(st.integers(0, 9)))] for _ in found.names])
    above = found.upwards(own)
    for i in range(len(found)):
        assert above[i, 0] == sum(own[j, 0] for j in range(len(found)) if i in found.chains[j])


def test_real_capability_of_the_worked_example() -> None:
    """One queue of its own and two below it, of which one has no capability of its own."""

    def view(name: str, parent: str, guarantee: str, capability: str | None) -> QueueView:
        spec = QueueSpecView(
            parent=parent,
            guarantee=GuaranteeView(resource={"cpu": guarantee}),
            capability={"cpu": capability} if capability else None,
        )
        return QueueView(metadata=ObjectMeta(name=name, uid=name), spec=spec)

    views = [view("eng", "", "20", "60"), view("a", "eng", "10", "50"), view("b", "eng", "5", None)]
    found = QueueTree({v.metadata.name: Queue(v, row) for row, v in enumerate(views)})
    limits = tree_limits(found, quotas_of(found, Dimensions()))
    most = {name: limits.most[found.at(name), CPU] for name in found.names}
    assert most == {"root": np.inf, "eng": 60_000, "a": 50_000, "b": 50_000}
    assert (limits.most[:, MEMORY] == np.inf).all()
    assert limits.guarantee[found.at("root"), CPU] == 20_000
    assert limits.deserved[found.at("root"), CPU] == 20_000
