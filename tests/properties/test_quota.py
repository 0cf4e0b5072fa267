"""Quotas of queues, on random trees, against the document read one queue and one task at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.oracle.quota import ROOT, Amounts, Gang, Quota, Spec
from tests.oracle.worlds import NOW
from tests.support.examples import examples
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.node import Node, NodeStatus
from vcbatch.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from vcbatch.api.scheduling import (
    GuaranteeView,
    PodGroupSpecView,
    PodGroupStatusView,
    PodGroupView,
    Quantities,
    QueueSpecView,
    QueueView,
)
from vcbatch.scheduler import Policy, build_policy
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.framework.plugin import EvictionKind, Vote
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.index.victims import Candidates
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.plugins.capacity import Capacity
from vcbatch.scheduler.snapshot.cluster_events import ClusterEvents
from vcbatch.scheduler.snapshot.snapshot import Snapshot

WORLDS = settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
GPU = "example.com/gpu"
NAMES = ("cpu", "memory", GPU)
MOST_TASKS = 200


@dataclass
class World:
    """Queues and what their gangs hold, as the oracle and as the scheduler know them."""

    queues: dict[str, Spec]
    total: Amounts
    hierarchy: bool
    levels: int

    @property
    def oracle(self) -> Quota:
        return Quota(self.queues, self.total, hierarchy=self.hierarchy, levels=self.levels)

    def state(self) -> Snapshot:
        state = Snapshot(scheduler_names=["volcano"], default_queue="default")
        events = ClusterEvents(state)
        for age, (name, spec) in enumerate(self.queues.items()):
            events.gangs.apply_queue(_queue(name, spec, age))
        events.apply_node(
            Node(metadata=ObjectMeta(name="n", uid="n"), status=NodeStatus(allocatable=_wire(self.total)))
        )
        for name, spec in self.queues.items():
            for g, gang in enumerate(spec.gangs):
                _report(state, f"{name}-{g}", name, gang)
        state.settle()
        return state

    def session(self, state: Snapshot) -> Session:
        return Session(state, _policy(self.hierarchy, self.levels), StaticCache(), now=NOW, uid="cycle")


@cache
def _policy(hierarchy: bool, levels: int) -> Policy:
    plugin = {"name": "capacity", "enableHierarchy": hierarchy, "arguments": {"ancestorReclaimLevel": levels}}
    return build_policy({"actions": "allocate", "tiers": [{"plugins": [plugin]}]})


def _wire(amounts: Amounts) -> Quantities:
    """As quantities; what isn't there isn't named."""
    return {n: f"{a:.0f}m" if n == "cpu" else str(int(a / 1000) if n == GPU else int(a)) for n, a in amounts.items()}


def _queue(name: str, spec: Spec, age: int) -> QueueView:
    given = QueueSpecView(
        parent=spec.parent,
        priority=spec.priority,
        deserved=_wire(spec.deserved) or None,
        capability=_wire(spec.capability) or None,
        guarantee=GuaranteeView(resource=_wire(spec.guarantee)),
    )
    return QueueView(metadata=ObjectMeta(name=name, uid=f"{age:02}", creation_timestamp=f"{age:02}"), spec=given)


def _report(state: Snapshot, name: str, queue: str, gang: Gang) -> None:
    spec = PodGroupSpecView(
        min_member=1, queue=queue, min_resources=None if gang.minimum is None else _wire(gang.minimum)
    )
    phase = "Inqueue" if gang.admitted else "Pending"
    meta = ObjectMeta(name=name, namespace="ns", uid=name)
    ClusterEvents(state).gangs.apply_podgroup(
        PodGroupView(metadata=meta, spec=spec, status=PodGroupStatusView(phase=phase))
    )
    for i, request in enumerate(gang.held):
        _pod(state, name, str(i), request, node="n")


def _pod(state: Snapshot, gang: str, name: str, request: Amounts, *, node: str = "") -> Task:
    notes = {"scheduling.k8s.io/group-name": gang}
    meta = ObjectMeta(name=f"{gang}-{name}", namespace="ns", uid=f"{gang}-{name}", annotations=notes)
    container = Container(name="main", image="i", resources=ResourceRequirements(requests=_wire(request)))
    spec = PodSpec(scheduler_name="volcano", node_name=node, containers=[container])
    ClusterEvents(state).apply_pod(
        Pod(metadata=meta, spec=spec, status=PodStatus(phase="Running" if node else "Pending"))
    )
    return state.tasks[meta.uid]


def amounts(most: int, *, least: int = 0) -> st.SearchStrategy[Amounts]:
    """Some of the resources, in whole cores, bytes and devices."""
    value = st.integers(least, most)
    some = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, value))
    return some.map(lambda drawn: {n: float(a if n == "memory" else 1000 * a) for n, a in drawn.items()})


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(1, 6))
    hierarchy = draw(st.sampled_from([True, True, False]))
    names = [f"q{i}" for i in draw(st.permutations(range(count)))]
    queues: dict[str, Spec] = {}
    for i, name in enumerate(names):
        parent = (
            draw(st.sampled_from(["", ROOT, *names[:i][:2], *names[:i][:2]]))
            if hierarchy
            else draw(st.sampled_from(["", "gone"]))
        )
        queues[name] = Spec(
            parent=parent,
            priority=draw(st.sampled_from([0, 0, 0, 5])),
            deserved=draw(st.one_of(st.just({}), amounts(6))),
            guarantee=draw(st.one_of(st.just({}), amounts(3))),
            capability=draw(st.one_of(st.just({}), amounts(9))),
        )
    if hierarchy and draw(st.booleans()):
        queues = {ROOT: Spec(capability=draw(amounts(12))), **queues}
    inner = {spec.parent for spec in queues.values()}
    for name in names:
        if name not in inner:
            gang = st.builds(
                Gang,
                held=st.lists(amounts(3), max_size=3),
                minimum=st.one_of(st.none(), amounts(5)),
                admitted=st.booleans(),
            )
            queues[name].gangs = draw(st.lists(gang, max_size=2))
    total = {"cpu": 16000.0, "memory": 16.0, GPU: 8000.0, "pods": 100.0}
    return World(queues, total, hierarchy, draw(st.integers(0, 3)))


def plugin(session: Session) -> Capacity:
    (found,) = session.plugins
    assert isinstance(found, Capacity)
    return found


@WORLDS
@given(worlds(), amounts(4))
def test_rooms_are_those_of_one_task_at_a_time(world: World, request: Amounts) -> None:
    state = world.state()
    session, oracle = world.session(state), world.oracle
    vector = state.dims.vector(_wire(request))
    for name, spec in world.queues.items():
        if spec.gangs or not oracle.children(name):
            found = session.room(state.queues[name], vector)
            spec.gangs.append(Gang())
            placed = 0
            while placed < MOST_TASKS and oracle.allocatable(name, request):
                spec.gangs[-1].held.append(request)
                placed += 1
            spec.gangs.pop()
            assert min(found, MOST_TASKS) == placed


@WORLDS
@given(worlds(), amounts(4))
def test_admission_and_the_right_to_reclaim_are_the_document_s(world: World, request: Amounts) -> None:
    state = world.state()
    for name in world.queues:
        _report(state, f"new-{name}", name, Gang(minimum=request))
    state.settle()
    session, oracle = world.session(state), world.oracle
    vector = state.dims.vector(_wire(request))
    for name in world.queues:
        verdict = plugin(session).enqueueable(state.jobs[f"ns/new-{name}"])
        assert (verdict.vote is Vote.PERMIT) == oracle.enqueueable(name, request), verdict.message
        assert session.preemptive(state.queues[name], vector) == oracle.preemptive(name, request)


@WORLDS
@given(worlds())
def test_queues_are_served_in_the_document_s_order(world: World) -> None:
    state = world.state()
    session, oracle = world.session(state), world.oracle
    age = {ROOT: -1, **{name: at for at, name in enumerate(world.queues)}}
    leaves = [name for name in world.queues if not oracle.children(name)]
    for one, other in pairwise(sorted(leaves, key=lambda name: session.queue_key(state.queues[name]))):
        assert oracle.before(one, other, age)


_NONE_GUARANTEED = World(
    {
        "q0": Spec(),
        "q1": Spec(deserved={"cpu": 4000.0}, guarantee={GPU: 0.0}, gangs=[Gang(held=[{"cpu": 1000.0, GPU: 1000.0}])]),
    },
    {"cpu": 16000.0, "memory": 16.0, GPU: 8000.0, "pods": 100.0},
    hierarchy=False,
    levels=0,
)
"""A guarantee of zero devices doesn't make the devices that the queue holds more than it deserves."""


