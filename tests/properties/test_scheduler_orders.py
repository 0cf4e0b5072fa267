"""Queues, gangs and tasks stand in one order each: whoever is asked first, and however often."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.eviction_strategies import policies, worlds
from tests.oracle.worlds import NOW, scheduler
from tests.support.examples import examples
from vcbatch.scheduler import build_policy
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.gang_order import Gangs
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.framework.policy import Extensions
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Job
from vcbatch.scheduler.plugins.priority import Priority
from vcbatch.scheduler.policy.registry import steps
from vcbatch.scheduler.reasons.standing import why_before

Json = dict[str, Any]


@settings(max_examples=examples(60))
@given(worlds(), policies(), st.randoms(use_true_random=False))
def test_every_order_is_total_and_always_the_same(world: Json, document: Json, chance: random.Random) -> None:
    policy = build_policy(document)
    state = scheduler(world, policy)._state
    state.settle()
    session = Session(state, policy, StaticCache(), now=NOW, uid="s")

    def shuffled(items: list[Any]) -> list[Any]:
        return chance.sample(items, len(items))

    queues, jobs = list(state.queues.values()), [job for job in state.jobs.values() if job.group is not None]
    for items, key in ((queues, session.queue_key), (jobs, session.job_key)):
        ordered = sorted(shuffled(items), key=key)
        assert sorted(shuffled(items), key=key) == ordered
        keys = [key(item) for item in ordered]
        assert all(one < other for one, other in pairwise(keys)), "nobody stands beside another"
    for job in jobs:
        tasks = list(job.tasks.values())
        assert session.ordered(shuffled(tasks)) == session.ordered(shuffled(tasks))
    victims = [task for task in state.tasks.values() if task.job is not None and task.job.queue is not None]
    for actor in victims[:3]:
        assert session.victim_order(shuffled(victims), actor) == session.victim_order(shuffled(victims), actor)


@settings(max_examples=examples(60))
@given(worlds(), policies())
def test_what_people_are_told_of_the_order_is_the_order(world: Json, document: Json) -> None:
    policy = build_policy(document)
    reported = scheduler(world, policy).standings(NOW)
    state = scheduler(world, policy)._state
    state.settle()
    session = Session(state, policy, StaticCache(), now=NOW, uid="s")
    waiting = [job for job in state.waiting.values() if job.group is not None and job.queue is not None]
    named = sorted({job.queue.name for job in waiting if job.queue is not None})
    queues = sorted((state.queues[name] for name in named), key=session.queue_key)
    assert [queue.name for queue in reported.queues] == [queue.name for queue in queues]
    for stands, queue in zip(reported.queues, queues, strict=True):
        gangs = sorted((job for job in waiting if job.queue is queue), key=session.job_key)
        assert [gang.uid for gang in stands.gangs] == [job.uid for job in gangs]
    for line in (reported.queues, *(queue.gangs for queue in reported.queues)):
        for first, second in pairwise(line):
            assert why_before(first, second), "there is a reason"
            assert not why_before(second, first)


class HighestLast(Priority):
    """Built on one of ours, of which it overrides how one gang stands."""

    def job_key(self, job: Job) -> float:
        return job.priority


MINE = Extensions(plugins={"mine": HighestLast})


@settings(max_examples=examples(60))
@given(worlds(), policies(), st.booleans())
def test_gangs_from_the_last_are_in_their_order_reversed(world: Json, document: Json, own: bool) -> None:
    """Before anything is decided, and after all of it was."""
    if own:
        document["tiers"][0]["plugins"].insert(0, {"name": "mine"})
    policy = build_policy(document, extensions=MINE)
    state = scheduler(world, policy)._state
    state.settle()
    cycle = Cycle.open(state, policy, StaticCache(), now=NOW, uid="s")
    session = cycle.session
    for step in (None, *steps(policy)):
        if step is not None:
            step[1].execute(cycle)
        jobs = [job for job in state.jobs.values() if job.group is not None]
        assert list(session.from_last(Gangs.of(jobs))) == sorted(jobs, key=session.job_key, reverse=True)
