"""Amounts that nobody can have, which people may ask for all the same: they wait, and nobody else notices."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import WaitReason, parse_policy
from vcbatch.scheduler.model.resources import CPU

POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
"""
HUGE = ["9223372036854775807", "1e30", "16777216Ei"]


def cluster() -> Cluster:
    found = Cluster(parse_policy(POLICY))
    found.node("n0", cpu="4")
    return found


@pytest.mark.parametrize("cpu", HUGE)
def test_what_else_is_on_a_node_counts_after_an_absurd_pod_is_gone(cpu: str) -> None:
    """A pod that somebody gave a node without asking a scheduler."""
    found = cluster()
    found.gang("absurd", 0, minimum=1)
    found.pod("absurd", 0, cpu=cpu, nodeName="n0")
    found.gang("runs", 0, minimum=1)
    found.pod("runs", 0, cpu="3", nodeName="n0")
    found.run("runs")
    found.cycle()
    found.delete_gang("absurd")
    found.gang("more", 1, cpu="2")
    assert not found.cycle().binds
    assert found.scheduler._state.nodes.used[CPU].tolist() == [3000.0]


@pytest.mark.parametrize("cpu", HUGE)
def test_what_else_a_gang_asks_for_counts_after_an_absurd_pod_is_gone(cpu: str) -> None:
    found = cluster()
    found.gang("waits", 5)
    found.pod("waits", 5, cpu=cpu)
    found.gang("absurd", 1, cpu=cpu, minResources={"cpu": cpu})
    found.cycle()
    explanation = found.scheduler.explain("ns", "absurd")
    assert explanation is not None
    assert explanation.reason is WaitReason.IMPOSSIBLE
    found.delete("waits-worker-5")
    found.delete_gang("absurd")
    found.cycle()
    state = found.scheduler._state
    demand = state.demand.by_queue(state.queue_rows)
    assert demand.pending[state.queues["default"].row][CPU] == 5000.0


def test_a_request_below_zero_gives_nobody_room() -> None:
    found = cluster()
    found.gang("less", 0, minimum=1)
    found.pod("less", 0, cpu="-2", nodeName="n0")
    found.gang("runs", 4)
    found.gang("more", 1)
    assert {bind.name for bind in found.cycle().binds} == {f"runs-worker-{i}" for i in range(4)}
    assert found.scheduler._state.nodes.used[CPU].tolist() == [4000.0]
