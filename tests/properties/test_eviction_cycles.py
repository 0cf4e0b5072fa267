"""Preemption and reclaim on random clusters in which nothing happens but what the scheduler decides: evictions end,
lead to something, never take more than there is, and leave no trace where they are taken back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PODS
from vcbatch.scheduler import CycleResult, Policy, parse_policy
from vcbatch.scheduler.actions.preempt import NAME
from vcbatch.scheduler.actions.relief import Relief, Terms
from vcbatch.scheduler.actions.starving import waiting_tasks
from vcbatch.scheduler.framework.plugin import EvictionKind
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import TaskStatus

Json = dict[str, Any]
SETTINGS = settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
FEWER = settings(SETTINGS, max_examples=examples(15))
ROUNDS = 60
PRIORITIES = {"low": 1, "mid": 5, "high": 10}

POLICY = """
actions: "{actions}"
tiers:
- plugins:
  - name: {first}
  - name: {second}
    enablePreemptable: {gang}
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: {drf}
  - name: predicates
  - name: {queues}
  - name: nodeorder
configurations:
- name: preempt
  arguments: {{minimizeVictims: {minimize}, preventTakeBack: {prevent}, enableTopologyAwarePreemption: {dry}}}
- name: reclaim
  arguments: {{minimizeVictims: {minimize}, preventTakeBack: {prevent}}}
