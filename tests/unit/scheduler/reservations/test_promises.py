"""What was freed for somebody by evictions is kept for them, whichever action evicted and whoever comes first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.domains import hard, racks
from tests.unit.scheduler.slow_cluster import SlowCluster
from vcbatch.scheduler import CycleResult, Scheduler, WaitReason, parse_policy
from vcbatch.scheduler.actions.base import eligible
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.reservations.promises import OVERDUE, RETRY_AFTER

Json = dict[str, Any]
POLICY = """
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
    enableReclaimable: false
  - name: conformance
- plugins:
  - name: predicates
  - name: capacity
  - name: nodeorder
"""
PREEMPTING = pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
EVICTING = pytest.mark.parametrize("action", ["preempt", "gangpreempt", "reclaim", "gangreclaim"])


def world(action: str, *, nodes: int = 1, cpu: str = "4", actions: str = "allocate, {action}, backfill") -> SlowCluster:
    """Nodes, and a queue besides the default one that deserves nothing less; both are at their best without pods."""
    found = SlowCluster(parse_policy(POLICY.format(actions=actions.format(action=action))))
    for i in range(nodes):
        found.node(f"n{i}", cpu=cpu)
    for name, value in (("low", 1), ("mid", 5), ("high", 10)):
        found.priority(name, value)
    share = {"cpu": str(nodes * int(cpu)), "memory": "64Gi"}
    found.queue("default", event="MODIFIED", deserved=share)
    found.queue("lender")
    found.queue("other", deserved=share)
    return found


def running(found: SlowCluster, name: str, size: int, **given: Any) -> None:
    found.gang(name, size, **{"priorityClassName": "low", **given})
    while found.step().binds:
        pass
    assert len(found.placed(name)) == size


def evicted(result: CycleResult) -> list[str]:
    return sorted(eviction.name for eviction in result.evictions)


def helped(action: str, **given: Any) -> SlowCluster:
    """A pod runs where there is room for one. Older gangs wait, of a queue that comes first, of the pod's own and of
    that of the gang that comes then, for which the pod has to go."""
    found = world(action, **given)
    lender = "lender" if action.endswith("reclaim") else "other"
    running(found, "old", 1, cpu="4", queue=lender)
    for name, queue in (("first", "default"), ("mate", lender), ("peer", "other")):
        found.gang(name, 1, cpu="4", priorityClassName="high", queue=queue, pod={"preemptionPolicy": "Never"})
    found.gang("new", 1, cpu="4", priorityClassName="high", queue="other")
    assert evicted(found.step()) == ["old-worker-0"]
    assert found.says("new-worker-0") == "n0"
    return found


# Kept ----------------------------------------------------------------------------------------------------------------


@EVICTING
@pytest.mark.parametrize("cycles", [0, 1, 3])
def test_the_place_goes_to_whom_it_was_freed_for_however_long_its_victim_takes(action: str, cycles: int) -> None:
    found = helped(action)
    for _ in range(cycles):
        result = found.step()
        assert not result.binds
        assert not result.evictions
        assert found.says("new-worker-0") == "n0"
    found.end_all()
    assert [bind.name for bind in found.step().binds] == ["new-worker-0"]


@pytest.mark.parametrize("action", ["gangpreempt", "reclaim", "gangreclaim"])
def test_it_does_where_the_action_comes_before_placing(action: str) -> None:
    found = helped(action, actions="{action}, allocate, backfill")
    for _ in range(3):
        assert not found.step().evictions
    found.end_all()
    assert [bind.name for bind in found.step().binds] == ["new-worker-0"]


@EVICTING
def test_a_scheduler_that_has_just_come_up_keeps_it(action: str) -> None:
    found = helped(action)
    found.restart()
    assert not found.step().evictions
    found.restart()
    found.end_all()
    assert [bind.name for bind in found.step().binds] == ["new-worker-0"]


@EVICTING
def test_an_object_from_before_does_not_undo_it(action: str) -> None:
    found = world(action)
    running(found, "old", 1, cpu="4", queue="lender" if action.endswith("reclaim") else "other")
    found.gang("first", 1, cpu="4", pod={"preemptionPolicy": "Never"})
    found.gang("new", 1, cpu="4", priorityClassName="high", queue="other")
    (eviction,) = found.cycle().evictions
    found.change("new-worker-0")
    assert not found.cycle().binds
    found.pods["new-worker-0"]["metadata"]["labels"] = {"gang": "new", "changed": "yes"}
    found.change("new-worker-0")
    assert not found.cycle().evictions
    found.delete(eviction.name)
    assert [bind.name for bind in found.cycle().binds] == ["new-worker-0"]


@PREEMPTING
def test_what_is_free_is_kept_for_the_gang_as_well(action: str) -> None:
    """One of its pods has room at once, and is of no use without the other."""
    found = world(action, nodes=2)
    running(found, "old", 1, cpu="4", queue="other")
    found.gang("new", 2, cpu="4", priorityClassName="high", queue="other")
    assert evicted(found.step()) == ["old-worker-0"]
    found.gang("quick", 1, cpu="4", pod={"preemptionPolicy": "Never"})
    assert not found.step().binds
    found.restart()
    assert not found.step().binds
    found.end_all()
    assert sorted(bind.name for bind in found.step().binds) == ["new-worker-0", "new-worker-1"]


def test_the_place_of_a_pod_of_the_same_gang_is_kept() -> None:
    """The gang has started, and needs the pod that went as well as the one that it went for."""
    found = world("preempt", cpu="2")
    found.gang("one", 0, minimum=3, phase="Running", queue="other")
    for index in range(2):
        found.pod("one", index, role="small", priority=1, nodeName="n0")
        found.change(f"one-small-{index}", phase="Running")
    found.pod("one", 0, role="large", priority=9)
    assert evicted(found.step()) == ["one-small-1"]
    found.gang("quick", 1, pod={"preemptionPolicy": "Never"})
    assert found.says("one-large-0") == "n0"
    found.end_all()
    found.pod("one", 1, role="small", priority=1)
    assert not found.step().binds
    found.node("n1", cpu="2")
    found.step()
    assert found.placed("one") == {"one-large-0": "n0", "one-small-0": "n0", "one-small-1": "n1"}


def test_a_bind_that_is_refused_takes_nothing() -> None:
    """For as long as the place would have been kept anyway."""
    found = helped("preempt")
    found.end_all()
    until = found.now + OVERDUE + timedelta(seconds=30)
    while found.now < until:
        (bind,) = found.scheduler.cycle(found.now).binds
        assert (bind.name, bind.node) == ("new-worker-0", "n0")
        found.scheduler.bind_failed(bind.uid, "no")
        found.now += timedelta(minutes=1)
    assert [bind.name for bind in found.scheduler.cycle(found.now).binds] == ["first-worker-0"]
    assert not found.scheduler._state.promised


def test_it_is_kept_though_its_queue_has_all_it_deserves_with_it() -> None:
    found = helped("preempt")
    found.queue("other", event="MODIFIED", deserved={"cpu": "2", "memory": "64Gi"})
    found.end_all()
    assert [bind.name for bind in found.step().binds] == ["new-worker-0"]


def test_a_gang_near_together_has_its_domain_again_after_a_restart() -> None:
    found = world("gangpreempt", nodes=0)
    racks(found, {"a": 2, "b": 2}, spines={"s": ["a", "b"]})
    found.queue("other", event="MODIFIED", deserved={"cpu": "32", "memory": "256Gi"})
    running(found, "old", 32, queue="other", minimum=32)
    found.gang("first", 16, pod={"preemptionPolicy": "Never"})
    found.gang("new", 12, priorityClassName="high", queue="other", networkTopology=hard(1))
    assert found.step().evictions
    (rack,) = {found.says(f"new-worker-{i}").split("-")[0] for i in range(12)}
    found.restart()
    racks(found, {"a": 2, "b": 2}, spines={"s": ["a", "b"]})
    assert not found.step().binds
    found.end_all()
    found.step()
    assert {node.split("-")[0] for node in found.placed("new").values()} == {rack}


@pytest.mark.parametrize("reclaim", ["reclaim", "gangreclaim"])
def test_a_gang_that_waits_for_its_places_loses_no_pod_to_other_queues(reclaim: str) -> None:
    found = world(reclaim, nodes=2, actions="allocate, preempt, {action}")
    running(found, "hurt", 2, cpu="4", queue="lender", priorityClassName="high")
    found.delete("hurt-worker-1")
    running(found, "old", 1, cpu="4", queue="lender")
    found.pod("hurt", 1, cpu="4", priority=10)
    assert evicted(found.step()) == ["old-worker-0"]
    found.gang("new", 1, cpu="4", queue="other")
    assert not found.step().evictions
    found.end_all()
    found.step()
    assert evicted(found.step()), "once it has them it lends them again"


# Given up ------------------------------------------------------------------------------------------------------------


@PREEMPTING
def test_a_gang_of_higher_priority_takes_it_and_has_it_promised(action: str) -> None:
    found = world(action)
    running(found, "old", 1, cpu="4")
    found.gang("older", 1, cpu="4", queue="other", pod={"preemptionPolicy": "Never"})
    found.gang("mid", 1, cpu="4", priorityClassName="mid")
    assert evicted(found.step()) == ["old-worker-0"]
    found.gang("high", 1, cpu="4", priorityClassName="high", pod={"preemptionPolicy": "Never"})
    assert not found.step().evictions
    assert (found.says("mid-worker-0"), found.says("high-worker-0")) == ("", "n0")
    found.end_all()
    assert [bind.name for bind in found.step().binds] == ["high-worker-0"]


@PREEMPTING
def test_a_gang_of_higher_priority_that_cannot_use_it_leaves_it(action: str) -> None:
    found = helped(action)
    found.priority("highest", 20)
    given = {"priorityClassName": "highest", "queue": "other", "pod": {"preemptionPolicy": "Never"}}
    found.gang("large", 2, cpu="4", **given)
    assert not found.step().binds
    assert found.says("new-worker-0") == "n0"
    found.end_all()
    assert [bind.name for bind in found.step().binds] == ["new-worker-0"]


@EVICTING
def test_others_have_it_once_whom_it_was_freed_for_is_gone(action: str) -> None:
    found = helped(action)
    found.delete_gang("new")
    found.end_all()
    assert len(found.step().binds) == 1


@EVICTING
def test_others_have_it_once_its_node_is_shut(action: str) -> None:
    found = helped(action)
    found.node("n0", event="MODIFIED", cpu="4", unschedulable=True)
    found.step()
    assert found.says("new-worker-0") == ""
    found.end_all()
    assert not found.step().binds
    found.node("n1", cpu="4")
    assert len(found.step().binds) == 1


@EVICTING
def test_a_node_that_goes_takes_the_promise_with_it(action: str) -> None:
    found = helped(action)
    found.node("n0", event="DELETED", cpu="4")
    found.step()
    assert found.says("new-worker-0") == ""
    assert not found.scheduler._state.promised


@pytest.mark.parametrize("change", [{"queue": "default"}, {"priorityClassName": "low"}])
def test_a_gang_that_changes_is_promised_nothing(change: Json) -> None:
    found = helped("preempt")
    found.groups["new"]["spec"] |= change
    found.report_group("new")
    found.step()
    assert found.says("new-worker-0") == ""


def test_what_is_left_of_a_gang_that_cannot_start_by_it_is_given_up() -> None:
    found = world("preempt", nodes=2)
    running(found, "old", 2, cpu="4")
    found.gang("new", 2, cpu="4", priorityClassName="high")
    assert len(found.step().evictions) == 2
    found.gang("quick", 1, cpu="4", queue="other", pod={"preemptionPolicy": "Never"})
    found.node("n1", event="DELETED", cpu="4")
    found.end_all()
    assert not found.step().binds, "it was held to the end of the cycle: others might have been evicted for the rest"
    assert found.says("new-worker-0") == found.says("new-worker-1") == ""
    assert [bind.name for bind in found.step().binds] == ["quick-worker-0"]


def losing_a_pod() -> SlowCluster:
    """A gang of three is promised three nodes and loses one of its pods; another one would take the places."""
    found = world("preempt", nodes=3)
    running(found, "old", 3, cpu="4")
    found.gang("quick", 2, cpu="4", queue="other", pod={"preemptionPolicy": "Never"})
    found.gang("new", 3, cpu="4", priorityClassName="high")
    assert len(found.step().evictions) == 3
    found.delete("new-worker-2")
    found.end_all()
    return found


def test_a_gang_that_loses_a_pod_has_a_moment_for_another_one() -> None:
    found = losing_a_pod()
    before = found.says("new-worker-0"), found.says("new-worker-1")
    result = found.step()
    assert not result.binds, "the one place that is free is too few for the other gang"
    assert (found.says("new-worker-0"), found.says("new-worker-1")) == before
    assert result.requeue_at is not None and result.requeue_at <= found.now + RETRY_AFTER
    found.pod("new", 2, cpu="4", priority=10)
    assert sorted(bind.name for bind in found.step().binds) == [f"new-worker-{i}" for i in range(3)]


def test_a_gang_that_has_no_other_pod_by_then_is_promised_nothing() -> None:
    found = losing_a_pod()
    found.step()
    found.now += RETRY_AFTER
    found.step()
    assert found.says("new-worker-0") == found.says("new-worker-1") == ""
    assert len(found.placed("quick")) == 2


def test_what_a_gang_lacks_of_it_is_found_elsewhere() -> None:
    found = world("preempt", nodes=3)
    running(found, "old", 3, minimum=1, cpu="4")
    found.gang("new", 2, cpu="4", priorityClassName="high")
    assert len(found.step().evictions) == 2
    kept = {found.says(f"new-worker-{i}") for i in range(2)}
    lost = min(kept)
    found.node(lost, event="DELETED", cpu="4")
    assert len(found.step().evictions) == 1, "only where the lost place is made up for"
    found.end_all()
    found.step()
    assert set(found.placed("new").values()) == {"n0", "n1", "n2"} - {lost}


@EVICTING
def test_nothing_is_kept_for_victims_that_stay(action: str) -> None:
    found = helped(action)
    until = found.now + OVERDUE + timedelta(seconds=30)
    while found.now < until - timedelta(seconds=2):
        again = found.step().requeue_at
        assert found.says("new-worker-0") == "n0"
        assert again is not None, "time alone ends it"
        found.now = again - timedelta(seconds=2)
    assert not found.step().evictions
    assert found.says("new-worker-0") == ""
    assert not found.scheduler._state.promised


def test_victims_have_the_time_that_they_ask_for() -> None:
    found = world("preempt")
    running(found, "old", 1, cpu="4", pod={"terminationGracePeriodSeconds": 3600})
    found.gang("new", 1, cpu="4", priorityClassName="high")
    found.step()
    until = found.scheduler._state.promised["ns/new"].until  # type: ignore[union-attr]
    assert (until - found.now).total_seconds() == 3600 + OVERDUE.total_seconds()


def test_a_nomination_by_nobody_holds_nothing_up() -> None:
    """A pod of a gang that can't start says that a node is kept for it, which no scheduler said."""
    found = world("preempt")
    found.gang("stale", 2, cpu="4", pod={"preemptionPolicy": "Never"})
    found.pods["stale-worker-0"]["status"]["nominatedNodeName"] = "n0"
    found.change("stale-worker-0")
    found.gang("quick", 1, cpu="4", queue="other")
    assert not found.step().binds
    assert found.says("stale-worker-0") == ""
    assert [bind.name for bind in found.step().binds] == ["quick-worker-0"]


