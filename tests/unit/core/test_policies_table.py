"""Policies, all of them: which one of a list answers, every event with every action, and what becomes of a timeout.

The precedence is compared with a second implementation of Volcano's applyPolicies
(`pkg/controllers/job/job_controller_util.go`) that doesn't use `vcbatch.core.job.policies`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import product

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api import names
from vcbatch.api.job import Job
from vcbatch.api.resources import JOBS, PODGROUPS, PODS
from vcbatch.core.job import decide
from vcbatch.core.machine import Decision

WHOLE = {
    "AbortJob": "Aborting",
    "CompleteJob": "Completing",
    "TerminateJob": "Terminating",
    "RestartJob": "Restarting",
}
PARTS = ("RestartTask", "RestartPod", "RestartPartition")
PARTITION = {"totalPartitions": 2, "partitionSize": 2}


def running(policies: Sequence[Json] = (), *, task_policies: Sequence[Json] = ()) -> World:
    """A job of `a`, four pods in two partitions, and `b`, one pod, that runs."""
    world = World()
    tasks = [task("a", 4, policies=[*task_policies], partitionPolicy=PARTITION), task("b", 1)]
    world.submit(job_object(tasks=tasks, policies=[*policies], minAvailable=1))
    world.run(until=lambda: world.phase() == "Running" and world.job()["status"].get("running") == 5)
    world.settle()
    return world


# Which policy answers ------------------------------------------------------------------------------------------------

KINDS: dict[str, Json] = {
    "none": {},
    "failed": {"event": "PodFailed"},
    "evicted": {"events": ["PodEvicted", "TaskFailed"]},
    "any": {"event": "*"},
    "code 3": {"exitCode": 3},
    "code 143": {"exitCode": 143},
}
PLACES = ("AbortJob", "CompleteJob", "TerminateJob", "RestartJob")
"""The actions of the policies by their place: two of the task, two of the job. The phase tells which one answered."""

HAPPENINGS: dict[str, tuple[tuple[str, int], ...]] = {
    "exits with 3": (("PodFailed", 3),),
    "exits with 1": (("PodFailed", 1),),
    # Volcano reports an eviction as PodFailed in most cases; here it is PodEvicted, and PodFailed (with its exit code)
    # only where nobody answers that.
    "is evicted": (("PodEvicted", 0), ("PodFailed", 143)),
    "vanishes": (("PodEvicted", 0),),
}


def answering(kinds: Sequence[str], event: str, code: int) -> str | None:
    """2.4.1, rows 5 to 7, for policies without timeouts: the task's list, then the job's, each in order."""
    for action, kind in zip(PLACES, kinds, strict=True):
        policy = KINDS[kind]
        listed = [*policy.get("events", ()), *([policy["event"]] if "event" in policy else ())]
        if event in listed or "*" in listed:
            return action
        if code != 0 and policy.get("exitCode") == code:
            return action
    return None


@pytest.mark.parametrize("happening", HAPPENINGS)
def test_the_policy_that_answers_is_the_one_of_the_table(happening: str) -> None:
    world = running()
    match happening:
        case "is evicted":
            world.evict("j-a-1")
        case "vanishes":
            world.remove(PODS, "j-a-1")
        case _:
            world.end_pod("j-a-1", int(happening[-1]))
    spec = world.job()["spec"]
    for kinds in product(KINDS, repeat=4):
        given = [{**KINDS[kind], "action": action} for action, kind in zip(PLACES, kinds, strict=True)]
        policies = [policy for policy in given if len(policy) > 1]
        spec["tasks"][0]["policies"] = [policy for policy in policies if policy in given[:2]]
        spec["policies"] = [policy for policy in policies if policy in given[2:]]
        reported = (answering(kinds, event, code) for event, code in HAPPENINGS[happening])
        answer = next((action for action in reported if action is not None), None)
        status = decide(world.view(), now=world.now).status
        assert status is not None
        assert status.status["state"]["phase"] == (WHOLE[answer] if answer else "Running"), (kinds, happening)


# Every event with every action ---------------------------------------------------------------------------------------


def _break_gang(world: World) -> None:
    _set_group_phase(world, "Unknown")


def _set_group_phase(world: World, phase: str) -> None:
    group = names.pod_group_name("j", Job.parse(world.job()).uid)
    world.change(PODGROUPS, group, lambda stored: stored["status"].update(phase=phase))


def _finish_task(world: World) -> None:
    for index in range(4):
        world.end_pod(f"j-a-{index}", 0)


def _restart_containers(world: World, *, times: int = 3) -> None:
    def count(pod: Json) -> None:
        pod["status"]["containerStatuses"][0]["restartCount"] = times

    world.change(PODS, "j-a-1", count)


EVENTS: dict[str, Callable[[World], None]] = {
    "PodFailed": lambda world: world.end_pod("j-a-1", 1),
    "PodEvicted": lambda world: world.remove(PODS, "j-a-1"),
    "Unknown": _break_gang,
    "TaskCompleted": _finish_task,
    "TaskFailed": _restart_containers,
}
OF_A_TASK = {"TaskCompleted", "TaskFailed"}


def killed(decision: Decision) -> set[str]:
    return {delete.ref.name for delete in decision.deletes if delete.ref.resource is PODS}


def aimed_at(event: str, action: str) -> set[str]:
    """What a targeted restart is about: an event of a task has no pod, so the whole task is; one of the whole job
    has neither, and nothing is."""
    if event == "Unknown":
        return set()
    if action == "RestartTask" or event in OF_A_TASK:
        return {f"j-a-{index}" for index in range(4)}
    return {"j-a-0", "j-a-1"} if action == "RestartPartition" else {"j-a-1"}


@pytest.mark.parametrize("named", [True, False], ids=["by name", "by *"])
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("action", [*WHOLE, *PARTS])
def test_every_event_leads_to_every_action(event: str, action: str, *, named: bool) -> None:
    world = running([{"event": event if named else "*", "action": action}])
    EVENTS[event](world)
    there = set(world.pods())
    decision = world.reconcile()
    if action in WHOLE:
        assert world.phase() == WHOLE[action]
        return
    going = aimed_at(event, action) & there
    assert killed(decision) == going
    assert world.phase() == ("Restarting" if aimed_at(event, action) else "Running")


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize(
    "other", ["PodPending", "PodRunning", "OutOfSync", "CommandIssued", "JobUpdated", "", "Nonsense"]
)
def test_no_event_is_another(event: str, other: str) -> None:
    """OutOfSync, CommandIssued and PodRunning lead to SyncJob whatever a policy says (2.4.1, row 2)."""
    world = running([{"event": other, "action": "TerminateJob"}])
    EVENTS[event](world)
    world.settle()
    assert world.phase() != "Terminating"


# Timeouts ------------------------------------------------------------------------------------------------------------


def _scale_up(world: World) -> None:
    world.change(JOBS, "j", lambda job: job["spec"]["tasks"][0].update(replicas=6))


UNDONE: dict[str, Callable[[World], None]] = {
    "PodFailed": lambda world: world.change(
        JOBS, "j", lambda job: job["spec"]["tasks"][0].update(replicas=1, minAvailable=1)
    ),
    "PodEvicted": lambda world: world.run(until=lambda: world.job()["status"].get("running") == 5),
    "Unknown": lambda world: _set_group_phase(world, "Running"),
    "TaskCompleted": _scale_up,
    "TaskFailed": lambda world: _restart_containers(world, times=2),
}


def waiting(event: str, action: str = "TerminateJob") -> World:
    """The event has happened, nothing else does, and its policy waits for a minute."""
    world = running([{"event": event, "action": action, "timeout": "1m"}])
    if event == "PodEvicted":
        world.binds = False
    EVENTS[event](world)
    world.settle()
    return world


@pytest.mark.parametrize("event", EVENTS)
def test_a_timeout_is_over_when_it_is_over_and_not_before(event: str) -> None:
    world = waiting(event)
    began = world.now
    decision = world.reconcile()
    assert decision.requeue_at == began + timedelta(minutes=1)
    world.now = began + timedelta(seconds=59)
    world.settle()
    assert world.phase() == "Running"
    world.now = began + timedelta(seconds=60)
    world.reconcile()
    assert world.phase() == "Terminating"


@pytest.mark.parametrize("event", EVENTS)
def test_a_timeout_that_is_over_while_no_controller_runs_is_answered_by_the_next(event: str) -> None:
    """All that it needs is stored with the job."""
    world = waiting(event)
    world.now += timedelta(hours=1)
    world.reconcile()
    assert world.phase() == "Terminating"


@pytest.mark.parametrize("event", EVENTS)
def test_a_timeout_ends_with_its_cause(event: str) -> None:
    world = waiting(event)
    world.binds = True
    world.now += timedelta(seconds=30)
    UNDONE[event](world)
    world.settle()
    assert "delayed" not in world.job()["status"]["ledger"]
    world.now += timedelta(hours=1)
    world.settle()
    assert world.phase() == "Running"


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("action", ["AbortJob", "RestartJob"])
def test_a_timeout_ends_with_the_attempt(event: str, action: str) -> None:
    """A person was faster: what had happened before isn't answered in what comes after."""
    world = waiting(event)
    world.command(action, target=world.job())
    world.reconcile()
    assert "delayed" not in world.job()["status"]["ledger"]
    world.now += timedelta(hours=1)
    world.settle()
    assert world.phase() == WHOLE[action]


