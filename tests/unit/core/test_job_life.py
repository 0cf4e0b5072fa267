"""A job's life where it differs from the plain one: outcomes, budgets, suspension, Commands, refusals, TTL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.resources import COMMANDS, CONFIGMAPS, JOBS, PODGROUPS, PODS, QUEUES, SERVICES
from vcbatch.core.job.budget import HEALTHY, INFRASTRUCTURE_RETRIES, LONGEST_WAIT
from vcbatch.core.job.ledger import MOST_COMMANDS, MOST_LOSSES


def _world(**spec: Any) -> World:
    world = World()
    world.submit(job_object(**spec))
    return world


def _running(**spec: Any) -> World:
    world = _world(**spec)
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    return world


# Before it runs ------------------------------------------------------------------------------------------------------


def test_no_pod_before_the_gang_is_let_in() -> None:
    world = World(lets_in=False)
    world.submit(job_object())
    for _ in range(3):
        world.settle()
        world.step()
    assert world.phase() == "Pending"
    assert not world.pods()
    (group,) = world.all(PODGROUPS)
    assert group["spec"]["minMember"] == 2
    assert group["spec"]["minTaskMember"] == {"w": 2}


def test_the_first_status_has_a_phase() -> None:
    """torchx fails on a status without one."""
    world = _world()
    world.reconcile(writes=1)
    assert world.phase() == "Pending"


def test_a_job_without_a_queue_waits_and_says_so_once() -> None:
    world = _world(queue="nowhere")
    decision = world.reconcile()
    assert [event.reason for event in decision.events] == ["QueueNotFound"]
    assert "nowhere" in decision.events[0].message
    assert decision.requeue_at is not None
    assert not world.reconcile().events
    assert not world.all(PODGROUPS)
    world.put(QUEUES, {"metadata": {"name": "nowhere"}})
    world.run(until=lambda: world.phase() == "Running")
    assert "reason" not in world.job()["status"]["state"]


def test_why_the_gang_waits_is_told_when_it_changes() -> None:
    world = World(binds=False)
    world.submit(job_object())
    world.settle()
    (group,) = world.all(PODGROUPS)

    def says(message: str) -> None:
        condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": message}
        world.change(PODGROUPS, group["metadata"]["name"], lambda body: body.update(status={"conditions": [condition]}))

    says("no room")
    decision = world.reconcile()
    assert [(event.reason, "no room" in event.message) for event in decision.events] == [("PodGroupPending", True)]
    assert world.job()["status"]["state"]["message"] == "no room"
    assert not world.reconcile().events
    says("still no room")
    assert [event.reason for event in world.reconcile().events] == ["PodGroupPending"]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"tasks": [task("w", 1, dependsOn={"name": ["y"]}), task("x", 1)]}, "task w depends on y"),
        ({"tasks": [task("w", 1, dependsOn={"name": ["w"]}), task("x", 1)]}, "wait for each other: w"),
        ({"plugins": {"nccl": []}}, "spec.plugins.nccl"),
    ],
)
def test_what_is_not_supported_is_never_run(spec: Json, named: str) -> None:
    world = _world(**spec)
    decision = world.reconcile()
    assert [event.reason for event in decision.events] == ["Unsupported"]
    state = world.job()["status"]["state"]
    assert (state["phase"], state["reason"]) == ("Pending", "Unsupported")
    assert named in state["message"]
    world.command("AbortJob", target=world.job())
    world.settle()
    world.step()
    world.settle()
    assert not world.all(PODGROUPS)
    assert not world.pods()
    assert not world.all(COMMANDS)


def test_bad_plugin_arguments_are_reported_once() -> None:
    world = _world(plugins={"svc": ["--publish-not-ready-adresses"]})
    assert [event.reason for event in world.reconcile().events] == ["PluginError"]
    assert not world.reconcile().events


def test_only_news_is_urgent() -> None:
    world = World(binds=False)
    world.submit(job_object(tasks=[task("w", 3)], minAvailable=2))
    world.settle()
    world.schedule()
    world.settle()

    def urgent() -> bool:
        status = world.reconcile().status
        assert status is not None
        return not status.may_wait

    pods = world.pods()
    world.start_pod(pods["j-w-0"])
    assert not urgent(), "one more runs, and that is all"
    world.start_pod(pods["j-w-1"])
    assert urgent(), "the job runs"
    world.start_pod(pods["j-w-2"])
    assert not urgent()
    world.end_pod("j-w-0", 0)
    assert urgent(), "a pod that succeeded must not run again, whoever deletes it now"
    world.end_pod("j-w-1", 1)
    assert urgent(), "a failure is kept as evidence at once"


def test_pods_that_the_server_refuses_are_not_counted() -> None:
    world = _world(tasks=[task("w", 3)])
    world.settle()
    world.schedule()
    world.reconcile(writes=3)  # the status and two of the pods
    world.refusal = 'pods "j-w-2" is forbidden: exceeded quota: q'
    world.settle()
    status = world.job()["status"]
    assert status["pending"] == len(world.pods()) == 2
    assert (status["state"]["reason"], status["state"]["message"]) == ("FailedCreate", world.refusal)
    world.refusal = ""
    world.settle()
    status = world.job()["status"]
    assert status["pending"] == len(world.pods()) == 3
    assert "reason" not in status["state"]


def test_a_refused_replacement_leaves_the_gang_incomplete() -> None:
    """The job isn't Running with two of three, only because the third may not be counted."""
    world = _running(tasks=[task("w", 3)])
    world.remove(PODS, "j-w-1")
    world.refusal = "exceeded quota"
    world.settle()
    assert world.phase() == "Pending"
    assert (world.job()["status"]["running"], world.job()["status"].get("pending")) == (2, None)


