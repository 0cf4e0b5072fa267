"""From Volcano to vcbatch and back, with jobs in five phases: no pod that runs is touched.

Volcano's side is played (`volcano_side`). The commands of the plan are run as they are printed, up to the installation:
vcbatch's programs are processes here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.components import CONTROLLERS, SCHEDULER, Components
from tests.cluster.conftest import MakeControlPlane
from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.gangs import phase, status, wait_phase
from tests.cluster.history import DELETED, PODS, Recorder
from tests.cluster.processes import wait_until
from tests.cluster.volcano_side import NAMESPACE, VolcanoSide, new_queue
from vcbatch.api.resources import COMMANDS, CRDS, CRONJOBS, JOBS, PODGROUPS, QUEUES

Json = dict[str, Any]


@pytest.fixture
def plane(make_control_plane: MakeControlPlane) -> Iterator[ControlPlane]:
    made = make_control_plane()
    made.add_nodes(3, cpu="16")
    yield made


class Shell:
    """A shell with kubectl and vcbatch, in a folder of its own."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.folder = folder
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "kubectl").symlink_to(plane.binaries.path("kubectl"))
        program = bin_folder / "vcbatch"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m vcbatch "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        self._environment = {
            "PATH": f"{bin_folder}:{os.environ['PATH']}", "KUBECONFIG": str(plane.kubeconfig), "HOME": str(folder),
            "PYTHONPATH": str(REPOSITORY),
        }  # fmt: skip

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-eu", "-o", "pipefail"], input=script, capture_output=True, text=True, check=False, timeout=300,
            cwd=self.folder, env=self._environment,
        )  # fmt: skip

    def must(self, script: str) -> str:
        done = self.run(script)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def steps(self, words: str = "") -> list[Json]:
        """The plan."""
        done = self.run(f"vcbatch migrate plan -o json {words}")
        assert done.stdout, done.stderr
        document = json.loads(done.stdout)
        assert document["blockers"] == []
        return list(document["steps"])


def untouched(history: Recorder, uids: set[str]) -> list[str]:
    """What happened to those pods that shouldn't have: deletions, requests for them, and restarts of containers."""
    history.catch_up()
    found: list[str] = []
    for change in history.changes(PODS):
        if change.uid not in uids:
            continue
        restarts = sum(one.get("restartCount", 0) for one in change.object["status"].get("containerStatuses") or ())
        if change.type == DELETED or change.object["metadata"].get("deletionTimestamp") or restarts:
            found.append(f"{change.type} {change.name}")
    return found


