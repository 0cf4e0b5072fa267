"""Conservative backfill keeps its word: who was told when it starts at the latest has started by then."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.reservations.test_backfill import POLICY
from vcbatch.scheduler import parse_policy

GANGS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.sampled_from([60, 300, 900])), min_size=2, max_size=10
)
"""Pods, cpu of each, and the seconds that they run at most."""
CYCLES = timedelta(seconds=5)
"""More than all cycles of a run take together."""


@settings(max_examples=examples(60))
@given(nodes=st.integers(1, 3), gangs=GANGS, arriving=st.integers(0, 4))
def test_nobody_starts_later_than_it_was_told(nodes: int, gangs: list[tuple[int, int, int]], arriving: int) -> None:
    cluster = Cluster(parse_policy(POLICY))
    for node in range(nodes):
        cluster.node(f"n{node}", cpu="8")
    fitting = [gang for gang in gangs if gang[0] * gang[1] <= 8 * nodes and gang[1] <= 8]
    late = fitting[len(fitting) - arriving :] if arriving else []
    ends: dict[str, datetime] = {}
    promised: dict[str, datetime] = {}
    for nth, gang in enumerate(fitting[: len(fitting) - len(late)]):
        _submit(cluster, nth, gang)
    for _ in range(4 * len(fitting) + 4):
        while _start(cluster, fitting, ends, promised):
            pass
        if late:
            _submit(cluster, len(fitting) - len(late), late.pop(0))
            continue
        if not ends:
            break
        first = min(ends, key=lambda name: (ends[name], name))
        cluster.now = max(cluster.now, ends.pop(first))
        for index in range(fitting[int(first[1:])][0]):
            cluster.change(f"{first}-worker-{index}", phase="Succeeded")
    assert not [name for name in cluster.groups if cluster.scheduler.phase("ns", name) != "Completed"]


def _submit(cluster: Cluster, nth: int, gang: tuple[int, int, int]) -> None:
    size, cpu, limit = gang
    cluster.gang(f"g{nth}", size, cpu=str(cpu), pod={"activeDeadlineSeconds": limit})


def _start(
    cluster: Cluster, gangs: list[tuple[int, int, int]], ends: dict[str, datetime], promised: dict[str, datetime]
) -> bool:
    """One cycle; whether anybody started."""
    result = cluster.cycle(after=0.01)
    for explanation in result.explain:
        if explanation.expected_start is not None:
            promised.setdefault(explanation.name, explanation.expected_start)
    started = {bind.name.split("-")[0] for bind in result.binds}
    for name in started:
        assert cluster.now <= promised.get(name, cluster.now) + CYCLES, name
        ends[name] = cluster.now + timedelta(seconds=gangs[int(name[1:])][2])
    return bool(started)
