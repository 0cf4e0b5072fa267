"""What a job's ledger reads, forgets and writes down, whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.job_world import Json, job_object
from vcbatch.api.job import Job
from vcbatch.api.reasons import LossCause
from vcbatch.core.job.causes import Failure
from vcbatch.core.job.ledger import DelayKey, Ledger, Loss, Part, Target, TaskRecord, read_ledger
from vcbatch.core.job.plan import plan_of

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SINCE = "2026-11-20T11:59:00Z"

WHOLE: Json = {
    "tasks": {
        "a": {"seen": "0-1", "succeeded": "2", "failed": "3", "evicted": "4", "carried": "5"},
        "b": {"seen": "0"},
    },
    "restartingJob": True,
    "restarting": [{"task": "a", "retryCount": 3, "indices": "1-2"}, {"task": "b", "retryCount": 4}],
    "resumes": 5,
    "infrastructureRetries": 6,
    "ranSeconds": 7,
    "notBefore": "2026-11-20T12:01:00Z",
    "delayed": [
        {"event": "PodFailed", "since": SINCE, "task": "a", "index": 0},
        {"event": "TaskCompleted", "since": SINCE, "task": "b"},
        {"event": "Unknown", "since": SINCE},
    ],
    "commands": ["c1", "c2"],
    "losses": [{"pod": "j-a-3", "cause": "Exited", "version": 1}],
}


def ledger(stored: Json | None = None, **status: Any) -> Ledger:
    tasks = [{"name": name, "replicas": number, "template": {"spec": {}}} for name, number in (("a", 6), ("b", 1))]
    job = job_object(tasks=tasks, uid="u")
    job["status"] = {"version": 1, "retryCount": 20, **status, "ledger": stored or {}}
    return read_ledger(plan_of(Job.parse(job)))


def test_what_is_read_is_what_was_written() -> None:
    read = ledger(WHOLE)
    assert read.dump() == WHOLE
    assert (read.version, read.retry_count, read.own_retries) == (1, 20, 9)
    assert read.tasks == {
        "a": TaskRecord(seen={0, 1}, succeeded={2}, failed={3}, evicted={4}, carried={5}),
        "b": TaskRecord(seen={0}),
    }
    assert read.tasks["a"].done == {2, 5}
    assert read.targets == [Target(Part("a", frozenset({1, 2})), 3), Target(Part("b"), 4)]
    assert read.not_before == NOW + timedelta(minutes=1)
    minute_ago = NOW - timedelta(minutes=1)
    keys = (DelayKey("PodFailed", "a", 0), DelayKey("TaskCompleted", "b", None), DelayKey("Unknown", "", None))
    assert read.delayed == dict.fromkeys(keys, minute_ago)


def test_an_empty_ledger_says_nothing() -> None:
    assert ledger().dump() == {}


def test_what_the_spec_no_longer_has_is_dropped() -> None:
    def delay(**of: Any) -> Json:
        return {"event": "PodFailed", "since": SINCE, **of}

    read = ledger(
        {
            "tasks": {"old": {"seen": "0"}, "b": {"seen": "0-3", "failed": "1"}},
            "restarting": [{"task": "old", "retryCount": 1}, {"task": "a", "retryCount": 1, "indices": "5-9"}],
            "delayed": [
                *(delay(task="old", index=0), delay(task="old"), delay(task="b", index=1), delay(task="b", index=-1)),
                delay(task="b", index=0),
                {**delay(task="a", index=0), "since": "once"},
                {**delay(task="a", index=1), "since": None},
            ],
            "ranSeconds": -5,
            "notBefore": "later",
        }
    )
    assert read.dump() == {
        "tasks": {"b": {"seen": "0"}},
        "restarting": [{"task": "a", "retryCount": 1, "indices": "5"}],
        "delayed": [delay(task="b", index=0)],
    }


def test_the_end_of_an_attempt() -> None:
    read = ledger(WHOLE)
    read.end_attempt()
    left = {key: value for key, value in WHOLE.items() if key not in ("restarting", "notBefore", "delayed")}
    assert read.dump() == {
        **left,
        "tasks": {"a": {key: value for key, value in left["tasks"]["a"].items() if key != "seen"}},
    }
    assert (read.version, read.not_before) == (2, None)


def test_a_fresh_start_and_one_that_goes_on() -> None:
    stored = {**WHOLE, "restartingJob": False}
    restarted, resumed = ledger(stored), ledger(stored)
    restarted.restart_all()
    resumed.begin_resumed()
    rest = {key: value for key, value in WHOLE.items() if key != "tasks"}
    assert restarted.dump() == rest
    assert resumed.dump() == {**rest, "tasks": {"a": {"carried": "2,5"}}}


@pytest.mark.parametrize(
    ("part", "target", "record", "delayed"),
    [
        (Part("a"), {"task": "a", "retryCount": 20}, {}, [1, 2]),
        (
            Part("a", frozenset({0, 2, 3, 4, 5})),
            {"task": "a", "retryCount": 20, "indices": "0,2-5"},
            {"seen": "1"},
            [1, 2],
        ),
        (
            Part("a", frozenset({1})),
            {"task": "a", "retryCount": 20, "indices": "1"},
            {**WHOLE["tasks"]["a"], "seen": "0"},
            [0, 1, 2],
        ),
    ],
)
def test_a_part_that_is_restarted_is_forgotten(part: Part, target: Json, record: Json, delayed: list[int]) -> None:
    read = ledger(WHOLE)
    read.tasks["a"].evicted = set() if part.indices is None else read.tasks["a"].evicted
    read.aim(part)
    tasks = {"a": record, "b": WHOLE["tasks"]["b"]} if record else {"b": WHOLE["tasks"]["b"]}
    assert read.dump() == {
        **WHOLE,
        "tasks": tasks,
        "restarting": [*WHOLE["restarting"], target],
        "delayed": [WHOLE["delayed"][position] for position in delayed],
    }


@pytest.mark.parametrize(("ahead", "waits"), [(-1, False), (0, False), (1, True), (300, True), (301, False)])
def test_a_wait_is_over_or_too_long_to_be_true(ahead: int, waits: bool) -> None:
    read = ledger()
    read.not_before = NOW + timedelta(seconds=ahead)
    read.end_wait(NOW, longest=timedelta(seconds=300))
    assert (read.not_before is not None) is waits


def test_commands_are_remembered_while_they_are_there() -> None:
    read = ledger({"commands": ["c1", "c2"]})
    read.remember_command("c3", present={"c2", "c9"})
    assert read.commands == ["c2", "c3"]


def lost(index: int, **more: Any) -> Loss:
    failure = Failure(cause=LossCause.EXITED, **more)
    return Loss(task="a", index=index, pod=f"j-a-{index}", uid=f"u{index}", node="n", failure=failure, gone=False)


def test_the_evidence_of_a_loss() -> None:
    read = ledger()
    whole = lost(0, exit_codes=(139, 1), signal=11, at=NOW - timedelta(minutes=1), reason="Error", message="m")
    read.add_losses([whole, lost(1)], now=NOW)
    assert [loss.dump() for loss in read.losses] == [
        {
            "pod": "j-a-0",
            "uid": "u0",
            "cause": "Exited",
            "exitCode": 139,
            "signal": 11,
            "reason": "Error",
            "node": "n",
            "message": "m",
            "version": 1,
            "time": SINCE,
        },
        {"pod": "j-a-1", "uid": "u1", "cause": "Exited", "node": "n", "version": 1, "time": "2026-11-20T12:00:00Z"},
    ]


def test_the_first_losses_of_an_attempt_stay_and_those_of_earlier_ones_make_room() -> None:
    read = ledger()
    read.add_losses([lost(index) for index in range(20)], now=NOW)
    assert [loss.pod for loss in read.losses] == [f"j-a-{index}" for index in range(16)]
    read.end_attempt()
    read.add_losses([lost(30), lost(31)], now=NOW)
    assert [loss.pod for loss in read.losses] == [*(f"j-a-{index}" for index in range(2, 16)), "j-a-30", "j-a-31"]
