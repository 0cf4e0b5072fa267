"""The commands of people on a `vcbatch up`: what they ask for happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.processes import wait_until
from tests.support.up import RunningVcbatch

pytestmark = pytest.mark.xdist_group("cli-screens-live")

PATIENCE = 60.0


def job(name: str, *, cpu: str, queue: str = "default", command: str = "sleep inf") -> dict[str, Any]:
    container = {"name": "m", "image": "x", "command": command.split(), "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"minAvailable": 1, "queue": queue, "tasks": [{"name": "w", "replicas": 1, "template": template}]}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


class People:
    """Types commands at a server."""

    def __init__(self, kubeconfig: Path) -> None:
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    def run(self, *arguments: str, code: int = 0) -> str:
        """What it says; stderr too, which is part of the failure."""
        done = subprocess.run(
            [sys.executable, "-m", "vcbatch", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr if code else done.stdout

    def follow(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "vcbatch", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As at a terminal; what runs in the background inherits that Ctrl-C isn't for it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def submit(self, body: dict[str, Any]) -> None:
        # By the client of the package, since kubectl needn't be there.
        code = (
            "import json, sys\nfrom vcbatch.api.resources import JOBS\nfrom vcbatch.cli.base.access import Access\n"
            "body = json.load(sys.stdin)\n"
            "Access().once(lambda api: api.create(JOBS, body, namespace='default'))\n"
        )
        subprocess.run(
            [sys.executable, "-c", code],
            env=self.environment,
            input=json.dumps(body),
            text=True,
            check=True,
            timeout=60,
        )

    def wait(self, name: str, holds: Callable[[str, str], bool]) -> None:
        """Until the job's phase and queue are such."""
        deadline = time.monotonic() + PATIENCE
        reported = ""
        while time.monotonic() < deadline:
            reported = self.run("job", "get", name, "-o", "jsonpath={.status.state.phase} {.spec.queue}")
            phase, _, queue = reported.partition(" ")
            if holds(phase, queue):
                return
            time.sleep(0.2)
        raise AssertionError(f"job {name} stays {reported}")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    folder = tmp_path_factory.mktemp("screens")
    with RunningVcbatch(folder, ["--virtual-nodes", "1", "--kubelet-mode", "none"]) as program:
        yield People(program.kubeconfig)


def test_the_doctor_finds_nothing(people: People) -> None:
    said = people.run("doctor")
    assert "failed" not in said
    assert "ok       connection" in said


def test_a_waiting_job_is_explained_moved_and_runs_again(people: People) -> None:
    people.run("queue", "create", "side")
    people.submit(job("large", cpu="100000"))
    people.wait("large", lambda phase, _: phase == "Pending")
    assert "large is Pending" in people.run("job", "explain", "large")
    assert people.run("job", "move", "large", "side") == "job.batch.volcano.sh/large moved to queue side\n"
    people.wait("large", lambda phase, queue: queue == "side" and phase == "Pending")
    assert "moving-large" not in people.run("jobtemplate", "list", "-o", "name")
    people.run("job", "delete", "large")

    people.submit(job("long", cpu="1"))
    people.wait("long", lambda phase, _: phase == "Running")
    assert "vcbatch job suspend long" in people.run("job", "move", "long", "side", code=1)
    people.run("job", "suspend", "long")
    people.wait("long", lambda phase, _: phase == "Aborted")
    people.run("job", "resume", "long")
    people.wait("long", lambda phase, _: phase == "Running")
    assert people.run("job", "requeue", "long") == "job.batch.volcano.sh/long requeued\n"
    twice = "0 of 2 used, resumed 2 times"
    wait_until("it was resumed twice", lambda: twice in people.run("job", "describe", "long"))
    people.wait("long", lambda phase, _: phase == "Running")
    assert "long" in people.run("job", "top")
    people.run("job", "delete", "long")


def test_changes_are_followed_until_somebody_has_seen_enough(people: People) -> None:
    watch = people.follow("job", "list", "-w", "-o", "name")
    try:
        people.submit(job("seen", cpu="1", command="true"))
        assert watch.stdout is not None
        assert watch.stdout.readline() == "job.batch.volcano.sh/seen\n"
        watch.send_signal(signal.SIGINT)
        assert watch.wait(timeout=PATIENCE) == 130
    finally:
        watch.kill()
        watch.communicate()


def test_where_nothing_is_yet_that_is_said_while_it_is_watched_for(people: People) -> None:
    watch = people.follow("job", "list", "-w", "-l", "nobody=has-it")
    try:
        assert watch.stderr is not None
        assert watch.stderr.readline().startswith("No matching jobs found in namespace ")
        assert watch.poll() is None
    finally:
        watch.kill()
        watch.communicate()
