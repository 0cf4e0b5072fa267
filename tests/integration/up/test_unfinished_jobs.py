"""What becomes of running jobs when the local server stops."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.up import RunningVcbatch, vcbatch


@pytest.fixture
def program(tmp_path: Path) -> Iterator[RunningVcbatch]:
    with RunningVcbatch(tmp_path) as program:
        yield program


def typed(program: RunningVcbatch, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "vcbatch", *arguments],
        env={**os.environ, "KUBECONFIG": str(program.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def start(program: RunningVcbatch) -> str:
    return vcbatch("up", "--detach", "--port", "0", "--state-dir", str(program.state)).stdout


def phase(program: RunningVcbatch) -> str:
    return json.loads(typed(program, "job", "list", "-o", "json"))["items"][0]["status"]["state"]["phase"]


def test_running_jobs_are_named_continued_and_suspended(program: RunningVcbatch) -> None:
    down = ("down", "--state-dir", str(program.state))
    typed(program, "run", "--detach", "--name", "long", "--", "sleep", "600")
    typed(program, "wait", "long", "--for", "running", "--timeout", "60s")

    stopped = vcbatch(*down)
    assert stopped.stdout == "vcbatch stopped\n"
    assert stopped.stderr.startswith("job default/long stopped while running\n")
    assert "Continuing job default/long\n" in start(program)
    typed(program, "wait", "long", "--for", "running", "--timeout", "60s")

    stopped = vcbatch(*down, "--suspend-running")
    assert stopped.stderr == "suspended job default/long\n"
    assert "Suspended: job default/long. To resume one: vcbatch job resume NAME\n" in start(program)
    assert phase(program) == "Aborted"
    stopped = vcbatch(*down)
    assert (stopped.stdout, stopped.stderr) == ("vcbatch stopped\n", "")
