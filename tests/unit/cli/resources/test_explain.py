"""What `job explain` advises, and whom it names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from vcbatch.api.messages import behind_first
from vcbatch.api.phases import JobPhase
from vcbatch.api.quantity import parse_quantity
from vcbatch.api.reasons import JobReason, WaitReason
from vcbatch.cli.base.terminal import PLAIN, Terminal
from vcbatch.cli.resources.gangs import gangs_table
from vcbatch.cli.resources.job.explain import explained
from vcbatch.core.waiting import Gang, Limit, Waiting

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
JOB = {"metadata": {"name": "mine", "namespace": "n"}, "status": {"state": {"phase": "Pending"}}}


def gang(name: str, *, phase: str = "Running", queue: str = "q", priority: int = 0, **more: Any) -> Gang:
    return Gang(
        namespace="n",
        name=name,
        uid=name,
        queue=queue,
        phase=phase,
        priority=priority,
        pods=2,
        asks={"cpu": parse_quantity("4")},
        created=NOW - timedelta(minutes=5),
        **more,
    )


def waiting(reason: WaitReason, **more: Any) -> Waiting:
    mine = gang("mine", phase="Pending")
    return Waiting(
        phase=JobPhase.PENDING, reason=reason, message="said", since=NOW, gang=mine, queue="q", position=2, **more
    )


def screen(given: Waiting) -> str:
    return explained(JOB, given, PLAIN, now=NOW)


def test_one_that_keeps_room_and_never_starts_is_named_once() -> None:
    stuck = gang("stuck", phase="Inqueue", reason=WaitReason.IMPOSSIBLE)
    limit = Limit(queue="q", short_by={"cpu": parse_quantity("2")})
    said = screen(waiting(WaitReason.QUEUE_LIMIT, ahead=[stuck], holders=[stuck], enough=[stuck], limit=limit))
    assert "Starts:   when n/stuck has finished\n" in said
    assert "n/stuck has reserved capacity and can't start: vcbatch job explain stuck -n n\n" in said
    assert "Jobs ahead" not in said
    assert (
        "Jobs using queue q\n  JOB       PHASE     PODS   AGE   REQUESTS\n  n/stuck   Inqueue      2   5m    cpu 4"
        in said
    )


def test_a_job_whose_gang_is_refused_is_led_to_its_queue() -> None:
    refused = replace(waiting(WaitReason.IMPOSSIBLE), reason=JobReason.POD_GROUP_ERROR, gang=None, position=0)
    said = " ".join(screen(refused).split())
    assert "mine is Pending for 0s: PodGroupError said" in said
    assert "If the queue is the reason, open it: vcbatch queue open q" in said


def test_what_can_never_start_is_told_whose_limit_it_is() -> None:
    limit = Limit(queue="top", short_by={"cpu": parse_quantity("2")}, ever=False)
    for reason in (WaitReason.IMPOSSIBLE, WaitReason.QUEUE_LIMIT):
        said = screen(waiting(reason, limit=limit))
        assert "more than the limit of queue top" in said
        assert "Too large: cpu 2, above the capability of queue top\nStarts:    never on this cluster\n" in said
    of_nodes = screen(waiting(WaitReason.IMPOSSIBLE))
    assert "can't start on this cluster" in of_nodes and "more than the limit" not in of_nodes
    assert "Starts: never" in of_nodes


def test_a_command_to_type_is_in_one_piece() -> None:
    long = Limit(queue="q" * 40, short_by={"cpu": parse_quantity("2")}, ever=False)
    said = explained(JOB, waiting(WaitReason.QUEUE_LIMIT, limit=long), Terminal(width=80), now=NOW)
    assert f"raise the queue's capability:\n    vcbatch queue describe {'q' * 40}\n" in said


def test_columns_in_which_all_are_alike_are_left_out() -> None:
    def header(*gangs: Gang) -> list[str]:
        return gangs_table(gangs, PLAIN, queue="q", now=NOW, most=5).splitlines()[0].split()

    assert header(gang("a"), gang("b")) == ["JOB", "PHASE", "PODS", "AGE", "REQUESTS"]
    assert header(gang("a", queue="below"), gang("b")) == ["JOB", "QUEUE", "PHASE", "PODS", "AGE", "REQUESTS"]
    assert header(gang("a", priority=1), gang("b")) == ["JOB", "PHASE", "PODS", "PRIORITY", "AGE", "REQUESTS"]


def test_of_a_gang_that_runs_all_its_pods_are_counted_and_of_one_that_waits_its_least() -> None:
    runs, waits = gang("a", runs=5), gang("b", phase="Pending", runs=1)
    lines = gangs_table([runs, waits], PLAIN, queue="q", now=NOW, most=5).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["n/a", "Running", "5"], ["n/b", "Pending", "2"]]


def test_when_it_starts_is_foreseen_for_the_first_of_a_queue() -> None:
    second = waiting(WaitReason.INSUFFICIENT)
    assert "Starts: unknown: it is estimated only for the first job of a queue\n" in screen(second)
    first = replace(second, position=1)
    assert "Starts: unknown: an estimate needs time limits on the running jobs\n" in screen(first)
    reported = replace(first, expected_start=NOW + timedelta(minutes=10))
    assert "Starts: by 2026-06-01 12:10:00 UTC (in 10m)\n" in screen(reported)


def test_one_that_others_may_not_be_evicted_for_yet_is_told_from_when_on() -> None:
    kept = waiting(WaitReason.VICTIMS_PROTECTED, evictable_from=NOW + timedelta(minutes=4))
    said = screen(kept)
    assert "Starts: from 2026-06-01 12:04:00 UTC (in 4m), when other pods may be evicted\n" in said
    assert "pods are evicted for it when the scheduler configuration allows it" in " ".join(said.split())


def test_one_that_stands_behind_the_first_of_its_queue_is_told_so() -> None:
    first = gang("first", phase="Inqueue")
    message = behind_first(queue="q", first="n/first-group")
    held = replace(waiting(WaitReason.QUEUE_LIMIT, ahead=[first], held_up_by=first), message=message)
    said = screen(held)
    assert "Behind: queue q is first in, first out: n/first is first\nStarts: after n/first has started\n" in said
    assert "it is next when n/first has started" in said
    assert "vcbatch job explain first -n n\n" in said
    assert "REASON" in said and "blocks it" in said
    for_room = screen(replace(held, message="cpu 4 of 4"))
    assert "it starts when enough jobs of the queue have finished" in for_room, "it waits for room itself"


def test_one_behind_a_gang_with_an_expected_start_may_start_before_that() -> None:
    first = gang("first", phase="Inqueue", expected_start=NOW)
    said = " ".join(screen(waiting(WaitReason.RESERVED, ahead=[first], held_up_by=first)).split())
    assert "Behind: queue q is first in, first out: n/first is first, expected by 2026-06-01T12:00:00Z" in said
    assert "not before" not in said
    assert "A job with a time limit" in said


def test_the_first_of_a_line_is_told_whom_it_holds_up() -> None:
    others = [gang(f"g{number}", phase="Pending") for number in range(7)]
    said = " ".join(screen(waiting(WaitReason.INSUFFICIENT, holds_up=others)).split())
    assert "Blocks: n/g0, n/g1, n/g2, n/g3, n/g4 and 2 more: queue q is first in, first out" in said
