"""With `minimizeVictims` no gang is broken that needn't be: counted anew, choice by choice."""

from __future__ import annotations

from itertools import combinations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.test_eviction_cycles import Gang, Play, World, settle
from tests.support.examples import examples
from vcbatch.scheduler import parse_policy
from vcbatch.scheduler.model.objects import Job

SETTINGS = settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
POLICY = """
actions: "allocate, {action}"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: predicates
  - name: nodeorder
configurations:
- name: {action}
  arguments: {{minimizeVictims: true{more}}}
"""
DRY = ", enableTopologyAwarePreemption: true"


def gangs(most: int, *priorities: str) -> st.SearchStrategy[list[Gang]]:
    one = st.builds(
        lambda size, cpu, priority: Gang(size, size, cpu, priority, "default", kept=False),
        st.integers(1, 3),
        st.integers(1, 2),
        st.sampled_from(priorities),
    )
    return st.lists(one, min_size=1, max_size=most)


worlds = st.builds(World, st.lists(st.integers(2, 5), min_size=1, max_size=3), gangs(5, "low", "mid"), gangs(1, "high"))


@SETTINGS
@given(worlds, st.sampled_from([("preempt", ""), ("preempt", DRY), ("gangpreempt", "")]))
def test_no_choice_of_fewer_gangs_would_have_done(world: World, how: tuple[str, str]) -> None:
    action, more = how
    play = Play(world, parse_policy(POLICY.format(action=action, more=more)))
    waits: Job = play.state.jobs["ns/new0"]
    known: list[Job] = [job for job in play.state.jobs.values() if job is not waits]
    on = {job.key: [(t.node, int(t.cls.request[0])) for t in job.tasks.values() if t.node] for job in known}
    alloc = {info.name: int(play.state.nodes.alloc[0, info.row]) for info in play.state.nodes.infos}
    size = int(next(iter(waits.tasks.values())).cls.request[0])
    result = play.cycle()
    lost = {eviction.uid for eviction in result.evictions}
    broken = [job for job in known if any(t.uid in lost for t in job.tasks.values())]
    if not broken:
        return
    top = max(job.priority for job in broken)

    def places(gone: tuple[Job, ...]) -> int:
        free = dict(alloc)
        for job in known:
            for node, cpu in () if job in gone else on[job.key]:
                free[node] -= cpu
        return sum(left // size for left in free.values())

    may_go = [job for job in known if job.priority <= top and on[job.key]]
    for fewer in range(len(broken)):
        assert all(places(gone) < waits.min_member for gone in combinations(may_go, fewer))
    if action == "gangpreempt":
        enough = [gone for gone in combinations(may_go, len(broken)) if places(gone) >= waits.min_member]
        assert len(lost) == min(sum(len(on[job.key]) for job in gone) for gone in enough)
    settle(play)
