"""Volcano's own commands against a whole server: what scripts do with them has the effect they expect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.processes import wait_until
from tests.support.up import RunningVcbatch

Run = Callable[..., str]


@pytest.fixture
def typed(shared: RunningVcbatch) -> Run:
    """Types a command; what it printed. `code`: the exit code that it has to have."""

    def run(program: str, *arguments: str, code: int = 0, stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-c", f"from vcbatch.cli.vcctl.main import {program}; {program}()", *arguments],
            env={**os.environ, "KUBECONFIG": str(shared.kubeconfig)},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


def until(program: RunningVcbatch, resource: str, path: str, value: str) -> None:
    program.kubectl("wait", resource, f"--for=jsonpath={{{path}}}={value}", "--timeout=80s").ok()


def test_a_job_is_run_suspended_resumed_and_deleted(typed: Run, shared: RunningVcbatch) -> None:
    said = typed("vsub", "-n", "held", "-c", "sleep 600", "-R", "cpu=10m,memory=16Mi", "-L", "")
    assert said == "run job held successfully\n"
    until(shared, "vcjob/held", ".status.state.phase", "Running")
    row = typed("vcctl", "job", "list").splitlines()[1].split()
    assert (row[0], row[2], row[4], row[5], row[7]) == ("held", "Running", "1", "1", "1")
    assert "held-default0-0" in typed("vcctl", "pod", "list", "--job", "held")
    typed("vcctl", "job", "suspend", "-N", "held")
    until(shared, "vcjob/held", ".status.state.phase", "Aborted")
    wait_until("its events tell of it", lambda: "AbortJob" in typed("vcctl", "job", "view", "-N", "held"))
    typed("vresume", "-n", "held")
    until(shared, "vcjob/held", ".status.state.phase", "Running")
    assert typed("vcancel", "-n", "held") == "cancel job held successfully\n"
    shared.kubectl("wait", "vcjob/held", "--for=delete", "--timeout=80s").ok()
    assert "not found" in typed("vcctl", "job", "delete", "-N", "held", code=255)


def test_a_job_comes_from_standard_input(typed: Run) -> None:
    job = """
    apiVersion: batch.volcano.sh/v1alpha1
    kind: Job
    metadata: {name: piped}
    spec:
      tasks:
      - replicas: 1
        template:
          spec: {restartPolicy: Never, containers: [{name: c, image: busybox, command: [echo, "---"]}]}
    """
    assert typed("vcctl", "job", "run", "-f", "-", stdin=job) == "run job piped successfully\n"
    refused = typed("vcctl", "job", "run", "-f", "-", stdin=job.replace("replicas: 1", "replicas: -1"), code=255)
    assert refused.startswith("Failed to run job: ") and "replicas" in refused
    typed("vcctl", "job", "delete", "-N", "piped")


def test_a_queue_is_made_closed_and_opened(typed: Run, shared: RunningVcbatch) -> None:
    typed("vcctl", "queue", "create", "-n", "shut", "-w", "3", "-S", "Closed")
    until(shared, "queue/shut", ".status.state", "Closed")
    assert typed("vqueues", "-n", "shut").splitlines()[1].split()[:3] == ["shut", "3", "Closed"]
    typed("vcctl", "queue", "operate", "-n", "shut", "-a", "open")
    until(shared, "queue/shut", ".status.state", "Open")
    typed("vcctl", "queue", "operate", "-n", "shut", "-a", "update", "-w", "5")
    assert typed("vcctl", "queue", "get", "-n", "shut").splitlines()[1].split()[:4] == ["shut", "5", "Open", "root"]
    typed("vcctl", "queue", "delete", "-n", "shut")


def test_flows_come_from_files_and_each_gets_its_line(typed: Run, tmp_path: Path) -> None:
    file = tmp_path / "templates.yaml"
    one = """
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: NAME}
spec:
  tasks:
  - replicas: 1
    template:
      spec: {restartPolicy: Never, containers: [{name: c, image: busybox, command: ["true"]}]}
---
"""
    file.write_text(one.replace("NAME", "first") + one.replace("NAME", "not_a_name"))
    said = typed("vcctl", "jobtemplate", "create", "-f", str(file), code=255).splitlines()
    assert said[0] == "Created JobTemplate: default/first"
    assert said[1].startswith("Failed to create JobTemplate: ")
    assert said[2] == "Failed to create jobtemplate: 1 of 2 failed"
    assert typed("vcctl", "jobtemplate", "describe", "-N", "first").startswith("apiVersion: flow.volcano.sh/v1alpha1\n")
    assert typed("vcctl", "jobtemplate", "delete", "-N", "first") == "Deleted JobTemplate: default/first\n"
