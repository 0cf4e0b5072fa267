"""Queues by quota: which may take from others, and what these may lose."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.plugins.test_capacity import cluster, cpus, opened_with, policy
from tests.unit.scheduler.scoring import requests, task_of
from vcbatch.scheduler.framework.plugin import EvictionKind, GangEviction


@pytest.mark.parametrize("levels", [None, 0, 1, 2])
@pytest.mark.parametrize(
    ("deserving", "least"), [("leaf", 0), ("near", 1), ("far", 2), ("beside", None), ("nobody", None)]
)
def test_a_claim_is_a_queue_s_own_or_that_of_so_many_queues_above(
    deserving: str, least: int | None, levels: int | None
) -> None:
    """`preemptive` looks at the ancestors 1..L, the root excluded, which deserves what `beside` does; L is 0 by
    default."""
    given = policy(hierarchy=True) if levels is None else policy(hierarchy=True, ancestorReclaimLevel=levels)
    made = cluster()
    for name, parent in (("far", ""), ("near", "far"), ("leaf", "near"), ("beside", ""), ("alone", "")):
        made.queue(name, parent=parent, deserved=cpus(4) if name == deserving else None)
    opened, plugin = opened_with(made, given)
    found = plugin.preemptive(opened.state.queues["leaf"], opened.dims.vector(cpus(1)))
    assert found == (least is not None and (levels or 0) >= least)
    assert not plugin.preemptive(opened.state.queues["alone"], opened.dims.vector(cpus(1)))


def test_a_claim_is_not_lessened_by_what_a_queue_above_holds() -> None:
    """`preemptive` compares the queue's own real capability alone, as it is from relatives that it may take."""
    given = policy(hierarchy=True)
    made = cluster()
    made.queue("eng", capability=cpus(4))
    made.queue("a", parent="eng", deserved=cpus(2), capability=cpus(3))
    made.queue("b", parent="eng")
    made.gang("old", 4, queue="b", phase="Running", pod={"nodeName": "n"})
    made.run("old")
    opened, plugin = opened_with(made, given)
    queue = opened.state.queues["a"]
    assert plugin.room(queue, opened.dims.vector(cpus(1))) == 0
    assert [plugin.preemptive(queue, opened.dims.vector(cpus(n))) for n in (2, 3)] == [True, False]


def test_of_several_resources_one_that_is_deserved_is_claim_enough() -> None:
    """`preemptive` wants *some* requested dimension below deserved, and all within the real capability."""
    given = policy(hierarchy=False)
    made = cluster(hierarchy=False)
    made.queue("a", deserved=cpus(1), capability={"cpu": "9", "memory": "3Gi"})
    opened, plugin = opened_with(made, given)
    queue = opened.state.queues["a"]
    wanted = ({"cpu": "1", "memory": "3Gi"}, {"cpu": "1", "memory": "4Gi"}, {"cpu": "2", "memory": "1Gi"})
    assert [plugin.preemptive(queue, opened.dims.vector(w)) for w in wanted] == [True, False, False]


def test_within_a_queue_its_quota_protects_nobody_from_a_whole_gang() -> None:
    """`evictable` permits all in preempt; in reclaim the guarantee and what is deserved stay."""
    given = policy(hierarchy=False)
    made = cluster(hierarchy=False)
    made.queue("a", guarantee={"resource": cpus(1)}, deserved=cpus(2))
    made.gang("old", 3, queue="a", phase="Running", pod={"nodeName": "n"})
    made.gang("new", 3)
    opened, plugin = opened_with(made, given)
    job, tasks = opened.state.jobs["ns/new"], [task_of(opened, f"old-worker-{i}") for i in range(3)]
    need = opened.dims.vector(cpus(3))
    assert plugin.evictable(GangEviction(EvictionKind.PREEMPT, job, need), tasks) == tasks
    assert plugin.evictable(GangEviction(EvictionKind.RECLAIM, job, need), tasks) == tasks[:1]


@pytest.mark.parametrize(
    ("levels", "deserved", "goes"), [(0, None, True), (1, None, False), (1, 4, True), (1, "memory", False)]
)
def test_what_is_lent_stays_among_relatives_that_deserve_none_of_it(levels: int, deserved: object, goes: bool) -> None:
    """`reclaimable`: a pod of which its queue deserves nothing goes, unless both queues have a common ancestor
    within L levels, and who takes it deserves nothing of what it asks for either."""
    given = policy(hierarchy=True, ancestorReclaimLevel=levels)
    made = cluster()
    made.queue("eng")
    made.queue("taker", parent="eng", deserved=cpus(deserved) if isinstance(deserved, int) else None)
    if deserved == "memory":
        made.queue("taker", event="MODIFIED", parent="eng", deserved={"memory": "8Gi"})
    made.queue("lent", parent="eng")
    made.gang("old", 1, queue="lent", phase="Running", pod={"nodeName": "n"})
    made.gang("new", 1, queue="taker")
    requests(made, "new-worker-0", None, cpu="1")
    opened, plugin = opened_with(made, given)
    old = task_of(opened, "old-worker-0")
    assert plugin.reclaimable(task_of(opened, "new-worker-0"), [old]) == ([old] if goes else [])


