"""Which action the policies of a job ask for: precedence, readings of a loss, timeouts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.job_world import START, Json, World, job_object, task
from vcbatch.api.job import Job
from vcbatch.api.names import pod_group_name
from vcbatch.api.resources import PODGROUPS, PODS
from vcbatch.api.timestamps import format_time


def _on(event: str, action: str, **more: Any) -> Json:
    return {"event": event, "action": action, **more}


def _code(code: int, action: str, **more: Any) -> Json:
    return {"exitCode": code, "action": action, **more}


def _running(policies: list[Json], *, task_policies: list[Json] | None = None, **spec: Any) -> World:
    """A job of two tasks, of two pods each, that runs."""
    world = World()
    tasks = [task("a", 2, policies=task_policies or []), task("b", 2)]
    world.submit(job_object(tasks=tasks, policies=policies, **spec))
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    return world


PRECEDENCE = {
    "the first of a list decides": ([_on("PodFailed", "AbortJob"), _on("PodFailed", "RestartJob")], [], 1, "Aborting"),
    "an event before an exit code": ([_on("PodFailed", "AbortJob"), _code(3, "CompleteJob")], [], 3, "Aborting"),
    "an exit code before an event": ([_code(3, "CompleteJob"), _on("PodFailed", "AbortJob")], [], 3, "Completing"),
    "another exit code": ([_code(3, "CompleteJob"), _on("PodFailed", "AbortJob")], [], 4, "Aborting"),
    "a task's before the job's": ([_on("PodFailed", "AbortJob")], [_on("PodFailed", "CompleteJob")], 1, "Completing"),
    "the job's where the task's don't answer": (
        [_on("PodFailed", "AbortJob")],
        [_on("PodEvicted", "CompleteJob")],
        1,
        "Aborting",
    ),
    "anything": ([_on("*", "TerminateJob")], [], 1, "Terminating"),
    "one of several events": ([{"events": ["PodEvicted", "PodFailed"], "action": "AbortJob"}], [], 1, "Aborting"),
    "none that answers": ([_on("PodEvicted", "AbortJob"), _code(9, "AbortJob")], [], 1, "Running"),
    "an action that isn't known": ([_on("PodFailed", "Explode"), _on("PodFailed", "AbortJob")], [], 1, "Running"),
}


@pytest.mark.parametrize("case", PRECEDENCE)
def test_precedence(case: str) -> None:
    policies, task_policies, code, phase = PRECEDENCE[case]
    world = _running(policies, task_policies=task_policies)
    world.end_pod("j-a-0", code)
    world.reconcile()
    assert world.phase() == phase


LOSSES = {
    "an eviction is no failure": (
        [_on("PodFailed", "TerminateJob"), _on("PodEvicted", "RestartJob")],
        "evict",
        "Restarting",
    ),
    "an eviction is a failure where nobody knows evictions": (
        [_on("PodFailed", "TerminateJob")],
        "evict",
        "Terminating",
    ),
    "a failure is no eviction": ([_on("PodEvicted", "TerminateJob")], "fail", "Running"),
    "a vanished pod was evicted": ([_on("PodEvicted", "AbortJob")], "vanish", "Aborting"),
    "a vanished pod didn't fail": ([_on("PodFailed", "AbortJob")], "vanish", "Pending"),
    "a success that vanishes is no loss": ([_on("PodEvicted", "AbortJob")], "succeed and vanish", "Running"),
    "a failure that vanishes was answered already": ([_on("PodEvicted", "AbortJob")], "fail and vanish", "Running"),
    "a pod deleted while failing was deleted": ([_on("PodEvicted", "AbortJob")], "fail while deleted", "Aborting"),
}


@pytest.mark.parametrize("case", LOSSES)
def test_losses(case: str) -> None:
    policies, how, phase = LOSSES[case]
    world = _running(policies)
    match how:
        case "evict":
            world.evict("j-a-0")
        case "fail":
            world.end_pod("j-a-0", 1)
        case "vanish":
            world.remove(PODS, "j-a-0")
        case "fail while deleted":
            world.end_pod("j-a-0", 1)
            world.delete_pod("j-a-0")
        case _:
            world.end_pod("j-a-0", 1 if how.startswith("fail") else 0)
            world.settle()
            world.remove(PODS, "j-a-0")
    world.reconcile()
    assert world.phase() == phase


def test_a_failure_while_no_controller_ran_is_answered_once() -> None:
    """volcano#3967: nobody saw the change, only its result."""
    world = _running([_on("PodFailed", "RestartJob")])
    world.end_pod("j-a-0", 1)
    world.end_pod("j-b-1", 0)
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    assert world.job()["status"]["retryCount"] == 1
    assert {pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in world.pods().values()} == {"1"}


