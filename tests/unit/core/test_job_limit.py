"""How long a job may run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.job_world import World, job_object, task
from vcbatch.api.job import Job
from vcbatch.api.names import MAX_RUN_SECONDS
from vcbatch.api.resources import JOBS
from vcbatch.api.validate.job import time_limit_errors
from vcbatch.api.validate.job_update import job_update_errors


def running(seconds: object = 100, **spec: object) -> World:
    job = job_object(tasks=[task("w", 2)], **spec)
    job["metadata"]["annotations"] = {MAX_RUN_SECONDS: str(seconds)}
    world = World()
    world.submit(job)
    world.run(until=lambda: world.phase() == "Running")
    return world


def pass_seconds(world: World, seconds: float) -> None:
    world.now += timedelta(seconds=seconds)
    world.settle()


def test_a_job_that_ran_for_as_long_as_it_may_is_terminated_and_says_so() -> None:
    world = running()
    decision = world.reconcile()
    assert decision.requeue_at == world.now + timedelta(seconds=100)
    pass_seconds(world, 99)
    assert world.phase() == "Running"
    pass_seconds(world, 1)
    assert world.phase() == "Terminating"
    world.run(until=lambda: world.phase() == "Terminated")
    state = world.job()["status"]["state"]
    assert state["reason"] == "DeadlineExceeded"
    assert "ran for 100 s" in state["message"]


def test_all_attempts_count_and_the_time_between_them_does_not() -> None:
    world = running(policies=[{"event": "PodFailed", "action": "RestartJob"}])
    pass_seconds(world, 60)
    world.end_pod("j-w-0", 1)
    world.settle()
    assert world.phase() == "Restarting"
    pass_seconds(world, 1000)
    world.run(until=lambda: world.phase() == "Running")
    pass_seconds(world, 39)
    assert world.phase() == "Running"
    pass_seconds(world, 1)
    assert world.phase() == "Terminating"


def test_a_suspended_job_keeps_what_it_has_left() -> None:
    world = running()
    pass_seconds(world, 70)
    world.command("AbortJob", target=world.job())
    world.run(until=lambda: world.phase() == "Aborted")
    pass_seconds(world, 5000)
    assert world.phase() == "Aborted"
    world.command("ResumeJob", target=world.job())
    world.run(until=lambda: world.phase() == "Running")
    pass_seconds(world, 29)
    assert world.phase() == "Running"
    pass_seconds(world, 1)
    assert world.phase() == "Terminating"


def test_a_person_who_suspends_at_the_last_moment_wins() -> None:
    world = running()
    world.now += timedelta(seconds=200)
    world.command("AbortJob", target=world.job())
    world.settle()
    assert world.phase() == "Aborting"


def test_a_limit_may_be_given_and_taken_while_the_job_runs() -> None:
    world = running()

    def limit(seconds: str) -> None:
        world.change(JOBS, "j", lambda job: job["metadata"].update(annotations={MAX_RUN_SECONDS: seconds}))

    limit("500")
    pass_seconds(world, 400)
    assert world.phase() == "Running"
    limit("300")
    world.settle()
    assert world.phase() == "Terminating"


def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    world = running()
    pass_seconds(world, -5000)
    world.end_pod("j-w-0", 1)
    world.end_pod("j-w-1", 1)
    world.settle()
    assert world.phase() == "Failed"
    assert world.job()["status"]["ledger"].get("ranSeconds", 0) == 0


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "1h", "1e3", "\u0661", "9" * 12])
def test_what_is_no_limit_is_refused_and_limits_nothing(text: str) -> None:
    job = job_object()
    job["metadata"]["annotations"] = {MAX_RUN_SECONDS: text}
    (error,) = time_limit_errors(Job.parse(job))
    assert repr(text) in error.message
    assert job_update_errors(Job.parse(job), Job.parse(job_object()))
    world = running(text)
    pass_seconds(world, 10**6)
    assert world.phase() == "Running"
