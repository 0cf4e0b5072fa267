"""Queues by quota: what a queue may hold, who is served first, and what a wrong place in the tree costs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, session, task_of
from vcbatch.scheduler import Policy, PolicyError, WaitReason, build_policy
from vcbatch.scheduler.framework.plugin import Vote
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.result import Shortage
from vcbatch.scheduler.plugins.capacity import Capacity

Json = dict[str, Any]


def policy(*, hierarchy: bool, actions: str = "enqueue, allocate", **arguments: object) -> Policy:
    capacity = {"name": "capacity", "enableHierarchy": hierarchy, "arguments": arguments}
    return build_policy(
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
    reported = made.scheduler.explain("ns", "poor")
    assert reported is not None
    assert reported.reason is WaitReason.QUEUE_INVALID
    assert sentence in reported.message
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
    reported = made.scheduler.explain("ns", "big")
    assert reported is not None
    assert reported.reason is WaitReason.IMPOSSIBLE
    assert "the gang needs cpu 8 with 0 held of 6 allowed (queue eng): short by cpu 2" in reported.message
    assert list(reported.shortages) == [Shortage("cpu", "8", "6", "2")]


def test_a_gang_waits_for_what_others_of_the_queue_above_hold() -> None:
    made = cluster()
    made.queue("eng", capability=cpus(6))
    made.queue("a", parent="eng")
    made.queue("b", parent="eng")
    made.gang("first", 4, queue="b")
    made.cycle()
    made.gang("second", 3, queue="a")
    made.cycle()
    reported = made.scheduler.explain("ns", "second")
    assert reported is not None
    assert reported.reason is WaitReason.QUEUE_LIMIT
    assert "the gang needs cpu 3 with 4 held of 6 allowed (queue eng): short by cpu 1" in reported.message
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
    reported = {name: made.scheduler.explain("ns", name) for name in ("two", "huge")}
    assert reported["two"] is not None
    assert reported["two"].reason is WaitReason.QUEUE_LIMIT
    assert reported["huge"] is not None
    assert reported["huge"].reason is WaitReason.IMPOSSIBLE
    assert "insufficient cpu (cpu: 7 asked, 2 left of 6 in queue eng)" in reported["huge"].message


def test_a_minimum_as_large_as_the_quota_waits_for_what_is_held_and_is_not_impossible() -> None:
    made = cluster()
    made.queue("a", capability=cpus(4))
    made.gang("first", 1, queue="a", minResources=cpus(1))
    made.gang("all", 0, minimum=1, queue="a", phase="Pending", minResources=cpus(4))
    made.cycle()
    reported = made.scheduler.explain("ns", "all")
    assert reported is not None
    assert reported.reason is WaitReason.QUEUE_LIMIT
    made.delete_gang("first")
    made.cycle()
    assert made.scheduler.phase("ns", "all") == "Inqueue"


def opened_with(made: Cluster, given: Policy) -> tuple[Session, Capacity]:
    opened = session(made, given)
    return opened, plugin_of(opened, Capacity)


def test_a_queue_that_is_closed_or_has_no_place_has_no_room_and_no_claim() -> None:
    """`room`, `preemptive` and `enqueueable` want an open queue that is a leaf and has a place in the tree."""
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
    opened, plugin = opened_with(made, given)
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


def test_leaves_go_before_queues_with_others_below_them() -> None:
    """With a hierarchy `queue_key` has priority first; shares don't count between the two kinds."""
    given = policy(hierarchy=True)
    made = cluster()
    made.queue("inner", deserved=cpus(4))
    made.queue("below", parent="inner", deserved=cpus(4))
    made.queue("first", priority=3)
    made.queue("under", parent="first")
    made.queue("leaf")
    opened, _ = opened_with(made, given)
    queues = [opened.state.queues[name] for name in ("inner", "leaf", "first", "below")]
    assert [queue.name for queue in sorted(queues, key=opened.queue_key)] == ["first", "below", "leaf", "inner"]


@pytest.mark.parametrize("hierarchy", [True, False])
def test_of_equal_shares_the_queue_that_deserves_something_goes_first(hierarchy: bool) -> None:
    """A queue that deserves nothing has a share of 1, like one that holds all it deserves."""
    given = policy(hierarchy=hierarchy)
    made = cluster(hierarchy=hierarchy)
    for name, deserved in (("a", None), ("b", cpus(2)), ("c", cpus(3))):
        made.queue(name, deserved=deserved)
        made.gang(name, 2, queue=name, phase="Running", pod={"nodeName": "n"})
    opened, _ = opened_with(made, given)
    queues = [opened.state.queues[name] for name in ("a", "b", "c")]
    assert [queue.name for queue in sorted(queues, key=opened.queue_key)] == ["c", "b", "a"]


