"""Queues by quota: what a queue may hold, who is served first, and what a wrong place in the tree costs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, requests, session, task_of
from vcbatch.scheduler import Policy, PolicyError, WaitReason
from vcbatch.scheduler.plugins.base import EvictionKind, GangEviction, Vote
from vcbatch.scheduler.plugins.capacity import Capacity
from vcbatch.scheduler.result import Shortage
from vcbatch.scheduler.session import Session

Json = dict[str, Any]


def policy(*, hierarchy: bool, actions: str = "enqueue, allocate", **arguments: object) -> Policy:
    capacity = {"name": "capacity", "enableHierarchy": hierarchy, "arguments": arguments}
    return Policy.build(
        {"actions": actions, "tiers": [{"plugins": [{"name": "gang"}, capacity, {"name": "predicates"}]}]}
    )


def cluster(*, cpu: int = 100, hierarchy: bool = True) -> Cluster:
    made = Cluster(policy(hierarchy=hierarchy))
    made.node("n", cpu=str(cpu), memory="1Ti", pods="500")
    return made


def placed(made: Cluster, *gangs: str) -> dict[str, int]:
    made.cycle()
    return {gang: len(made.placed(gang)) for gang in gangs}


def cpus(amount: int) -> Json:
    return {"cpu": str(amount)}


def test_a_queue_holds_no_more_than_its_capability_and_those_above_it() -> None:
    made = cluster()
    made.queue("eng", capability=cpus(6))
    made.queue("a", parent="eng", capability=cpus(4))
    made.queue("b", parent="eng")
    made.gang("one", 9, minimum=1, queue="a")
    made.gang("two", 9, minimum=1, queue="b")
    assert placed(made, "one", "two") == {"one": 4, "two": 2}
    made.delete_gang("one")
    assert placed(made, "two") == {"two": 6}


def test_guarantees_of_the_others_are_left_to_them() -> None:
    made = cluster(cpu=10, hierarchy=False)
    made.queue("a")
    made.queue("b", guarantee={"resource": cpus(3)})
    made.gang("one", 20, minimum=1, queue="a")
    assert placed(made, "one") == {"one": 7}
    made.gang("two", 20, minimum=1, queue="b")
    assert placed(made, "two") == {"two": 3}


def test_what_guarantees_leave_grows_with_the_cluster() -> None:
    made = cluster(cpu=4, hierarchy=False)
    made.queue("a")
    made.queue("b", guarantee={"resource": cpus(3)})
    made.gang("one", 20, minimum=1, queue="a")
    assert placed(made, "one") == {"one": 1}
    made.node("m", cpu="4")
    assert placed(made, "one") == {"one": 5}


def test_the_queue_that_holds_less_of_what_it_deserves_goes_first() -> None:
    made = cluster(cpu=6, hierarchy=False)
    made.queue("a", deserved=cpus(4))
    made.queue("b", deserved=cpus(2))
    made.queue("c")
    for queue in ("c", "a", "b"):
        made.gang(queue, 9, minimum=1, queue=queue)
    assert placed(made, "a", "b", "c") == {"a": 4, "b": 2, "c": 0}


def test_priority_goes_before_shares() -> None:
    made = cluster(cpu=3, hierarchy=False)
    made.queue("a", deserved=cpus(9))
    made.queue("b", priority=5)
    for queue in ("a", "b"):
        made.gang(queue, 9, minimum=1, queue=queue)
    assert placed(made, "a", "b") == {"a": 0, "b": 3}


def test_shares_of_queues_above_count_as_they_grow() -> None:
    """a and b have the same share when the cycle begins; each task that a1 gets makes a2 wait for b as well."""
    made = cluster(cpu=6)
    made.queue("a", deserved=cpus(6))
    made.queue("b", deserved=cpus(6))
    for queue, parent in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        made.queue(queue, parent=parent, deserved=cpus(3))
        made.gang(queue, 9, minimum=1, queue=queue)
    found = placed(made, "a1", "a2", "b1")
    assert found["a1"] + found["a2"] == found["b1"] == 3


@pytest.mark.parametrize("actions", ["enqueue, allocate", "allocate"])
@pytest.mark.parametrize(
    ("parent", "sentence"),
    [
        ("nowhere", "queue bad has the parent nowhere, which doesn't exist; create it or change spec.parent"),
        ("worse", "queue bad is above itself (bad below worse below bad); change spec.parent of one of them"),
        ("", "queue bad takes no gangs, as it has queues below it (worse); use one of those"),
    ],
)
def test_a_wrong_place_costs_the_queue_its_gangs_and_nobody_else(actions: str, parent: str, sentence: str) -> None:
    made = Cluster(policy(hierarchy=True, actions=actions))
    made.node("n")
    made.queue("bad", parent=parent)
    made.queue("worse", parent="bad")
    made.gang("poor", 1, queue="bad", phase="Pending")
    made.gang("fine", 1, queue="default", phase="Pending")
    assert placed(made, "poor", "fine") == {"poor": 0, "fine": 1}
    told = made.scheduler.explain("ns", "poor")
    assert told is not None
    assert told.reason is WaitReason.QUEUE_INVALID
    assert sentence in told.message
    assert made.scheduler.phase("ns", "poor") == "Pending"
    made.queue("bad", event="MODIFIED")
    made.queue("worse", event="MODIFIED")
    assert placed(made, "poor") == {"poor": 1}


def test_a_gang_that_asks_for_more_than_the_queue_above_may_hold_never_starts() -> None:
    made = cluster()
    made.queue("eng", capability=cpus(6))
    made.queue("a", parent="eng")
    made.gang("big", 8, queue="a")
    made.cycle()
    told = made.scheduler.explain("ns", "big")
    assert told is not None
    assert told.reason is WaitReason.IMPOSSIBLE
    assert "the gang needs cpu 8 with 0 held of 6 allowed (queue eng): short by cpu 2" in told.message
    assert list(told.shortages) == [Shortage("cpu", "8", "6", "2")]


def test_a_gang_waits_for_what_others_of_the_queue_above_hold() -> None:
    made = cluster()
    made.queue("eng", capability=cpus(6))
    made.queue("a", parent="eng")
    made.queue("b", parent="eng")
    made.gang("first", 4, queue="b")
    made.cycle()
    made.gang("second", 3, queue="a")
    made.cycle()
    told = made.scheduler.explain("ns", "second")
    assert told is not None
    assert told.reason is WaitReason.QUEUE_LIMIT
    assert "the gang needs cpu 3 with 4 held of 6 allowed (queue eng): short by cpu 1" in told.message
    made.delete_gang("first")
    assert placed(made, "second") == {"second": 3}


def test_admission_counts_what_is_admitted_in_every_queue_above() -> None:
    made = cluster()
    made.queue("eng", capability=cpus(6))
    made.queue("a", parent="eng")
    made.queue("b", parent="eng")
    for name, queue, cpu in (("one", "a", 4), ("two", "b", 3), ("three", "b", 2), ("huge", "b", 7)):
        made.gang(name, 0, minimum=1, queue=queue, phase="Pending", minResources=cpus(cpu))
    made.cycle()
    phases = {name: made.scheduler.phase("ns", name) for name in ("one", "two", "three", "huge")}
    assert phases == {"one": "Inqueue", "two": "Pending", "three": "Inqueue", "huge": "Pending"}
    told = {name: made.scheduler.explain("ns", name) for name in ("two", "huge")}
    assert told["two"] is not None
    assert told["two"].reason is WaitReason.QUEUE_LIMIT
    assert told["huge"] is not None
    assert told["huge"].reason is WaitReason.IMPOSSIBLE
    assert "insufficient cpu (cpu: 7 asked, 2 left of 6 in queue eng)" in told["huge"].message


def test_a_minimum_as_large_as_the_quota_waits_for_what_is_held_and_is_not_impossible() -> None:
    made = cluster()
    made.queue("a", capability=cpus(4))
    made.gang("first", 1, queue="a", minResources=cpus(1))
    made.gang("all", 0, minimum=1, queue="a", phase="Pending", minResources=cpus(4))
    made.cycle()
    told = made.scheduler.explain("ns", "all")
    assert told is not None
    assert told.reason is WaitReason.QUEUE_LIMIT
    made.delete_gang("first")
    made.cycle()
    assert made.scheduler.phase("ns", "all") == "Inqueue"


def _opened(made: Cluster, given: Policy) -> tuple[Session, Capacity]:
    opened = session(made, given)
    return opened, plugin_of(opened, Capacity)


def test_a_queue_that_is_closed_or_has_no_place_has_no_room_and_no_claim() -> None:
    """scheduler.md 3.7: AL, PV and EQ want an open queue that is a leaf and has a place in the tree."""
    given = policy(hierarchy=True)
    made = cluster()
    made.queue("open", deserved=cpus(4))
    made.queue("closed", state="Closed", deserved=cpus(4))
    made.queue("lost", parent="nowhere", deserved=cpus(4))
    made.queue("inner", deserved=cpus(4))
    made.queue("leaf", parent="inner")
    for queue in ("open", "closed", "lost", "inner"):
        made.gang(queue, 1, queue=queue, phase="Pending")
        made.gang(f"{queue}-kept", 1, queue=queue)
    opened, plugin = _opened(made, given)
    one = opened.dims.vector(cpus(1))
    for name in ("open", "closed", "lost", "inner"):
        queue, job = opened.state.queues[name], opened.state.jobs[f"ns/{name}"]
        kept = opened.state.jobs[f"ns/{name}-kept"]
        plugin.reserve(kept, task_of(opened, f"{name}-kept-worker-0").cls, 1)
        well = name == "open"
        assert (plugin.room(queue, one) > 0) == well
        assert (plugin.room_of(kept, one) > 0) == well
        assert plugin.preemptive(queue, one) == well
        assert (plugin.enqueueable(job).vote is Vote.PERMIT) == well


@pytest.mark.parametrize("levels", [None, 0, 1, 2])
@pytest.mark.parametrize(
    ("deserving", "least"), [("leaf", 0), ("near", 1), ("far", 2), ("beside", None), ("nobody", None)]
)
def test_a_claim_is_a_queue_s_own_or_that_of_so_many_queues_above(
    deserving: str, least: int | None, levels: int | None
) -> None:
    """scheduler.md 3.7: PV looks at the ancestors 1..L, the root excluded, which deserves what `beside` does; L is 0 by
    default."""
    given = policy(hierarchy=True) if levels is None else policy(hierarchy=True, ancestorReclaimLevel=levels)
    made = cluster()
    for name, parent in (("far", ""), ("near", "far"), ("leaf", "near"), ("beside", ""), ("alone", "")):
        made.queue(name, parent=parent, deserved=cpus(4) if name == deserving else None)
    opened, plugin = _opened(made, given)
    found = plugin.preemptive(opened.state.queues["leaf"], opened.dims.vector(cpus(1)))
    assert found == (least is not None and (levels or 0) >= least)
    assert not plugin.preemptive(opened.state.queues["alone"], opened.dims.vector(cpus(1)))


def test_a_claim_is_not_lessened_by_what_a_queue_above_holds() -> None:
    """scheduler.md 3.7: PV compares the queue's own real capability alone, as it is from relatives that it may take."""
    given = policy(hierarchy=True)
    made = cluster()
    made.queue("eng", capability=cpus(4))
    made.queue("a", parent="eng", deserved=cpus(2), capability=cpus(3))
    made.queue("b", parent="eng")
    made.gang("old", 4, queue="b", phase="Running", pod={"nodeName": "n"})
    made.run("old")
    opened, plugin = _opened(made, given)
    queue = opened.state.queues["a"]
    assert plugin.room(queue, opened.dims.vector(cpus(1))) == 0
    assert [plugin.preemptive(queue, opened.dims.vector(cpus(n))) for n in (2, 3)] == [True, False]