"""


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """The policies that people have, and those that make gangs push each other about."""
    yes = st.sampled_from(["true", "false"])
    first, second = draw(st.sampled_from([("priority", "gang"), ("priority", "gang"), ("conformance", "gang")]))
    text = POLICY.format(
        actions=draw(
            st.sampled_from(
                ["allocate, preempt", "allocate, reclaim", "allocate, preempt, reclaim, backfill", "preempt, allocate"]
            )
        ),
        first=first,
        second=second,
        gang=draw(yes),
        drf=draw(yes),
        queues=draw(st.sampled_from(["proportion", "capacity"])),
        minimize=draw(yes),
        prevent=draw(yes),
        dry=draw(yes),
    )
    if first == "conformance":
        text = text.replace("  - name: conformance\n- plugins", "- plugins", 1)
    return parse_policy(text)


@dataclass(frozen=True)
class Gang:
    size: int
    minimum: int
    cpu: int
    priority: str
    queue: str
    kept: bool


def gangs(most: int) -> st.SearchStrategy[list[Gang]]:
    one = st.builds(
        lambda size, less, cpu, priority, queue, kept: Gang(size, max(size - less, 1), cpu, priority, queue, kept == 0),
        st.integers(1, 5),
        st.integers(0, 4),
        st.integers(1, 4),
        st.sampled_from(list(PRIORITIES)),
        st.sampled_from(["default", "other"]),
        st.integers(0, 7),
    )
    return st.lists(one, min_size=1, max_size=most)


@dataclass(frozen=True)
class World:
    nodes: list[int]
    old: list[Gang]
    new: list[Gang]


worlds = st.builds(World, st.lists(st.integers(2, 9), min_size=1, max_size=3), gangs(5), gangs(4))


class Play(Cluster):
    """A cluster whose pods run at once, end at once when they are evicted, and come back at once."""

    def __init__(self, world: World, policy: Policy) -> None:
        self.lives: Counter[str] = Counter()
        super().__init__(policy)
        self.queue("other", deserved={"cpu": "3", "memory": "64Gi"})
        self.queue("default", event="MODIFIED", deserved={"cpu": "5", "memory": "64Gi"})
        for name, value in PRIORITIES.items():
            self.priority(name, value)
        for i, cpu in enumerate(world.nodes):
            self.node(f"n{i}", cpu=str(cpu))
        for i, gang in enumerate(world.old):
            self._add(f"old{i}", gang)
        for _ in range(ROUNDS):
            result = self.cycle()
            self.carry_out(result)
            if not result.binds and not result.evictions:
                break
        for i, gang in enumerate(world.new):
            self._add(f"new{i}", gang)

    def _add(self, name: str, gang: Gang) -> None:
        notes = {"volcano.sh/preemptable": "false"} if gang.kept else {}
        self.gang(
            name,
            gang.size,
            minimum=gang.minimum,
            cpu=str(gang.cpu),
            priorityClassName=gang.priority,
            queue=gang.queue,
            pod={"notes": notes, "priority": PRIORITIES[gang.priority]},
        )

    def carry_out(self, result: CycleResult) -> None:
        for bind in result.binds:
            self.change(bind.name, phase="Running")
        for eviction in result.evictions:
            self.come_back(eviction.name, self.end(eviction.name))

    def end(self, name: str) -> Json:
        """A pod is gone; returns what it was."""
        raw = self.pods[name]
        self.delete(name)
        return raw

    def come_back(self, name: str, raw: Json) -> None:
        """Its controller makes it again."""
        self.lives[name] += 1
        kept = {k: v for k, v in raw["metadata"].items() if k != "deletionTimestamp"}
        again = {**raw, "spec": {k: v for k, v in raw["spec"].items() if k != "nodeName"}}
        again["metadata"] = {**kept, "uid": f"pod-{name}-{self.lives[name]}"}
        again["status"] = {"phase": "Pending"}
        self.pods[name] = again
        self._send(PODS, Pod, "ADDED", again)

    @property
    def state(self) -> Any:
        return self.scheduler._state


PASSED_OVER = World(
    nodes=[2, 4],
    old=[
        Gang(size=1, minimum=1, cpu=1, priority="low", queue="default", kept=True),
        Gang(size=1, minimum=1, cpu=3, priority="low", queue="default", kept=True),
        Gang(size=3, minimum=3, cpu=1, priority="low", queue="default", kept=True),
        Gang(size=2, minimum=2, cpu=1, priority="low", queue="default", kept=True),
        Gang(size=2, minimum=2, cpu=2, priority="low", queue="other", kept=False),
    ],
    new=[Gang(size=1, minimum=1, cpu=3, priority="low", queue="default", kept=True)],
)
"""A gang of three that nobody can be evicted for holds the one place in which another gang could be helped."""
IN_TURN = World(
    nodes=[7, 7],
    old=[
        Gang(size=1, minimum=1, cpu=1, priority="low", queue="default", kept=False),
        Gang(size=1, minimum=1, cpu=1, priority="low", queue="default", kept=True),
        Gang(size=1, minimum=1, cpu=1, priority="low", queue="default", kept=True),
        Gang(size=2, minimum=2, cpu=3, priority="mid", queue="default", kept=False),
        Gang(size=3, minimum=3, cpu=3, priority="low", queue="other", kept=False),
    ],
    new=[Gang(size=1, minimum=1, cpu=1, priority="low", queue="other", kept=True)],
)
"""A gang of one queue has others evicted for a member that it lost, and comes up to lose another one to their queue."""
RECLAIMING = parse_policy(
    POLICY.format(
        actions="allocate, reclaim",
        first="priority",
        second="gang",
        gang="true",
        drf="true",
        queues="capacity",
        minimize="true",
        prevent="false",
        dry="false",
    )
)
SPARING = parse_policy(
    POLICY.format(
        actions="allocate, preempt, reclaim, backfill",
        first="priority",
        second="gang",
        gang="true",
        drf="true",
        queues="capacity",
        minimize="true",
        prevent="true",
        dry="true",
    )
)


@SETTINGS
@given(worlds, policies())
@example(PASSED_OVER, SPARING)
def test_evictions_end_where_nothing_else_happens(world: World, policy: Policy) -> None:
    play = Play(world, policy)
    for _ in range(ROUNDS):
        result = play.cycle()
        play.carry_out(result)
        if not result.evictions and not result.binds and not play.scheduler.dirty:
            break
    for _ in range(3):
        assert not play.cycle().evictions


ROUNDS_AWAKE = 16


def settle(play: Play) -> int:
    """Cycles until nothing is left to do; how many pods were evicted."""
    evictions = 0
    for _ in range(ROUNDS):
        result = play.cycle()
        play.carry_out(result)
        evictions += len(result.evictions)
        if not result.evictions and not result.binds and not play.scheduler.dirty:
            break
    return evictions


@FEWER
@given(worlds, policies())
def test_evictions_end_though_something_else_changes_all_the_time(world: World, policy: Policy) -> None:
    """Whatever changes, and has nothing to do with it, wakes those up who could be evicted for. In the second half of
    such changes no more is evicted than in the first: it doesn't go on for ever."""
    play = Play(world, policy)
    settle(play)
    evicted: list[int] = []
    for number in range(ROUNDS_AWAKE):
        play.node("n0", event="MODIFIED", cpu=str(world.nodes[0]), labels={"unused": str(number)})
        evicted.append(settle(play))
    half = ROUNDS_AWAKE // 2
    assert sum(evicted[half:]) <= max(sum(evicted[:half]), 3)