def test_numbers_of_pods_are_no_quota() -> None:
    """`pods` is left out where a queue's limits are compared with what is asked for."""
    given = policy(hierarchy=True)
    made = cluster()
    made.queue("a", capability={"pods": "1"}, deserved={"pods": "5"})
    made.gang("g", 3, minimum=1, queue="a", phase="Pending", minResources={"cpu": "1", "pods": "3"})
    opened, plugin = opened_with(made, given)
    queue, cls = opened.state.queues["a"], task_of(opened, "g-worker-0").cls
    assert plugin.room(queue, cls.request) > 3
    assert not plugin.preemptive(queue, cls.request), "it deserves no cpu and no memory"
    made.queue("a", event="MODIFIED", capability={"pods": "0"}, deserved={"cpu": "5"})
    opened, plugin = opened_with(made, given)
    assert plugin.preemptive(opened.state.queues["a"], cls.request)
    assert placed(made, "g") == {"g": 3}


def test_what_gangs_hold_beyond_their_minimum_is_no_obstacle_to_admission() -> None:
    """`enqueueable` adds the minimum to what is held and admitted, less what is elastic; 3 + 4 - 3 = 4."""
    made = cluster()
    made.queue("a", capability=cpus(4))
    made.gang("old", 4, minimum=1, queue="a", minResources=cpus(1))
    made.cycle()
    made.run("old")
    made.gang("big", 0, minimum=1, queue="a", phase="Pending", minResources=cpus(4))
    made.cycle()
    reported = made.scheduler.explain("ns", "big")
    assert reported is not None
    assert "insufficient cpu (cpu: 4 asked, 3 left of 4 in queue a)" in reported.message
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
    reported = made.scheduler.explain("ns", "g")
    assert reported is not None
    assert f"cpu: 7 asked, {own or 6} left of {own or 6} in queue {named}" in reported.message


def test_a_queue_that_holds_more_than_it_may_by_now_has_nothing_left() -> None:
    made = cluster()
    made.queue("a", capability=cpus(4))
    made.gang("old", 4, queue="a", minResources=cpus(4))
    made.cycle()
    made.run("old")
    made.queue("a", event="MODIFIED", capability=cpus(2))
    made.gang("g", 0, minimum=1, queue="a", phase="Pending", minResources=cpus(1))
    made.cycle()
    reported = made.scheduler.explain("ns", "g")
    assert reported is not None
    assert list(reported.shortages) == [Shortage("cpu", "1", "0", "1")]
    assert "insufficient cpu (cpu: 1 asked, 0 left of 2 in queue a)" in reported.message


def test_without_a_hierarchy_a_queue_deserves_no_more_than_it_may_hold() -> None:
    """What is deserved is min(deserved, real capability), but at least the guarantee."""
    made = cluster(cpu=10, hierarchy=False)
    made.queue("a", deserved=cpus(100), capability=cpus(8))
    made.queue("b", guarantee={"resource": cpus(4)}, deserved=cpus(1))
    for queue in ("a", "b"):
        made.gang(queue, 3, queue=queue)
    # What b is guaranteed leaves 6 for a, and b deserves 4.
    shares = {share.queue: share.share for share in made.cycle().figures.shares}
    assert shares == {"a": 3 / 6, "b": 3 / 4, "default": 1}


def test_guarantees_beyond_the_cluster_leave_each_its_own_and_others_nothing() -> None:
    """The real capability is max(total - guarantees, 0) + its own guarantee."""
    given = policy(hierarchy=False)
    made = cluster(cpu=4, hierarchy=False)
    for name in ("a", "b"):
        made.queue(name, guarantee={"resource": cpus(3)})
    opened, plugin = opened_with(made, given)
    one = opened.dims.vector(cpus(1))
    rooms = {name: plugin.room(opened.state.queues[name], one) for name in ("a", "b", "default")}
    assert rooms == {"a": 3, "b": 3, "default": 0}


def test_guarantees_beyond_the_queue_above_are_kept_as_far_as_its_capability_goes() -> None:
    """The real capability is min(max(parent - guarantees, 0) + own guarantee, capability), with the parent's capability
    where a queue names none: 3 and 3 of 4, and 2 of a guarantee of 3."""
    given = policy(hierarchy=True)
    made = cluster()
    for parent, capability, children in (("eng", 4, ("a", "b")), ("ops", 2, ("c",))):
        made.queue(parent, capability=cpus(capability))
        for name in children:
            made.queue(name, parent=parent, guarantee={"resource": cpus(3)})
    opened, plugin = opened_with(made, given)
    queues, dims = opened.state.queues, opened.dims
    assert {name: plugin.room(queues[name], dims.vector(cpus(1))) for name in "abc"} == {"a": 3, "b": 3, "c": 2}
    claims = {name: [plugin.preemptive(queues[name], dims.vector(cpus(n))) for n in (2, 3)] for name in "ac"}
    assert claims == {"a": [True, True], "c": [True, False]}


def test_a_queue_that_closes_admits_and_places_nobody() -> None:
    made = cluster()
    made.queue("a", state="Closed")
    made.gang("waits", 1, queue="a", phase="Pending")
    made.gang("admitted", 1, queue="a")
    assert placed(made, "waits", "admitted") == {"waits": 0, "admitted": 0}
    for name in ("waits", "admitted"):
        reported = made.scheduler.explain("ns", name)
        assert reported is not None
        assert reported.reason is WaitReason.QUEUE_NOT_OPEN


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
