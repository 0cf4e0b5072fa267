"""Making room for gangs on random clusters: what must hold whoever goes and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.domains import hard, hyper_node, send
from vcbatch.scheduler import CycleResult, parse_policy
from vcbatch.scheduler.model.objects import ALLOCATED_STATUSES

PRIORITIES = {"low": 1, "mid": 5, "high": 10}
PREEMPT = """
actions: "allocate, gangpreempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
RECLAIM = PREEMPT.replace("gangpreempt", "gangreclaim").replace("proportion", "capacity")
BOTH = PREEMPT.replace("gangpreempt", "gangpreempt, gangreclaim").replace("proportion", "capacity")
MINIMAL = (
    BOTH
    + """configurations:
- name: gangpreempt
  arguments: {minimizeVictims: true}
- name: gangreclaim
  arguments: {minimizeVictims: true}
"""
)
SETTINGS = settings(max_examples=examples(60))


@dataclass(frozen=True)
class Gang:
    name: str
    size: int
    minimum: int
    cpu: int
    priority: str
    queue: str
    running: bool
    kept: int
    """How many of its pods, the first ones, say that they may not be evicted."""
    bound: int
    """How many of its pods, the last ones, have a node and don't run yet."""
    tier: int
    """Within which tier of the network it has to be; 0: anywhere."""


def gangs(*, running: bool, count: int) -> st.SearchStrategy[list[Gang]]:
    one = st.builds(
        lambda size, less, cpu, priority, queue, kept, bound, tier: Gang(
            "", size, max(size - less, 1), cpu, priority, queue, running, min(kept, size), min(bound, size - 1), tier
        ),
        st.integers(1, 5),
        st.integers(0, 3),
        st.integers(1, 3),
        st.sampled_from(list(PRIORITIES)),
        st.sampled_from(["default", "other"]),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from([0]) if running else st.sampled_from([0, 1, 1]),
    )
    return st.lists(one, min_size=1, max_size=count)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[int], list[Gang]]:
    """The cpus of the nodes, and gangs of which the first ones came when there was room."""
    nodes = draw(st.lists(st.integers(2, 8), min_size=1, max_size=4))
    found = draw(gangs(running=True, count=5)) + draw(gangs(running=False, count=3))
    return nodes, [Gang(f"g{i}", *list(vars(g).values())[1:]) for i, g in enumerate(found)]


def build(world: tuple[list[int], list[Gang]], policy: str) -> Cluster:
    """The gangs that were there first run where they found room. Every two nodes are a domain of tier 1, all of them
    one of tier 2."""
    nodes, found = world
    made = Cluster(parse_policy(policy))
    made.queue("other", deserved={"cpu": "4", "memory": "64Gi"})
    made.queue("default", event="MODIFIED", deserved={"cpu": "4", "memory": "64Gi"})
    for name, value in PRIORITIES.items():
        made.priority(name, value)
    for i, cpu in enumerate(nodes):
        made.node(f"n{i}", cpu=str(cpu))
    racks = [[f"n{i}" for i in range(first, min(first + 2, len(nodes)))] for first in range(0, len(nodes), 2)]
    for i, members in enumerate(racks):
        send(made, hyper_node(f"rack{i}", 1, nodes=members))
    send(made, hyper_node("spine", 2, below=[f"rack{i}" for i in range(len(racks))]))
    for running in (True, False):
        for gang in found:
            if gang.running is running:
                add(made, gang)
        if running:
            while made.cycle().binds:
                pass
            for gang in (gang for gang in found if gang.running):
                for name in [f"{gang.name}-worker-{index}" for index in range(gang.size - gang.bound)]:
                    if made.pods[name]["spec"].get("nodeName"):
                        made.change(name, phase="Running")
    return made


def add(made: Cluster, gang: Gang) -> None:
    topology = {"networkTopology": hard(gang.tier)} if gang.tier else {}
    made.gang(gang.name, 0, minimum=gang.minimum, priorityClassName=gang.priority, queue=gang.queue, **topology)
    for index in range(gang.size):
        pod(made, gang, index)


def pod(made: Cluster, gang: Gang, index: int) -> None:
    made.pod(gang.name, index, cpu=str(gang.cpu), notes={"volcano.sh/preemptable": str(index >= gang.kept).lower()})


def ready(made: Cluster, name: str) -> int:
    return made.scheduler._state.jobs[f"ns/{name}"].ready_count


