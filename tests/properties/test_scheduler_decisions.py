"""What holds for every decision of the scheduler, on random worlds."""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.oracle.near import NearOracle
from tests.oracle.strategies import policies, worlds
from tests.oracle.worlds import NOW, first_pass, objects, run
from tests.support.examples import examples
from vcbatch.api.resources import PODS
from vcbatch.scheduler import Scheduler, build_policy
from vcbatch.scheduler.index.demand import DemandTracker

Json = dict[str, Any]
WORLDS = settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
FEWER = settings(WORLDS, max_examples=examples(60))

FULL = build_policy(
    {
        "actions": "enqueue, allocate, backfill",
        "tiers": [
            {"plugins": [{"name": n} for n in ("priority", "gang", "overcommit", "drf", "predicates", "proportion")]},
            {"plugins": [{"name": "nodeorder"}, {"name": "binpack"}]},
        ],
    }
)


def _oracle(world: Json, document: Json) -> NearOracle:
    actions = [a.strip() for a in document["actions"].split(",")]
    options = [(p["name"], p.get("arguments") or {}) for t in document["tiers"] for p in t["plugins"]]
    return NearOracle(world, actions, options).run()


@WORLDS
@given(worlds(), policies())
def test_batches_decide_as_one_task_at_a_time_does(world: Json, document: Json) -> None:
    _, result = run(world, first_pass(document))
    oracle = _oracle(world, document)
    assert {f"{b.namespace}/{b.name}": b.node for b in result.binds} == oracle.binds
    assert {f"{h.namespace}/{h.name}": h.node for h in result.held} == oracle.held


@WORLDS
@given(worlds(), policies())
def test_the_search_changes_nothing_where_the_first_pass_starts_every_gang(world: Json, document: Json) -> None:
    _, without = run(world, first_pass(document))
    assume(not any(pod["metadata"]["name"] not in {b.name for b in without.binds} for pod in _pending(world)))
    _, result = run(world, build_policy(document))
    assert (result.binds, result.held) == (without.binds, without.held)


def _pending(world: Json) -> list[Json]:
    return [pod for pod in world["pods"] if not pod["spec"].get("nodeName")]


@WORLDS
@given(worlds())
def test_no_node_gets_more_than_it_has(world: Json) -> None:
    scheduler, result = run(world, FULL)
    nodes = scheduler._state.nodes
    touched = {b.node for b in result.binds}
    best_effort = {t.uid for t in scheduler._state.tasks.values() if t.cls.best_effort}
    for info in nodes.infos:
        if info.name in touched and any(b.node == info.name and b.uid not in best_effort for b in result.binds):
            assert (nodes.used[:2, info.row] <= nodes.alloc[:2, info.row]).all()
        if info.name in touched:
            assert nodes.used[2, info.row] <= nodes.alloc[2, info.row]


@WORLDS
@given(worlds())
def test_a_gang_starts_whole_or_not_at_all(world: Json) -> None:
    scheduler, result = run(world, FULL)
    bound = Counter(scheduler._state.tasks[b.uid].job for b in result.binds)
    for job in bound:
        assert job is not None
        assert job.ready_count >= job.min_member


@WORLDS
@given(worlds(), policies(), st.randoms(use_true_random=False))
def test_the_order_of_events_decides_nothing(world: Json, document: Json, order: random.Random) -> None:
    policy = build_policy(document)
    _, first = run(world, policy)
    shuffled = objects(world)
    order.shuffle(shuffled)
    other = Scheduler(policy)
    for resource, obj in shuffled:
        other.apply(resource, "ADDED", obj)
    second = other.cycle(NOW)
    assert sorted(first.binds) == sorted(second.binds)
    assert first.explain == second.explain
    assert first.podgroup_updates == second.podgroup_updates


@st.composite
def spoiled(draw: st.DrawFn) -> Json:
    """A world in which a pod may ask for more than anybody has."""
    world = copy.deepcopy(draw(worlds()))
    if world["pods"] and draw(st.booleans()):
        pod = draw(st.sampled_from(world["pods"]))
        pod["spec"]["containers"] = [{"name": "main", "resources": {"requests": {"cpu": "9223372036854775807"}}}]
    return world


