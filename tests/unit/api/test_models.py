"""What models offer beside their fields."""

from __future__ import annotations

import pytest

from vcbatch.api import messages, names
from vcbatch.api.job import Event, Job, JobPhase, JobState, JobStatus, LifecyclePolicy
from vcbatch.api.model import MalformedObject, owner_of
from vcbatch.api.queue import Queue
from vcbatch.api.resources import JOBS

JOB = {
    "metadata": {
        "name": "train",
        "namespace": "team",
        "uid": "u1",
        "ownerReferences": [{"name": "a", "uid": "1"}, {"name": "b", "uid": "2", "controller": True}],
    },
    "spec": {"queue": None, "tasks": [{"name": "w", "replicas": 3, "template": {"metadata": None}}]},
}


def test_absence_reads_as_gos_zero_value() -> None:
    job = Job.parse(JOB)
    assert (job.spec.queue, job.spec.min_available, job.spec.plugins) == ("", 0, {})
    assert job.spec.ttl_seconds_after_finished is None
    assert job.status.state.phase == ""
    task = job.spec.tasks[0]
    assert (task.pod_metadata, task.pod_spec, task.min_pods) == ({}, {}, 3)
    assert job.spec.task("w") is task
    assert job.spec.task("x") is None
    assert job.spec.total_replicas == 3


def test_identity() -> None:
    job = Job.parse(JOB)
    assert (job.key, job.name, job.namespace, job.uid) == ("team/train", "train", "team", "u1")
    assert Queue.parse({"metadata": {"name": "q"}}).key == "q"
    owner = job.metadata.controller_owner()
    assert owner is not None
    assert owner.name == "b"
    assert owner_of(job, JOBS) == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "train",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


@pytest.mark.parametrize(
    ("phase", "want", "finished"),
    [
        ("Running", JobPhase.RUNNING, False),
        ("Failed", JobPhase.FAILED, True),
        ("", JobPhase.PENDING, False),
        ("Odd", JobPhase.PENDING, False),
    ],
)
def test_a_phase_that_is_unknown_counts_as_pending(phase: str, want: JobPhase, finished: bool) -> None:
    job = Job.parse({"status": {"state": {"phase": phase}}})
    assert job.phase is want
    assert job.phase.finished is finished


def test_one_event_and_several_are_one_list() -> None:
    policy = LifecyclePolicy.parse({"event": "PodFailed", "events": ["PodEvicted"]})
    assert policy.all_events == (Event.POD_EVICTED, Event.POD_FAILED)
    assert LifecyclePolicy().all_events == ()


def test_what_is_made_dumps_what_was_set() -> None:
    status = JobStatus(state=JobState(phase=JobPhase.RUNNING), running=2)
    assert status.dump() == {"state": {"phase": "Running"}, "running": 2}
    assert status.model_copy(update={"failed": 1}).dump()["failed"] == 1


def test_a_wrong_type_says_where_and_what() -> None:
    with pytest.raises(MalformedObject, match=r"Job: spec\.tasks\.0\.replicas: .*'many'"):
        Job.parse({"spec": {"tasks": [{"replicas": "many"}]}})
    with pytest.raises(MalformedObject):
        Job.parse({"metadata": []})
    for value in (False, "2", 2.5, []):
        with pytest.raises(MalformedObject):
            Job.parse({"spec": {"minAvailable": value}})


def test_environment_names_of_tasks() -> None:
    assert names.env_task_hosts("param-server") == "VC_PARAM_SERVER_HOSTS"
    assert names.env_task_count("worker") == "VC_WORKER_NUM"


def test_messages_state_their_numbers() -> None:
    waiting = messages.gang_counts(ready=False, statuses={"Running": 1, "Pending": 2, "Failed": 0}, min_available=3)
    assert waiting == "pod group is not ready, 1 Running, 2 Pending, 3 minAvailable"
    histogram = messages.node_histogram(examined=5, reasons={messages.insufficient("cpu"): 2, "too hot": 3})
    assert histogram == "0/5 nodes are unavailable: 2 Insufficient cpu, 3 too hot."
    assert messages.gang_unschedulable(unready=2, total=3, why=waiting).startswith(
        "2/3 tasks in gang unschedulable: pod"
    )


def test_messages_are_bounded_without_cutting_a_letter() -> None:
    message = messages.shorten("ä" * 1000)
    assert len(message.encode()) <= messages.LONGEST_MESSAGE
    assert message.endswith("ä...")
    assert messages.shorten("short") == "short"


def test_nulls_go_with_a_copy_and_tell_apart() -> None:
    job = Job.parse(JOB)
    copied = job.spec.model_copy(update={"max_retry": 2}).dump()
    assert copied == {**JOB["spec"], "maxRetry": 2}
    assert job.spec == Job.parse(JOB).spec != Job.parse({**JOB, "spec": {"tasks": JOB["spec"]["tasks"]}}).spec