@pytest.mark.parametrize(
    ("taker", "levels", "above", "gone"),
    [
        ("x", 0, 9, 2),
        # What y deserves is held against y's pods as well, each on the books without those before it.
        ("x", 1, 3, 0),
        ("x", 1, 2, 1),
        ("x", 1, 1, 2),
        # It deserves nothing of it.
        ("x", 1, None, 2),
        # It is above both, and nothing leaves it.
        ("y", 1, 9, 2),
        # The root isn't looked at, whatever is deserved below it.
        ("", 1, 9, 2),
    ],
)
def test_queues_above_the_victims_have_to_hold_too_much_as_well(
    taker: str, levels: int, above: int | None, gone: int
) -> None:
    """`reclaimable`: queue c holds 3 and deserves 1; so many levels above it count, but for those that are the
    taker's at the same level, and the root."""
    given = policy(hierarchy=True, ancestorReclaimLevel=levels)
    made = cluster()
    made.queue("x", deserved=cpus(50))
    made.queue("y", deserved=None if above is None else cpus(above))
    made.queue("a", parent=taker or "x", deserved=cpus(9))
    made.queue("c", parent="y" if taker else "", deserved=cpus(1))
    made.gang("old", 3, queue="c", phase="Running", pod={"nodeName": "n"})
    made.gang("new", 1, queue="a")
    opened, plugin = opened_with(made, given)
    old = [task_of(opened, f"old-worker-{i}") for i in range(3)]
    assert plugin.reclaimable(task_of(opened, "new-worker-0"), old) == old[:gone]


@pytest.mark.parametrize(
    ("deserved", "gone"),
    [
        ({"cpu": "1", "memory": "9Gi"}, 2),
        ({"cpu": "3", "memory": "9Gi"}, 0),
        # Cpu of which nothing is deserved isn't compared, but devices of which none is deserved are.
        ({"cpu": "0", "memory": "9Gi"}, 0),
        ({"cpu": "9", "x/gpu": "0"}, 3),
        ({"cpu": "9", "x/gpu": "1"}, 2),
        # Pods make what is deserved something in common, and aren't compared.
        ({"pods": "1"}, 0),
        ({"x/other": "1"}, 3),
        ({}, 3),
    ],
)
def test_what_goes_is_lent_or_more_than_is_deserved_of_something(deserved: dict[str, str], gone: int) -> None:
    """`reclaimable`: of three pods of a cpu, 1Gi and a device each."""
    given = policy(hierarchy=False)
    made = cluster(hierarchy=False)
    made.node("gpus", x_gpu="8", x_other="8", cpu="8")
    made.queue("a", deserved=deserved)
    made.gang("old", 3, queue="a", pod={"nodeName": "gpus"}, phase="Running")
    for index in range(3):
        requests(made, f"old-worker-{index}", None, cpu="1", memory="1Gi", x_gpu="1")
    made.run("old")
    made.gang("new", 1)
    opened, plugin = opened_with(made, given)
    old = [task_of(opened, f"old-worker-{i}") for i in range(3)]
    assert plugin.reclaimable(task_of(opened, "new-worker-0"), old) == old[:gone]
    gang = GangEviction(EvictionKind.RECLAIM, opened.state.jobs["ns/new"], opened.dims.vector(cpus(1)))
    assert plugin.evictable(gang, old) == old[:gone]


def test_a_guarantee_is_kept_whatever_is_held_beyond_it() -> None:
    """`reclaimable`, `evictable`: without the pod of 3 cpus nothing of the 2 would be left, without another one 3."""
    given = policy(hierarchy=False)
    made = cluster(hierarchy=False)
    made.queue("a", guarantee={"resource": cpus(2)})
    made.gang("big", 1, cpu="3", queue="a", phase="Running", pod={"nodeName": "n"})
    made.gang("new", 1)
    for small in ([], ["small-worker-0"]):
        if small:
            made.gang("small", 1, cpu="2", queue="a", phase="Running", pod={"nodeName": "n"})
        opened, plugin = opened_with(made, given)
        old = [task_of(opened, name) for name in ["big-worker-0", *small]]
        gang = GangEviction(EvictionKind.RECLAIM, opened.state.jobs["ns/new"], opened.dims.vector(cpus(1)))
        want = old[:1] if small else []
        assert plugin.reclaimable(task_of(opened, "new-worker-0"), old) == want
        assert plugin.evictable(gang, old) == want


@pytest.mark.parametrize(
    ("hierarchy", "order"), [(True, ["beside", "cousin", "other"]), (False, ["other", "cousin", "beside"])]
)
def test_the_closest_relatives_of_who_takes_lose_first(hierarchy: bool, order: list[str]) -> None:
    """`victim_queue_key` by the depth of the common ancestor, and without a hierarchy the last in queue order first,
    here the youngest."""
    given = policy(hierarchy=hierarchy)
    made = Cluster(given)
    made.queue("eng")
    made.queue("ml", parent="eng")
    for name, parent in (("taker", "ml"), ("beside", "ml"), ("cousin", "eng"), ("other", "")):
        made.queue(name, parent=parent)
    opened, _ = opened_with(made, given)
    queues = opened.state.queues
    found = opened.victim_queues([queues[name] for name in ("other", "beside", "cousin")], queues["taker"])
    assert [queue.name for queue in found] == order