def test_failures_found_together_restart_together_and_cost_one_retry() -> None:
    world = _running([_on("PodFailed", "RestartPod")])
    world.end_pod("j-a-0", 1)
    world.end_pod("j-b-1", 2)
    decision = world.reconcile()
    assert world.job()["status"]["retryCount"] == 1
    assert {delete.ref.name for delete in decision.deletes} == {"j-a-0", "j-b-1"}


def test_a_failure_beside_an_eviction_costs_a_retry_of_the_jobs_own() -> None:
    world = _running([_on("PodFailed", "RestartPod")], maxRetry=1)
    world.evict("j-a-0")
    world.end_pod("j-b-1", 2)
    world.reconcile()
    assert world.phase() == "Failed"


def test_an_order_for_the_whole_job_beats_restarts_of_parts() -> None:
    world = _running([_on("PodFailed", "RestartPod")], task_policies=[_on("PodFailed", "AbortJob")])
    world.end_pod("j-b-1", 2)
    world.end_pod("j-a-0", 1)
    world.reconcile()
    assert world.phase() == "Aborting"


@pytest.mark.parametrize("nothing", ["SyncJob", "ResumeJob", "Explode"])
def test_a_policy_that_does_nothing_hides_no_other(nothing: str) -> None:
    world = _running([_on("PodFailed", "RestartPod")], task_policies=[_on("PodFailed", nothing)])
    world.end_pod("j-a-0", 1)
    world.end_pod("j-b-0", 1)
    assert [delete.ref.name for delete in world.reconcile().deletes] == ["j-b-0"]
    assert world.phase() == "Restarting"


def test_a_task_that_is_done_completes_the_job() -> None:
    world = _running([], task_policies=[_on("TaskCompleted", "CompleteJob")])
    world.end_pod("j-a-0", 0)
    world.reconcile()
    assert world.phase() == "Running"
    world.end_pod("j-a-1", 0)
    world.reconcile()
    assert world.phase() == "Completing"
    world.run(until=lambda: world.phase() == "Completed")
    assert set(world.pods()) == {"j-a-0", "j-a-1"}


def test_a_task_done_before_a_suspension_is_not_done_again_by_the_resume() -> None:
    world = _running([], task_policies=[_on("TaskCompleted", "AbortJob")])
    world.end_pod("j-a-0", 0)
    world.end_pod("j-a-1", 0)
    world.run(until=lambda: world.phase() == "Aborted")
    world.command("ResumeJob", target=world.job())
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    assert world.phase() == "Running"
    assert world.job()["status"]["taskStatusCount"] == {
        "a": {"phase": {"Succeeded": 2}},
        "b": {"phase": {"Running": 2}},
    }


def test_a_task_whose_containers_restart_too_often_has_failed() -> None:
    world = _running([_on("TaskFailed", "TerminateJob")])
    pods = world.pods()
    for name, restarts in (("j-a-0", 1), ("j-a-1", 1)):
        pods[name]["status"]["containerStatuses"] = [{"name": "main", "restartCount": restarts}]
    world.settle()
    assert world.phase() == "Running"
    pods["j-a-1"]["status"]["initContainerStatuses"] = [{"name": "init", "restartCount": 1}]
    world.reconcile()
    assert world.phase() == "Terminating"


def test_a_broken_gang_is_answered_after_a_restart_too() -> None:
    """Volcano answers it once only: later its requests look stale."""
    world = _running([_on("Unknown", "RestartJob")])
    for retries in (1, 2):
        uid = Job.parse(world.job()).uid
        world.change(PODGROUPS, pod_group_name("j", uid), lambda group: group["status"].update(phase="Unknown"))
        world.reconcile()
        assert world.phase() == "Restarting"
        assert world.job()["status"]["retryCount"] == retries
        world.run(until=lambda: world.phase() == "Running")


