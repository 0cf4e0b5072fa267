"""Pods that keep their place: disruption budgets and cool-downs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import START, Cluster
from vcbatch.api.disruption import DisruptionBudget
from vcbatch.api.messages import protected_until
from vcbatch.api.reasons import DisruptionLimit
from vcbatch.api.resources import PODDISRUPTIONBUDGETS
from vcbatch.api.timestamps import format_time
from vcbatch.scheduler import CycleResult, Explanation, WaitReason, parse_policy
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.plugins.cdp import cooldown_end

POLICY = """
actions: "allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: {plugin}
- plugins:
  - name: predicates
"""


def cluster(plugin: str, *, nodes: int = 1, cpu: str = "4") -> Cluster:
    found = Cluster(parse_policy(POLICY.format(plugin=plugin)))
    for i in range(nodes):
        found.node(f"n{i}", cpu=cpu)
    found.priority("high", 10)
    return found


def budget(found: Cluster, name: str, allowed: int, selector: Any, **status: Any) -> None:
    raw = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"pdb-{name}"},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed, **status},
    }
    found.scheduler.apply(PODDISRUPTIONBUDGETS, "MODIFIED", msgspec.convert(raw, DisruptionBudget))


def running(found: Cluster, name: str, size: int, **given: Any) -> None:
    found.gang(name, size, **given)
    found.cycle()
    found.run(name)


def evicted(result: CycleResult) -> list[str]:
    return sorted(eviction.name for eviction in result.evictions)


OLD = {"matchLabels": {"gang": "old"}}


def test_no_more_pods_go_than_their_budget_allows() -> None:
    for allowed, gone in ((0, []), (1, []), (2, ["old-worker-2", "old-worker-3"])):
        found = cluster("pdb")
        budget(found, "old", allowed, OLD)
        running(found, "old", 4)
        found.gang("new", 2, priorityClassName="high")
        assert evicted(found.cycle()) == gone


def test_what_was_evicted_in_vain_is_left_of_a_budget() -> None:
    """The first gang would need two pods to go, which is one too many, so the next may have one."""
    found = cluster("pdb")
    budget(found, "old", 1, OLD)
    running(found, "old", 4)
    found.gang("new", 2, priorityClassName="high")
    found.gang("small", 1, priorityClassName="high")
    result = found.cycle()
    assert evicted(result) == ["old-worker-3"]
    assert [held.name for held in result.held] == ["small-worker-0"]


def test_several_nodes_and_gangs_share_a_budget() -> None:
    found = cluster("pdb", nodes=2, cpu="1")
    budget(found, "old", 1, OLD)
    running(found, "old", 2)
    found.gang("new", 1, priorityClassName="high")
    found.gang("more", 1, priorityClassName="high")
    assert len(evicted(found.cycle())) == 1
    # What was evicted counts until the API server shows it as ending.
    assert evicted(found.cycle()) == []


def test_every_budget_that_selects_a_pod_has_to_allow_it() -> None:
    found = cluster("pdb")
    budget(found, "old", 4, OLD)
    budget(found, "all", 0, {})
    running(found, "old", 4)
    found.gang("new", 1, priorityClassName="high")
    assert evicted(found.cycle()) == []
    budget(found, "all", 1, {})
    assert evicted(found.cycle()) == ["old-worker-3"]


def test_a_pod_that_no_budget_selects_goes_and_one_that_is_disrupted_is_not_counted_again() -> None:
    found = cluster("pdb")
    budget(found, "others", 0, {"matchLabels": {"gang": "others"}})
    budget(found, "none", 0, None)
    running(found, "old", 4)
    found.gang("new", 1, priorityClassName="high")
    assert evicted(found.cycle()) == ["old-worker-3"]
    found = cluster("pdb")
    budget(found, "old", 0, OLD, disruptedPods={"old-worker-1": "2026-06-01T00:00:00Z"})
    running(found, "old", 4)
    found.gang("new", 1, priorityClassName="high")
    assert evicted(found.cycle()) == ["old-worker-1"]


class Mover(Plugin):
    """Wants everybody moved."""

    def unwanted(self, running: Sequence[Task]) -> Sequence[Task]:
        return running


def test_budgets_restrict_what_others_want_moved() -> None:
    text = POLICY.format(plugin="pdb") + "  - name: mover\n"
    policy = parse_policy(text, plugins={"mover": Mover})
    found = Cluster(policy)
    found.node("n0")
    budget(found, "old", 1, OLD)
    running(found, "old", 3)
    running(found, "free", 1)
    state = found.scheduler._state
    state.settle()
    session = Session(state, policy, found.scheduler._cache, now=found.now, uid="one")
    tasks = [state.tasks[f"pod-{name}"] for name in ("old-worker-0", "free-worker-0", "old-worker-1")]
    assert [task.name for task, _ in session.unwanted(tasks)] == ["old-worker-0", "free-worker-0"]


def cool(found: Cluster, pod: str, cooldown: str, *, since: int) -> None:
    """The pod was placed so many seconds after the start and wants to stay a while."""
    raw = found.pods[pod]
    raw["metadata"]["labels"] = {**raw["metadata"]["labels"], "volcano.sh/cooldown-time": cooldown}
    found.change(pod, phase="Running")
    at = format_time(START + timedelta(seconds=since))
    raw["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]
    found.change(pod)


def test_nobody_is_moved_elsewhere_before_its_cool_down_is_over() -> None:
    class Everybody(Plugin):
        def unwanted(self, running: Sequence[Task]) -> Sequence[Task]:
            return running

    text = 'actions: "allocate, shuffle"\ntiers:\n- plugins:\n  - name: everybody\n- plugins:\n  - name: cdp\n'
    found = Cluster(parse_policy(text, plugins={"everybody": Everybody}))
    found.node("n0", cpu="2")
    for name in ("old", "other"):
        found.gang(name, 1)
        found.pods[f"{name}-worker-0"]["spec"]["nodeName"] = "n0"
    cool(found, "old-worker-0", "10m", since=0)
    found.run("other")
    assert evicted(found.cycle()) == ["other-worker-0"]
    assert evicted(found.cycle(after=700)) == ["old-worker-0"]


def test_a_pod_keeps_its_place_until_its_cool_down_is_over() -> None:
    found = cluster("cdp", cpu="1")
    running(found, "old", 1)
    cool(found, "old-worker-0", "10m", since=0)
    found.gang("new", 1, priorityClassName="high")
    result = found.cycle()
    assert evicted(result) == []
    assert result.requeue_at == START + timedelta(minutes=10)
    assert evicted(found.cycle(after=500)) == []
    assert evicted(found.cycle(after=200)) == ["old-worker-0"]


def test_a_duration_that_cannot_be_read_protects_nobody() -> None:
    found = cluster("cdp", cpu="1")
    running(found, "old", 1)
    cool(found, "old-worker-0", "a while", since=0)
    assert cooldown_end(found.scheduler._state.tasks["pod-old-worker-0"].pod) is None
    found.gang("new", 1, priorityClassName="high")
    assert evicted(found.cycle()) == ["old-worker-0"]


def test_a_cool_down_is_the_label_s_before_the_annotation_s() -> None:
    found = cluster("cdp", cpu="1")
    running(found, "old", 1)
    found.pods["old-worker-0"]["metadata"]["annotations"]["volcano.sh/cooldown-time"] = "1h"
    cool(found, "old-worker-0", "10m", since=0)
    ends = START + timedelta(minutes=10)
    assert cooldown_end(found.scheduler._state.tasks["pod-old-worker-0"].pod) == ends


COOLING = """
actions: "allocate, {action}"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
    enableReclaimable: false
  - name: capacity
  - name: cdp
{more}
- plugins:
  - name: predicates