@SETTINGS
@given(worlds, policies())
@example(IN_TURN, RECLAIMING)
def test_nobody_goes_unless_somebody_then_has_the_place(world: World, policy: Policy) -> None:
    play = Play(world, policy)
    for _ in range(ROUNDS):
        result = play.cycle()
        for eviction in result.evictions:
            task = play.state.tasks[eviction.uid]
            assert any(h.nominated and h.node == task.node for h in result.held)
        promised = Counter(play.state.tasks[h.uid].job for h in result.held if h.nominated)
        for job in promised:
            own = all(play.state.tasks[e.uid].job is job for e in result.evictions)
            held = sum(1 for h in result.held if play.state.tasks[h.uid].job is job)
            assert own or job.ready_count + held >= job.min_member
        play.carry_out(result)
        if not result.evictions and not result.binds:
            break


@SETTINGS
@given(worlds, policies())
def test_no_node_is_promised_more_than_it_will_have(world: World, policy: Policy) -> None:
    play = Play(world, policy)
    for _ in range(8):
        result = play.cycle()
        nodes = play.state.nodes
        assert (nodes.used <= nodes.alloc).all()
        left = nodes.alloc - nodes.used + nodes.releasing
        row = {info.name: info.row for info in nodes.infos}
        for held in result.held:
            left[:, row[held.node]] -= play.state.tasks[held.uid].cls.request
        assert (left >= 0).all()
        assert not nodes.pipelined.any()
        play.carry_out(result)


SIMPLE = """
actions: "allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: predicates
  - name: nodeorder
"""


@SETTINGS
@given(worlds, st.booleans())
def test_no_gang_waits_that_would_fit_in_the_place_of_pods_with_lower_priority(world: World, dry: bool) -> None:
    """Where priority alone decides: what is free, and what gangs of lower priority and the same queue hold, isn't
    enough for the pods of any gang that waits."""
    argument = "configurations:\n- name: preempt\n  arguments: {enableTopologyAwarePreemption: true}\n" if dry else ""
    play = Play(world, parse_policy(SIMPLE + argument))
    for _ in range(ROUNDS):
        result = play.cycle()
        play.carry_out(result)
        if not result.binds and not result.evictions:
            break
    waiting = [
        job
        for job in play.state.jobs.values()
        if job.counts[TaskStatus.PENDING] and job.ready_count < job.min_member and not job.ready_count
    ]
    for job in waiting:
        tasks = [t for t in job.tasks.values() if t.status is TaskStatus.PENDING]
        places = 0
        for info in play.state.nodes.infos:
            kept = [
                t
                for t in info.tasks.values()
                if not t.preemptable or t.job.priority >= job.priority or t.job.queue is not job.queue
            ]
            free = play.state.nodes.alloc[0, info.row] - sum(t.cls.request[0] for t in kept)
            places += int(free // tasks[0].cls.request[0])
        assert places < job.min_member


def books(play: Play, session: Session) -> dict[str, Any]:
    """All that an eviction and a promise are entered in."""
    state = play.state
    found: dict[str, Any] = {n: getattr(state.nodes, n).copy() for n in ("used", "releasing", "pipelined", "nonzero")}
    found |= {
        n: getattr(state.jobs_table, n).copy() for n in ("allocated", "pending", "allocated_count", "ready_count")
    }
    found["leaving"] = state.nodes.leaving is not None and bool(state.nodes.leaving.any())
    found["counts"] = {k: (list(j.counts), {r: list(c) for r, c in j.roles.items()}) for k, j in state.jobs.items()}
    found["where"] = {t.uid: (t.node, t.status, t.evicting) for t in state.tasks.values()}
    found["on"] = {info.name: sorted(info.tasks) for info in state.nodes.infos}
    found["victims"] = (len(state.victims), state.victims.stamp)
    found["rooms"] = {q.name: session.ledger(q, np.ones(len(session.dims))) for q in state.queues.values()}
    found["order"] = {job.key: session.job_key(job) for job in state.jobs.values() if job.group is not None}
    return found


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


@SETTINGS
@given(worlds, policies(), st.sampled_from(EvictionKind), st.booleans())
def test_what_is_taken_back_leaves_no_trace(world: World, policy: Policy, kind: EvictionKind, minimize: bool) -> None:
    play = Play(world, policy)
    play.state.settle()
    session = Session(play.state, policy, play.scheduler._cache, now=play.now, uid="trial")
    relief = Relief(session, Terms(kind=kind, reason=NAME, minimize=minimize))
    before = books(play, session)
    for job in list(play.state.jobs.values()):
        relief.begin()
        statement = Statement(session)
        for task in waiting_tasks(session, job):
            relief.find(statement, task)
        statement.discard()
        assert same(books(play, session), before)
