"""What `job list` shows of a job, in which order, and which jobs it selects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.screens.play import call
from tests.support.kubeconfigs import kubeconfig
from tests.support.served_cluster import served_cluster
from vcbatch.api.timestamps import format_time
from vcbatch.cli.base.table import table
from vcbatch.cli.base.terminal import Terminal, cells
from vcbatch.cli.resources.columns import fit_of, shown_columns
from vcbatch.cli.resources.job_columns import JOB, job_elapsed, job_gpus, job_order, job_reason, user_of

Json = dict[str, Any]
NOW = datetime(2026, 11, 22, 20, 20, tzinfo=UTC)


def ago(**span: float) -> str:
    return format_time(NOW - timedelta(**span))


def job(
    name: str = "train",
    phase: str = "Running",
    *,
    created: str = "",
    since: str = "",
    log: list[tuple[str, str]] | None = None,
    ran: int | None = None,
    requests: dict[str, str] | None = None,
    replicas: int = 1,
    user: str = "",
    queue: str = "default",
    **state: str,
) -> Json:
    container = {"name": "m", "image": "x", "resources": {"requests": requests or {}}}
    metadata: Json = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": created or ago(hours=9)}
    if user:
        metadata["annotations"] = {"vcbatch.dev/user": user}
    tasks = [{"name": "w", "replicas": replicas, "template": {"spec": {"containers": [container]}}}]
    status: Json = {"state": {"phase": phase, "lastTransitionTime": since or ago(hours=1), **state}}
    if log is not None:
        status["conditions"] = [{"status": of, "lastTransitionTime": at} for of, at in log]
    if ran is not None:
        status["ledger"] = {"ranSeconds": ran}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"queue": queue, "tasks": tasks},
        "status": status,
    }


def test_running_jobs_come_first_and_of_each_group_the_newest() -> None:
    jobs = [
        job("done-old", "Completed", created=ago(days=3)),
        job("waits-old", "Pending", created=ago(days=2)),
        job("runs-old", "Running", created=ago(days=9)),
        job("held", "Aborted", created=ago(minutes=1)),
        job("failed-new", "Failed", created=ago(seconds=5)),
        job("waits-new", "Pending", created=ago(hours=1)),
        job("restarts-new", "Restarting", created=ago(hours=2)),
    ]
    assert [one["metadata"]["name"] for one in sorted(jobs, key=job_order)] == [
        "restarts-new",
        "runs-old",
        "waits-new",
        "waits-old",
        "held",
        "failed-new",
        "done-old",
    ]


@pytest.mark.parametrize(
    ("given", "elapsed"),
    [
        (job("a", "Pending", log=[("Pending", ago(hours=3))]), ""),
        (job("a", "Running", since=ago(minutes=7)), "7m"),
        (job("a", "Running", since=ago(minutes=1), ran=3600), "61m"),
        (job("a", "Pending", log=[("Running", ago(hours=3)), ("Pending", ago(hours=1))], ran=90), "90s"),
        (job("a", "Completed", log=[("Running", ago(hours=3)), ("Completed", ago(hours=1))]), "120m"),
        (job("a", "Completed", log=[("Running", ago(hours=3)), ("Completed", ago(hours=3))], ran=0), "<1s"),
        (job("a", "Terminated", log=[("Pending", ago(hours=3)), ("Terminated", ago(hours=1))], ran=0), ""),
    ],
)
def test_the_elapsed_time_is_that_of_phase_running(given: Json, elapsed: str) -> None:
    assert job_elapsed(given, NOW) == elapsed


def test_gpus_are_those_of_all_pods_and_vendors() -> None:
    assert job_gpus(job(requests={"nvidia.com/gpu": "8", "cpu": "4"}, replicas=4)) == 32
    assert job_gpus(job(requests={"amd.com/gpu": "1"})) == 1
    assert job_gpus(job(requests={"cpu": "4", "example.com/fpga": "2"})) == 0


def test_a_job_without_a_recorded_user_has_none() -> None:
    assert user_of(job(user="ada@example.com")) == "ada@example.com"
    assert user_of(job()) == "-"


def test_the_reason_is_the_code_of_the_scheduler_not_that_of_the_phase() -> None:
    message = "2/0 tasks in gang unschedulable: x. Origin reason is QueueLimit: cpu is short"
    assert job_reason(job(phase="Pending", reason="NotEnoughResources", message=message)) == "QueueLimit"
    assert job_reason(job(phase="Completed", reason="CommandIssued")) == ""


@pytest.mark.parametrize("namespaces", [False, True])
def test_no_line_is_wider_than_80_columns(namespaces: bool) -> None:
    long = job(
        "a-very-long-name-of-a-training-job-0001-x7k2p",
        "Terminating",
        user="someone.with.a.long.name@research.example.com",
        queue="research-department-two",
        requests={"nvidia.com/gpu": "8"},
        replicas=1000 if not namespaces else 16,
        reason="TopologyPlacementFailed",
        message="TopologyPlacementFailed: waiting for objects that are being deleted",
    )
    long["metadata"]["namespace"] = "a-long-namespace-of-a-team"
    columns = shown_columns(JOB.columns, wide=False, namespaces=namespaces)
    rows = [[column.name for column in columns], [column.cell(long, NOW) for column in columns]]
    lines = table(rows, terminal=Terminal(width=80), **fit_of(columns)).splitlines()
    assert max(map(cells, lines)) <= 80
    assert "x7k2p" in lines[1]  # the end of a name, which tells it from others
    full = table(rows, **fit_of(columns))
    assert "a-very-long-name-of-a-training-job-0001-x7k2p" in full  # not in a pipe


def listed(tmp_path: Any, jobs: list[Json], *options: str, who: str = "ada") -> tuple[list[str], str]:
    """The names that `job list` prints with these options for the user `who`, and its messages."""
    with served_cluster(jobs, user=who) as cluster:
        code, out, err = call(["job", "list", "-o", "name", *options], kubeconfig(tmp_path, cluster.url))
    assert code == 0, err
    return [line.rpartition("/")[2] for line in out.splitlines()], err


def test_mine_selects_by_the_recorded_user(tmp_path: Any) -> None:
    jobs = [job("a", user="ada"), job("b", user="bob"), job("c")]
    assert listed(tmp_path, jobs, "--mine") == (["a"], "")
    names, err = listed(tmp_path, [job("a"), job("b")], "--mine")
    assert names == []
    assert "no job has a recorded user" in err
    names, err = listed(tmp_path, jobs, "--mine", who="carl")
    assert names == []
    assert "recorded user" not in err


def test_since_selects_unfinished_jobs_and_those_that_finished_lately(tmp_path: Any) -> None:
    jobs = [
        job("runs", "Running", created=ago(days=30), since=ago(days=30)),
        job("yesterday", "Completed", created=ago(days=30), since=ago(hours=20)),
        job("long-ago", "Failed", created=ago(days=30), since=ago(days=8)),
    ]
    assert listed(tmp_path, jobs, "--since", "24h")[0] == ["runs", "yesterday"]
    assert listed(tmp_path, jobs, "--since", "9d")[0] == ["runs", "long-ago", "yesterday"]
    assert listed(tmp_path, jobs, "--since", "24h", "--phase", "completed")[0] == ["yesterday"]