def test_of_several_resources_one_that_is_deserved_is_claim_enough() -> None:
    """scheduler.md 3.7: PV wants *some* requested dimension below deserved, and all within the real capability."""
    given = policy(hierarchy=False)
    made = cluster(hierarchy=False)
    made.queue("a", deserved=cpus(1), capability={"cpu": "9", "memory": "3Gi"})
    opened, plugin = _opened(made, given)
    queue = opened.state.queues["a"]
    wanted = ({"cpu": "1", "memory": "3Gi"}, {"cpu": "1", "memory": "4Gi"}, {"cpu": "2", "memory": "1Gi"})
    assert [plugin.preemptive(queue, opened.dims.vector(w)) for w in wanted] == [True, False, False]


def test_leaves_go_before_queues_with_others_below_them() -> None:
    """scheduler.md 3.7: QO with a hierarchy, priority first; shares don't count between the two kinds."""
    given = policy(hierarchy=True)
    made = cluster()
    made.queue("inner", deserved=cpus(4))
    made.queue("below", parent="inner", deserved=cpus(4))
    made.queue("first", priority=3)
    made.queue("under", parent="first")
    made.queue("leaf")
    opened, _ = _opened(made, given)
    queues = [opened.state.queues[name] for name in ("inner", "leaf", "first", "below")]
    assert [queue.name for queue in sorted(queues, key=opened.queue_key)] == ["first", "below", "leaf", "inner"]


