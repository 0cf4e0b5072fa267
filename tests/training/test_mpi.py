"""mpirun in the master starts ranks in the workers, with no ssh server anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.up import RunningVcbatch
from tests.training.jobs import documents, submit, to_the_end, type_section

pytestmark = pytest.mark.training


@pytest.fixture(autouse=True)
def tidy(running: RunningVcbatch) -> Iterator[None]:
    if {path.name for path in Path("/sys/class/net").iterdir()} <= {"lo"}:
        pytest.skip("Open MPI's launcher needs a network interface beside the loopback one")
    yield
    running.kubectl("delete", "vcjob", "sum")


def test_three_ranks_on_three_workers_add_up_to_the_same_sum(running: RunningVcbatch, tmp_path: Path) -> None:
    log = type_section(running, "MPI", tmp_path)
    ranks = re.findall(r"^rank (\d) of 3 on (\S+): (\d+) of (\d+)$", log, re.MULTILINE)
    total = sum(range(3000))
    expected = {(str(rank), f"sum-worker-{rank}", str(sum(range(rank, 3000, 3))), str(total)) for rank in range(3)}
    assert set(ranks) == expected, log


def test_a_rank_that_fails_fails_the_job(running: RunningVcbatch) -> None:
    submit(
        running,
        documents("mpi.yaml", replace={'"FAILING_RANK", "-1"': '"FAILING_RANK", "1"', "maxRetry: 2": "maxRetry: 1"}),
    )
    status = to_the_end(running, "sum", "Failed")["status"]
    assert "rank 1 gives up" in running.kubectl("logs", "sum-master-0").ok()
    assert [lost["pod"] for lost in status["ledger"]["losses"]] == ["sum-master-0"]
    assert status["ledger"]["losses"][0]["exitCode"] == 1