"""
EVICTING = pytest.mark.parametrize("action", ["preempt", "gangpreempt", "reclaim", "gangreclaim"])


def cooling(action: str, more: str = "") -> Cluster:
    """A gang of two that has just been placed and wants to stay for ten minutes, and another one for half of that;
    those that wait may have them evicted."""
    found = Cluster(parse_policy(COOLING.format(action=action, more=more)))
    found.node("n0", cpu="4")
    found.priority("high", 10)
    found.queue("lender")
    found.queue("default", event="MODIFIED", deserved={"cpu": "4", "memory": "64Gi"})
    queue = "lender" if action.endswith("reclaim") else "default"
    for name, cooldown in (("old", "10m"), ("brief", "5m")):
        running(found, name, 2, queue=queue)
        for index in range(2):
            cool(found, f"{name}-worker-{index}", cooldown, since=0)
    return found


def reported(found: Cluster, gang: str) -> Explanation:
    explanation = found.scheduler.explain("ns", gang)
    assert explanation is not None
    return explanation


@EVICTING
def test_gangs_are_told_of_a_cool_down_for_as_long_as_it_keeps_victims(action: str) -> None:
    found = cooling(action)
    names = [f"new{i}" for i in range(3)]
    for name in names:
        found.gang(name, 4, priorityClassName="high")
    found.cycle()
    end = START + timedelta(minutes=10)
    for _ in range(2):
        for name in names:
            explanation = reported(found, name)
            assert explanation.reason is WaitReason.VICTIMS_PROTECTED, name
            assert explanation.protected == (4, ("ns/brief", "ns/old"), DisruptionLimit.COOL_DOWN, "10m", end)
            assert protected_until(explanation.message) == end
        result = found.cycle(after=30)
        assert not result.evictions
    found.cycle(after=300)
    assert reported(found, "new0").reason is WaitReason.VICTIMS_PROTECTED
    assert evicted(found.cycle(after=300)) == [f"{name}-worker-{i}" for name in ("brief", "old") for i in range(2)]
    assert reported(found, "new0").reason is WaitReason.WAITING_FOR_RELEASE


@EVICTING
def test_a_gang_that_no_victim_would_help_is_not_told_of_their_cool_down(action: str) -> None:
    found = cooling(action)
    found.gang("vast", 5, priorityClassName="high")
    found.cycle()
    found.cycle()
    assert reported(found, "vast").reason is not WaitReason.VICTIMS_PROTECTED


def test_of_two_protections_the_one_that_lasts_longer_is_told() -> None:
    """The plugin that is asked first protects for a shorter time."""
    found = cooling("preempt", "  - name: disruption\n    arguments: {minRuntime: 2m}")
    found.gang("new", 4, priorityClassName="high")
    found.cycle()
    assert reported(found, "new").protected == (
        4,
        ("ns/brief", "ns/old"),
        DisruptionLimit.COOL_DOWN,
        "10m",
        START + timedelta(minutes=10),
    )
