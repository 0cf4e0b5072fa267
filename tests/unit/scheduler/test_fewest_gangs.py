"""With `minimizeVictims` room is made at the price of the fewest gangs, and of the fewest pods."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.test_preempt import cluster, evicted, policy, promised, running

DRY = pytest.mark.parametrize("dry", [False, True])


def three_or_one(*, dry: bool, minimize: bool = True, whole: str = "low", nodes: int = 1) -> Cluster:
    """A gang of three, and three younger ones of one pod each, one after the other on as many nodes."""
    made = policy(minimizeVictims=minimize, enableTopologyAwarePreemption=dry)
    found = cluster(made, nodes=nodes, cpu=str(6 // nodes))
    running(found, "whole", 3, cpu="1", priorityClassName=whole, pod={"priority": 5 if whole == "mid" else 1})
    for name in ("a", "b", "c"):
        running(found, name, 1, cpu="1", pod={"priority": 1})
    found.gang("new", 3, priorityClassName="high")
    return found


@DRY
@pytest.mark.parametrize("nodes", [1, 3])
def test_one_gang_is_ended_instead_of_three(nodes: int, dry: bool) -> None:
    found = three_or_one(dry=dry, nodes=nodes)
    result = found.cycle()
    assert evicted(result) == ["whole-worker-0", "whole-worker-1", "whole-worker-2"]
    assert set(promised(result).values()) == {f"n{i}" for i in range(nodes)}


def test_more_gangs_are_broken_where_nothing_is_minimised() -> None:
    result = three_or_one(dry=False, minimize=False, nodes=3).cycle()
    assert len({name.split("-")[0] for name in evicted(result)}) > 1


@DRY
def test_no_gang_of_higher_priority_is_ended_to_break_fewer(dry: bool) -> None:
    result = three_or_one(dry=dry, whole="mid").cycle()
    assert evicted(result) == ["a-worker-0", "b-worker-0", "c-worker-0"]


@DRY
def test_what_a_gang_can_spare_goes_before_one_that_can_spare_nothing(dry: bool) -> None:
    found = cluster(policy(minimizeVictims=True, enableTopologyAwarePreemption=dry), nodes=2, cpu="2")
    running(found, "elastic", 2, minimum=1, cpu="1", pod={"priority": 1})
    running(found, "firm", 2, cpu="1", pod={"priority": 1})
    found.gang("new", 1, priorityClassName="high")
    gone = evicted(found.cycle())
    assert len(gone) == 1 and gone[0].startswith("elastic")


def test_of_ways_that_break_as_many_the_one_with_the_fewest_pods_is_taken() -> None:
    """Both gangs hold as much; the one of small pods comes last in order."""
    found = cluster(policy(minimizeVictims=True), nodes=1, cpu="6")
    running(found, "few", 2, cpu="1")
    running(found, "many", 4, cpu="500m")
    for name in ("x", "y"):
        running(found, name, 1, cpu="1")
    found.gang("new", 2, priorityClassName="high")
    assert evicted(found.cycle()) == ["few-worker-0", "few-worker-1"]
