"""The example jobs, with the real frameworks, to the end."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.up import RunningVcbatch
from tests.training.jobs import EXAMPLES, documents, submit, to_the_end

pytestmark = pytest.mark.training


def accuracy(log: str, label: str) -> float:
    found = re.search(rf"^{label} accuracy ([0-9.]+)$", log, re.MULTILINE)
    assert found, log
    return float(found[1])


def test_pytorch_learns_the_digits_on_three_ranks(running: RunningVcbatch) -> None:
    submit(running, documents("pytorch-ddp.yaml"))
    to_the_end(running, "digits")
    log = running.kubectl("logs", "digits-master-0").ok()
    assert "3 ranks" in log
    assert accuracy(log, "test") > 0.95


def test_tensorflow_workers_mirror_their_variables(running: RunningVcbatch) -> None:
    submit(running, documents("tensorflow-multiworker.yaml"))
    to_the_end(running, "mirrored")
    assert accuracy(running.kubectl("logs", "mirrored-worker-0").ok(), "training") > 0.9


def test_any_program_can_be_a_gang(running: RunningVcbatch) -> None:
    submit(running, documents("anything.yaml"))
    to_the_end(running, "anything")
    log = running.kubectl("logs", "anything-member-1").ok()
    assert "I am 1 on anything-member-1, one of 3: anything-member-0.anything," in log


def test_the_demo_shows_the_training_and_leaves_nothing_running() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Completed" in done.stdout
    assert re.search(r"epoch +1/12 +loss", done.stdout)
