"""A Closing queue: what it took before is placed, what it didn't take waits until the queue is opened."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.names import ATTEMPT
from vcbatch.scheduler import parse_policy

_POLICY = """
actions: "{actions}"
tiers:
- plugins:
  - name: gang
  - name: {quota}
"""
PROPORTION = _POLICY.format(actions="enqueue, allocate", quota="proportion")
CAPACITY = _POLICY.format(actions="enqueue, allocate", quota="capacity")
WITHOUT_ADMISSION = _POLICY.format(actions="allocate", quota="proportion")
UNLIMITED = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
"""


def _cluster(policy: str, *, state: str, fifo: bool = False) -> Cluster:
    cluster = Cluster(parse_policy(policy))
    cluster.node("n", cpu="8")
    cluster.queue("q", state=state, dequeueStrategy="fifo" if fifo else "traverse")
    return cluster


@pytest.mark.parametrize("fifo", [False, True], ids=["", "first in first out"])
@pytest.mark.parametrize("policy", [PROPORTION, CAPACITY, WITHOUT_ADMISSION, UNLIMITED])
def test_the_next_attempt_of_a_job_is_placed_and_a_new_gang_waits(policy: str, fifo: bool) -> None:
    cluster = _cluster(policy, state="Closing", fifo=fifo)
    cluster.gang("new", 2, phase="Pending", queue="q", minResources={"cpu": "2"})
    cluster.gang("again", 2, phase="Pending", queue="q", minResources={"cpu": "2"}, annotations={ATTEMPT: "1"})
    cluster.cycle()
    cluster.cycle()
    assert len(cluster.placed("again")) == 2
    assert cluster.placed("new") == {}
    reported = cluster.condition("new", "Unschedulable")
    assert reported is not None
    assert "queue q is Closing" in reported["message"]
    cluster.queue("q", state="Open", event="MODIFIED")
    cluster.cycle()
    cluster.cycle()
    assert len(cluster.placed("new")) == 2


@pytest.mark.parametrize("policy", [PROPORTION, CAPACITY, UNLIMITED])
def test_a_pod_that_replaces_one_of_a_running_gang_is_placed(policy: str) -> None:
    cluster = _cluster(policy, state="Closing")
    cluster.gang("runs", 2, phase="Running", queue="q", minimum=1)
    cluster.change("runs-worker-0", node="n", phase="Running")
    cluster.cycle()
    assert cluster.placed("runs").keys() == {"runs-worker-0", "runs-worker-1"}


@pytest.mark.parametrize("policy", [PROPORTION, CAPACITY])
def test_a_closed_queue_takes_nothing(policy: str) -> None:
    cluster = _cluster(policy, state="Closed")
    cluster.gang("again", 2, phase="Pending", queue="q", minResources={"cpu": "2"}, annotations={ATTEMPT: "1"})
    cluster.gang("admitted", 2, phase="Inqueue", queue="q")
    cluster.cycle()
    cluster.cycle()
    assert cluster.placed("again") == cluster.placed("admitted") == {}