@FEWER
@given(st.lists(spoiled(), min_size=2, max_size=3), st.randoms(use_true_random=False))
def test_a_picture_is_what_its_objects_say_however_it_came_about(stages: list[Json], order: random.Random) -> None:
    """A scheduler that lived through several worlds, with cycles in between, holds the same amounts as one that was
    born into the last."""
    lived = Scheduler(FULL)
    known: dict[tuple[str, str], Any] = {}
    for world in stages:
        here = {(r.plural, o.metadata.uid): (r, o) for r, o in objects(world)}
        events = [("DELETED", *known[k]) for k in known if k not in here]
        events += [("MODIFIED" if k in known else "ADDED", *v) for k, v in here.items()]
        order.shuffle(events)
        for event, resource, obj in events:
            lived.apply(resource, event, obj)
        known = dict(here)
        for bind in lived.cycle(NOW).binds:
            _demand_is_true(lived)
            lived.bind_failed(bind.uid, "refused")
        _demand_is_true(lived)
    born = Scheduler(FULL)
    for resource, obj in known.values():
        born.apply(resource, "ADDED", obj)
    born._state.settle()
    lived._state.settle()
    assert _context(lived) == _context(born)


@FEWER
@given(worlds())
def test_deciding_nothing_changes_nothing(world: Json) -> None:
    """A cycle whose binds all fail leaves every amount as it was: what is undone is undone exactly."""
    scheduler = Scheduler(FULL)
    for resource, obj in objects(world):
        scheduler.apply(resource, "ADDED", obj)
    scheduler._state.settle()
    before = _context(scheduler)
    for bind in scheduler.cycle(NOW).binds:
        scheduler.bind_failed(bind.uid, "refused")
    assert _context(scheduler) == before


@FEWER
@given(worlds())
def test_a_settled_scheduler_says_nothing_new(world: Json) -> None:
    scheduler, _ = run(world, FULL)
    for _ in range(9):
        if scheduler.dirty:
            scheduler.cycle(NOW)
    assert not scheduler.dirty
    again = scheduler.cycle(NOW)
    assert not again.binds
    assert not again.podgroup_updates
    assert not again.pod_conditions
    assert not again.queue_statuses
    assert not again.events


@FEWER
@given(worlds())
def test_a_parked_gang_starts_as_soon_as_it_can(world: Json) -> None:
    """After every change a scheduler that parks what failed binds what one that never saw the past would."""
    scheduler, result = run(world, FULL)
    lost = {b.uid for b in result.binds}
    rest = {**world, "pods": [p for p in world["pods"] if p["metadata"]["uid"] not in lost]}
    for resource, obj in objects(world):
        if resource is PODS and obj.metadata.uid in lost:
            scheduler.apply(resource, "DELETED", obj)
    fresh = Scheduler(FULL)
    for resource, obj in objects(rest):
        fresh.apply(resource, "ADDED", obj)
    for job in scheduler._state.jobs.values():
        if job.group is not None and job.key in fresh._state.jobs:
            fresh._state.set_phase(fresh._state.jobs[job.key], job.phase)
    assert sorted(scheduler.cycle(NOW).binds) == sorted(fresh.cycle(NOW).binds)


def _demand_is_true(scheduler: Scheduler) -> None:
    """What is kept up of the demand of queues is what a new count of all gangs finds."""
    state = scheduler._state
    kept = state.demand.by_queue(state.queue_rows)
    counted = DemandTracker(state.jobs_table).by_queue(state.queue_rows)
    for of in ("allocated", "pending", "inqueue", "elastic"):
        assert getattr(kept, of).tolist() == getattr(counted, of).tolist()


def _context(scheduler: Scheduler) -> Json:
    """All amounts, by names."""
    state = scheduler._state
    names = state.dims.names

    def by_name(vector: np.ndarray) -> dict[str, float]:
        return {names[i]: float(v) for i, v in enumerate(vector) if v}

    return {
        "nodes": {
            info.name: [
                by_name(state.nodes.alloc[:, info.row]),
                by_name(state.nodes.used[:, info.row]),
                by_name(state.nodes.releasing[:, info.row]),
                by_name(state.nodes.pipelined[:, info.row]),
                state.nodes.nonzero[:, info.row].tolist(),
                sorted(info.tasks),
                dict(info.ports),
            ]
            for info in state.nodes.infos
        },
        "jobs": {
            key: [
                by_name(state.jobs_table.allocated[job.row]),
                by_name(state.jobs_table.pending[job.row]),
                by_name(state.jobs_table.minimum[job.row]),
                int(state.jobs_table.allocated_count[job.row]),
                job.counts,
                {role: counts for role, counts in job.roles.items() if any(counts)},
                job.pending_best_effort,
                job.queue.name if job.queue else None,
            ]
            for key, job in state.jobs.items()
        },
    }
