"""With `minimizeVictims` room is made at the price of the fewest gangs, and of the fewest pods."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.unit.scheduler.actions.test_preempt import cluster, evicted, policy, promised, running
from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.domains import hard, racks
from vcbatch.scheduler import parse_policy
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.model.objects import Task

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


@pytest.mark.parametrize("size", [1, 4])
def test_choices_that_leave_too_few_slots_are_not_searched(size: int) -> None:
    """All gangs have to go: plugins aren't asked again for any choice of fewer."""
    asked: list[int] = []
    for minimize in (False, True):
        asked.append(0)
        text = WHOLE_GANGS.format(action="preempt", arguments=f"{{minimizeVictims: {str(minimize).lower()}}}")
        text = text.replace("name: gang\n", "name: gang\n    enablePreemptable: false\n  - name: counter\n")
        found = cluster(parse_policy(text, plugins={"counter": _counter(asked)}), nodes=16, cpu="4")
        for i in range(64 // size):
            running(found, f"old{i:02}", size)
        found.gang("new", 64, priorityClassName="high")
        assert len(evicted(found.cycle())) == 64
    assert asked[0] == asked[1] > 0


def _counter(asked: list[int]) -> type[Plugin]:
    """Counts in the last number how often it is asked who may go."""

    class Counter(Plugin):
        def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Sequence[Task]:
            asked[-1] += 1
            return candidates

    return Counter


# Whole gangs: `gangpreempt` and `gangreclaim`


GANG_ACTIONS = pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
AMPLE = {"cpu": "6", "memory": "64Gi"}
WHOLE_GANGS = """
actions: "allocate, {action}"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: capacity
configurations:
- name: {action}
  arguments: {arguments}
"""


def of_whole_gangs(action: str, *, minimize: bool = True, nodes: int = 1, cpu: str = "6") -> Cluster:
    """An empty cluster, with a queue whose gangs may be evicted for those of the default queue that is `lender`."""
    arguments = f"{{minimizeVictims: {str(minimize).lower()}}}"
    found = cluster(parse_policy(WHOLE_GANGS.format(action=action, arguments=arguments)), nodes=nodes, cpu=cpu)
    found.queue("default", event="MODIFIED", deserved=AMPLE)
    found.queue("lender")
    return found


def lender(action: str) -> str:
    return "lender" if action == "gangreclaim" else "default"


def three_small_or_one(action: str, *, minimize: bool = True, whole: str = "low") -> Cluster:
    """The three of one pod each go first in either order: they came last, and are worth as much and first by UID."""
    found = of_whole_gangs(action, minimize=minimize)
    queue = lender(action)
    running(found, "whole", 3, queue=queue, priorityClassName=whole, pod={"priority": 5 if whole == "mid" else 1})
    for name in ("a", "b", "c"):
        running(found, name, 1, queue=queue, pod={"priority": 1})
    found.gang("new", 3, priorityClassName="high")
    return found


@GANG_ACTIONS
def test_one_whole_gang_is_ended_instead_of_three(action: str) -> None:
    result = three_small_or_one(action).cycle()
    assert evicted(result) == ["whole-worker-0", "whole-worker-1", "whole-worker-2"]
    assert promised(result) == {f"new-worker-{i}": "n0" for i in range(3)}
    assert "its gang ends" in result.evictions[0].message


@GANG_ACTIONS
def test_whole_gangs_go_in_their_order_where_nothing_is_minimised(action: str) -> None:
    assert evicted(three_small_or_one(action, minimize=False).cycle()) == ["a-worker-0", "b-worker-0", "c-worker-0"]


@GANG_ACTIONS
def test_no_whole_gang_of_higher_priority_is_ended_to_end_fewer(action: str) -> None:
    assert evicted(three_small_or_one(action, whole="mid").cycle()) == ["a-worker-0", "b-worker-0", "c-worker-0"]


@GANG_ACTIONS
def test_what_whole_gangs_can_spare_goes_before_any_ends(action: str) -> None:
    found = of_whole_gangs(action)
    running(found, "firm", 3, queue=lender(action))
    running(found, "elastic", 3, minimum=2, queue=lender(action))
    found.gang("new", 1, priorityClassName="high")
    assert [name.split("-")[0] for name in evicted(found.cycle())] == ["elastic"]


def test_of_as_many_whole_gangs_the_smallest_ends() -> None:
    """Both ways one gang ends; the one of many pods comes last in order."""
    found = of_whole_gangs("gangpreempt")
    running(found, "few", 2, cpu="1")
    running(found, "many", 4, cpu="1")
    found.gang("new", 2, priorityClassName="high")
    assert evicted(found.cycle()) == ["few-worker-0", "few-worker-1"]


def test_whole_gangs_end_in_the_domain_where_the_fewest_have_to() -> None:
    """The widest domain that does is tried first, and there two gangs would have to end."""
    found = of_whole_gangs("gangpreempt", nodes=0)
    racks(found, {"first": 1, "second": 1})
    running(found, "whole", 4, cpu="2", pod={"nodeName": "second-0"})
    for name in ("a", "b"):
        running(found, name, 2, cpu="2", pod={"nodeName": "first-0"})
    found.gang("new", 4, cpu="2", priorityClassName="high", networkTopology=hard(1))
    result = found.cycle()
    assert evicted(result) == [f"whole-worker-{i}" for i in range(4)]
    assert set(promised(result).values()) == {"second-0"}
