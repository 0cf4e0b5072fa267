"""The example jobs, with the real frameworks, to the end."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.up import RunningVcbatch
from vcbatch.api.resources import JOBS

pytestmark = pytest.mark.training
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVcbatch]:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on the PATH")
    program = RunningVcbatch(tmp_path_factory.mktemp("training"))
    program.up()
    try:
        yield program
    finally:
        program.down()


def to_the_end(running: RunningVcbatch, manifest: str, job: str) -> None:
    running.kubectl("apply", "-f", str(EXAMPLES / manifest)).ok()
    wait = running.kubectl(
        "wait", f"{JOBS.plural}.{JOBS.group}/{job}", "--for=jsonpath={.status.state.phase}=Completed", "--timeout=80s"
    )
    for _ in range(3):
        if wait.code == 0:
            return
        wait = running.kubectl(
            "wait", f"vcjob/{job}", "--for=jsonpath={.status.state.phase}=Completed", "--timeout=80s"
        )
    described = running.kubectl("get", "vcjob,pods", "-o", "yaml").out
    raise AssertionError(f"{job} isn't Completed:\n{described[-6000:]}")


def accuracy(log: str, label: str) -> float:
    found = re.search(rf"^{label} accuracy ([0-9.]+)$", log, re.MULTILINE)
    assert found, log
    return float(found[1])


def test_pytorch_learns_the_digits_on_three_ranks(running: RunningVcbatch) -> None:
    to_the_end(running, "pytorch-ddp.yaml", "digits")
    log = running.kubectl("logs", "digits-master-0").ok()
    assert "3 ranks" in log
    assert accuracy(log, "test") > 0.95


def test_tensorflow_workers_mirror_their_variables(running: RunningVcbatch) -> None:
    to_the_end(running, "tensorflow-multiworker.yaml", "mirrored")
    assert accuracy(running.kubectl("logs", "mirrored-worker-0").ok(), "training") > 0.9


def test_any_program_can_be_a_gang(running: RunningVcbatch) -> None:
    to_the_end(running, "anything.yaml", "anything")
    log = running.kubectl("logs", "anything-member-1").ok()
    assert "I am 1 on anything-member-1, one of 3: anything-member-0.anything," in log


def test_the_demo_shows_the_training_and_leaves_nothing_running() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Completed" in done.stdout
    assert re.search(r"epoch +1/12 +loss", done.stdout)
