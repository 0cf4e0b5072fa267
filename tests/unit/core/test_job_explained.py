"""Why a job is in its phase, word for word, and what is told of it as an event, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.flags import PLUGIN_FLAGS
from vcbatch.api.resources import JOBS, PODGROUPS, PODS
from vcbatch.core.job.plan import Task
from vcbatch.core.job.plugins import KNOWN, Child


def submitted(tasks: list[Json] | None = None, **spec: Any) -> World:
    world = World()
    world.submit(job_object(tasks=tasks, **spec))
    return world


def running(tasks: list[Json] | None = None, **spec: Any) -> World:
    world = submitted(tasks, **spec)
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    world.events.clear()
    return world


def waiting(tasks: list[Json] | None = None, **spec: Any) -> World:
    """Let in, and its pods are made but have no node."""
    world = submitted(tasks, **spec)
    world.binds = False
    world.settle()
    world.schedule()
    world.settle()
    world.events.clear()
    return world


def state(world: World) -> tuple[str, str, str]:
    found = world.job()["status"]["state"]
    return str(found["phase"]), str(found.get("reason", "")), found.get("message", "")


def reported(world: World) -> list[tuple[str, str, str]]:
    return [(str(event.type), str(event.reason), event.message) for event in world.events]


def settled_events(world: World) -> list[tuple[str, str, str]]:
    """What is told until nothing is left to do, and that it isn't told again."""
    world.settle()
    found = reported(world)
    world.reconcile()
    world.now = world.now.replace(microsecond=1)
    world.reconcile()
    assert reported(world) == found
    return found


RESTARTED = "Start to execute action RestartJob: "


# Restarts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_job_that_was_restarted_often_enough(most: int) -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    world = submitted([task("w", 1, "sleep 1 && exit 7")], policies=policies, maxRetry=most)
    world.run(until=lambda: world.phase() == "Failed")
    last = "pod j-w-0 exited with code 7 on node node-1"
    why = f"{last}; no retries left (maxRetry {most})"
    assert state(world) == ("Failed", "RetriesExhausted", why)
    failed, again = ("Warning", "PodFailed", last), ("Normal", "ExecuteAction", RESTARTED + last)
    assert settled_events(world) == [*([failed, again] * (most - 1)), failed, ("Warning", "RetriesExhausted", why)]


@pytest.mark.parametrize(("lost", "retries", "phase"), [(31, 40, "Failed"), (30, 40, "Restarting")])
def test_a_job_that_was_taken_often_enough(lost: int, retries: int, phase: str) -> None:
    world = running(policies=[{"event": "PodEvicted", "action": "RestartJob"}], maxRetry=1)

    def counted(job: Json) -> None:
        job["status"]["retryCount"] = retries
        job["status"]["ledger"].update(infrastructureRetries=lost, resumes=retries - lost)

    world.change(JOBS, "j", counted)
    world.evict("j-w-0")
    world.reconcile()
    last = "pod j-w-0 was preempted on node node-1"
    why = f"{last}; 31 restarts for pods that it lost to the infrastructure are the most it gets"
    assert (
        state(world)
        == {
            "Failed": ("Failed", "RetriesExhausted", why),
            "Restarting": ("Restarting", "PodEvicted", RESTARTED + last),
        }[phase]
    )


def test_a_job_that_waits_before_it_starts_again() -> None:
    world = running(policies=[{"event": "PodEvicted", "action": "RestartJob"}])
    world.evict("j-w-0")
    world.run(until=lambda: world.phase() == "Restarting")
    world.run(until=lambda: world.phase() == "Running")
    world.evict("j-w-0")
    world.run(until=lambda: world.phase() == "Pending")
    until = world.job()["status"]["ledger"]["notBefore"]
    assert state(world) == (
        "Pending",
        "BackOff",
        f"lost to the infrastructure 2 times; its pods are made again at {until}",
    )
    world.run(until=lambda: world.phase() == "Running")
    assert state(world) == ("Running", "", "")