@pytest.mark.parametrize("hierarchy", [True, False])
def test_of_equal_shares_the_queue_that_deserves_something_goes_first(hierarchy: bool) -> None:
    """scheduler.md 3.7: a queue that deserves nothing has a share of 1, like one that holds all it deserves."""
    given = policy(hierarchy=hierarchy)
    made = cluster(hierarchy=hierarchy)
    for name, deserved in (("a", None), ("b", cpus(2)), ("c", cpus(3))):
        made.queue(name, deserved=deserved)
        made.gang(name, 2, queue=name, phase="Running", pod={"nodeName": "n"})
    opened, _ = _opened(made, given)
    queues = [opened.state.queues[name] for name in ("a", "b", "c")]
    assert [queue.name for queue in sorted(queues, key=opened.queue_key)] == ["c", "b", "a"]


def test_within_a_queue_its_quota_protects_nobody_from_a_whole_gang() -> None:
    """scheduler.md 3.7: UE permits all in preempt; in reclaim the guarantee and what is deserved stay."""
    given = policy(hierarchy=False)
    made = cluster(hierarchy=False)
    made.queue("a", guarantee={"resource": cpus(1)}, deserved=cpus(2))
    made.gang("old", 3, queue="a", phase="Running", pod={"nodeName": "n"})
    made.gang("new", 3)
    opened, plugin = _opened(made, given)
    job, tasks = opened.state.jobs["ns/new"], [task_of(opened, f"old-worker-{i}") for i in range(3)]
    need = opened.dims.vector(cpus(3))
    assert plugin.evictable(GangEviction(EvictionKind.PREEMPT, job, need), tasks) == tasks
    assert plugin.evictable(GangEviction(EvictionKind.RECLAIM, job, need), tasks) == tasks[:1]


