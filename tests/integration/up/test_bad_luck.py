"""What goes wrong for users, end to end: the job tells the truth, and others go on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.processes import wait_until
from tests.integration.up.manifests import job
from tests.support.up import RunningVcbatch

pytestmark = pytest.mark.kubectl

Json = dict[str, Any]


def apply(program: RunningVcbatch, manifest: str) -> None:
    program.kubectl("apply", "-f", "-", stdin=manifest).ok()


def wait_for_phase(program: RunningVcbatch, name: str, phase: str) -> Json:
    program.kubectl("wait", f"vcjob/{name}", f"--for=jsonpath={{.status.state.phase}}={phase}", "--timeout=60s").ok()
    return json.loads(program.kubectl("get", "vcjob", name, "-o", "json").ok())


def test_a_worker_that_exits_1_fails_the_job_with_the_reason(shared: RunningVcbatch):
    apply(shared, job("exits", "exit 1"))
    stored = wait_for_phase(shared, "exits", "Failed")
    assert "code 1" in stored["status"]["state"]["message"]
    assert stored["status"]["failed"] == 1


def test_a_policy_restarts_a_job_until_its_retries_are_used_up(shared: RunningVcbatch):
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    apply(shared, job("retries", "exit 7", policies=policies, maxRetry=2))
    stored = wait_for_phase(shared, "retries", "Failed")
    assert "no retries left (maxRetry 2)" in stored["status"]["state"]["message"]
    pods = json.loads(shared.kubectl("get", "pods", "-o", "json").ok())["items"]
    last = [pod for pod in pods if pod["metadata"]["name"] == "retries-w-0"]
    assert len(last) == 1, "the last failed pod stays, with its log"


def test_a_worker_that_segfaults_is_told_from_one_that_exits(shared: RunningVcbatch):
    apply(shared, job("segfault", "kill -11 $$$$"))
    stored = wait_for_phase(shared, "segfault", "Failed")
    assert "139" in stored["status"]["state"]["message"]


def test_a_command_that_isnt_there_is_127_and_readable(shared: RunningVcbatch):
    apply(shared, job("missing", "no-such-command-anywhere"))
    wait_for_phase(shared, "missing", "Failed")
    assert "not found" in shared.kubectl("logs", "missing-w-0").ok()
    pod = json.loads(shared.kubectl("get", "pod", "missing-w-0", "-o", "json").ok())
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 127


def test_a_gang_larger_than_the_machine_waits_with_the_shortage_while_others_run(shared: RunningVcbatch):
    apply(shared, job("huge", "true", replicas=2, cpu="5000"))
    shared.kubectl("wait", "pg", "--all", "--for=condition=Unschedulable", "--timeout=80s").ok()
    apply(shared, job("small", "true"))
    wait_for_phase(shared, "small", "Completed")
    stored = json.loads(shared.kubectl("get", "vcjob", "huge", "-o", "json").ok())
    assert stored["status"]["state"]["phase"] == "Pending"
    groups = json.loads(shared.kubectl("get", "pg", "-o", "json").ok())["items"]
    (group,) = [item for item in groups if item["metadata"]["name"].startswith("huge-")]
    message = next(c["message"] for c in group["status"]["conditions"] if c["type"] == "Unschedulable")
    assert "cpu" in message
    shared.kubectl("delete", "vcjob", "huge").ok()


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (job("bad", "true", queue="nowhere"), "nowhere"),
        (job("bad", "true", minAvailable=5), "minAvailable"),
        (job("bad", "true", plugins={"teleport": []}), "teleport"),
        (job("bad", "true", replicas=-1, minAvailable=1), "replicas"),
        (job("bad", "true", colour="blue"), "colour"),
    ],
    ids=["queue", "minAvailable", "plugin", "replicas", "unknown-field"],
)
def test_what_cant_work_is_refused_with_the_reason(shared: RunningVcbatch, manifest: str, words: str):
    assert words in shared.kubectl("create", "-f", "-", stdin=manifest).fails()
    assert "not found" in shared.kubectl("get", "vcjob", "bad").fails()


def test_a_job_deleted_mid_start_leaves_nothing(shared: RunningVcbatch):
    apply(shared, job("gone", "sleep 600", replicas=5))
    shared.kubectl("wait", "pod/gone-w-0", "--for=create", "--timeout=60s").ok()
    shared.kubectl("delete", "vcjob", "gone").ok()
    pods = ("get", "pods", "-l", "volcano.sh/job-name=gone", "-o", "name")
    wait_until("its pods are gone", lambda: shared.kubectl(*pods).ok() == "")


def test_the_same_name_again_at_once_is_another_job(shared: RunningVcbatch):
    uids: set[str] = set()
    for code in (0, 1, 0):
        apply(shared, job("twin", f"exit {code}", replicas=2))
        stored = wait_for_phase(shared, "twin", "Failed" if code else "Completed")
        uids.add(stored["metadata"]["uid"])
        shared.kubectl("delete", "vcjob", "twin", "--wait=false").ok()
    assert len(uids) == 3


def test_the_same_file_applied_again_changes_nothing(shared: RunningVcbatch):
    manifest = job("again", "sleep 600", replicas=2)
    apply(shared, manifest)
    wait_for_phase(shared, "again", "Running")
    shared.kubectl("apply", "-f", "-", stdin=manifest).ok()
    stored = json.loads(shared.kubectl("get", "vcjob", "again", "-o", "json").ok())
    assert stored["metadata"]["generation"] == 1
    shared.kubectl("delete", "vcjob", "again").ok()