# Timeouts ------------------------------------------------------------------------------------------------------------


def test_a_pod_that_is_pending_too_long() -> None:
    world = World(binds=False)
    world.submit(job_object(policies=[_on("PodPending", "AbortJob", timeout="30s")]))
    world.settle()
    world.schedule()
    world.settle()
    decision = world.reconcile()
    assert decision.requeue_at == START + timedelta(seconds=30)
    world.now = START + timedelta(seconds=29)
    world.settle()
    assert world.phase() == "Pending"
    world.now = START + timedelta(seconds=30)
    world.reconcile()
    assert world.phase() == "Aborting"


def test_pending_without_a_timeout_is_nothing() -> None:
    world = World(binds=False)
    world.submit(job_object(policies=[_on("PodPending", "AbortJob"), _on("*", "AbortJob")]))
    world.settle()
    world.schedule()
    world.settle()
    assert world.phase() == "Pending"


def test_a_pod_that_runs_was_not_pending_too_long() -> None:
    """Whatever the controller saw in between (A.1-19): nothing is kept that could fire."""
    world = _running([_on("PodPending", "AbortJob", timeout="30s")])
    world.now += timedelta(hours=1)
    assert world.reconcile().requeue_at is None
    assert world.phase() == "Running"


def test_a_failure_is_answered_when_its_timeout_is_over() -> None:
    world = _running([_on("PodFailed", "RestartJob", timeout="10s")])
    world.end_pod("j-a-0", 1)
    failed = world.now
    decision = world.reconcile()
    assert world.phase() == "Running"
    assert decision.requeue_at is not None
    assert [event.reason for event in decision.events] == ["PodFailed", "ExecuteAction"]
    assert "after 10s" in decision.events[1].message
    assert not world.reconcile().events
    world.now = failed + timedelta(seconds=10)
    world.reconcile()
    assert world.phase() == "Restarting"
    assert world.job()["status"]["retryCount"] == 1


def test_a_replacement_that_runs_makes_up_for_a_delayed_loss() -> None:
    world = _running([_on("PodEvicted", "TerminateJob", timeout="1m")])
    world.remove(PODS, "j-a-0")
    world.reconcile()
    assert world.job()["status"]["ledger"]["delayed"] == [
        {"event": "PodEvicted", "task": "a", "index": 0, "since": format_time(world.now)}
    ]
    world.run(until=lambda: world.phase() == "Running" and len(world.pods()) == 4)
    world.now += timedelta(minutes=2)
    world.settle()
    assert world.phase() == "Running"
    assert "delayed" not in world.job()["status"]["ledger"]


def test_a_loss_without_a_replacement_is_answered_in_the_end() -> None:
    world = _running([_on("PodEvicted", "TerminateJob", timeout="1m")])
    world.binds = False
    world.remove(PODS, "j-a-0")
    world.settle()
    world.now += timedelta(seconds=59)
    world.settle()
    assert world.phase() == "Pending"
    world.now += timedelta(seconds=1)
    world.reconcile()
    assert world.phase() == "Terminating"


def test_a_condition_that_goes_on_is_answered_when_its_timeout_is_over() -> None:
    """Its beginning is written nowhere but in the ledger."""
    world = _running([_on("TaskFailed", "AbortJob", timeout="10s")])
    world.pods()["j-a-0"]["status"]["containerStatuses"][0]["restartCount"] = 3
    began = world.now
    for seconds in (0, 5, 9):
        world.now = began + timedelta(seconds=seconds)
        world.settle()
        assert world.phase() == "Running"
    world.now = began + timedelta(seconds=10)
    world.reconcile()
    assert world.phase() == "Aborting"


def test_a_pending_pod_on_its_way_out_is_not_pending_too_long() -> None:
    world = World(binds=False)
    world.submit(job_object(policies=[_on("PodPending", "AbortJob", timeout="30s")]))
    world.settle()
    world.schedule()
    world.settle()
    for name in world.pods():
        world.delete_pod(name)
    world.now = START + timedelta(seconds=30)
    world.reconcile()
    assert world.phase() == "Pending"