def books(made: Cluster) -> dict[str, Any]:
    """All that a decision is entered in."""
    state = made.scheduler._state
    tables = {name: getattr(state.nodes, name).copy() for name in ("used", "releasing", "pipelined", "nonzero")}
    tables |= {name: getattr(state.jobs_table, name).copy() for name in ("allocated", "pending", "allocated_count")}
    counts = {key: (list(job.counts), {r: list(c) for r, c in job.roles.items()}) for key, job in state.jobs.items()}
    where = {task.uid: (task.node, task.status) for task in state.tasks.values()}
    return {**tables, "counts": counts, "where": where}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(
        np.array_equal(one[key], other[key]) if isinstance(one[key], np.ndarray) else one[key] == other[key]
        for key in one
    )


def check(made: Cluster, found: list[Gang], before: dict[str, int], result: CycleResult) -> None:
    """A cycle that evicts does it for gangs that then have their minimum, and leaves no gang with a useless rest."""
    gone: dict[str, set[int]] = {}
    for eviction in result.evictions:
        name, _, index = eviction.name.partition("-worker-")
        gone.setdefault(name, set()).add(int(index))
    promised = {gang.name: sum(h.name.startswith(f"{gang.name}-") for h in result.held) for gang in found}
    served = {e.message.split("gang ns/")[1].split(" ")[0] for e in result.evictions}
    for gang in found:
        if gang.name in served:
            assert promised[gang.name] + ready(made, gang.name) >= gang.minimum
        if gang.name in gone:
            assert not any(index < gang.kept for index in gone[gang.name])
            left = before[gang.name] - len(gone[gang.name])
            if left < gang.minimum:
                assert not [task.name for task in tasks(made, gang) if task.status in ALLOCATED_STATUSES], (
                    "it ends whole"
                )


def tasks(made: Cluster, gang: Gang) -> Any:
    return made.scheduler._state.jobs[f"ns/{gang.name}"].tasks.values()


_IN_TWO_RACKS = (
    [4, 4, 4, 4],
    [
        Gang("g0", 12, 12, 1, "low", "default", running=True, kept=0, bound=1, tier=0),
        Gang("g1", 5, 5, 1, "high", "default", running=False, kept=0, bound=0, tier=1),
    ],
)
"""A gang that needs all its pods, for another one that has to be in one of the racks where they are."""


@SETTINGS
@example(_IN_TWO_RACKS, PREEMPT)
@example(_IN_TWO_RACKS, MINIMAL)
@given(worlds(), st.sampled_from([PREEMPT, RECLAIM, BOTH, MINIMAL]))
def test_nobody_goes_but_for_a_gang_that_then_starts(world: tuple[list[int], list[Gang]], policy: str) -> None:
    made = build(world, policy)
    before = {gang.name: ready(made, gang.name) for gang in world[1]}
    check(made, world[1], before, made.cycle())


@SETTINGS
@given(worlds(), st.sampled_from([PREEMPT, RECLAIM, MINIMAL]))
def test_what_was_tried_leaves_no_trace(world: tuple[list[int], list[Gang]], policy: str) -> None:
    made = build(world, policy)
    before = books(made)
    result = made.cycle()
    after = books(made)
    assert not after["pipelined"].any()
    if not result.binds and not result.evictions:
        assert same(before, after)
    if not result.binds:
        assert np.array_equal(before["used"], after["used"])
        assert np.array_equal(before["nonzero"], after["nonzero"])
        victims = [made.scheduler._state.tasks[e.uid] for e in result.evictions]
        total = sum((task.cls.request for task in victims), start=np.zeros(after["releasing"].shape[0]))
        assert np.array_equal(after["releasing"].sum(axis=1), before["releasing"].sum(axis=1) + total)


@SETTINGS
@given(worlds(), st.sampled_from([PREEMPT, RECLAIM, BOTH, MINIMAL]))
def test_evictions_come_to_an_end(world: tuple[list[int], list[Gang]], policy: str) -> None:
    """Every victim comes back at once and waits again, and nothing else happens: nobody evicts whom they went for."""
    made = build(world, policy)
    found = {gang.name: gang for gang in world[1]}
    for _ in range(40):
        result = made.cycle()
        for gang in found:
            made.run(gang)
        if not result.evictions and not result.binds:
            break
        for eviction in result.evictions:
            name, _, index = eviction.name.partition("-worker-")
            made.delete(eviction.name)
            pod(made, found[name], int(index))
    else:
        raise AssertionError("it never comes to rest")
