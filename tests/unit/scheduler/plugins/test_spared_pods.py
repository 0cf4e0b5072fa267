"""Which candidates plugins let go, asked as the session asks them, and what becomes of the limits they keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.unit.scheduler.cluster import START, Cluster
from tests.unit.scheduler.scoring import plugin_of, policy, session, task_of
from vcbatch.api.disruption import DisruptionBudget
from vcbatch.api.resources import PODDISRUPTIONBUDGETS
from vcbatch.api.timestamps import format_time
from vcbatch.scheduler import CycleResult, parse_policy
from vcbatch.scheduler.framework.plugin import EvictionKind, GangEviction, Plugin
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.plugins.cdp import CoolDown
from vcbatch.scheduler.plugins.conformance import Conformance
from vcbatch.scheduler.plugins.pdb import DisruptionBudgets
from vcbatch.scheduler.plugins.priority import Priority

Ask = Callable[[Plugin, Task, Sequence[Task]], Sequence[Task] | None]


def _gang_eviction(kind: EvictionKind, actor: Task) -> GangEviction:
    assert actor.job is not None
    return GangEviction(kind, actor.job, np.zeros(3))


ASKED: dict[str, Ask] = {
    "preempt": lambda plugin, actor, tasks: plugin.preemptable(actor, tasks),
    "reclaim": lambda plugin, actor, tasks: plugin.reclaimable(actor, tasks),
    "gangpreempt": lambda plugin, actor, tasks: plugin.evictable(_gang_eviction(EvictionKind.PREEMPT, actor), tasks),
    "gangreclaim": lambda plugin, actor, tasks: plugin.evictable(_gang_eviction(EvictionKind.RECLAIM, actor), tasks),
}
FOR_EVERY_ACTION = pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)


def cluster(plugin: str, *, running: int, **pod: Any) -> Cluster:
    """A gang of so many pods that run, and one that waits."""
    made = Cluster(policy(plugin))
    made.node("n", cpu="10")
    made.gang("old", running, pod={"nodeName": "n", **pod})
    made.run("old")
    made.gang("new", 1)
    return made


def let_go(made: Cluster, plugin: str, kind: type[Plugin], ask: Ask, *, actor: str = "new-worker-0") -> list[str]:
    """Of all pods that run those that the plugin lets go."""
    opened = session(made, policy(plugin))
    candidates = [task_of(opened, name) for name, raw in made.pods.items() if raw["status"]["phase"] == "Running"]
    found = ask(plugin_of(opened, kind), task_of(opened, actor), candidates)
    assert found is not None
    return [task.name for task in found]


def elsewhere(made: Cluster, pod: str, namespace: str) -> None:
    """The pod is one of this namespace."""
    raw = made.pods[pod]
    raw["metadata"]["namespace"] = namespace
    made.change(pod)


# Disruption budgets --------------------------------------------------------------------------------------------------

OLD = {"matchLabels": {"gang": "old"}}


def budget(made: Cluster, allowed: int, **status: Any) -> None:
    raw = {
        "metadata": {"name": "old", "namespace": "ns", "uid": "pdb"},
        "spec": {"selector": OLD},
        "status": {"disruptionsAllowed": allowed, **status},
    }
    made.scheduler.apply(PODDISRUPTIONBUDGETS, "MODIFIED", msgspec.convert(raw, DisruptionBudget))


@FOR_EVERY_ACTION
def test_a_budget_counts_down_over_the_candidates_in_their_order(ask: Ask) -> None:
    made = cluster("pdb", running=3)
    budget(made, 2)
    assert let_go(made, "pdb", DisruptionBudgets, ask) == ["old-worker-0", "old-worker-1"]


@FOR_EVERY_ACTION
def test_a_budget_says_nothing_of_pods_in_other_namespaces(ask: Ask) -> None:
    made = cluster("pdb", running=3)
    budget(made, 0)
    elsewhere(made, "old-worker-1", "other")
    assert let_go(made, "pdb", DisruptionBudgets, ask) == ["old-worker-1"]


BUDGETED = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: pdb}]
- plugins: [{name: predicates}]
"""


