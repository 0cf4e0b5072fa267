"""Gangs that failed wait without being tried until something comes that they lack."""

from __future__ import annotations

from tests.unit.scheduler.cluster import Cluster

GPU = {"cpu": "1", "nvidia.com/gpu": "8"}
WAITING = 20


def _gpu_gangs(cluster: Cluster, count: int, **given: object) -> None:
    containers = [{"name": "main", "resources": {"requests": GPU}}]
    for number in range(count):
        cluster.gang(f"gpu{number:03}", 1, pod={"containers": containers}, **given)


def _full() -> Cluster:
    """A node whose devices one gang holds, a gang that takes cpu only, and many that wait for devices."""
    cluster = Cluster()
    cluster.node("n", **{"nvidia.com_gpu": "8"})
    cluster.gang("light", 1)
    _gpu_gangs(cluster, WAITING + 1)
    cluster.cycle()
    cluster.run("light")
    cluster.run("gpu000")
    for _ in range(3):
        cluster.cycle()
    assert cluster.placed("gpu000")
    assert not cluster.placed("gpu001")
    return cluster


def test_free_gpus_go_to_the_gang_that_is_first() -> None:
    cluster = _full()
    cluster.delete_gang("gpu000")
    assert [b.name for b in cluster.cycle().binds] == ["gpu001-worker-0"]


def test_free_gpus_go_to_the_gang_with_the_highest_priority_however_late_it_came() -> None:
    cluster = _full()
    cluster.priority("high", 10)
    containers = [{"name": "main", "resources": {"requests": GPU}}]
    cluster.gang("urgent", 1, priorityClassName="high", pod={"containers": containers})
    cluster.cycle()
    cluster.delete_gang("gpu000")
    assert [b.name for b in cluster.cycle().binds] == ["urgent-worker-0"]


def test_who_slept_through_a_change_still_wakes_at_the_next() -> None:
    cluster = _full()
    cluster.delete_gang("light")
    cluster.cycle()
    for number in range(1, WAITING):
        cluster.delete_gang(f"gpu{number:03}")
    cluster.cycle()
    cluster.delete_gang("gpu000")
    assert [b.name for b in cluster.cycle().binds] == [f"gpu{WAITING:03}-worker-0"]
