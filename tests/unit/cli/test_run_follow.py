"""When `vcbatch run` takes a job for one that can never start."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.resources.test_job_list import ago, job
from vcbatch.cli.run.follow import impossible

NEVER = "1/0 tasks in gang unschedulable: x. Origin reason is Impossible: no node is large enough"
BUSY = "1/0 tasks in gang unschedulable: x. Origin reason is InsufficientResources: no node has room"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (job("a", "Pending", log=[("Pending", ago(seconds=1))], message=NEVER), "no node is large enough"),
        (job("a", "Pending", log=[("Pending", ago(seconds=1))], message=BUSY), ""),
        (job("a", "Pending", log=[("Running", ago(days=3)), ("Pending", ago(seconds=1))], message=NEVER), ""),
        (job("a", "Terminating", message=NEVER), ""),
    ],
)
def test_only_a_new_job_that_the_scheduler_calls_impossible(given: dict[str, Any], sentence: str) -> None:
    assert impossible(given) == sentence