@pytest.mark.parametrize("event", EVENTS)
def test_a_cause_that_comes_back_has_all_its_time_again(event: str) -> None:
    if event in ("PodFailed", "PodEvicted", "TaskCompleted"):
        return  # each is another loss, another end
    world = waiting(event)
    world.now += timedelta(seconds=59)
    UNDONE[event](world)
    world.settle()
    EVENTS[event](world)
    world.settle()
    began = world.now
    world.now = began + timedelta(seconds=59)
    world.settle()
    assert world.phase() == "Running"
    world.now = began + timedelta(seconds=60)
    world.reconcile()
    assert world.phase() == "Terminating"


def test_the_first_that_answers_counts_even_where_it_waits() -> None:
    """2.4.1: its delay belongs to the policy; those behind it aren't asked."""
    world = running(
        [{"event": "PodFailed", "action": "AbortJob", "timeout": "10s"}, {"event": "PodFailed", "action": "RestartJob"}]
    )
    world.end_pod("j-a-1", 1)
    world.settle()
    assert world.phase() == "Running"
    world.now += timedelta(seconds=10)
    world.reconcile()
    assert world.phase() == "Aborting"


@pytest.mark.parametrize("end", ["runs", "fails", "is deleted", "vanishes"])
def test_a_pod_that_is_no_longer_pending_was_not_pending_too_long(end: str) -> None:
    world = World(binds=False)
    world.submit(job_object(policies=[{"event": "PodPending", "action": "AbortJob", "timeout": "30s"}]))
    world.settle()
    world.schedule()
    world.settle()
    world.now += timedelta(seconds=29)
    for name, pod in world.pods().items():
        match end:
            case "runs":
                world.start_pod(pod)
            case "fails":
                world.start_pod(pod)
                world.end_pod(name, 1)
            case "is deleted":
                world.delete_pod(name)
            case _:
                world.remove(PODS, name)
    world.settle()
    world.now += timedelta(seconds=2)
    world.settle()
    assert world.phase() not in ("Aborting", "Aborted")