def test_numbers_of_pods_are_no_quota() -> None:
    """scheduler.md 1.7: `pods` is left out where a queue's limits are compared with what is asked for."""
    given = policy(hierarchy=True)
    made = cluster()
    made.queue("a", capability={"pods": "1"}, deserved={"pods": "5"})
    made.gang("g", 3, minimum=1, queue="a", phase="Pending", minResources={"cpu": "1", "pods": "3"})
    opened, plugin = _opened(made, given)
    queue, cls = opened.state.queues["a"], task_of(opened, "g-worker-0").cls
    assert plugin.room(queue, cls.request) > 3
    assert not plugin.preemptive(queue, cls.request), "it deserves no cpu and no memory"
    made.queue("a", event="MODIFIED", capability={"pods": "0"}, deserved={"cpu": "5"})
    opened, plugin = _opened(made, given)
    assert plugin.preemptive(opened.state.queues["a"], cls.request)
    assert placed(made, "g") == {"g": 3}


def test_what_gangs_hold_beyond_their_minimum_is_no_obstacle_to_admission() -> None:
    """scheduler.md 3.7: EQ adds the minimum to what is held and admitted, less what is elastic; 3 + 4 - 3 = 4."""
    made = cluster()
    made.queue("a", capability=cpus(4))
    made.gang("old", 4, minimum=1, queue="a", minResources=cpus(1))
    made.cycle()
    made.run("old")
    made.gang("big", 0, minimum=1, queue="a", phase="Pending", minResources=cpus(4))
    made.cycle()
    told = made.scheduler.explain("ns", "big")
    assert told is not None
    assert "insufficient cpu (cpu: 4 asked, 3 left of 4 in queue a)" in told.message
    made.delete_gang("big")
    for name, amount in (("fits", 3), ("more", 1)):
        made.gang(name, 0, minimum=1, queue="a", phase="Pending", minResources=cpus(amount))
    made.cycle()
    assert [made.scheduler.phase("ns", name) for name in ("fits", "more")] == ["Inqueue", "Pending"]


@pytest.mark.parametrize(("own", "named"), [(None, "eng"), (6, "eng"), (5, "a")])
def test_of_queues_with_as_little_left_the_highest_is_named(own: int | None, named: str) -> None:
    made = cluster()
    made.queue("eng", capability=cpus(6))
    made.queue("a", parent="eng", capability=None if own is None else cpus(own))
    made.gang("g", 0, minimum=1, queue="a", phase="Pending", minResources=cpus(7))
    made.cycle()
    told = made.scheduler.explain("ns", "g")
    assert told is not None
    assert f"cpu: 7 asked, {own or 6} left of {own or 6} in queue {named}" in told.message


