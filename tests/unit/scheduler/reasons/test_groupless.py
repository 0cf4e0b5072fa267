"""Pods that name a PodGroup which doesn't exist say so, once, and take it back when it does."""

from __future__ import annotations

import msgspec

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PODS
from vcbatch.scheduler import CycleResult, parse_policy
from vcbatch.scheduler.model.share import Ring, Share
from vcbatch.scheduler.scheduler import Scheduler

MISSING = "PodGroupMissing: PodGroup ns/lost doesn't exist"


def world() -> Cluster:
    cluster = Cluster()
    cluster.node("a")
    return cluster


def said(result: CycleResult) -> list[tuple[str, str, str]]:
    return [(c.name, c.reason, c.message) for c in result.pod_conditions]


def events(result: CycleResult) -> list[tuple[str, str, str]]:
    return [(e.name, e.reason, e.message) for e in result.events if e.resource.plural == "pods"]


def lost(cluster: Cluster, *, reason: str, message: str) -> None:
    """A pod of which a scheduler said this before it was started again."""
    cluster.pod("lost", 0)
    raw = cluster.pods["lost-worker-0"]
    cluster.delete("lost-worker-0")
    raw["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]
    cluster.scheduler.apply(PODS, "ADDED", msgspec.convert(raw, Pod))


def test_a_pod_without_its_podgroup_says_so_once_there_was_time_to_make_it() -> None:
    cluster = world()
    cluster.pod("lost", 0)
    first = cluster.cycle()
    assert said(first) == []
    assert first.requeue_at is not None
    assert (first.requeue_at - cluster.now).total_seconds() == 5
    reported = cluster.cycle(after=5)
    assert said(reported) == [("lost-worker-0", "SchedulerError", MISSING)]
    assert events(reported) == [("lost-worker-0", "FailedScheduling", MISSING)]
    assert not reported.requeue_at
    assert not cluster.scheduler.dirty
    again = cluster.cycle(after=60)
    assert (said(again), events(again)) == ([], [])


def test_a_podgroup_that_is_made_right_after_its_pods_causes_no_write() -> None:
    cluster = world()
    cluster.pod("lost", 0)
    cluster.cycle()
    cluster.gang("lost", 0, minimum=1)
    made = cluster.cycle(after=4)
    assert [b.name for b in made.binds] == ["lost-worker-0"]
    assert said(made) == []
    assert said(cluster.cycle(after=10)) == []


def test_pods_that_come_later_say_so_without_another_event() -> None:
    cluster = world()
    cluster.pod("lost", 0)
    cluster.cycle()
    cluster.cycle(after=5)
    cluster.pod("lost", 1)
    later = cluster.cycle()
    assert [name for name, _, _ in said(later)] == ["lost-worker-1"]
    assert events(later) == []


def test_many_pods_say_so_some_at_a_time() -> None:
    cluster = world()
    for index in range(40):
        cluster.pod("lost", index)
    cluster.cycle()
    reported = [cluster.cycle(after=5), *(cluster.cycle(after=1) for _ in range(3))]
    assert [len(said(result)) for result in reported] == [16, 16, 8, 0]
    assert [len(events(result)) for result in reported] == [1, 0, 0, 0]
    assert [bool(result.requeue_at) for result in reported] == [True, True, False, False]


def test_the_podgroup_that_comes_replaces_it_with_what_holds_then() -> None:
    cluster = world()
    cluster.pod("lost", 0, cpu="5")
    cluster.pod("lost", 1, cpu="5")
    cluster.cycle()
    cluster.cycle(after=5)
    cluster.gang("lost", 0, minimum=2)
    reported = cluster.cycle()
    assert [(name, reason) for name, reason, _ in said(reported)] == [
        ("lost-worker-0", "Unschedulable"),
        ("lost-worker-1", "Unschedulable"),
    ]
    assert all(message.startswith("Impossible: ") for _, _, message in said(reported))
    assert said(cluster.cycle()) == []


def test_the_podgroup_that_comes_and_lacks_pods_says_that() -> None:
    cluster = world()
    cluster.pod("lost", 0)
    cluster.cycle()
    cluster.cycle(after=5)
    cluster.gang("lost", 0, minimum=2)
    assert said(cluster.cycle(after=1)) == [], "its controller is making them"
    [(name, reason, message)] = said(cluster.cycle(after=5))
    assert (name, reason) == ("lost-worker-0", "Schedulable")
    assert message.startswith("NotEnoughPods: ")
    assert said(cluster.cycle(after=5)) == []


def test_pods_that_are_bound_by_then_need_no_other_word() -> None:
    cluster = world()
    cluster.pod("lost", 0)
    cluster.cycle()
    cluster.cycle(after=5)
    cluster.gang("lost", 0, minimum=1)
    found = cluster.cycle()
    assert [b.name for b in found.binds] == ["lost-worker-0"]
    assert said(found) == []


def test_where_nothing_else_is_known_the_podgroup_is_said_to_be_there() -> None:
    """A policy without backfill places no pod that asks for nothing, and says nothing about it."""
    cluster = Cluster(parse_policy('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'))
    cluster.node("a")
    cluster.pod("lost", 0, cpu=None)
    cluster.cycle()
    cluster.cycle(after=5)
    cluster.gang("lost", 0, minimum=0)
    assert said(cluster.cycle()) == [("lost-worker-0", "Schedulable", "PodGroup ns/lost exists now")]
    assert said(cluster.cycle()) == []


def test_a_podgroup_that_is_deleted_is_missed_after_a_while() -> None:
    cluster = world()
    cluster.gang("lost", 1, cpu="12")
    [(_, _, message)] = said(cluster.cycle())
    assert message.startswith("Impossible: ")
    cluster.delete_gang("lost")
    cluster.pod("lost", 0, cpu="12")
    assert said(cluster.cycle()) == []
    assert [message for _, _, message in said(cluster.cycle(after=5))] == [MISSING]


def test_a_scheduler_that_starts_again_says_it_no_second_time() -> None:
    cluster = world()
    lost(cluster, reason="SchedulerError", message=MISSING)
    cluster.cycle()
    assert said(cluster.cycle(after=5)) == []
    cluster.gang("lost", 0, minimum=2)
    cluster.cycle()
    assert [message[:13] for _, _, message in said(cluster.cycle(after=5))] == ["NotEnoughPods"]


def test_what_an_earlier_scheduler_said_of_a_gang_is_replaced() -> None:
    cluster = world()
    lost(cluster, reason="Unschedulable", message="InsufficientResources: no room")
    cluster.cycle()
    assert [message for _, _, message in said(cluster.cycle(after=5))] == [MISSING]


def test_pods_with_gates_and_pods_that_run_miss_nothing() -> None:
    cluster = world()
    cluster.pod("lost", 0, schedulingGates=[{"name": "example.com/later"}])
    cluster.pod("lost", 1, nodeName="a")
    cluster.cycle()
    assert said(cluster.cycle(after=10)) == []
    assert cluster.scheduler.strays() == {}


def test_a_podgroup_that_another_instance_has_the_share_of_exists() -> None:
    """Pods and PodGroups are divided by the names of what made them, so that those made by hand may be apart."""
    cluster = world()
    ring = Ring(["a", "b"])
    cluster.scheduler = Scheduler(share=Share(ring=ring, instance=ring.owner("lost-worker-0")))
    assert ring.owner("lost") != ring.owner("lost-worker-0"), "or the case says nothing"
    cluster.node("a")
    cluster.queue("default")
    cluster.gang("lost", 0, minimum=1)
    cluster.pod("lost", 0)
    cluster.cycle()
    assert said(cluster.cycle(after=10)) == []
    cluster.delete_gang("lost")
    cluster.pod("lost", 0)
    cluster.cycle()
    assert [message for _, _, message in said(cluster.cycle(after=10))] == [MISSING]
