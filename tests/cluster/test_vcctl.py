"""Volcano's own commands on a real control plane: TLS and client certificates, lists in pages, selectors of the server,
refusals, and their effect on jobs and queues."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.components import CONTROLLERS, SCHEDULER, Components
from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import wait_until
from vcbatch.api.resources import JOBS, QUEUES

ALONE = "--leader-elect=false"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    control_plane.add_nodes(1)
    with Components(control_plane) as programs:
        for part in (CONTROLLERS, SCHEDULER):
            programs.start(part, ALONE).wait_ready()
        yield control_plane


def typed(plane: ControlPlane, program: str, *arguments: str, code: int = 0, kubeconfig: Path | None = None) -> str:
    """What a command printed; `code` is the exit code that it has to have."""
    done = subprocess.run(
        [sys.executable, "-c", f"from vcbatch.cli.vcctl.main import {program}; {program}()", *arguments],
        env={**os.environ, "KUBECONFIG": str(kubeconfig or plane.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def phase(plane: ControlPlane, name: str) -> Any:
    return plane.call("GET", JOBS.path(namespace="default", name=name)).get("status", {}).get("state", {}).get("phase")


def test_a_job_goes_the_way_that_scripts_send_it(plane: ControlPlane) -> None:
    assert typed(plane, "vsub", "-n", "sent", "-r", "2", "-c", "sleep inf") == "run job sent successfully\n"
    wait_until("the job runs", lambda: phase(plane, "sent") == "Running")
    row = typed(plane, "vcctl", "job", "list", "--selector", "sent").splitlines()[1].split()
    assert (row[0], row[2], row[4], row[7]) == ("sent", "Running", "2", "2")
    assert len(typed(plane, "vcctl", "pod", "list", "-j", "sent").splitlines()) == 3
    typed(plane, "vsuspend", "-n", "sent")
    wait_until("the job is aborted", lambda: phase(plane, "sent") == "Aborted")

    def viewed() -> str:
        return typed(plane, "vcctl", "job", "view", "-N", "sent")

    assert "    Phase:\tAborted\n" in viewed()
    wait_until("its events tell of it", lambda: "AbortJob" in viewed().partition("Events:")[2])
    typed(plane, "vcctl", "job", "resume", "-N", "sent")
    wait_until("the job runs again", lambda: phase(plane, "sent") == "Running")
    assert typed(plane, "vcctl", "job", "delete", "-N", "sent") == "delete job sent successfully\n"


def test_a_queue_is_closed_by_a_command(plane: ControlPlane) -> None:
    typed(plane, "vcctl", "queue", "create", "-n", "shut", "-S", "Closed")
    where = QUEUES.path(name="shut")
    wait_until("the queue is closed", lambda: plane.call("GET", where).get("status", {}).get("state") == "Closed")
    assert typed(plane, "vqueues", "-n", "shut").splitlines()[1].split()[:3] == ["shut", "1", "Closed"]


def test_more_jobs_than_fit_into_a_page_are_all_listed(plane: ControlPlane) -> None:
    count = 510
    containers = [{"name": "c", "image": "busybox"}]
    job = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        # Of another scheduler, so that nobody does anything about them.
        "spec": {"schedulerName": "nobody", "tasks": [{"name": "w", "template": {"spec": {"containers": containers}}}]},
    }
    plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": "many"}})
    for number in range(count):
        plane.call("POST", JOBS.path(namespace="many"), {**job, "metadata": {"name": f"many-{number:03d}"}})
    rows = typed(plane, "vcctl", "job", "list", "-n", "many").splitlines()[1:]
    assert [row.split()[0] for row in rows] == [f"many-{number:03d}" for number in range(count)]


def test_who_may_not_is_told_so(plane: ControlPlane) -> None:
    said = typed(plane, "vcctl", "job", "list", code=255, kubeconfig=plane.user("nobody"))
    assert said.startswith("Failed to list job: jobs.batch.volcano.sh is forbidden: ")
    assert "not found" in typed(plane, "vcctl", "job", "delete", "-N", "nope", code=255)
