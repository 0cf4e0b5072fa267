"""The layouts that Volcano's commands have, written down by hand: titles, and where each column begins."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from tests.contract.cli.transcripts import call, objects, quiet_world
from tests.support.served_cluster import Cluster, served_cluster

JOBS = [
    ("Creation", 15), ("Phase", 12), ("JobType", 12), ("Replicas", 12), ("Min", 6), ("Pending", 10), ("Running", 10),
    ("Succeeded", 12), ("Failed", 10), ("Unknown", 12), ("RetryCount", 10),
]  # fmt: skip
COUNTS = [("Inqueue", 8), ("Pending", 8), ("Running", 8), ("Unknown", 8)]
LONGEST_JOB = "waiting-for-a-very-long-time"
LONGEST_POD = "waiting-for-a-very-long-time-w-0"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with quiet_world(), served_cluster(objects()) as served:
        yield served


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        ("vcctl job list", [("Name", len(LONGEST_JOB) + 3), *JOBS]),
        ("vjobs", [("Name", len(LONGEST_JOB) + 3), *JOBS]),
        (
            "vcctl job list --all-namespaces",
            [("Namespace", len("Namespace") + 3), ("Name", len(LONGEST_JOB) + 3), *JOBS],
        ),
        (
            "vcctl queue list",
            [("Name", 25), ("Weight", 8), ("State", 8), ("Parent", 8), *COUNTS, ("Completed", 8)],
        ),
        (
            "vcctl queue get -n root",
            [("Name", 25), ("Weight", 8), ("State", 8), ("Parent", 8), *COUNTS, ("Completed", 8)],
        ),
        ("vqueues", [("Name", 25), ("Weight", 8), ("State", 8), *COUNTS]),
        ("vqueues -n root", [("Name", 25), ("Weight", 8), ("State", 8), *COUNTS]),
        (
            "vcctl jobflow list",
            [("Name", 8), ("Namespace", 13), ("Phase", len("Succeed") + 4), ("Age", len("3h38m") + 4)],
        ),
        ("vcctl jobtemplate list", [("Name", 8), ("Namespace", 13)]),
        (
            "vcctl pod list",
            [
                ("Name", len(LONGEST_POD) + 8),
                ("Ready", len("0/1") + 8),
                ("Status", len("Completed") + 8),
                ("Restart", len("Restart") + 2),
                ("Age", len("3h59m") + 8),
            ],
        ),
    ],
)
def test_every_column_is_where_scripts_look_for_it(cluster: Cluster, command: str, columns: list[tuple[str, int]]):
    code, out, _ = call(shlex.split(command), cluster.url)
    header, *rows = out.splitlines()
    assert code == 0 and rows
    assert header == "".join(title.ljust(width) for title, width in columns)
    for row in rows:
        assert len(row) == sum(width for _, width in columns)
        at = 0
        for _, width in columns:
            cell = row[at : at + width]
            assert not cell.startswith(" ") or cell.isspace()
            at += width


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("vcctl job run -N x", "run job x successfully\n"),
        ("vsub -n x", "run job x successfully\n"),
        ("vcctl job delete -N held", "delete job held successfully\n"),
        ("vcancel -n held", "cancel job held successfully\n"),
        ("vcctl job suspend -N held", ""),
        ("vcctl job resume -N held", ""),
        ("vsuspend -n held", ""),
        ("vresume -n held", ""),
        ("vcctl queue create", ""),
        ("vcctl queue operate -n default -a close", ""),
        ("vcctl queue delete -n default", ""),
        ("vcctl job list -n nobody", "No resources found\n"),
        ("vcctl jobflow delete -N f", "Deleted JobFlow: default/f\n"),
        ("vcctl jobtemplate delete -N a", "Deleted JobTemplate: default/a\n"),
    ],
)
def test_every_sentence_is_what_scripts_wait_for(cluster: Cluster, line: str, said: str):
    assert call(shlex.split(line), cluster.url) == (0, said, "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("vcctl job delete -N nope", 'Failed to delete job: jobs.batch.volcano.sh "nope" not found\n'),
        ("vcctl queue delete -n nope", 'Failed to delete queue: queues.scheduling.volcano.sh "nope" not found\n'),
        ("vcctl jobflow get -N nope", 'Failed to get jobflow: jobflows.flow.volcano.sh "nope" not found\n'),
        ("vcancel -n nope", 'Failed to: jobs.batch.volcano.sh "nope" not found\n'),
    ],
)
def test_what_fails_is_told_on_stdout_with_255(cluster: Cluster, line: str, said: str):
    code, out, _ = call(shlex.split(line), cluster.url)
    assert (code, out) == (255, said)


def test_a_command_is_in_the_name_of_its_job(cluster: Cluster):
    call(["vcctl", "queue", "operate", "-a", "close", "-n", "default"], cluster.url)
    method, path, command = cluster.writes[-1]
    assert (method, path) == ("POST", "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands")
    assert command["metadata"]["generateName"] == "default-closequeue-"
    assert command["metadata"]["ownerReferences"] == [command["target"]]
    assert command["target"]["controller"] is True
    assert command["action"] == "CloseQueue"


def test_a_job_is_shown_even_where_events_are_not(cluster: Cluster):
    cluster.broken.add("events")
    try:
        code, out, err = call(["vcctl", "job", "view", "-N", "held"], cluster.url)
    finally:
        cluster.broken.clear()
    assert code == 0
    assert out.endswith("Events: \t<none>\n")
    assert "events can't be read: events is forbidden" in err


def test_podgroups_that_cant_be_read_are_named(cluster: Cluster):
    cluster.broken.add("podgroups")
    try:
        _, out, _ = call(["vcctl", "queue", "get", "-n", "default"], cluster.url)
    finally:
        cluster.broken.clear()
    assert out.startswith(
        "Failed to get queue: failed to list podgroup for queue default with err: podgroups.scheduling.volcano.sh is"
    )
