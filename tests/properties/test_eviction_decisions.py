"""Who goes for whom, as the arrays have it and as one task after the other has it, on random worlds."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, example, given, settings

from tests.oracle.eviction_strategies import policies, shuffles, worlds
from tests.oracle.shuffle import ShuffleOracle
from tests.oracle.worlds import first_pass
from tests.support.examples import examples
from vcbatch.scheduler.simulation import Simulation, World

Json = dict[str, Any]
SETTINGS = settings(max_examples=examples(250), suppress_health_check=list(HealthCheck))
FEWER = settings(SETTINGS, max_examples=examples(60))


def _pod(gang: str, i: int = 0, *, node: str = "", **requests: str) -> Json:
    return {
        "metadata": {
            "name": f"{gang}-{i}",
            "namespace": "ns",
            "uid": f"pod-{gang}-{i}",
            "annotations": {"scheduling.k8s.io/group-name": gang},
        },
        "spec": {"containers": [{"resources": {"requests": requests}}], **({"nodeName": node} if node else {})},
        "status": {"phase": "Running" if node else "Pending"},
    }


def _group(name: str, queue: str, **spec: str) -> Json:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"minMember": 1, "queue": queue, **spec}}


_ONLY_ITS_SLOT: Json = {
    "nodes": [{"metadata": {"name": "n0"}, "status": {"allocatable": {"memory": "16Gi", "pods": "1"}}}],
    "queues": [
        {"metadata": {"name": "q0"}},
        {"metadata": {"name": "q1"}, "spec": {"guarantee": {"resource": {"memory": "1Gi"}}}},
    ],
    "podGroups": [_group("holds", "q0"), _group("waits", "q1")],
    "pods": [_pod("holds", node="n0"), _pod("waits", memory="1Gi")],
}
"""A gang whose pod holds nothing but its place among the pods of a node, which another gang needs."""
_WHOLE_GANGS: Json = {
    "actions": "enqueue, allocate, gangreclaim",
    "tiers": [{"plugins": [{"name": "gang"}, {"name": "capacity"}]}],
}
_SHARES_MOVE: Json = {
    "nodes": [{"metadata": {"name": "n0"}, "status": {"allocatable": {"cpu": "7", "pods": "10"}}}],
    "queues": [{"metadata": {"name": "q"}}],
    "priorityClasses": [{"metadata": {"name": "high"}, "value": 10}],
    "podGroups": [_group("more", "q"), _group("less", "q"), _group("waits", "q", priorityClassName="high")],
    "pods": [
        *(_pod("more", i, cpu="2", node="n0") for i in range(2)),
        _pod("less", cpu="3", node="n0"),
        _pod("waits", cpu="4"),
    ],
}
"""A gang that loses its first pod as it has the greatest share, and hasn't any longer then."""
_BY_SHARE: Json = {
    "actions": "preempt",
    "tiers": [{"plugins": [{"name": "priority"}]}, {"plugins": [{"name": "drf"}, {"name": "predicates"}]}],
}
_ROOM_FROM_ELSEWHERE: Json = {
    "nodes": [
        {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": "9"}}}
        for name, cpu in (("n0", "2"), ("n1", "3"))
    ],
    "queues": [
        {"metadata": {"name": "q"}},
        {"metadata": {"name": "kept"}, "spec": {"guarantee": {"resource": {"cpu": "2"}}}},
    ],
    "priorityClasses": [{"metadata": {"name": "high"}, "value": 10}],
    "podGroups": [
        _group("wide", "q"),
        _group("small", "q"),
        {**_group("waits", "q"), "spec": {"minMember": 2, "queue": "q", "priorityClassName": "high"}},
    ],
    "pods": [
        *(_pod("wide", i, cpu="2", node=f"n{i}") for i in range(2)),
        _pod("small", cpu="1", node="n1"),
        *(_pod("waits", i, cpu="1") for i in range(2)),
    ],
}
"""A queue with more than it deserves: those on n0 alone don't bring it down enough for the first pod that waits, and do
for the second, as those on n1 went for the first."""
_BY_WEIGHT: Json = {
    "actions": "preempt",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}]},
        {"plugins": [{"name": "predicates"}, {"name": "proportion"}]},
    ],
}