def test_a_queue_that_holds_more_than_it_may_by_now_has_nothing_left() -> None:
    made = cluster()
    made.queue("a", capability=cpus(4))
    made.gang("old", 4, queue="a", minResources=cpus(4))
    made.cycle()
    made.run("old")
    made.queue("a", event="MODIFIED", capability=cpus(2))
    made.gang("g", 0, minimum=1, queue="a", phase="Pending", minResources=cpus(1))
    made.cycle()
    told = made.scheduler.explain("ns", "g")
    assert told is not None
    assert list(told.shortages) == [Shortage("cpu", "1", "0", "1")]
    assert "insufficient cpu (cpu: 1 asked, 0 left of 2 in queue a)" in told.message


def test_without_a_hierarchy_a_queue_deserves_no_more_than_it_may_hold() -> None:
    """scheduler.md 3.7: deserved is min(deserved, real capability), but at least the guarantee."""
    made = cluster(cpu=10, hierarchy=False)
    made.queue("a", deserved=cpus(100), capability=cpus(8))
    made.queue("b", guarantee={"resource": cpus(4)}, deserved=cpus(1))
    for queue in ("a", "b"):
        made.gang(queue, 3, queue=queue)
    # What b is guaranteed leaves 6 for a, and b deserves 4.
    shares = {share.queue: share.share for share in made.cycle().figures.shares}
    assert shares == {"a": 3 / 6, "b": 3 / 4, "default": 1}


def test_guarantees_beyond_the_cluster_leave_each_its_own_and_others_nothing() -> None:
    """scheduler.md 3.7: real capability is max(total - guarantees, 0) + its own guarantee."""
    given = policy(hierarchy=False)
    made = cluster(cpu=4, hierarchy=False)
    for name in ("a", "b"):
        made.queue(name, guarantee={"resource": cpus(3)})
    opened, plugin = _opened(made, given)
    one = opened.dims.vector(cpus(1))
    rooms = {name: plugin.room(opened.state.queues[name], one) for name in ("a", "b", "default")}
    assert rooms == {"a": 3, "b": 3, "default": 0}


def test_guarantees_beyond_the_queue_above_are_kept_as_far_as_its_capability_goes() -> None:
    """scheduler.md 3.7: min(max(parent - guarantees, 0) + own guarantee, capability), the parent's capability where a
    queue names none: 3 and 3 of 4, and 2 of a guarantee of 3."""
    given = policy(hierarchy=True)
    made = cluster()
    for parent, capability, children in (("eng", 4, ("a", "b")), ("ops", 2, ("c",))):
        made.queue(parent, capability=cpus(capability))
        for name in children:
            made.queue(name, parent=parent, guarantee={"resource": cpus(3)})
    opened, plugin = _opened(made, given)
    queues, dims = opened.state.queues, opened.dims
    assert {name: plugin.room(queues[name], dims.vector(cpus(1))) for name in "abc"} == {"a": 3, "b": 3, "c": 2}
    claims = {name: [plugin.preemptive(queues[name], dims.vector(cpus(n))) for n in (2, 3)] for name in "ac"}
    assert claims == {"a": [True, True], "c": [True, False]}