# Waiting -------------------------------------------------------------------------------------------------------------


def test_a_queue_that_is_not_there() -> None:
    world = submitted(queue="nope")
    why = "queue 'nope' doesn't exist"
    assert settled_events(world) == [("Warning", "QueueNotFound", why)]
    assert state(world) == ("Pending", "QueueNotFound", why)
    assert not world.all(PODGROUPS)
    world.put_queue("nope")
    world.run(until=lambda: world.phase() == "Running")
    assert state(world) == ("Running", "", "")


def test_tasks_that_wait_for_others() -> None:
    tasks = [task("a", 1), task("b", 1, dependsOn={"name": ["a"]}), task("c", 1, dependsOn={"name": ["a", "b"]})]
    world = waiting(tasks, minAvailable=1)
    assert state(world) == ("Pending", "DependencyNotReady", "task b waits for a; task c waits for a and b")


def unschedulable(group: Json) -> None:
    condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "2/2 tasks"}
    group["status"]["conditions"] = [condition | {"lastTransitionTime": "2026-11-20T12:00:00Z"}]


def test_a_gang_that_finds_no_place() -> None:
    world = waiting()
    (group,) = world.all(PODGROUPS)
    world.change(PODGROUPS, group["metadata"]["name"], unschedulable)
    message = "PodGroup ns:j unschedulable, reason: 2/2 tasks"
    assert settled_events(world) == [("Warning", "PodGroupPending", message)]
    assert state(world) == ("Pending", "NotEnoughResources", "2/2 tasks")
    world.binds = True
    world.run(until=lambda: world.phase() == "Running")
    assert state(world) == ("Running", "", "")


def test_a_gang_that_is_refused() -> None:
    """The queue of a suspended job was closed, and the job is resumed."""
    world = submitted()
    world.group_refusal = "queue default is Closed"
    world.settle()
    assert state(world) == ("Pending", "PodGroupError", "queue default is Closed")
    assert not settled_events(world), "told by the one who was refused"
    world.group_refusal = ""
    world.run(until=lambda: world.phase() == "Running")
    assert state(world) == ("Running", "", "")


def test_pods_that_are_refused_come_before_a_gang_that_is_not_whole() -> None:
    world = submitted()
    world.refusal = "exceeded quota: small"
    world.settle()
    (group,) = world.all(PODGROUPS)
    group.setdefault("status", {})["phase"] = "Inqueue"
    world.change(PODGROUPS, group["metadata"]["name"], unschedulable)
    world.settle()
    assert state(world) == ("Pending", "FailedCreate", "exceeded quota: small")
    world.refusal = ""
    world.binds = False
    world.settle()
    assert state(world) == ("Pending", "NotEnoughResources", "2/2 tasks")


def statuses(**by_name: Json | None) -> list[Json]:
    return [{"name": name} | ({"state": given} if given else {}) for name, given in by_name.items()]


PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling"}}
MAKING = {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(
    ("init", "main", "why"),
    [
        (
            {"i": MAKING},
            {"main": PULLING},
            "container main of pod j-w-0 can't start: ImagePullBackOff: Back-off pulling",
        ),
        (
            {"i": PULLING},
            {"main": PULLING},
            "container i of pod j-w-0 can't start: ImagePullBackOff: Back-off pulling",
        ),
        ({"i": {"running": {}}}, {"a": None, "b": MAKING}, ""),
    ],
)
def test_containers_that_cannot_start(init: dict[str, Json | None], main: dict[str, Json | None], why: str) -> None:
    world = waiting()
    for name in ("j-w-1", "j-w-0"):
        world.objects[PODS, name]["status"] |= {
            "initContainerStatuses": statuses(**init),
            "containerStatuses": statuses(**main),
        }
    assert settled_events(world) == []
    assert state(world) == ("Pending", "PodNotStarted" if why else "", why)


def test_of_several_pods_that_cannot_start_the_first_by_name_is_told() -> None:
    world = waiting([task("b", 1), task("a", 2)])
    for name in ("j-b-0", "j-a-1"):
        world.objects[PODS, name]["status"]["containerStatuses"] = statuses(main=PULLING)
    world.settle()
    assert state(world)[2].startswith("container main of pod j-a-1 ")


# The end -------------------------------------------------------------------------------------------------------------


def ended(world: World, name: str, code: int, **terminated: Any) -> None:
    world.end_pod(name, code, **terminated)
    world.settle()


FAILURES: dict[str, tuple[Callable[[World], None], str]] = {
    "a word": (
        lambda world: ended(world, "j-w-0", 128, reason="StartError", message="no such file"),
        "pod j-w-0 exited with code 128 on node node-1 (StartError: no such file)",
    ),
    "a signal": (
        lambda world: ended(world, "j-w-0", 139, reason="Error"),
        "pod j-w-0 exited with code 139 by signal 11 on node node-1",
    ),
    "memory": (
        lambda world: ended(world, "j-w-0", 137, reason="OOMKilled"),
        "pod j-w-0 was killed for using more memory than its limit on node node-1",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_how_a_job_failed(case: str) -> None:
    fail, first = FAILURES[case]
    world = running()
    fail(world)
    assert state(world)[0] == "Running"
    ended(world, "j-w-1", 1)
    assert state(world) == ("Failed", "PodFailed", f"{first}; 0 of 2 pods succeeded and 2 failed")


def test_a_pod_that_ended_without_an_exit_code() -> None:
    world = running([task("w", 1)])
    world.objects[PODS, "j-w-0"]["status"] = {"phase": "Failed", "message": "odd"}
    world.settle()
    assert state(world)[2] == "pod j-w-0 failed on node node-1 (odd); 0 of 1 pods succeeded and 1 failed"


def test_a_cause_that_nobody_knows_any_more_is_a_failure() -> None:
    world = running()
    ended(world, "j-w-0", 3)

    def rewritten(job: Json) -> None:
        job["status"]["ledger"]["losses"][0].update(cause="Whatever")

    world.change(JOBS, "j", rewritten)
    ended(world, "j-w-1", 1)
    assert state(world)[2] == "pod j-w-0 failed on node node-1; 0 of 2 pods succeeded and 2 failed"


def test_an_exit_code_that_is_not_known_any_more_is_not_told() -> None:
    world = running()
    ended(world, "j-w-0", 3)
    world.change(JOBS, "j", lambda job: job["status"]["ledger"]["losses"][0].pop("exitCode"))
    ended(world, "j-w-1", 1)
    assert state(world)[2] == "pod j-w-0 exited on node node-1; 0 of 2 pods succeeded and 2 failed"


def test_losses_of_earlier_attempts_are_not_why_this_one_failed() -> None:
    policies = [{"exitCode": 3, "action": "RestartJob"}]
    world = running([task("w", 1)], policies=policies)
    ended(world, "j-w-0", 3)
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    ended(world, "j-w-0", 4)
    first = "pod j-w-0 exited with code 4 on node node-1"
    assert state(world) == ("Failed", "PodFailed", f"{first}; 0 of 1 pods succeeded and 1 failed")


def test_tasks_that_could_never_start() -> None:
    after = {"name": ["a"]}
    world = waiting([task("a", 1), task("c", 2, dependsOn=after), task("b", 1, dependsOn=after)], minAvailable=1)
    ended(world, "j-a-0", 3)
    assert state(world)[2] == (
        "pod j-a-0 exited with code 3; 0 of 4 pods succeeded and 1 failed, 3 could never start (b and c)"
    )


def test_a_job_that_succeeded_needs_no_reason() -> None:
    world = running([task("w", 1)])
    ended(world, "j-w-0", 0)
    assert state(world) == ("Completed", "", "")


def test_a_job_that_was_suspended_from_outside() -> None:
    world = running()
    world.change(JOBS, "j", lambda job: job["status"]["state"].update(phase="Aborted"))
    assert settled_events(world) == []
    assert state(world) == ("Aborted", "ExecuteAction", "the phase was set to Aborted from outside")


def test_a_job_that_was_suspended_by_a_command_and_is_resumed_by_one() -> None:
    world = running()
    world.command("AbortJob", target=world.job(), name="stop")
    world.run(until=lambda: world.phase() == "Aborted")
    why = "Start to execute action AbortJob: asked for by the Command stop"
    assert state(world) == ("Aborted", "CommandIssued", why)
    world.command("ResumeJob", target=world.job(), name="go")
    world.reconcile()
    why = "Start to execute action ResumeJob: asked for by the Command go"
    assert state(world) == ("Restarting", "CommandIssued", why)


def test_the_reason_of_an_action_outlives_the_kill() -> None:
    world = running()
    command = world.command("TerminateJob", target=world.job(), name="stop")
    assert command["metadata"]["name"] == "stop"
    world.reconcile()
    why = "Start to execute action TerminateJob: asked for by the Command stop"
    assert state(world) == ("Terminating", "CommandIssued", why)
    world.run(until=lambda: world.phase() == "Terminated")
    assert state(world) == ("Terminated", "CommandIssued", why)
    assert settled_events(world) == [
        (
            "Normal",
            "CommandIssued",
            "Start to execute command TerminateJob, and clean it up to make sure executed not more than once.",
        ),
        ("Normal", "ExecuteAction", why),
    ]


# Beside the phase ----------------------------------------------------------------------------------------------------


def test_arguments_that_do_not_parse_are_told_once() -> None:
    world = submitted(plugins={"ssh": ["--ssh-port=x"], "env": ["--no"]})
    assert settled_events(world) == [
        ("Warning", "PluginError", "plugin env: flag no isn't known, want one of none"),
        ("Warning", "PluginError", "plugin ssh: flag ssh-port is 'x', want an integer"),
    ]


def test_a_state_that_somebody_wiped_is_no_new_beginning() -> None:
    world = running(plugins={"env": ["--no"]})
    before = dict(world.job()["status"]["state"])
    world.change(JOBS, "j", lambda job: job["status"].update(state={}))
    world.step(seconds=100)
    assert settled_events(world) == []
    assert world.job()["status"]["state"] == before


class _Broken:
    def children(self) -> tuple[Child, ...]:
        return ()

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        raise LookupError(f"no host for {pod['metadata']['name']} of {task.name}, {index}")


def test_all_tasks_that_a_plugin_leaves_without_pods_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KNOWN, "mine", lambda plan, flags: _Broken())
    monkeypatch.setitem(PLUGIN_FLAGS, "mine", {})
    world = waiting([task("a", 1), task("b", 2)], plugins={"mine": []})
    why = "plugin mine failed: LookupError: no host for j-{0}-0 of {0}, 0"
    assert state(world) == ("Pending", "PluginError", "; ".join(f"task {name}: {why.format(name)}" for name in "ab"))


def test_a_command_that_is_for_somebody_else_is_told() -> None:
    world = running()
    other = {**world.job(), "metadata": {"name": "j", "uid": "other"}}
    world.command("AbortJob", target=other, name="stray")
    why = "Command stray is for a job j with UID other, which is no more"
    assert settled_events(world) == [("Warning", "CommandRejected", why)]
    assert state(world)[0] == "Running"


def test_a_policy_that_waits_says_so_once() -> None:
    world = running(policies=[{"event": "PodFailed", "action": "AbortJob", "timeout": "90s"}], minAvailable=1)
    world.end_pod("j-w-0", 3)
    last = "pod j-w-0 exited with code 3 on node node-1"
    assert settled_events(world) == [
        ("Warning", "PodFailed", last),
        ("Normal", "ExecuteAction", f"Execute action AbortJob after 1m30s: {last}"),
    ]