@example(_NONE_GUARANTEED, {"cpu": 1000.0, GPU: 1000.0}, Random(0))
@settings(WORLDS, max_examples=examples(150))
@given(worlds(), amounts(4, least=1), st.randoms(use_true_random=False))
def test_victims_are_those_of_the_document(world: World, request: Amounts, random: Any) -> None:
    state, oracle = world.state(), world.oracle
    leaves = [name for name in world.queues if not oracle.children(name)]
    own = leaves[0]
    _report(state, "new", own, Gang())
    reclaimer = _pod(state, "new", "0", request)
    state.settle()
    session = world.session(state)
    candidates = [
        (name, state.tasks[f"{name}-{g}-{i}"], request)
        for name in leaves[1:]
        for g, gang in enumerate(world.queues[name].gangs)
        for i, request in enumerate(gang.held)
    ]
    random.shuffle(candidates)
    found = plugin(session).reclaimable(reclaimer, [task for _, task, _ in candidates]) or ()
    wanted = oracle.victims(own, request, [(name, held) for name, _, held in candidates])
    assert [task.uid for task in found] == [candidates[i][1].uid for i in wanted]
    assert {task.uid for task in found} <= _possible(plugin(session), reclaimer, [task for _, task, _ in candidates])


def _possible(found: Capacity, reclaimer: Task, tasks: list[Task]) -> set[str]:
    """Whom the plugin thinks possible, all at once."""
    assert reclaimer.job is not None
    known = Candidates(
        seats=np.arange(len(tasks)),
        nodes=np.zeros(len(tasks), dtype=np.intp),
        jobs=np.array([task.job.row for task in tasks if task.job is not None], dtype=np.intp),
        classes=np.arange(len(tasks)),
        priority=np.zeros(len(tasks), dtype=np.int64),
        requests=np.array([task.cls.request for task in tasks]).reshape(len(tasks), len(reclaimer.cls.request)),
    )
    mask = found.possible_victims(EvictionKind.RECLAIM, reclaimer.job, reclaimer.cls, known)
    assert mask is not None
    assert found.possible_victims(EvictionKind.PREEMPT, reclaimer.job, reclaimer.cls, known) is None
    return {task.uid for task, possible in zip(tasks, mask.tolist(), strict=True) if possible}