@pytest.mark.parametrize(
    ("levels", "deserved", "goes"), [(0, None, True), (1, None, False), (1, 4, True), (1, "memory", False)]
)
def test_what_is_lent_stays_among_relatives_that_deserve_none_of_it(levels: int, deserved: object, goes: bool) -> None:
    """scheduler.md 3.7, RE: a pod of which its queue deserves nothing goes, unless both queues have a common ancestor
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
    opened, plugin = _opened(made, given)
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
    """scheduler.md 3.7, RE: queue c holds 3 and deserves 1; so many levels above it count, but for those that are the
    taker's at the same level, and the root."""
    given = policy(hierarchy=True, ancestorReclaimLevel=levels)
    made = cluster()
    made.queue("x", deserved=cpus(50))
    made.queue("y", deserved=None if above is None else cpus(above))
    made.queue("a", parent=taker or "x", deserved=cpus(9))
    made.queue("c", parent="y" if taker else "", deserved=cpus(1))
    made.gang("old", 3, queue="c", phase="Running", pod={"nodeName": "n"})
    made.gang("new", 1, queue="a")
    opened, plugin = _opened(made, given)
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
    """scheduler.md 1.7 and 3.7, RE: of three pods of a cpu, 1Gi and a device each."""
    given = policy(hierarchy=False)
    made = cluster(hierarchy=False)
    made.node("gpus", x_gpu="8", x_other="8", cpu="8")
    made.queue("a", deserved=deserved)
    made.gang("old", 3, queue="a", pod={"nodeName": "gpus"}, phase="Running")
    for index in range(3):
        requests(made, f"old-worker-{index}", None, cpu="1", memory="1Gi", x_gpu="1")
    made.run("old")
    made.gang("new", 1)
    opened, plugin = _opened(made, given)
    old = [task_of(opened, f"old-worker-{i}") for i in range(3)]
    assert plugin.reclaimable(task_of(opened, "new-worker-0"), old) == old[:gone]
    gang = GangEviction(EvictionKind.RECLAIM, opened.state.jobs["ns/new"], opened.dims.vector(cpus(1)))
    assert plugin.evictable(gang, old) == old[:gone]


def test_a_guarantee_is_kept_whatever_is_held_beyond_it() -> None:
    """scheduler.md 3.7, RE and UE: without the pod of 3 cpus nothing of the 2 would be left, without another one 3."""
    given = policy(hierarchy=False)
    made = cluster(hierarchy=False)
    made.queue("a", guarantee={"resource": cpus(2)})
    made.gang("big", 1, cpu="3", queue="a", phase="Running", pod={"nodeName": "n"})
    made.gang("new", 1)
    for small in ([], ["small-worker-0"]):
        if small:
            made.gang("small", 1, cpu="2", queue="a", phase="Running", pod={"nodeName": "n"})
        opened, plugin = _opened(made, given)
        old = [task_of(opened, name) for name in ["big-worker-0", *small]]
        gang = GangEviction(EvictionKind.RECLAIM, opened.state.jobs["ns/new"], opened.dims.vector(cpus(1)))
        want = old[:1] if small else []
        assert plugin.reclaimable(task_of(opened, "new-worker-0"), old) == want
        assert plugin.evictable(gang, old) == want


@pytest.mark.parametrize(
    ("hierarchy", "order"), [(True, ["beside", "cousin", "other"]), (False, ["other", "cousin", "beside"])]
)
def test_the_closest_relatives_of_who_takes_lose_first(hierarchy: bool, order: list[str]) -> None:
    """scheduler.md 3.7: VQO by the depth of the common ancestor, and without a hierarchy the last in queue order first,
    here the youngest."""
    given = policy(hierarchy=hierarchy)
    made = Cluster(given)
    made.queue("eng")
    made.queue("ml", parent="eng")
    for name, parent in (("taker", "ml"), ("beside", "ml"), ("cousin", "eng"), ("other", "")):
        made.queue(name, parent=parent)
    opened, _ = _opened(made, given)
    queues = opened.state.queues
    found = opened.victim_queues([queues[name] for name in ("other", "beside", "cousin")], queues["taker"])
    assert [queue.name for queue in found] == order


def test_a_queue_that_closes_admits_and_places_nobody() -> None:
    made = cluster()
    made.queue("a", state="Closed")
    made.gang("waits", 1, queue="a", phase="Pending")
    made.gang("admitted", 1, queue="a")
    assert placed(made, "waits", "admitted") == {"waits": 0, "admitted": 0}
    for name in ("waits", "admitted"):
        told = made.scheduler.explain("ns", name)
        assert told is not None
        assert told.reason is WaitReason.QUEUE_NOT_OPEN


def test_shares_are_told_when_they_change() -> None:
    made = cluster()
    made.queue("a", deserved=cpus(4))
    made.gang("one", 2, queue="a")
    assert made.cycle().figures.shares == [("a", 0.5, False), ("default", 1.0, False)]
    assert not made.cycle().figures.shares
    made.gang("two", 4, queue="a")
    assert made.cycle().figures.shares == [("a", 1.5, True)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ancestorReclaimLevel": -1}, "must be at least 0"),
        ({"ancestorReclaimLevel": "1"}, "must be an integer"),
        ({"capacity.DynamicResourceAllocationEnable": 3}, "capacity.DynamicResourceAllocationEnable"),
    ],
)
def test_arguments_are_checked(arguments: Json, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(hierarchy=True, **arguments)