def full_cluster(*waiting: str) -> Cluster:
    """Four pods of one gang leave no room for the gangs of one pod that wait."""
    made = Cluster(parse_policy(BUDGETED))
    made.node("n", cpu="4")
    made.priority("high", 10)
    made.gang("old", 4)
    made.cycle()
    made.run("old")
    for name in waiting:
        made.gang(name, 1, priorityClassName="high")
    return made


def evicted(result: CycleResult) -> list[str]:
    return sorted(eviction.name for eviction in result.evictions)


def test_an_eviction_counts_until_it_is_seen_however_long_that_takes() -> None:
    made = full_cluster("first", "second")
    budget(made, 1)
    assert evicted(made.cycle()) == ["old-worker-3"]
    assert [evicted(made.cycle()) for _ in range(3)] == [[], [], []]


def test_what_is_seen_ending_is_counted_by_the_budget_itself() -> None:
    made = full_cluster("first", "second")
    budget(made, 1)
    assert evicted(made.cycle()) == ["old-worker-3"]
    made.change("old-worker-3", deleting=True)
    assert evicted(made.cycle()) == ["old-worker-2"]


def test_an_eviction_that_failed_is_given_back() -> None:
    made = full_cluster("first")
    budget(made, 1)
    assert evicted(made.cycle()) == ["old-worker-3"]
    made.scheduler.eviction_failed("pod-old-worker-3", "no")
    made.delete_gang("first")
    made.gang("second", 1, priorityClassName="high")
    assert evicted(made.cycle()) == ["old-worker-3"]


# Cool-downs ----------------------------------------------------------------------------------------------------------


def cool(made: Cluster, pod: str, cooldown: str, *, since: float = 0.0, phase: str = "Running", **also: Any) -> None:
    """The pod was placed so many seconds after the start and wants to stay a while."""
    raw = made.pods[pod]
    raw["metadata"]["labels"]["volcano.sh/cooldown-time"] = cooldown
    scheduled = {"status": "True", "lastTransitionTime": format_time(START + timedelta(seconds=since)), **also}
    raw["status"] = {"phase": phase, "conditions": [{"type": "PodScheduled", **scheduled}]}
    made.change(pod)


@FOR_EVERY_ACTION
def test_a_pod_stays_until_its_cool_down_is_over(ask: Ask) -> None:
    made = cluster("cdp", running=3)
    cool(made, "old-worker-0", "10m")
    made.now = START + timedelta(seconds=599)
    assert let_go(made, "cdp", CoolDown, ask) == ["old-worker-1", "old-worker-2"]
    made.now = START + timedelta(seconds=600)
    assert let_go(made, "cdp", CoolDown, ask) == ["old-worker-0", "old-worker-1", "old-worker-2"]


def test_a_cool_down_is_of_pods_that_run_and_from_when_they_were_placed() -> None:
    made = cluster("cdp", running=4)
    cool(made, "old-worker-0", "10m", phase="Pending")  # bound
    cool(made, "old-worker-1", "10m", type="Ready")
    cool(made, "old-worker-2", "10m")
    made.now = START + timedelta(seconds=1)
    opened = session(made, policy("cdp"))
    candidates = [task_of(opened, f"old-worker-{i}") for i in range(4)]
    found = plugin_of(opened, CoolDown).preemptable(task_of(opened, "new-worker-0"), candidates)
    assert [task.name for task in found] == ["old-worker-0", "old-worker-1", "old-worker-3"]


