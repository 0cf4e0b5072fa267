"""Gangs that take places which are known already get those that looking task by task finds."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import DEFAULT_POLICY, CycleResult, Policy, parse_policy
from vcbatch.scheduler.framework.plugin import Leaning, Plugin

Gangs = list[tuple[str, int, int, str, bool]]
"""The pods' cpu, how many of them there are, the minimum below that, the queue, and whether they are particular."""


class Undecided(Plugin):
    """Might give points that move with each task, so that no places are known; gives none."""

    def leaning(self, *_: Any, **__: Any) -> Leaning | None:
        return None


SHORT = parse_policy(DEFAULT_POLICY)
LONG = parse_policy(DEFAULT_POLICY + "  - name: undecided\n", plugins={"undecided": Undecided})

gangs = st.lists(
    st.tuples(
        st.sampled_from(["1", "1", "1", "3"]),
        st.integers(1, 5),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from(["default", "other"]),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=4,
    max_size=24,
)
PREFERS = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "good", "operator": "Exists"}]}}
    ]
}


def placed(policy: Policy, cpus: list[int], gangs: Gangs) -> CycleResult:
    cluster = Cluster(policy)
    cluster.queue("other", capability={"cpu": "20"}, weight=2)
    for i, cpu in enumerate(cpus):
        cluster.node(f"n{i}", cpu=str(cpu), labels={"good": "yes"} if i % 2 else {})
    for i, (cpu, size, fewer, queue, particular) in enumerate(gangs):
        spec: dict[str, Any] = {"affinity": {"nodeAffinity": PREFERS}} if particular else {}
        cluster.gang(f"g{i}", size, minimum=max(size - fewer, 1), cpu=cpu, queue=queue, pod=spec)
    return cluster.cycle()


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(1, 16), min_size=1, max_size=8), gangs)
def test_known_places_are_those_found_task_by_task(cpus: list[int], gangs: Gangs) -> None:
    short, long = placed(SHORT, cpus, gangs), placed(LONG, cpus, gangs)
    assert short.binds == long.binds
    assert short.explain == long.explain
    assert short.events == long.events
    assert short.podgroup_updates == long.podgroup_updates