@WORLDS
@given(worlds())
def test_what_children_deserve_is_what_the_root_deserves(world: World) -> None:
    state = world.state()
    usage = plugin(world.session(state))._usage
    if world.hierarchy:
        tree = usage.tree
        below = tree.parent == tree.at(ROOT)
        if below.any():
            sums = np.array(usage.deserved)[below].sum(axis=0)
            assert (np.array(usage.deserved[tree.at(ROOT)]) == sums).all()
    for name in world.queues:
        i = usage.tree.at(name)
        wanted = world.oracle.deserved(name)
        assert {n: usage.deserved[i][state.dims.names.index(n)] for n in wanted} == wanted


@WORLDS
@given(worlds(), st.lists(st.tuples(st.integers(0, 5), amounts(3)), max_size=6))
def test_books_kept_along_equal_books_made_anew(world: World, moves: list[tuple[int, Amounts]]) -> None:
    """Tasks that come in the course of a cycle leave the usage as they are when the next one opens."""
    state = world.state()
    session = world.session(state)
    leaves = [name for name in world.queues if not world.oracle.children(name)]
    later = world.state()
    for number, (at, request) in enumerate(moves):
        name = leaves[at % len(leaves)]
        for known in (state, later):
            _report(known, f"new-{number}", name, Gang())
        task = _pod(state, f"new-{number}", "0", request)
        assert task.job is not None
        plugin(session).placed(task.job, task.cls, 1)
        _pod(later, f"new-{number}", "0", request, node="n")
    later.settle()
    anew, along = plugin(world.session(later))._usage, plugin(session)._usage
    assert along.held == anew.held
    assert [along.share(i) for i in range(len(along.held))] == [anew.share(i) for i in range(len(anew.held))]
