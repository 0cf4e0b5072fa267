"""Trainings that lose a worker, or are given one, and go on."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.up import RunningVcbatch
from tests.training.jobs import documents, to_the_end, type_section

pytestmark = pytest.mark.training


@pytest.fixture
def checkpoints(tmp_path: Path, running: RunningVcbatch) -> Iterator[Path]:
    folder = tmp_path / "checkpoints"
    yield folder
    running.kubectl("delete", "vcjob", "--all")


def loss_of(log: str, steps: int) -> float:
    found = re.search(rf"^trained {steps} steps, loss ([0-9.]+)$", log, re.MULTILINE)
    assert found, log
    return float(found[1])


def undisturbed_loss(script: str, steps: int, folder: Path) -> float:
    """What the same training comes to in one process, from the first step to the last."""
    folder.mkdir()
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    env = {**os.environ, **alone, "CHECKPOINTS": str(folder), "STEPS": str(steps), "PAUSE": "0"}
    done = subprocess.run(["python", "-c", script], capture_output=True, text=True, env=env, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return loss_of(done.stdout, steps)


def test_a_killed_worker_comes_back_and_training_goes_on_from_the_checkpoint(
    running: RunningVcbatch, checkpoints: Path, tmp_path: Path
) -> None:
    shorter = {"/tmp/vcbatch-resume": str(checkpoints), '"STEPS", "120"': '"STEPS", "80"'}
    config, _ = documents("pytorch-resume.yaml", replace=shorter)
    said = type_section(running, "Recovery from a worker failure", tmp_path, replace=shorter)
    assert said.startswith("1 [")

    status = to_the_end(running, "resume")["status"]
    assert status["retryCount"] == 1
    lost = next(loss for loss in status["ledger"]["losses"] if loss["pod"] == "resume-trainer-1")
    assert (lost["exitCode"], lost["signal"], lost["cause"]) == (137, 9, "Exited")
    log = running.kubectl("logs", "resume-trainer-0").ok()
    resumed = re.search(r"^rank 0 of 3, process \d+, goes on after step (\d+)$", log, re.MULTILINE)
    assert resumed
    assert 20 <= int(resumed[1]) < 80
    undisturbed = undisturbed_loss(config["data"]["train.py"], 80, tmp_path / "alone")
    assert loss_of(log, 80) == pytest.approx(undisturbed, abs=1e-4)
    assert list(checkpoints.iterdir()) == []


def test_an_elastic_training_takes_a_worker_in_and_outlives_its_death(
    running: RunningVcbatch, checkpoints: Path, tmp_path: Path
) -> None:
    shorter = {"/tmp/vcbatch-elastic": str(checkpoints), '"STEPS", "300"': '"STEPS", "200"'}
    objects = documents("pytorch-elastic.yaml", replace=shorter)
    type_section(running, "Elastic training", tmp_path, replace=shorter)

    status = to_the_end(running, "elastic")["status"]
    assert [(lost["pod"], lost["exitCode"]) for lost in status["ledger"]["losses"]] == [("elastic-worker-1", 137)]
    log = running.kubectl("logs", "elastic-master-0").ok()
    rounds = [
        (int(ranks), int(step))
        for ranks, step in re.findall(r"^rank \d of (\d) goes on after step (\d+)$", log, re.MULTILINE)
    ]
    assert [ranks for ranks, _ in rounds[:2]] == [2, 3]
    assert len(rounds) >= 3, log
    steps = [step for _, step in rounds]
    assert steps == sorted(steps)
    assert steps[1] > 0
    # As a batch is the same however many share it, so is what is learnt.
    undisturbed = undisturbed_loss(objects[0]["data"]["train.py"], 200, tmp_path / "alone")
    assert loss_of(log, 200) == pytest.approx(undisturbed, abs=1e-3)