@pytest.mark.parametrize("code", [0, 3], ids=["succeeded", "failed"])
def test_a_gang_asks_for_no_member_that_is_settled(code: int) -> None:
    """Else a replacement of another member would wait for ever, for a gang that can't be whole again."""
    world = _running(tasks=[task("w", 3)])
    world.end_pod("j-w-0", code)
    world.settle()
    world.remove(PODS, "j-w-0")
    world.remove(PODS, "j-w-1")
    world.settle()
    (group,) = world.all(PODGROUPS)
    assert (group["spec"]["minMember"], group["spec"]["minTaskMember"]) == (2, {"w": 2})
    assert sorted(world.pods()) == ["j-w-1", "j-w-2"]


def test_a_succeeded_pod_counts_for_its_gang_while_it_is_there() -> None:
    world = _running(tasks=[task("w", 3)])
    world.end_pod("j-w-0", 0)
    world.settle()
    (group,) = world.all(PODGROUPS)
    assert (group["spec"]["minMember"], group["spec"]["minTaskMember"]) == (3, {"w": 3})


def test_losses_are_told_by_what_they_are() -> None:
    world = _running(tasks=[task("w", 3)], minAvailable=1)
    world.end_pod("j-w-0", 3)
    world.remove(PODS, "j-w-1")
    reported = {event.reason: event.message for event in world.reconcile().events}
    assert reported == {
        "PodFailed": "pod j-w-0 exited with code 3 on node node-1",
        "PodEvicted": "pod j-w-1 was deleted",
    }


# Outcomes ------------------------------------------------------------------------------------------------------------