def test_a_cool_down_may_be_an_annotation() -> None:
    made = cluster("cdp", running=2)
    cool(made, "old-worker-0", "10m")
    raw = made.pods["old-worker-0"]["metadata"]
    raw["annotations"]["volcano.sh/cooldown-time"] = raw["labels"].pop("volcano.sh/cooldown-time")
    made.change("old-worker-0")
    made.now = START + timedelta(seconds=1)
    assert let_go(made, "cdp", CoolDown, ASKED["preempt"]) == ["old-worker-1"]


def test_gangs_look_again_at_the_end_of_each_cool_down_and_the_next_is_told() -> None:
    """Nothing else changes, so each time it is the end of the cool-down that makes them look."""
    text = BUDGETED.replace("pdb", "cdp")
    made = Cluster(parse_policy(text))
    made.node("n", cpu="3")
    made.priority("high", 10)
    made.gang("old", 3)
    made.cycle()
    for index, minutes in ((0, 20), (1, 10), (2, 30)):
        cool(made, f"old-worker-{index}", f"{minutes}m")
    made.gang("one", 1, priorityClassName="high")
    made.gang("two", 1, priorityClassName="high")
    gone: dict[str, float] = {}
    for minute in (10, 20, 30):
        settled = [made.cycle(after=1) for _ in range(3)]  # tried in vain, set aside, and nothing new
        assert [evicted(result) for result in settled] == [[], [], []]
        made.now = START + timedelta(minutes=minute)
        for name in evicted(made.cycle(after=0)):
            gone[name] = minute
            made.delete(name)
            made.cycle(after=0)
    assert gone == {"old-worker-1": 10, "old-worker-0": 20}


# The system's own ----------------------------------------------------------------------------------------------------


@FOR_EVERY_ACTION
def test_what_the_cluster_needs_stays(ask: Ask) -> None:
    made = cluster("conformance", running=5)
    elsewhere(made, "old-worker-0", "kube-system")
    elsewhere(made, "old-worker-1", "kube-public")
    for index, name in ((2, "system-cluster-critical"), (3, "system-node-critical"), (4, "critical")):
        made.pods[f"old-worker-{index}"]["spec"]["priorityClassName"] = name
        made.change(f"old-worker-{index}")
    assert let_go(made, "conformance", Conformance, ask) == ["old-worker-1", "old-worker-4"]


# Priority ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "gone"),
    [
        ("preempt", ["low-worker-0", "own-worker-0"]),
        ("gangpreempt", ["low-worker-0"]),
        ("gangreclaim", ["low-worker-0", "same-worker-0", "higher-worker-0", "own-worker-0", "own-worker-1"]),
    ],
)
def test_lower_priority_goes_of_other_gangs_by_the_gang_s_and_of_its_own_by_the_pod_s(
    action: str, gone: list[str]
) -> None:
    made = Cluster(policy("priority"))
    made.node("n", cpu="20")
    for name, value in (("low", 4), ("same", 5), ("higher", 6)):
        made.priority(name, value)
        made.gang(name, 1, priorityClassName=name, pod={"nodeName": "n", "priority": 9 if name == "low" else 0})
        made.run(name)
    made.gang("own", 0, minimum=1, priorityClassName="same")
    for index, priority in enumerate((2, 3, 3)):
        made.pod("own", index, priority=priority, **({} if index == 2 else {"nodeName": "n"}))
    made.run("own")
    assert let_go(made, "priority", Priority, ASKED[action], actor="own-worker-2") == gone


@pytest.mark.parametrize(("waiting", "starves"), [(0, False), (1, True)])
def test_a_gang_starves_while_any_of_its_pods_has_no_place(waiting: int, starves: bool) -> None:
    made = Cluster(policy("priority"))
    made.node("n", cpu="20")
    made.gang("g", 2, minimum=1, pod={"nodeName": "n"})
    made.run("g")
    for index in range(waiting):
        made.pod("g", 2 + index)
    opened = session(made, policy("priority"))
    assert plugin_of(opened, Priority).job_starving(opened.state.jobs["ns/g"]) is starves