def test_a_cycle_that_comes_to_nothing_leaves_it_as_it_was() -> None:
    found = helped("preempt")
    found.end_all()
    state = found.scheduler._state
    state.settle()
    cycle = Cycle.open(state, found.scheduler.policy, StaticCache(), now=found.now, uid="spoilt")
    session = cycle.session
    cycle.promises.keep(eligible(session))
    assert not session.runs(state.jobs["ns/new"])
    session.abandon()
    for name in ("first", "mate", "peer"):
        found.delete_gang(name)
    found.now += OVERDUE + timedelta(seconds=30)
    found.step()
    assert found.placed("new") == {"new-worker-0": "n0"}, "as any gang that fits"


# What is said --------------------------------------------------------------------------------------------------------


def test_a_gang_whose_places_were_promised_and_that_starts_at_once_waits_for_nothing() -> None:
    """Its pods ask for nothing: they are promised places by preempt, and bound by backfill in the same cycle."""
    found = world("preempt", actions="preempt, allocate, backfill")
    found.gang("new", 0, minimum=2)
    for index in range(2):
        found.pod("new", index, cpu=None)
    result = found.step()
    assert len(result.binds) == 2
    assert found.scheduler.explain("ns", "new") is None
    assert WaitReason.WAITING_FOR_RELEASE not in {e.reason for e in result.explain}


def test_what_is_recorded_of_a_scheduler_has_since_when_a_gang_lacks_pods() -> None:
    found = losing_a_pod()
    found.step()
    what = found.scheduler.assumed()
    assert what.lacking == {"ns/new": found.now}
    found.restart()
    found.scheduler.resume(what, cycles=1)
    assert found.scheduler.assumed() == what
    found.now += RETRY_AFTER
    found.step()
    assert found.says("new-worker-0") == ""


def test_what_is_recorded_of_a_scheduler_has_its_promises() -> None:
    found = world("preempt")
    running(found, "old", 1, cpu="4")
    found.gang("new", 1, cpu="4", priorityClassName="high")
    found.cycle()
    what = found.scheduler.assumed()
    assert what.nominations == {"pod-new-worker-0": "n0"}
    assert list(what.promises) == ["ns/new"]
    policy = parse_policy(POLICY.format(actions="allocate, preempt, backfill"))
    other = Scheduler(policy)
    for resource, kind, raw in found.objects.values():
        other.apply(resource, "ADDED", msgspec.convert(raw, kind))
    other.resume(what, cycles=found.scheduler.cycles)
    assert other.assumed() == what
