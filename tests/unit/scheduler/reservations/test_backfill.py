"""Conservative backfill: room is kept for the head of a queue, and nobody puts its start off."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import CycleResult, parse_policy
from vcbatch.scheduler.model.result import Explanation, WaitReason

POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
configurations:
- name: allocate
  arguments:
    conservativeBackfill: true
"""


def _cluster(**queue: str) -> Cluster:
    """One node of 8 cpu, of which a gang that ends within ten minutes holds 4."""
    cluster = Cluster(parse_policy(POLICY))
    if queue:
        cluster.queue("default", event="MODIFIED", **queue)
    cluster.node("n1", cpu="8")
    cluster.gang("running", 2, cpu="2", pod={"activeDeadlineSeconds": 600})
    assert _bound(cluster.cycle()) == {"running"}
    return cluster


def _bound(result: CycleResult) -> set[str]:
    return {bind.name.split("-")[0] for bind in result.binds}


def _why(cluster: Cluster, gang: str) -> Explanation:
    explanation = cluster.scheduler.explain("ns", gang)
    assert explanation is not None
    return explanation


def test_the_first_gang_that_does_not_fit_is_told_when_it_will_start() -> None:
    cluster = _cluster()
    before = cluster.now
    cluster.gang("head", 2, cpu="3")
    assert _bound(cluster.cycle()) == set()
    found = _why(cluster, "head")
    assert found.expected_start is not None
    assert before + timedelta(seconds=600) <= found.expected_start <= cluster.now + timedelta(seconds=600)
    assert found.reason is WaitReason.INSUFFICIENT
    assert "expected to start by 2026-06-01T00:10" in found.message


def test_a_gang_that_ends_in_time_starts_and_one_that_would_put_the_head_off_waits() -> None:
    cluster = _cluster()
    cluster.gang("head", 2, cpu="3")
    cluster.gang("long", 1, cpu="3")
    cluster.gang("short", 1, cpu="3", pod={"activeDeadlineSeconds": 300})
    assert _bound(cluster.cycle()) == {"short"}
    assert "room is kept for ns/head" in _why(cluster, "long").message


def test_what_the_head_does_not_need_is_for_everybody() -> None:
    cluster = _cluster()
    cluster.gang("head", 2, cpu="3")
    cluster.gang("beside", 1, cpu="2")
    assert _bound(cluster.cycle()) == {"beside"}


def test_without_declared_limits_nothing_is_kept() -> None:
    cluster = Cluster(parse_policy(POLICY))
    cluster.node("n1", cpu="8")
    cluster.gang("running", 2, cpu="2")
    cluster.cycle()
    cluster.gang("head", 2, cpu="3")
    cluster.gang("long", 1, cpu="3")
    assert _bound(cluster.cycle()) == {"long"}
    assert _why(cluster, "head").expected_start is None


def test_a_strict_queue_lets_through_only_what_ends_in_time() -> None:
    cluster = _cluster(dequeueStrategy="fifo")
    cluster.gang("head", 2, cpu="3")
    cluster.gang("beside", 1, cpu="2")
    cluster.gang("short", 1, cpu="2", pod={"activeDeadlineSeconds": 300})
    assert _bound(cluster.cycle()) == {"short"}
    assert _why(cluster, "beside").reason is WaitReason.RESERVED


def test_the_room_stays_kept_while_nothing_changes() -> None:
    cluster = _cluster()
    cluster.gang("head", 2, cpu="3")
    cluster.cycle()
    for nth in range(3):
        cluster.gang(f"late{nth}", 1, cpu="3")
        assert _bound(cluster.cycle()) == set()


def test_the_head_starts_when_the_others_have_ended() -> None:
    cluster = _cluster()
    cluster.gang("head", 2, cpu="3")
    cluster.gang("long", 1, cpu="3")
    cluster.cycle()
    for index in range(2):
        cluster.change(f"running-worker-{index}", phase="Succeeded")
    assert _bound(cluster.cycle()) == {"head"}
    assert cluster.scheduler.explain("ns", "head") is None


def test_off_by_default() -> None:
    cluster = Cluster(parse_policy(POLICY.replace("true", "false")))
    cluster.node("n1", cpu="8")
    cluster.gang("running", 2, cpu="2", pod={"activeDeadlineSeconds": 600})
    cluster.cycle()
    cluster.gang("head", 2, cpu="3")
    cluster.gang("long", 1, cpu="3")
    assert _bound(cluster.cycle()) == {"long"}
