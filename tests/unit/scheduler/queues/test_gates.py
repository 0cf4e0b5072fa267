"""Pods that wait for room in their queue behind a scheduling gate."""

from __future__ import annotations

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.plugins.test_capacity import cpus, policy
from vcbatch.api.names import QUEUE_ALLOCATION_GATE
from vcbatch.scheduler import CycleResult, Scheduler, WaitReason

OTHER = "example.com/other"


def cluster(*, gates: bool = True) -> Cluster:
    made = Cluster()
    made.scheduler = Scheduler(policy(hierarchy=True), queue_gates=gates)
    made.queue("default")
    made.node("n", cpu="100", memory="1Ti", pods="500")
    made.queue("eng", capability=cpus(4))
    made.queue("a", parent="eng")
    made.queue("b", parent="eng")
    return made


def gated(
    made: Cluster, name: str, size: int, *, queue: str, gates: tuple[str, ...] = (QUEUE_ALLOCATION_GATE,)
) -> None:
    """A gang whose pods ask for the gate and have it."""
    made.gang(name, 0, minimum=size, queue=queue)
    for index in range(size):
        made.pod(name, index, schedulingGates=[{"name": gate} for gate in gates])
        raw = made.pods[f"{name}-worker-{index}"]
        raw["metadata"]["annotations"][QUEUE_ALLOCATION_GATE] = "true"
        made.change(f"{name}-worker-{index}")


def opened(made: Cluster, result: CycleResult) -> list[str]:
    """The pods whose gates were opened; the API server takes them off."""
    for removal in result.gate_removals:
        made.pods[removal.name]["spec"]["schedulingGates"] = None
        made.change(removal.name)
    return [removal.name for removal in result.gate_removals]


def test_gates_are_opened_where_the_queue_has_room_and_the_pods_placed_after_that() -> None:
    made = cluster()
    gated(made, "one", 3, queue="a")
    result = made.cycle()
    assert result.binds == []
    reported = made.scheduler.explain("ns", "one")
    assert reported is not None
    assert reported.reason is WaitReason.GATED
    assert not made.cycle().gate_removals  # they are on their way
    assert opened(made, result) == ["one-worker-0", "one-worker-1", "one-worker-2"]
    assert len(made.cycle().binds) == 3
    assert made.scheduler.explain("ns", "one") is None


def test_room_is_kept_for_pods_whose_gate_is_open_in_every_queue_above() -> None:
    made = cluster()
    gated(made, "one", 3, queue="a")
    result = made.cycle()
    made.gang("two", 2, queue="b")
    assert made.cycle().binds == []  # 3 of 4 are kept
    reported = made.scheduler.explain("ns", "two")
    assert reported is not None
    assert reported.reason is WaitReason.QUEUE_LIMIT
    assert "cpu 2 with 3 held of 4 allowed (queue eng)" in reported.message
    opened(made, result)
    made.cycle()
    assert (len(made.placed("one")), len(made.placed("two"))) == (3, 0)
    made.gang("three", 1, queue="b")
    made.cycle()
    assert len(made.placed("three")) == 1


def test_room_that_was_kept_is_kept_no_more_once_it_is_taken() -> None:
    made = cluster()
    gated(made, "one", 3, queue="a")
    opened(made, made.cycle())
    made.gang("two", 1, queue="b")
    made.cycle()
    assert (len(made.placed("one")), len(made.placed("two"))) == (3, 1)


def test_room_is_kept_for_each_kind_of_a_gang_s_pods() -> None:
    made = cluster()
    gated(made, "one", 2, queue="a")
    made.pods["one-worker-1"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    made.change("one-worker-1")
    opened(made, made.cycle())
    made.gang("two", 2, minimum=1, queue="b")
    made.cycle()
    assert (len(made.placed("one")), len(made.placed("two"))) == (2, 1)


def test_room_that_was_kept_goes_to_who_waits_once_its_gang_is_gone() -> None:
    made = cluster()
    gated(made, "one", 3, queue="a")
    made.cycle()
    made.gang("two", 2, queue="b")
    for _ in range(3):
        assert made.cycle().binds == []
    made.delete_gang("one")
    assert len(made.cycle().binds) == 2


def test_a_gang_without_room_for_its_minimum_keeps_its_gates_and_takes_nothing() -> None:
    made = cluster()
    made.gang("first", 2, queue="b")
    made.cycle()
    gated(made, "one", 3, queue="a")
    assert not made.cycle().gate_removals
    reported = made.scheduler.explain("ns", "one")
    assert reported is not None
    assert reported.reason is WaitReason.QUEUE_LIMIT
    assert "the gang needs cpu 3 with 2 held of 4 allowed (queue eng): short by cpu 1" in reported.message
    made.gang("small", 2, queue="b")
    made.cycle()
    assert len(made.placed("small")) == 2
    made.delete_gang("first")
    made.delete_gang("small")
    assert len(opened(made, made.cycle())) == 3


def test_pods_with_other_gates_wait_for_those_first() -> None:
    made = cluster()
    gated(made, "one", 1, queue="a", gates=(QUEUE_ALLOCATION_GATE, OTHER))
    assert not made.cycle().gate_removals
    made.pods["one-worker-0"]["spec"]["schedulingGates"] = [{"name": QUEUE_ALLOCATION_GATE}]
    made.change("one-worker-0")
    assert opened(made, made.cycle()) == ["one-worker-0"]


def test_a_gate_that_nobody_asked_for_stays() -> None:
    made = cluster()
    made.gang("one", 1, queue="a", pod={"schedulingGates": [{"name": QUEUE_ALLOCATION_GATE}]})
    assert not made.cycle().gate_removals


def test_nothing_is_opened_where_the_feature_is_off() -> None:
    made = cluster(gates=False)
    gated(made, "one", 1, queue="a")
    assert not made.cycle().gate_removals


def test_a_removal_that_failed_is_decided_again() -> None:
    made = cluster()
    gated(made, "one", 1, queue="a")
    (removal,) = made.cycle().gate_removals
    assert not made.cycle().gate_removals
    made.scheduler.gate_removal_failed(removal.uid)
    assert made.scheduler.dirty
    assert list(made.cycle().gate_removals) == [removal]
