"""What a job's status says, field by field, and that nobody else's word stays in it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.resources import JOBS, PODS

_PHASES = (
    "Pending",
    "Running",
    "Restarting",
    "Aborting",
    "Completing",
    "Completed",
    "Terminating",
    "Failed",
    "Odd",
    "",
)


def _running(**spec: Any) -> World:
    world = World()
    world.submit(job_object(**spec))
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    return world


def _status(world: World) -> Json:
    return {key: copy.deepcopy(value) for key, value in world.job()["status"].items() if key != "ledger"}


def _write(world: World, **state: Any) -> None:
    world.change(JOBS, "j", lambda job: job["status"]["state"].update(state))


@pytest.mark.parametrize("phase", _PHASES)
def test_a_phase_that_somebody_else_wrote_is_put_right(phase: str) -> None:
    world = _running()
    before, pods = _status(world), {pod["metadata"]["uid"] for pod in world.pods().values()}
    _write(world, phase=phase)
    world.settle()
    assert _status(world) == before
    assert {pod["metadata"]["uid"] for pod in world.pods().values()} == pods
    assert not world.deleted_by_us


@pytest.mark.parametrize("phase", [phase for phase in _PHASES if phase != "Failed"])
def test_nothing_that_is_written_there_wakes_a_job_that_is_over(phase: str) -> None:
    world = World()
    world.submit(job_object(tasks=[task("w", 1, "sleep 1 && exit 1")]))
    world.run(until=lambda: world.phase() == "Failed")
    world.settle()
    before, made = _status(world), len(world.created)
    _write(world, phase=phase)
    world.settle()
    assert _status(world) == before
    assert len(world.created) == made


def test_a_suspended_job_is_woken_by_a_command_and_not_by_its_status() -> None:
    world = _running()
    world.command("AbortJob", target=world.job())
    world.run(until=lambda: world.phase() == "Aborted")
    _write(world, phase="Running")
    world.settle()
    assert world.phase() == "Aborted"
    assert not world.pods()


def test_counts_that_somebody_else_wrote_are_put_right() -> None:
    world = _running()
    before = _status(world)
    foreign = {"running": 7, "failed": 3, "taskStatusCount": {"x": {"phase": {}}}, "minAvailable": 9, "retryCount": 0}
    world.change(JOBS, "j", lambda job: job["status"].update(foreign))
    world.settle()
    assert _status(world) == before


def test_the_time_of_a_phase_moves_with_the_phase_alone() -> None:
    world = _running(tasks=[task("a", 1, "sleep 60"), task("b", 1, "sleep 20")], minAvailable=1)
    state = dict(world.job()["status"]["state"])
    world.run(until=lambda: world.job()["status"].get("succeeded") == 1)
    assert world.job()["status"]["state"] == state
    world.run(until=lambda: world.phase() == "Completed")
    assert world.job()["status"]["state"]["lastTransitionTime"] > state["lastTransitionTime"]


def test_each_phase_is_logged_once_and_the_last_one_last() -> None:
    world = World()
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    world.submit(job_object(tasks=[task("w", 1, "sleep 1 && exit 1")], policies=policies, maxRetry=4))
    world.run(until=lambda: world.phase() == "Failed")
    seen = [status["state"]["phase"] for status in world.status_history]
    assert seen.count("Restarting") >= 3
    for status in world.status_history:
        logged = [entry["status"] for entry in status["conditions"]]
        assert len(set(logged)) == len(logged)
        assert logged[-1] == status["state"]["phase"]
        assert status["conditions"][-1]["lastTransitionTime"] == status["state"]["lastTransitionTime"]
    assert logged == ["Restarting", "Pending", "Running", "Failed"]


def test_every_status_has_a_phase_and_no_task_has_an_empty_count() -> None:
    """torchx fails on either."""
    world = World()
    tasks = [task("a", 2, "sleep 5"), task("none", 0), task("late", 1, "sleep 1", dependsOn={"name": ["a"]})]
    world.submit(job_object(tasks=tasks, minAvailable=2))
    world.run(until=lambda: world.phase() == "Completed")
    for status in world.status_history:
        assert status["state"]["phase"]
        assert all(entry["phase"] for entry in status.get("taskStatusCount", {}).values())
    assert {task for status in world.status_history for task in status.get("taskStatusCount", {})} == {"a", "late"}


def test_the_version_counts_attempts_and_the_retries_are_counted_apart() -> None:
    world = _running(policies=[{"event": "PodFailed", "action": "RestartJob"}], maxRetry=5)
    assert "version" not in world.job()["status"]
    world.end_pod("j-w-0", 1)
    world.run(until=lambda: world.phase() == "Running" and world.job()["status"].get("version") == 1)
    assert world.job()["status"]["retryCount"] == 1
    world.command("AbortJob", target=world.job())
    world.run(until=lambda: world.phase() == "Aborted")
    world.settle()
    assert (world.job()["status"]["version"], world.job()["status"]["retryCount"]) == (2, 1)
    world.command("ResumeJob", target=world.job())
    world.run(until=lambda: world.phase() == "Running")
    assert (world.job()["status"]["version"], world.job()["status"]["retryCount"]) == (3, 2)
    assert {pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in world.pods().values()} == {"3"}


def test_what_a_plugin_keeps_is_named_while_it_is_there() -> None:
    world = _running(plugins={"svc": [], "env": []}, tasks=[task("w", 1, "sleep 10")])
    assert world.job()["status"]["controlledResources"] == {"plugin-svc": "svc", "plugin-env": "env"}
    world.run(until=lambda: world.phase() == "Completed")
    world.settle()
    assert "controlledResources" not in world.job()["status"]


def test_how_long_a_finished_job_took_stays_in_its_status() -> None:
    world = _running(tasks=[task("w", 1, "sleep 10")])
    world.run(until=lambda: world.phase() == "Completed")
    took = world.job()["status"]["runningDuration"]
    world.remove(PODS, "j-w-0")
    world.step(seconds=100)
    world.settle()
    assert world.job()["status"]["runningDuration"] == took
