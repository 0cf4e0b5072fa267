"""The short forms of commands on jobs: they do the same as the long ones, and `submit` also takes files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.screens.play import call
from tests.support.kubeconfigs import kubeconfig
from tests.support.served_cluster import served_cluster
from tests.unit.cli.resources.test_job_list import job

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  {name}
spec:
  {least}: 1
  tasks:
  - name: w
    replicas: 1
    template:
      spec:
        containers:
        - {{name: m, image: busybox, command: ["true"]}}
"""


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (["ps", "--phase", "running"], ["job", "list", "--phase", "running"]),
        (["cancel", "a", "b"], ["job", "cancel", "a", "b"]),
        (["top"], ["job", "top"]),
        (["logs", "none"], ["job", "logs", "none"]),
    ],
)
def test_a_short_form_does_the_same(tmp_path: Path, short: list[str], long: list[str]) -> None:
    results = []
    for words in (short, long):
        with served_cluster([job("a"), job("b", "Completed")]) as cluster:
            done = call(words, kubeconfig(tmp_path, cluster.url))
            results.append((done, [(method, path) for method, path, _ in cluster.writes]))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["ps", "logs", "cancel", "submit", "top"])
def test_a_short_form_has_its_own_help(tmp_path: Path, name: str) -> None:
    code, out, _ = call([name, "--help"], str(tmp_path / "none"))
    assert code == 0
    assert out.startswith(f"Usage: vcbatch {name} ")


def submit(tmp_path: Path, *words: str) -> tuple[int, str, str, list[str]]:
    with served_cluster([job("there")]) as cluster:
        code, out, err = call(["submit", *words], kubeconfig(tmp_path, cluster.url))
    return code, out, err, [body["metadata"].get("name", "") for _, _, body in cluster.writes]


def test_files_are_created(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(JOB.format(name="name: a", least="minAvailable"))
    (tmp_path / "b.yaml").write_text(JOB.format(name="generateName: b-", least="minAvailable"))
    code, out, err, names = submit(tmp_path, "-f", str(tmp_path / "a.yaml"), "-f", str(tmp_path / "b.yaml"))
    assert (code, err, names) == (0, "", ["a", ""])
    assert out == "job.batch.volcano.sh/a created\njob.batch.volcano.sh/b-x2v4z created\n"


def test_a_typo_in_a_file_is_reported_with_its_position_before_anything_is_created(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(JOB.format(name="name: a", least="minAvailable"))
    (tmp_path / "b.yaml").write_text(JOB.format(name="name: b", least="minAvailabel"))
    code, out, err, names = submit(tmp_path, "-f", str(tmp_path / "a.yaml"), "-f", str(tmp_path / "b.yaml"))
    assert (code, out, names) == (1, "", [])
    assert "b.yaml:6:3: error: Job/b: " in err
    assert "minAvailable" in err


def test_an_existing_job_is_an_error_that_names_apply(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(JOB.format(name="name: there", least="minAvailable"))
    code, _, err, _ = submit(tmp_path, "-f", str(tmp_path / "a.yaml"))
    assert code == 1
    assert "already exists" in err and "vcbatch apply -f FILE" in err


def test_a_program_is_submitted_and_not_followed(tmp_path: Path) -> None:
    code, out, err, _ = submit(
        tmp_path, "--dry-run", "-o", "json", "--image", "x", "--name", "p", "--nodes", "2", "--", "sh", "-c", "true"
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["metadata"]["name"] == "p"


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ([], "PROGRAM or -f FILE is required"),
        (["-f", "-", "train.py"], "mutually exclusive"),
        (["-f", "-", "--nodes", "2"], "--nodes is an option for a PROGRAM"),
    ],
)
def test_what_is_submitted_is_clear(tmp_path: Path, words: list[str], reported: str) -> None:
    code, out, err, names = submit(tmp_path, *words)
    assert (code, out, names) == (2, "", [])
    assert reported in err
