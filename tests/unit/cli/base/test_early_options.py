"""The options for the server before and after the subcommand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.screens.play import call
from tests.support.served_cluster import served_cluster
from tests.unit.cli.base.test_access import config


def job(name: str, namespace: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": name}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": {}}


JOBS = [job("ours", "team"), job("theirs", "other")]


@pytest.mark.parametrize(
    ("before", "between", "after", "shown"),
    [
        ([], [], [], "ours"),
        (["-n", "other"], [], [], "theirs"),
        ([], ["-n", "other"], [], "theirs"),
        ([], [], ["-n", "other"], "theirs"),
        (["--context", "b"], [], [], "theirs"),
        (["--context", "b"], ["--namespace=team"], [], "ours"),
        (["-n", "nowhere"], ["-n", "team"], ["-n", "other"], "theirs"),
    ],
)
def test_the_last_one_wins(tmp_path: Path, before: list[str], between: list[str], after: list[str], shown: str) -> None:
    with served_cluster(JOBS) as cluster:
        file = str(config(tmp_path / "config", cluster.url))
        code, out, err = call([*before, "job", *between, "list", "-o", "name", *after], file)
    assert (code, err) == (0, "")
    assert out == f"job.batch.volcano.sh/{shown}\n"


def test_a_kubeconfig_before_the_command_is_the_one_that_is_read(tmp_path: Path) -> None:
    with served_cluster(JOBS) as cluster:
        file = str(config(tmp_path / "config", cluster.url))
        code, out, _ = call(["--kubeconfig", file, "job", "get", "ours", "-o", "name"], str(tmp_path / "none"))
    assert (code, out) == (0, "job.batch.volcano.sh/ours\n")


def test_a_cluster_wide_command_ignores_the_namespace(tmp_path: Path) -> None:
    with served_cluster([]) as cluster:
        file = str(config(tmp_path / "config", cluster.url))
        code, _, err = call(["-n", "other", "queue", "list"], file)
    assert (code, err) == (0, "No queues found.\n")


@pytest.mark.parametrize("command", [["down"], ["completion", "bash"]])
def test_a_command_without_a_server_refuses_them(tmp_path: Path, command: list[str]) -> None:
    code, out, err = call(["-n", "other", *command], str(tmp_path / "none"))
    assert (code, out) == (2, "")
    assert "has no option --namespace" in err
