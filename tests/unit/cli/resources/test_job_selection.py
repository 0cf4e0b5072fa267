"""Cancelling and deleting several jobs at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.screens.play import call
from tests.support.kubeconfigs import kubeconfig
from tests.support.served_cluster import served_cluster
from tests.unit.cli.resources.test_job_list import ago, job

Json = dict[str, Any]
JOBS = [
    job("old-done", "Completed", created=ago(days=9), queue="vision"),
    job("old-runs", "Running", created=ago(days=8), queue="vision"),
    job("new-runs", "Running", created=ago(hours=1)),
    job("waits", "Pending", created=ago(minutes=5)),
]
JOBS[2]["metadata"]["labels"] = {"team": "speech"}


def run(tmp_path: Path, *words: str, answer: str | None = None) -> tuple[int, list[str], str]:
    """The exit code, the jobs of the sent requests, and the messages; with an answer at a terminal."""
    with served_cluster(JOBS) as cluster:
        file = kubeconfig(tmp_path, cluster.url)
        with mock.patch("sys.stdin") as stdin, mock.patch("click.confirm", return_value=answer == "y") as confirm:
            stdin.isatty.return_value = answer is not None
            code, out, err = call(["job", *words], file)
    asked = "".join(str(one.args[0]) for one in confirm.call_args_list)
    done = [
        path.rpartition("/")[2] if method == "DELETE" else body["target"]["name"]
        for method, path, body in cluster.writes
    ]
    return code, done, asked or err or out


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--all"], ["old-runs", "new-runs", "waits"]),
        (["--phase", "running"], ["old-runs", "new-runs"]),
        (["--phase", "running", "--older-than", "7d"], ["old-runs"]),
        (["-l", "team=speech"], ["new-runs"]),
        (["-q", "vision"], ["old-runs"]),
        (["--older-than", "30d"], []),
    ],
)
def test_unfinished_jobs_that_match_all_options_are_cancelled(
    tmp_path: Path, options: list[str], names: list[str]
) -> None:
    code, done, _ = run(tmp_path, "cancel", *options, "--yes")
    assert (code, sorted(done)) == (0, sorted(names))


def test_finished_jobs_are_deleted_too(tmp_path: Path) -> None:
    assert sorted(run(tmp_path, "delete", "--older-than", "7d", "--yes")[1]) == ["old-done", "old-runs"]


def test_the_question_names_the_number_and_no_is_kept(tmp_path: Path) -> None:
    code, done, asked = run(tmp_path, "delete", "--all", answer="n")
    assert (code, done) == (1, [])
    assert asked == "Delete 4 jobs in namespace default (2 Running, 1 Pending, 1 Completed)?"
    code, done, _ = run(tmp_path, "delete", "-q", "vision", answer="y")
    assert (code, sorted(done)) == (0, ["old-done", "old-runs"])


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_a_dry_run_changes_nothing(tmp_path: Path, verb: str) -> None:
    code, done, said = run(tmp_path, verb, "--phase", "running", "--dry-run")
    assert (code, done) == (0, [])
    past = {"cancel": "cancelled", "delete": "deleted"}[verb]
    assert said.splitlines() == [
        f"job.batch.volcano.sh/new-runs would be {past} (Running)",
        f"job.batch.volcano.sh/old-runs would be {past} (Running)",
    ]
    assert run(tmp_path, verb, "waits", "--dry-run")[1] == []


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["delete"], "is required"),
        (["cancel", "waits", "--all"], "mutually exclusive"),
        (["delete", "--all"], "not a terminal: use --yes"),
        (["delete", "--older-than", "a week", "--yes"], "invalid duration 'a week' (e.g. 90s, 2h30m, 7d)"),
    ],
)
def test_nothing_is_changed_by_mistake(tmp_path: Path, words: list[str], reported: str) -> None:
    code, done, said = run(tmp_path, *words)
    assert (code, done) == (2, [])
    assert reported in said