_ROOM_BETWEEN_TASKS: Json = {
    "nodes": [
        {"metadata": {"name": "n0"}, "status": {"allocatable": {"cpu": "4"}}},
        {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2", "memory": "16Gi", "pods": "10"}}},
        {"metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}},
    ],
    "queues": [{"metadata": {"name": "other"}, "spec": {"weight": 2}}, {"metadata": {"name": "q"}}],
    "podGroups": [
        _group("holds", "q"),
        _group("other", "other"),
        {**_group("waits", "q"), "spec": {"queue": "q", "minMember": 2}},
    ],
    "pods": [
        _pod("holds", 0, node="n2", cpu="2"),
        _pod("holds", 1, node="n0", cpu="2"),
        *(_pod("other", i, cpu="3") for i in range(2)),
        *(_pod("waits", i, cpu="1", memory="2Gi") for i in (0, 2)),
        *(_pod("waits", i, cpu="1") for i in (1, 3)),
    ],
}
"""A queue without room for the first pod, which it has for the third, alike, as one went for the second."""
_BY_PROPORTION: Json = {
    "actions": "enqueue, allocate, preempt",
    "tiers": [{"plugins": [{"name": "gang"}]}, {"plugins": [{"name": "proportion"}]}],
}
_KEPT_BEFORE_BUDGETS: Json = {
    "nodes": [{"metadata": {"name": "n1"}, "status": {"allocatable": {"memory": "16Gi", "pods": "2"}}}],
    "queues": [{"metadata": {"name": "q0"}}, {"metadata": {"name": "q1"}}],
    "podGroups": [_group("holds", "q0"), _group("waits", "q1")],
    "pods": [
        {
            **(kept := _pod("holds", 0, node="n1")),
            "spec": {**kept["spec"], "priorityClassName": "system-node-critical"},
        },
        _pod("holds", 1, node="n1"),
        _pod("waits", memory="2Gi"),
    ],
    "podDisruptionBudgets": [
        {
            "metadata": {"name": "one", "namespace": "ns"},
            "spec": {"selector": {"matchLabels": {}}},
            "status": {"disruptionsAllowed": 1},
        }
    ],
}
"""A gang of which one pod may never go, and of the others one."""
_BUDGETS: Json = {
    "actions": "enqueue, allocate, gangreclaim",
    "tiers": [{"plugins": [{"name": "gang"}, {"name": "conformance"}, {"name": "pdb"}]}],
}


def _compare(world: Json, document: Json) -> None:
    found = Simulation(World.read(world), first_pass(document)).run()
    oracle = ShuffleOracle(world, document).run()
    assert found.binds == oracle.binds
    assert sorted(found.evicted) == sorted(oracle.tasks[uid].name for uid in oracle.evicted)
    assert {**found.pipelined, **found.allocated} == oracle.held
    assert dict(found.phases) == oracle.phases


@SETTINGS
@example(_ONLY_ITS_SLOT, _WHOLE_GANGS)
@example(_SHARES_MOVE, _BY_SHARE)
@example(_ROOM_FROM_ELSEWHERE, _BY_WEIGHT)
@example(_ROOM_BETWEEN_TASKS, _BY_PROPORTION)
@example(_KEPT_BEFORE_BUDGETS, _BUDGETS)
@given(worlds(), policies())
def test_evictions_are_those_of_one_task_at_a_time(world: Json, document: Json) -> None:
    _compare(world, document)


@FEWER
@given(worlds(), shuffles())
def test_who_goes_whoever_waits_is_told_apart_from_who_stays(world: Json, document: Json) -> None:
    _compare(world, document)
