"""What `status.allocated` of queues says, and when it is written."""

from __future__ import annotations

from typing import Any

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import CycleResult

Json = dict[str, Any]


def reported(result: CycleResult) -> dict[str, Json]:
    return {update.name: dict(update.allocated) for update in result.queue_statuses}


def test_what_a_queue_holds_counts_in_every_queue_above_it() -> None:
    made = Cluster()
    made.node("n")
    made.queue("root")
    made.queue("eng")
    made.queue("a", parent="eng")
    made.queue("b", parent="eng")
    made.gang("one", 2, queue="a")
    made.gang("two", 1, queue="b", cpu="3")
    found = reported(made.cycle())
    assert found == {
        "a": {"cpu": "2", "memory": "2Gi", "pods": "2"},
        "b": {"cpu": "3", "memory": "1Gi", "pods": "1"},
        "eng": {"cpu": "5", "memory": "3Gi", "pods": "3"},
        "root": {"cpu": "5", "memory": "3Gi", "pods": "3"},
    }


def test_a_queue_without_a_place_counts_for_itself() -> None:
    made = Cluster()
    made.node("n")
    made.queue("a", parent="b")
    made.queue("b", parent="a")
    made.gang("one", 1, queue="a")
    assert reported(made.cycle()) == {"a": {"cpu": "1", "memory": "1Gi", "pods": "1"}}


def test_nothing_is_written_twice_and_what_is_gone_is_taken_away() -> None:
    made = Cluster()
    made.node("n")
    made.gang("one", 1)
    assert list(reported(made.cycle())) == ["default"]
    assert reported(made.cycle()) == {}
    made.delete_gang("one")
    assert reported(made.cycle()) == {"default": {"cpu": "0", "memory": "0", "pods": None}}
    assert reported(made.cycle()) == {}


def test_two_changes_within_a_second_are_one_write() -> None:
    made = Cluster()
    made.node("n")
    made.gang("one", 1)
    made.cycle()
    made.gang("two", 1)
    result = made.cycle(after=0.25)
    assert reported(result) == {}
    assert result.requeue_at is not None
    assert (result.requeue_at - made.now).total_seconds() == 0.75
    assert reported(made.cycle(after=0.75)) == {"default": {"cpu": "2", "memory": "2Gi", "pods": "2"}}


def test_a_queue_that_moves_takes_what_it_holds_along() -> None:
    made = Cluster()
    made.node("n")
    made.queue("x")
    made.queue("y")
    made.queue("a", parent="x")
    made.gang("one", 1, queue="a")
    assert sorted(reported(made.cycle())) == ["a", "x"]
    made.queue("a", parent="y", event="MODIFIED")
    assert reported(made.cycle()) == {
        "x": {"cpu": "0", "memory": "0", "pods": None},
        "y": {"cpu": "1", "memory": "1Gi", "pods": "1"},
    }


def test_what_somebody_else_wrote_is_put_right() -> None:
    made = Cluster()
    made.node("n")
    made.gang("one", 1)
    made.cycle()
    made.queue("default", event="MODIFIED", allocated={"cpu": "7"})
    assert reported(made.cycle()) == {"default": {"cpu": "1", "memory": "1Gi", "pods": "1"}}