def uids(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def pod_groups(plane: ControlPlane) -> set[str]:
    return uids(plane.call("GET", PODGROUPS.path(namespace="default"))["items"])


def test_there_and_back_no_pod_is_touched(plane: ControlPlane, tmp_path: Path) -> None:
    volcano = VolcanoSide(plane)
    volcano.install()
    shell = Shell(plane, tmp_path)

    # Volcano's work: five jobs in as many phases, and a CronJob with a job that runs.
    running = volcano.job("running", 3)
    volcano.group(running, "Running")
    alive = volcano.pods(running, ["node-0", "node-1", "node-2"])
    volcano.wait_pods("Running", *alive)
    volcano.status(running, "Running", {"running": 3})

    waiting = volcano.job("waiting", 2, cpu="17")  # more than a node has, and less than the queue
    volcano.group(waiting, "Inqueue")
    pending = volcano.pods(waiting, ["", ""])
    volcano.status(waiting, "Pending", {"pending": 2})

    # Volcano deletes the PodGroup of a job whose pods it kills, and of one that has ended.
    suspended = volcano.job("suspended", 2)
    volcano.status(suspended, "Aborted", {}, version=8)

    restarting = volcano.job("restarting", 2)
    volcano.status(restarting, "Restarting", {}, version=3)

    done = volcano.job("done", 1, command="true")
    ended = volcano.pods(done, ["node-0"])
    volcano.wait_pods("Succeeded", *ended)
    volcano.status(done, "Completed", {"succeeded": 1})

    cron = volcano.cron("cron", {**running["spec"], "tasks": volcano.job("shape", 1)["spec"]["tasks"],
                                 "minAvailable": 1}, schedule="* * * * *")  # fmt: skip
    plane.call("DELETE", JOBS.path(namespace="default", name="shape"))
    slot = volcano.job("cron-29000000", 1, owner={"ownerReferences": [{
        "apiVersion": CRONJOBS.api_version, "kind": "CronJob", "name": "cron", "uid": cron["metadata"]["uid"],
        "controller": True, "blockOwnerDeletion": True}]})  # fmt: skip
    volcano.group(slot, "Running")
    ticking = volcano.pods(slot, ["node-1"])
    volcano.wait_pods("Running", *ticking)
    volcano.status(slot, "Running", {"running": 1})
    volcano.admission()

    groups = pod_groups(plane)
    kept = uids([*alive, *pending, *ended, *ticking])
    with Recorder(plane, PODS) as history:
        assert kept <= {change.uid for change in history.changes(PODS)}
        _there(plane, shell, history, kept)
        with Components(plane) as programs:
            programs.start(CONTROLLERS).wait_ready()
            programs.start(SCHEDULER).wait_ready()
            _goes_on(plane)
            assert groups <= pod_groups(plane)
            assert untouched(history, kept) == []
        later = {change.uid for change in history.changes(PODS) if change.type != DELETED}
        _back(plane, volcano, shell, running)
        with Components(plane) as programs:
            # And there again: what Volcano wrote meanwhile is taken for what it is.
            programs.start(CONTROLLERS).wait_ready()
            programs.start(SCHEDULER).wait_ready()
            wait_until("the job is handled again", lambda: bool(status(plane, "running").get("ledger")))
            assert status(plane, "running")["running"] == 3
        assert untouched(history, kept) == []
        assert kept <= later
    assert history.gaps == 0


def _there(plane: ControlPlane, shell: Shell, history: Recorder, kept: set[str]) -> None:
    """What `check` says, and the commands of the plan."""
    said = shell.run("vcbatch migrate check")
    assert said.returncode == 0, said.stdout + said.stderr
    for words in ("1 job Restarting (default/restarting)", "1 job Aborted", "1 CronJobs", "helm uninstall volcano"):
        assert words in said.stdout
    refused = shell.run("kubectl run bare --image=none")
    assert "failed calling webhook" in refused.stderr
    steps = shell.steps()
    titles = [step["title"] for step in steps]
    before = titles.index("Install vcbatch")
    in_flight = titles.index("Wait for jobs in transition (optional)")
    for number, step in enumerate(steps[:before]):
        if number != in_flight:
            shell.must("\n".join(step["commands"]))
        if step["title"].startswith("Stop Volcano's admission"):
            shell.must('kubectl run bare --image=none --overrides=\'{"spec":{"schedulerName":"none"}}\'')
    assert shell.must(f"kubectl get pods -n {NAMESPACE} -l app -o name") == ""
    owners = {
        crd["metadata"].get("annotations", {}).get("meta.helm.sh/release-name")
        for crd in plane.call("GET", CRDS.path())["items"]
    }
    assert owners == {None}
    assert (shell.folder / "volcano-scheduler-configmap.conf").read_text().startswith("actions")
    assert shell.must("kubectl get secret -n volcano-system -o name") == ""
    assert untouched(history, kept) == []


def _goes_on(plane: ControlPlane) -> None:
    """Each phase goes on as `check` said."""
    wait_until("the running job is handled", lambda: bool(status(plane, "running").get("ledger")))
    wait_phase(plane, "restarting", "Running")
    assert phase(plane, "running") == "Running"
    assert phase(plane, "waiting") == "Pending"
    assert phase(plane, "done") == "Completed"
    assert phase(plane, "suspended") == "Aborted"
    job = plane.call("GET", JOBS.path(namespace="default", name="suspended"))
    resume = {
        "apiVersion": COMMANDS.api_version, "kind": "Command", "metadata": {"name": "resume"}, "action": "ResumeJob",
        "target": {"apiVersion": JOBS.api_version, "kind": "Job", "name": "suspended", "uid": job["metadata"]["uid"]},
    }  # fmt: skip
    plane.call("POST", COMMANDS.path(namespace="default"), resume)
    wait_phase(plane, "suspended", "Running")
    new_queue(plane, "later", parent="root")
    path = QUEUES.path(name="later")
    wait_until(
        "our queue controller opens it", lambda: plane.call("GET", path).get("status", {}).get("state") == "Open"
    )
    wait_until("the CronJob makes the job of its next slot", lambda: len(_of_cron(plane)) >= 2, timeout=150)


def _of_cron(plane: ControlPlane) -> list[str]:
    jobs = plane.call("GET", JOBS.path(namespace="default"))["items"]
    return [
        one["metadata"]["name"]
        for one in jobs
        if any(owner["kind"] == "CronJob" for owner in one["metadata"].get("ownerReferences") or ())
    ]


def _back(plane: ControlPlane, volcano: VolcanoSide, shell: Shell, running: Json) -> None:
    """Volcano's controllers write again what they own: without a conflict."""
    managers = {
        (entry["manager"], entry["operation"])
        for entry in plane.call("GET", QUEUES.path(name="later"))["metadata"]["managedFields"]
        if "f:state" in entry.get("fieldsV1", {}).get("f:status", {})
    }
    assert managers == {("queue-controller", "Apply")}
    titles = [step["title"] for step in shell.steps("--back")]
    assert "Release ownership of queue states" not in titles
    for queue in ("default", "later"):
        assert volcano.queue_state(queue, "Closing") == 200
        assert volcano.queue_state(queue, "Open") == 200
    volcano.status(running, "Running", {"running": 3})
    assert "ledger" not in status(plane, "running")


def test_a_queue_whose_state_another_manager_set_is_freed_by_the_plan(plane: ControlPlane, tmp_path: Path) -> None:
    volcano = VolcanoSide(plane)
    new_queue(plane, "research")
    path = f"{QUEUES.path(name='research', subresource='status')}?fieldManager=someone"
    plane.call("PATCH", path, {"status": {"state": "Open"}}, content_type="application/merge-patch+json")
    assert volcano.queue_state("research", "Closed") == 409
    shell = Shell(plane, tmp_path)
    step = next(one for one in shell.steps("--back") if one["title"] == "Release ownership of queue states")
    shell.must("\n".join(step["commands"]))
    assert volcano.queue_state("research", "Closed") == 200
