"""How a job ended, as an exit code and a sentence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from vcbatch.cli.resources.outcome import exit_code, sentence
from vcbatch.cli.run.progress import standing

Json = dict[str, Any]
NOW = datetime(2026, 6, 1, 12, 3, 12, tzinfo=UTC)


def job(phase: str, *losses: Json, reason: str = "", message: str = "", **status: Any) -> Json:
    state = {"phase": phase, "reason": reason, "message": message, "lastTransitionTime": "2026-06-01T12:03:12Z"}
    return {
        "metadata": {"name": "train-x", "creationTimestamp": "2026-06-01T12:00:00Z"},
        "spec": {"tasks": [{"name": "w", "replicas": 4}]},
        "status": {"state": state, "ledger": {"losses": list(losses)}, **status},
    }


def loss(
    code: int = 0, *, version: int = 0, time: str = "2026-06-01T12:01:00Z", cause: str = "Exited", **of: Any
) -> Json:
    return {"exitCode": code, "version": version, "time": time, "cause": cause, **of}


def pod(code: int, ended: str) -> Json:
    return {"status": {"containerStatuses": [{"state": {"terminated": {"exitCode": code, "finishedAt": ended}}}]}}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (job("Completed", loss(3)), 0),
        (job("Failed", loss(3)), 3),
        (job("Failed", loss(9, version=0), loss(3, version=1, time="2026-06-01T12:02:00Z"), loss(7, version=1)), 7),
        (job("Failed", loss(signal=9)), 137),
        (job("Failed", loss(143, cause="Evicted", version=1), loss(4, version=0)), 4),
        (job("Failed"), 1),
        (job("Terminated"), 1),
        (job("Terminated", loss(143), reason="DeadlineExceeded"), 124),
    ],
)
def test_the_exit_code_is_that_of_what_failed_first_in_the_last_attempt(given: Json, code: int) -> None:
    assert exit_code(given) == code


def test_without_a_ledger_the_pods_are_looked_at() -> None:
    """As on a cluster with Volcano's controllers."""
    pods = [pod(0, "2026-06-01T12:00:01Z"), pod(137, "2026-06-01T12:00:03Z"), pod(5, "2026-06-01T12:00:02Z"), {}]
    assert exit_code(job("Failed"), pods) == 5
    assert exit_code(job("Failed", loss(3)), pods) == 3


def test_a_sentence_says_how_it_ended_and_why() -> None:
    assert sentence(job("Completed", message="old news"), now=NOW) == "train-x completed after 3m12s"
    exhausted = "pod train-x-w-0 exited with code 3; no retries left (maxRetry 3)"
    ended = job("Failed", reason="RetriesExhausted", message=exhausted, retryCount=3)
    assert sentence(ended, now=NOW) == "train-x failed after 3m12s and 2 restarts: pod train-x-w-0 exited with code 3"
    assert (
        sentence(job("Failed", message="a: b", retryCount=1), now=NOW)
        == "train-x failed after 3m12s and 1 restart: a: b"
    )
    late = "Start to execute action TerminateJob: it ran for 60 s, as long as it may"
    assert (
        sentence(job("Terminated", message=late), now=NOW)
        == "train-x terminated after 3m12s: it ran for 60 s, as long as it may"
    )


def test_the_foot_of_the_screen_says_how_it_stands() -> None:
    assert standing(job("Running", running=3, succeeded=1), now=NOW) == "train-x  Running  4/4 pods  3m12s"
    waiting = job("Pending", message="Busy: 2 GPUs short", retryCount=1)
    assert standing(waiting, now=NOW) == "train-x  Pending  0/4 pods  3m12s  1 restart  Busy: 2 GPUs short"
