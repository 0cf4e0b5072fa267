"""Jobs by the SDK, on the local server as a user has it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import vcbatch
from tests.cluster.processes import wait_until
from vcbatch import (
    AdmissionDenied,
    AlreadyExists,
    AsyncClient,
    Client,
    Conflict,
    Job,
    JobEnded,
    JobFailed,
    JobPhase,
    NotConfigured,
    NotFound,
    Queue,
    Resources,
    Task,
    VcbatchError,
    WaitReason,
    WaitTimeout,
)

LONG = 120.0


def job(name: str, command: str, *, replicas: int = 1, cpu: float | str = "10m", least: int | None = None) -> Job:
    task = Task(
        name="worker",
        replicas=replicas,
        min_available=least,
        image="any",
        command=["sh", "-c", command],
        resources=Resources.of(cpu=cpu),
    )
    return Job(name=name, tasks=[task], plugins=vcbatch.env())


def test_a_job_from_submission_to_its_result(client: Client):
    handle = client.submit(job("whole", "echo $VC_TASK_INDEX; echo done", replicas=2))
    lines = [(line.task, line.index, line.text) for line in handle.logs(follow=True)]
    assert sorted(lines) == [("worker", 0, "0"), ("worker", 0, "done"), ("worker", 1, "1"), ("worker", 1, "done")]
    ended = handle.result(timeout=LONG)
    assert ended.phase is JobPhase.COMPLETED and ended.status.succeeded == 2
    assert [line.text for line in handle.logs(tail=1)] == ["done", "done"]
    assert [str(line) for line in handle.logs(tasks="worker", indices=1)] == ["worker/1 │ 1", "worker/1 │ done"]
    with pytest.raises(NotFound, match="no task 'work'"):
        next(iter(handle.logs(tasks="work", follow=True)))
    with pytest.raises(JobEnded, match="Completed"):
        handle.suspend()
    wait_until("events tell of it", lambda: {"Scheduled", "Started"} <= {event.reason for event in handle.events()})
    handle.delete()
    handle.delete()
    with pytest.raises(NotFound):
        handle.get()


def test_a_failure_tells_the_exit_codes(client: Client):
    handle = client.submit(job("fails", "exit 3", replicas=2))
    with pytest.raises(JobFailed) as caught:
        handle.result(timeout=LONG)
    assert caught.value.exit_codes == {"fails-worker-0": 3, "fails-worker-1": 3}
    assert caught.value.job.phase is JobPhase.FAILED
    assert "logs()" in str(caught.value)
    assert handle.wait(timeout=LONG).phase is JobPhase.FAILED  # which is an end as well
    with pytest.raises(JobEnded):
        handle.wait(until="Running", timeout=LONG)


def test_one_that_waits_says_why_and_can_be_suspended_and_resumed(client: Client):
    handle = client.submit(job("waits", "sleep 600", cpu=100_000))
    handle.wait(until="pending", timeout=LONG)
    while (waiting := handle.explain()).reason is None:
        pass
    assert waiting.reason in (WaitReason.IMPOSSIBLE, WaitReason.CLUSTER_OVERCOMMITTED)
    assert "cpu" in waiting.message and waiting.queue == "default"
    with pytest.raises(WaitTimeout) as caught:
        handle.wait(until=JobPhase.RUNNING, timeout=0.2)
    assert "cpu" in caught.value.hint and isinstance(caught.value, TimeoutError)
    handle.suspend()
    assert handle.wait(until="Aborted", timeout=LONG).phase is JobPhase.ABORTED
    with pytest.raises(WaitTimeout, match="it is Aborted") as suspended:
        handle.wait(timeout=0.2)
    assert "handle.resume()" in suspended.value.hint
    handle.resume()
    handle.wait(until="Pending", timeout=LONG)
    handle.cancel()
    ended = handle.wait(timeout=LONG)
    assert ended.phase is JobPhase.TERMINATED
    assert ended.status.why.startswith("asked for by the Command waits-")


def test_a_task_can_be_made_larger_and_smaller(client: Client):
    handle = client.submit(job("scales", "sleep 600", least=1))
    handle.wait(until="Running", timeout=LONG)
    assert handle.scale("worker", 2).tasks[0].replicas == 2
    for seen in handle.watch():
        if seen.status.running == 2:
            break
    assert handle.scale("worker", 1).tasks[0].replicas == 1
    with pytest.raises(NotFound, match="worker"):
        handle.scale("nobody", 1)
    with pytest.raises(AdmissionDenied):
        handle.scale("worker", -1)
    handle.delete()


def test_what_is_refused_says_why(client: Client):
    with pytest.raises(AdmissionDenied) as caught:
        client.submit(job("astray", "true").replace(queue="nowhere"))
    assert caught.value.field == "spec.queue" and "nowhere" in caught.value.reason
    with pytest.raises(VcbatchError, match="generate_name"):
        client.submit(Job(tasks=[Task(name="worker")]))
    handle = client.submit(job("taken", "true"))
    with pytest.raises(AlreadyExists):
        client.submit(job("taken", "true"))
    handle.delete()


def test_a_deleted_job_ends_the_waiting(client: Client):
    handle = client.submit(job("doomed", "sleep 600"))
    seen = iter(handle.watch())
    next(seen)
    handle.delete()
    with pytest.raises(NotFound, match="no more"):
        for _ in seen:
            pass


def test_jobs_are_found_by_namespace_and_label(client: Client):
    made = job("found", "true").replace(labels={"team": "blue"})
    client.submit(made)
    again = client.submit(made.replace(name="", generate_name="found-"))
    assert again.name.startswith("found-")
    assert {handle.name for handle in client.jobs(labels={"team": "blue"})} == {"found", again.name}
    assert client.jobs(labels="team=red") == []
    assert {"found", again.name} <= {handle.name for handle in client.jobs(all_namespaces=True)}
    # What was read can be submitted once more.
    copied = client.submit(client.job("found").get().replace(name="found-again"))
    assert copied.wait(timeout=LONG).phase is JobPhase.COMPLETED


def test_queues_are_made_changed_closed_and_deleted(client: Client):
    client.create_queue(Queue(name="laboratory", weight=2, capability={"cpu": "4"}))
    queue = client.queue("laboratory")
    assert (queue.weight, queue.capability["cpu"]) == (2, "4")
    changed = client.update_queue("laboratory", weight=3)
    assert (changed.weight, changed.capability) == (3, queue.capability)
    with pytest.raises(Conflict):
        client.replace_queue(queue.replace(weight=4))
    client.close_queue("laboratory")
    while client.queue("laboratory").status.state != "Closed":
        pass
    with pytest.raises(AdmissionDenied):
        client.submit(job("late", "true").replace(queue="laboratory"))
    client.open_queue("laboratory")
    while client.queue("laboratory").status.state != "Open":
        pass
    assert "laboratory" in {queue.name for queue in client.queues()}
    client.delete_queue("laboratory")
    client.delete_queue("laboratory")
    with pytest.raises(AdmissionDenied, match="can not be deleted") as kept:
        client.delete_queue("default")
    assert kept.value.hint == ""


async def test_the_same_within_an_event_loop(state_dir: Path):
    async with AsyncClient.local(state_dir=state_dir, start=False) as client:
        handles = await asyncio.gather(*(client.submit(job(f"loop-{number}", "echo hi")) for number in range(3)))
        ended = await asyncio.gather(*(handle.wait(timeout=LONG) for handle in handles))
        assert [one.phase for one in ended] == [JobPhase.COMPLETED] * 3
        assert [line.text async for line in handles[0].logs(follow=True)] == ["hi"]


async def test_the_sync_client_works_where_a_loop_runs_already(state_dir: Path):
    with Client.local(state_dir=state_dir, start=False) as client:
        assert client.submit(job("notebook", "true")).wait(timeout=LONG).phase is JobPhase.COMPLETED


def test_a_server_that_does_not_run_is_not_configured(tmp_path: Path):
    with pytest.raises(NotConfigured, match="isn't running"):
        Client.local(state_dir=tmp_path, start=False)


def test_without_any_server_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(NotConfigured, match="vcbatch isn't running here") as caught:
        Client()
    assert "Client.local()" in caught.value.hint and "--kubeconfig" not in str(caught.value)


def test_kubeconfig_and_context_are_those_of_kubectl(state_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", str(state_dir / "kubeconfig"))
    with Client(namespace="other") as client:
        assert client.namespace == "other" and client.jobs() == []
    with pytest.raises(NotConfigured, match="nowhere"):
        Client(context="nowhere")
    with pytest.raises(NotConfigured, match="no such file"):
        Client(kubeconfig="/nowhere")
