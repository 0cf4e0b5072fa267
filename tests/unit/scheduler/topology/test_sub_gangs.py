"""Gangs inside a gang: whole or not at all, as many as the gang wants, the others as room comes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.model.sub_gangs import rules_of, sub_of


def parts(*, size: int, least: int) -> list[dict[str, Any]]:
    selector = {"matchExpressions": [{"key": "part", "operator": "Exists"}]}
    rule = {"name": "w", "labelSelector": selector, "matchLabelKeys": ["part"]}
    return [{**rule, "subGroupSize": size, "minSubGroups": least}]


def cluster_with(room: int, *, count: int = 3, size: int = 2, least: int = 1, minimum: int = 2) -> Cluster:
    """One node with room for so many pods, and a gang of `count` parts."""
    cluster = Cluster()
    cluster.node("a", cpu=str(room))
    cluster.gang("g", 0, minimum=minimum, subGroupPolicy=parts(size=size, least=least))
    for index in range(count * size):
        cluster.pod("g", index, part=index // size)
    return cluster


def bound(cluster: Cluster) -> set[int]:
    return {int(bind.name.rpartition("-")[2]) for bind in cluster.cycle().binds}


@pytest.mark.parametrize(("room", "placed"), [(1, 0), (2, 2), (3, 2), (4, 4), (5, 4), (6, 6)])
def test_parts_are_placed_whole(room: int, placed: int) -> None:
    assert bound(cluster_with(room)) == set(range(placed))


@pytest.mark.parametrize(("room", "placed"), [(3, 0), (4, 4), (5, 4)])
def test_as_many_whole_ones_as_the_gang_wants_or_none(room: int, placed: int) -> None:
    cluster = cluster_with(room, least=2)
    assert len(bound(cluster)) == placed


def test_a_part_that_can_t_be_placed_leaves_its_room_to_the_next() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="3")
    cluster.gang("g", 0, minimum=2, subGroupPolicy=parts(size=2, least=1))
    for index, cpu in enumerate(["1", "8", "1", "1"]):
        cluster.pod("g", index, part=index // 2, cpu=cpu)
    assert bound(cluster) == {2, 3}


def test_a_part_that_lost_a_member_gets_one_again_before_another_part_starts() -> None:
    cluster = cluster_with(4, count=2)
    assert bound(cluster) == {0, 1, 2, 3}
    cluster.delete("g-worker-3")
    cluster.pod("g", 3, part=1)
    cluster.pod("g", 4, part=2)
    cluster.pod("g", 5, part=2)
    assert bound(cluster) == {3}


def test_too_few_pods_of_a_part_are_said() -> None:
    cluster = cluster_with(9, count=1, size=2, least=1, minimum=1)
    cluster.delete("g-worker-1")
    assert not bound(cluster)
    cluster.cycle(after=10)  # pods of a gang that is being made are given a moment
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.reason is WaitReason.NOT_ENOUGH_PODS
    assert "sub-group 'w' has 0 of 1 whole parts of 2 pods" in reported.message


def test_members_of_no_part_belong_to_the_gang_alone() -> None:
    cluster = cluster_with(3, count=2, minimum=3)
    cluster.pod("g", 0, role="launcher")
    assert {bind.name for bind in cluster.cycle().binds} == {"g-launcher-0", "g-worker-0", "g-worker-1"}


def test_rules_that_come_after_the_pods_count_all_the_same() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="3")
    for index in range(4):
        cluster.pod("g", index, part=index // 2)
    cluster.gang("g", 0, minimum=2, subGroupPolicy=parts(size=2, least=1))
    assert bound(cluster) == {0, 1}


def test_a_rule_that_says_little_wants_one_pod_of_each_part_and_no_part() -> None:
    """`subGroupSize` is 1 and `minSubGroups` 0 by default."""
    (rule,) = rules_of([{"name": "w"}])
    assert (rule.size, rule.least, rule.keys, rule.topology) == (1, 0, (), None)
    assert rules_of(None) == ()


@pytest.mark.parametrize(
    ("labels", "part"),
    [
        ({"kind": "b", "part": "1", "row": "x"}, (0, ("1", "x"))),
        ({"kind": "b", "row": "x", "part": "2"}, (0, ("2", "x"))),
        ({"kind": "b", "part": "1"}, (1, ("1",))),
        ({"kind": "c", "part": "1", "row": "x"}, (1, ("1",))),
        ({"kind": "c", "row": "x"}, None),
        ({}, None),
    ],
)
def test_the_first_rule_that_selects_a_pod_and_whose_labels_it_has_says_its_part(
    labels: dict[str, str], part: tuple[int, tuple[str, ...]] | None
) -> None:
    """By labelSelector, then by the tuple of values of matchLabelKeys."""
    rules = rules_of(
        [
            {"labelSelector": {"matchLabels": {"kind": "b"}}, "matchLabelKeys": ["part", "row"]},
            {"matchLabelKeys": ["part"]},
        ]
    )
    assert sub_of(rules, labels) == part