OUTCOMES = {
    "all succeed": ({"tasks": [task("w", 3)]}, {"j-w-0": 0, "j-w-1": 0, "j-w-2": 0}, "Completed"),
    "one fails": ({"tasks": [task("w", 3)]}, {"j-w-0": 1, "j-w-1": 0, "j-w-2": 0}, "Failed"),
    "one fails beside enough": (
        {"tasks": [task("w", 3, minAvailable=2)], "minAvailable": 2},
        {"j-w-0": 1, "j-w-1": 0, "j-w-2": 0},
        "Completed",
    ),
    "one fails and others run on": ({"tasks": [task("w", 3)]}, {"j-w-0": 1, "j-w-1": 0}, "Running"),
    "enough succeed": ({"tasks": [task("w", 3)], "minSuccess": 1}, {"j-w-1": 0}, "Completed"),
    "too few succeed": (
        {"tasks": [task("w", 2)], "minSuccess": 2, "minAvailable": 1},
        {"j-w-0": 0, "j-w-1": 1},
        "Failed",
    ),
    "a task has too few": (
        {"tasks": [task("a", 2, minAvailable=1), task("b", 2, minAvailable=1)], "minAvailable": 2},
        {"j-a-0": 0, "j-a-1": 0, "j-b-0": 1, "j-b-1": 1},
        "Failed",
    ),
    "a task's minimum is moot below the sum": (
        {"tasks": [task("a", 2, minAvailable=2), task("b", 1, minAvailable=1)], "minAvailable": 2},
        {"j-a-0": 0, "j-a-1": 0, "j-b-0": 1},
        "Completed",
    ),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_outcomes(case: str) -> None:
    spec, ends, phase = OUTCOMES[case]
    world = _running(**spec)
    for name, code in ends.items():
        world.end_pod(name, code)
    world.settle()
    assert world.phase() == phase


def test_pods_that_are_gone_count_for_the_outcome() -> None:
    """volcano#791, volcano#3296: cleaning up finished pods neither runs them again nor changes the result."""
    world = _running(tasks=[task("w", 3)])
    world.end_pod("j-w-0", 0)
    world.end_pod("j-w-1", 1)
    world.settle()
    world.remove(PODS, "j-w-0")
    world.remove(PODS, "j-w-1")
    world.settle()
    assert set(world.pods()) == {"j-w-2"}
    world.end_pod("j-w-2", 0)
    world.settle()
    status = world.job()["status"]
    assert (status["state"]["phase"], status["succeeded"], status["failed"]) == ("Failed", 2, 1)
    reported = "pod j-w-1 exited with code 1 on node node-1; 2 of 3 pods succeeded and 1 failed"
    assert status["state"]["message"] == reported


def test_an_evicted_pod_runs_again_without_any_policy() -> None:
    world = _running()
    world.evict("j-w-0")
    world.settle()
    world.run(until=lambda: world.phase() == "Running" and len(world.pods()) == 2)
    assert "retryCount" not in world.job()["status"]


def test_a_finished_job_keeps_its_finished_pods_and_nothing_else() -> None:
    world = _running(tasks=[task("w", 2), task("ps", 1)], minSuccess=1, plugins={"svc": []})
    world.end_pod("j-w-0", 0)
    world.settle()
    assert world.phase() == "Completed"
    assert world.all(CONFIGMAPS), "its names are of use to the last pod"
    world.step()
    world.settle()
    assert set(world.pods()) == {"j-w-0"}
    assert not world.all(PODGROUPS)
    assert not world.all(CONFIGMAPS)
    assert not world.all(SERVICES)
    assert "controlledResources" not in world.job()["status"]


# Budgets -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod"])
def test_the_last_failure_stays_to_be_looked_at(action: str) -> None:
    """volcano#1688; with maxRetry 3 there are two restarts, and the third failure is final."""
    tasks = [task("ok", 2), task("bad", 1, "sleep 1 && exit 7")]
    world = _world(tasks=tasks, policies=[{"event": "PodFailed", "action": action}], maxRetry=3)
    saw = world.run(until=lambda: world.phase() == "Failed")
    assert saw.count("Restarting") == 2
    world.step()
    world.settle()
    status = world.job()["status"]
    assert (status["retryCount"], status["failed"]) == (3, 1)
    assert status["state"]["reason"] == "RetriesExhausted"
    assert "pod j-bad-0 exited with code 7" in status["state"]["message"]
    assert set(world.pods()) == {"j-bad-0"}
    losses = status["ledger"]["losses"]
    assert [(loss["pod"], loss["exitCode"]) for loss in losses] == [("j-bad-0", 7)] * 3


def test_evictions_use_no_retries() -> None:
    """volcano#2560."""
    world = _running(policies=[{"event": "PodEvicted", "action": "RestartJob"}], maxRetry=1)
    for restarts in range(1, INFRASTRUCTURE_RETRIES + 1):
        world.evict("j-w-0")
        world.reconcile()
        assert world.job()["status"]["retryCount"] == restarts
        if restarts < INFRASTRUCTURE_RETRIES:
            world.step()
            world.settle()
            world.now += LONGEST_WAIT
            world.run(until=lambda: world.phase() == "Running")
            world.settle()
    assert world.phase() == "Failed"
    assert "infrastructure" in world.job()["status"]["state"]["message"]


def test_losses_by_the_infrastructure_are_answered_slower_each_time() -> None:
    world = _running(policies=[{"event": "PodEvicted", "action": "RestartJob"}])

    def waits() -> float:
        """Seconds from an eviction until pods are made again."""
        world.evict("j-w-0")
        world.settle()
        evicted = world.now
        world.step()
        world.settle()
        said.append("its pods are made again at" in world.job()["status"]["state"].get("message", ""))
        world.run(until=lambda: world.phase() == "Running", most=1000)
        return (world.now - evicted).total_seconds()

    said: list[bool] = []
    assert [round(waits(), -1) for _ in range(4)] == [0, 10, 20, 40]
    world.now += HEALTHY
    assert waits() < 5
    assert said == [False, True, True, True, False]


def test_a_person_who_resumes_doesn_t_wait() -> None:
    world = _running(policies=[{"event": "PodEvicted", "action": "RestartJob"}])
    for _ in range(2):
        world.evict("j-w-0")
        world.settle()
        world.step()
        world.settle()
        if not world.job()["status"]["ledger"].get("notBefore"):
            world.run(until=lambda: world.phase() == "Running")
    assert world.job()["status"]["ledger"]["notBefore"]
    world.command("AbortJob", target=world.job())
    world.run(until=lambda: world.phase() == "Aborted")
    world.command("ResumeJob", target=world.job())
    started = world.now
    world.run(until=lambda: world.phase() == "Running")
    assert (world.now - started).total_seconds() < 5


def test_resumes_use_no_retries() -> None:
    world = _running(maxRetry=1)
    for resumes in (1, 2, 3):
        world.command("AbortJob", target=world.job())
        world.run(until=lambda: world.phase() == "Aborted")
        world.command("ResumeJob", target=world.job())
        world.run(until=lambda: world.phase() == "Running")
        assert world.job()["status"]["retryCount"] == resumes


# Suspension ----------------------------------------------------------------------------------------------------------


def test_a_resume_runs_again_what_failed_and_keeps_what_succeeded() -> None:
    world = _running(tasks=[task("w", 3)], policies=[{"event": "PodFailed", "action": "AbortJob"}])
    world.end_pod("j-w-0", 0)
    world.end_pod("j-w-1", 1)
    world.run(until=lambda: world.phase() == "Aborted")
    assert {name: pod["status"]["phase"] for name, pod in world.pods().items()} == {
        "j-w-0": "Succeeded",
        "j-w-1": "Failed",
    }
    world.command("ResumeJob", target=world.job())
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    status = world.job()["status"]
    assert (status["succeeded"], status["running"]) == (1, 2)
    assert "failed" not in status


def test_a_phase_written_from_outside_suspends() -> None:
    """As torchx cancels: PUT of the status with another phase."""
    world = _running()
    world.change(JOBS, "j", lambda job: job["status"]["state"].update(phase="Aborted"))
    world.reconcile()
    assert world.job()["status"]["conditions"][-1]["status"] == "Aborted"
    world.step()
    world.settle()
    assert not world.pods()
    assert world.job()["status"]["version"] == 1
    world.command("ResumeJob", target=world.job())
    world.run(until=lambda: world.phase() == "Running")


def test_a_phase_written_from_outside_doesn_t_wake_the_dead() -> None:
    world = _world(tasks=[task("w", 1, "sleep 1")])
    world.run(until=lambda: world.phase() == "Completed")
    world.settle()
    world.change(JOBS, "j", lambda job: job["status"]["state"].update(phase="Aborted"))
    world.settle()
    assert world.phase() == "Completed"


@pytest.mark.parametrize(("action", "phase"), [("CompleteJob", "Completed"), ("TerminateJob", "Terminated")])
def test_a_phase_written_from_outside_does_not_suspend_a_job_that_is_ending(action: str, phase: str) -> None:
    """Its result is decided; AbortJob has no effect on it either."""
    world = _running()
    world.command(action, target=world.job())
    world.reconcile()
    ending = world.phase()
    world.change(JOBS, "j", lambda job: job["status"]["state"].update(phase="Aborted"))
    world.reconcile()
    assert world.phase() == ending
    world.run(until=lambda: world.phase() == phase)


def test_phases_do_not_alternate_while_surplus_pods_wait_for_the_pod_group() -> None:
    """The size is reduced while the PodGroup is missing: one pod runs, one waits for the new PodGroup."""
    world = _running(tasks=[task("w", 2, minAvailable=1)], minAvailable=1)
    world.remove(PODS, "j-w-0")
    world.settle()
    (group,) = world.all(PODGROUPS)
    world.remove(PODGROUPS, group["metadata"]["name"])

    def scale(job: Json) -> None:
        job["spec"]["tasks"][0]["replicas"] = 1

    world.change(JOBS, "j", scale)
    world.settle()
    assert world.reconcile().status is None
    world.run(until=lambda: list(world.pods()) == ["j-w-0"])
    world.settle()
    assert world.phase() == "Running"


@pytest.mark.parametrize(
    ("action", "phase"), [("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
)
def test_a_person_wins_over_a_restart(action: str, phase: str) -> None:
    """Volcano ignores them while it restarts."""
    world = _running(policies=[{"event": "PodFailed", "action": "RestartJob"}])
    world.end_pod("j-w-0", 1)
    world.reconcile()
    assert world.phase() == "Restarting"
    world.command(action, target=world.job())
    world.run(until=lambda: world.phase() == phase)


# Commands ------------------------------------------------------------------------------------------------------------


def test_a_command_that_outlives_its_execution_is_not_executed_again() -> None:
    world = _running()
    command = world.command("RestartJob", target=world.job())
    world.reconcile(writes=1)
    assert world.job()["status"]["retryCount"] == 1
    assert world.all(COMMANDS)
    world.remove(COMMANDS, command["metadata"]["name"])
    world.run(until=lambda: world.phase() == "Running")
    world.objects[COMMANDS, command["metadata"]["name"]] = command  # its deletion was refused: it is there still
    world.reconcile()
    assert world.phase() == "Running"
    assert world.job()["status"]["retryCount"] == 1
    assert not world.all(COMMANDS)


def test_commands_are_taken_one_by_one_the_oldest_first() -> None:
    world = _running()
    world.command("ResumeJob", target=world.job(), name="b")
    world.command("AbortJob", target=world.job(), name="a")
    world.now += timedelta(seconds=5)
    decision = world.reconcile()
    assert world.phase() == "Aborting"
    assert decision.requeue_at == world.now
    assert [event.reason for event in decision.events] == ["CommandIssued", "ExecuteAction"]
    world.run(until=lambda: world.phase() == "Running")
    assert world.job()["status"]["retryCount"] == 1


@pytest.mark.parametrize(
    ("action", "phase"), [("SyncJob", "Restarting"), ("ResumeJob", "Restarting"), ("AbortJob", "Aborting")]
)
def test_a_command_that_changes_nothing_hides_no_failure(action: str, phase: str) -> None:
    world = _running(policies=[{"event": "PodFailed", "action": "RestartJob"}])
    world.command(action, target=world.job())
    world.end_pod("j-w-0", 1)
    world.reconcile()
    assert world.phase() == phase
    assert not world.all(COMMANDS)


@pytest.mark.parametrize("action", ["Nonsense", "", "RestartPod", "OpenQueue"])
def test_a_command_that_makes_no_sense_is_removed_and_reported(action: str) -> None:
    world = _running()
    world.command(action, target=world.job())
    decision = world.reconcile()
    assert [event.reason for event in decision.events] == ["CommandRejected"]
    assert decision.status is None
    assert not world.all(COMMANDS)


# Restarts ------------------------------------------------------------------------------------------------------------


def test_a_restart_of_a_part_leaves_the_rest_alone() -> None:
    world = _running(
        tasks=[task("a", 2, policies=[{"event": "PodFailed", "action": "RestartTask"}]), task("b", 1)],
        plugins={"svc": []},
        policies=[{"event": "PodEvicted", "action": "TerminateJob"}],
    )
    before = {name: pod["metadata"]["uid"] for name, pod in world.pods().items()}
    others = [world.all(resource) for resource in (PODGROUPS, SERVICES, CONFIGMAPS)]
    world.end_pod("j-a-1", 1)
    world.run(until=lambda: world.phase() == "Restarting")
    world.run(until=lambda: world.phase() == "Running")
    after = {name: pod["metadata"]["uid"] for name, pod in world.pods().items()}
    assert after["j-b-0"] == before["j-b-0"]
    assert after["j-a-0"] != before["j-a-0"]
    assert after["j-a-1"] != before["j-a-1"]
    assert [world.all(resource) for resource in (PODGROUPS, SERVICES, CONFIGMAPS)] == others


def test_pods_of_an_older_attempt_bar_new_ones_and_ask_for_nothing() -> None:
    """As taken over from another controller in the middle of a restart."""
    world = _running(policies=[{"event": "PodFailed", "action": "TerminateJob"}])
    world.change(JOBS, "j", lambda job: job["status"].update(version=3))
    world.change(JOBS, "j", lambda job: job["status"]["ledger"].pop("tasks"))
    world.end_pod("j-w-0", 1)
    world.remove(PODS, "j-w-1")
    world.remove(PODS, "j-w-0")
    leftover = world.created[0] | {"status": {"phase": "Running", "startTime": world.now.isoformat()}}
    world.objects[PODS, "j-w-0"] = leftover
    created = len(world.created)
    world.reconcile()
    assert len(world.created) == created
    assert leftover["metadata"]["deletionTimestamp"]
    world.run(until=lambda: world.phase() == "Running" and len(world.pods()) == 2)


def test_scaling_down_is_no_eviction() -> None:
    world = _running(tasks=[task("w", 4, minAvailable=1)], policies=[{"event": "PodEvicted", "action": "TerminateJob"}])

    def fewer(job: Json) -> None:
        job["spec"]["tasks"][0]["replicas"] = 2

    world.change(JOBS, "j", fewer)
    for _ in range(4):
        world.settle()
        world.step()
    assert world.phase() == "Running"
    assert set(world.pods()) == {"j-w-0", "j-w-1"}


# Other owners, other UIDs --------------------------------------------------------------------------------------------


def test_pods_of_a_namesake_are_left_alone() -> None:
    world = _running()
    stranger = world.pods()["j-w-0"]
    stranger["metadata"]["ownerReferences"][0]["uid"] = "older"
    stranger["metadata"]["name"] = "j-w-7"
    world.objects[PODS, "j-w-7"] = world.objects.pop((PODS, "j-w-0"))
    world.settle()
    assert "deletionTimestamp" not in stranger["metadata"]
    assert world.job()["status"]["running"] == 1


def test_nothing_is_decided_for_a_job_that_is_being_deleted() -> None:
    world = _running()
    world.change(JOBS, "j", lambda job: job["metadata"].update(deletionTimestamp="2026-11-20T12:00:00Z"))
    world.end_pod("j-w-0", 1)
    decision = world.reconcile()
    assert (decision.status, decision.deletes, decision.creates) == (None, (), ())


# The end -------------------------------------------------------------------------------------------------------------


def test_a_finished_job_expires() -> None:
    world = _world(tasks=[task("w", 1, "sleep 1")], ttlSecondsAfterFinished=60)
    world.run(until=lambda: world.phase() == "Completed")
    ended = world.now.replace(microsecond=0)
    decision = world.reconcile()
    assert decision.requeue_at == ended + timedelta(seconds=60)
    world.now = ended + timedelta(seconds=59)
    assert not world.reconcile().deletes
    world.now = ended + timedelta(seconds=60)
    (delete,) = world.reconcile().deletes
    assert (delete.ref.resource, delete.propagation) == (JOBS, "Foreground")


def test_a_suspended_job_doesn_t_expire() -> None:
    world = _running(ttlSecondsAfterFinished=1)
    world.command("AbortJob", target=world.job())
    world.run(until=lambda: world.phase() == "Aborted")
    world.now += timedelta(days=1)
    decision = world.reconcile()
    assert not decision.deletes
    assert decision.requeue_at is None


# What is remembered --------------------------------------------------------------------------------------------------


def test_a_resume_is_free() -> None:
    """With two restarts allowed by maxRetry, a suspension and one failure must not make it three."""
    world = _running(maxRetry=2, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    world.command("AbortJob", target=world.job())
    world.run(until=lambda: world.phase() == "Aborted")
    world.command("ResumeJob", target=world.job())
    world.run(until=lambda: world.phase() == "Running")
    world.end_pod("j-w-0", 1)
    world.reconcile()
    assert world.phase() == "Restarting"


def test_a_resumed_job_keeps_what_had_succeeded() -> None:
    world = _running()
    world.end_pod("j-w-0", 0)
    world.settle()
    kept = world.pods()["j-w-0"]["metadata"]["uid"]
    world.command("AbortJob", target=world.job())
    world.run(until=lambda: world.phase() == "Aborted")
    world.command("ResumeJob", target=world.job())
    world.run(until=lambda: world.phase() == "Running")
    assert world.pods()["j-w-0"]["metadata"]["uid"] == kept
    assert len([pod for pod in world.created if pod["metadata"]["name"] == "j-w-0"]) == 1


def test_the_evidence_is_bounded_and_is_of_what_failed_first() -> None:
    world = _running(tasks=[task("w", 40)], minAvailable=1, maxRetry=5)
    for index in range(20):
        world.end_pod(f"j-w-{index}", 1)
        world.settle()
    pods = [loss["pod"] for loss in world.job()["status"]["ledger"]["losses"]]
    assert pods == [f"j-w-{index}" for index in range(MOST_LOSSES)]
    world.command("RestartJob", target=world.job())
    world.run(until=lambda: world.phase() == "Running" and len(world.pods()) == 40)
    for index in range(30, 33):
        world.end_pod(f"j-w-{index}", 1)
        world.settle()
    pods = [loss["pod"] for loss in world.job()["status"]["ledger"]["losses"]]
    assert len(pods) == MOST_LOSSES
    assert pods[-3:] == ["j-w-30", "j-w-31", "j-w-32"], "of a new attempt the old evidence gives way"


def test_a_pod_that_is_about_to_be_taken_doesnt_end_its_job() -> None:
    """A pod's garbage collector writes Failed, and deletes the pod with its next request (volcano#5885)."""
    world = _running(tasks=[task("w", 1)])
    world.end_pod("j-w-0", 143)
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
    world.pods()["j-w-0"]["status"]["conditions"] = [disruption]
    world.settle()
    assert world.phase() == "Running"
    world.remove(PODS, "j-w-0")
    world.run(until=lambda: world.phase() == "Running" and "j-w-0" in world.pods())


def test_a_pod_that_its_kubelet_evicted_stays_failed() -> None:
    world = _running(tasks=[task("w", 1)])
    world.end_pod("j-w-0", 137)
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    world.pods()["j-w-0"]["status"]["conditions"] = [disruption]
    world.settle()
    assert world.phase() == "Failed"


def test_an_eviction_is_told_once() -> None:
    world = _running()
    world.evict("j-w-0")
    world.settle()
    world.remove(PODS, "j-w-0")
    world.settle()
    reported = [event.message for event in world.events if event.reason == "PodEvicted"]
    assert reported == ["pod j-w-0 was preempted on node node-1"]


def test_a_command_on_its_way_out_is_rejected_no_second_time() -> None:
    world = _running()
    command = world.command("Explode", target=world.job())
    assert [event.reason for event in world.reconcile().events] == ["CommandRejected"]
    world.objects[COMMANDS, command["metadata"]["name"]] = command  # the news of its deletion comes late
    command["metadata"]["deletionTimestamp"] = command["metadata"]["creationTimestamp"]
    assert not world.reconcile().events


def test_commands_that_cant_be_removed_are_not_carried_out_again() -> None:
    """While nothing may be deleted, no more are taken than can be remembered."""
    world = _running(maxRetry=1000)
    for number in range(MOST_COMMANDS + 4):
        world.command("RestartJob", target=world.job(), name=f"restart-{number:02}")
    for _ in range(3 * MOST_COMMANDS):
        writes_status = world.reconcile(writes=0).status is not None
        world.reconcile(writes=int(writes_status))  # and then the server refuses
    status = world.job()["status"]
    assert len(status["ledger"]["commands"]) == MOST_COMMANDS
    issued = [command["metadata"]["uid"] for command in world.all(COMMANDS)]
    assert status["ledger"]["commands"] == issued[:MOST_COMMANDS]


def test_what_somebody_else_put_in_a_plugins_place_is_left_alone() -> None:
    world = _running(plugins={"svc": []})
    world.objects[SERVICES, "j"]["metadata"]["ownerReferences"] = []
    world.end_pod("j-w-0", 0)
    world.end_pod("j-w-1", 0)
    world.settle()
    assert world.phase() == "Completed"
    assert (SERVICES, "j") in world.objects
