"""What a line of `job list` says of a job that waits or has ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from vcbatch.cli.base.table import Cell
from vcbatch.cli.base.terminal import PLAIN
from vcbatch.cli.resources.job.describe import JobScreen, described
from vcbatch.cli.resources.job_columns import JOB
from vcbatch.cli.resources.kinds import job_restarts

Json = dict[str, Any]

NOW = datetime(2026, 6, 1, tzinfo=UTC)
EXITED = "pod research-w-0 exited with code 3 on node n-1"


def job(phase: str, *, reason: str = "", message: str = "", most: int = 3, retries: int = 0, taken: int = 0) -> Json:
    return {
        "metadata": {"name": "research", "namespace": "default", "uid": "u"},
        "spec": {"minAvailable": 2, "maxRetry": most, "tasks": [{"name": "w", "replicas": 2}]},
        "status": {
            "state": {"phase": phase, "reason": reason, "message": message},
            "retryCount": retries,
            "ledger": {"infrastructureRetries": taken},
        },
    }


def shown(column: str, of: Json) -> str:
    found = next(one for one in JOB.columns if one.name == column).cell(of, NOW)
    return found.text if isinstance(found, Cell) else found


@pytest.mark.parametrize(
    ("given", "reason", "message"),
    [
        (job("Failed", reason="PodFailed", message=EXITED), "PodFailed", "w-0 exited with code 3 on node n-1"),
        (
            job("Aborted", reason="PodFailed", message=f"Start to execute action AbortJob: {EXITED}"),
            "PodFailed",
            "w-0 exited with code 3 on node n-1",
        ),
        (job("Pending", message="Impossible: research-w-0: no node fits"), "Impossible", "w-0: no node fits"),
        (job("Pending", message="2 left of 30 in queue research-team-1"), "", "2 left of 30 in queue research-team-1"),
        (
            job("Aborted", reason="CommandIssued", message="Start to execute action AbortJob: x"),
            "CommandIssued",
            "suspended",
        ),
        (
            job("Terminated", reason="CommandIssued", message="Start to execute action TerminateJob: x"),
            "CommandIssued",
            "cancelled",
        ),
        (job("Failed", reason="OfAnother"), "OfAnother", ""),
        (job("Running", message="old news"), "", ""),
    ],
)
def test_the_reason_is_one_word_and_the_message_has_no_name_of_the_job(given: Json, reason: str, message: str) -> None:
    assert (shown("REASON", given), shown("MESSAGE", given)) == (reason, message)


@pytest.mark.parametrize(
    ("given", "restarts", "reported"),
    [
        (job("Running", retries=1), 1, "1 of 2 used"),
        (job("Failed", reason="RetriesExhausted", most=1, retries=1), 0, "no retries left"),
        (job("Failed", reason="RetriesExhausted", retries=3), 2, "no retries left (2 used)"),
        (
            job("Failed", reason="RetriesExhausted", retries=32, taken=31),
            31,
            "1 of 2 used, 30 restarts after infrastructure failures",
        ),
    ],
)
def test_the_restart_that_was_not_made_is_not_counted(given: Json, restarts: int, reported: str) -> None:
    assert job_restarts(given) == restarts
    assert f"Retries: {reported}\n" in described(JobScreen(job=given), PLAIN, now=NOW)
