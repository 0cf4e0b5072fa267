"""A program that is preempted saves its state on a signal, and resumes. Real processes."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Shell
from vcbatch.api.resources import PODS
from vcbatch.cli.base.access import Access

pytestmark = pytest.mark.xdist_group("cli")

PATIENCE = 90.0  # seconds, for what takes a few
EXAMPLE = Path(__file__).parents[3] / "examples" / "checkpoint.py"

TORCHRUN = """\
import os, signal, subprocess, sys
target = sys.argv[sys.argv.index("rank.py"):]
ranks = [subprocess.Popen([sys.executable, *target], env={**os.environ, "LOCAL_RANK": str(i)}) for i in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
"""
RANK = """\
import os, signal, sys, time
name = "rank" + os.environ["LOCAL_RANK"]
if os.path.exists(name):
    sys.exit(0)
def save(*_):
    open(name, "w").close()
    sys.exit(75)
signal.signal(signal.SIGUSR1, save)
open("up-" + name, "w").close()
time.sleep(600)
"""


def until(condition: object) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.2)


def preempt(shell: Shell, pod: str) -> None:
    """Delete a pod, as the scheduler does with a victim."""
    access = Access(kubeconfig=Path(shell.environment["KUBECONFIG"]))
    access.once(lambda api: api.delete(PODS, pod, namespace="default"))


def test_the_example_trains_is_preempted_saves_and_resumes(shell: Shell) -> None:
    shutil.copy(EXAMPLE, shell.folder)
    program = ["checkpoint.py", "--steps", "80"]
    shell.run("run", "--detach", "--name", "trains", "--signal", "USR1@30", "--", *program).ok()
    until(lambda: "start 1 at step 0" in shell.run("job", "logs", "trains").out)
    time.sleep(1)
    preempt(shell, "trains-worker-0")
    shell.run("wait", "trains", "--for", "completed", "--timeout", "90s").ok()
    state = json.loads((shell.folder / "checkpoint.json").read_text())
    assert state == {"step": 80, "starts": 2}
    log = shell.run("job", "logs", "trains").out.splitlines()
    first = int(log[0].rpartition(" ")[2])
    assert log[0].startswith("start 2 at step ") and 0 < first < 80
    assert log[-1] == "saved at step 80"


def test_under_torchrun_every_rank_saves(shell: Shell) -> None:
    module = shell.folder / "torch" / "distributed" / "run.py"
    module.parent.mkdir(parents=True)
    module.write_text(TORCHRUN)
    shell.file("rank.py", RANK)
    options = ["--nproc-per-node", "2", "--signal", "USR1@30"]
    shell.run("run", "--detach", "--name", "ranks", *options, "rank.py").ok()
    until(lambda: (shell.folder / "up-rank0").exists() and (shell.folder / "up-rank1").exists())
    preempt(shell, "ranks-master-0")
    shell.run("wait", "ranks", "--for", "completed", "--timeout", "90s").ok()
    assert (shell.folder / "rank0").exists() and (shell.folder / "rank1").exists()


def test_the_signal_comes_before_the_time_limit(shell: Shell) -> None:
    shutil.copy(EXAMPLE, shell.folder)
    began = time.monotonic()
    said = shell.run("run", "--time-limit", "15s", "--signal", "USR1@12", "checkpoint.py")
    assert said.code == 124, said
    assert "saved at step" in said.out
    assert time.monotonic() - began < 60
    assert json.loads((shell.folder / "checkpoint.json").read_text())["starts"] == 1
