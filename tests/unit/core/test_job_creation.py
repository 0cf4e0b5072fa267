"""Which pods are made, in which order, and what happens where some of them can't be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.flags import PLUGIN_FLAGS, Flags
from vcbatch.api.resources import JOBS
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins import KNOWN, register
from vcbatch.core.job.plugins.framework import Child


def _of_class(name: str, replicas: int, priority_class: str) -> Json:
    wanted = task(name, replicas)
    if priority_class:
        wanted["template"]["spec"]["priorityClassName"] = priority_class
    return wanted


def test_pods_are_made_by_the_priority_of_their_task_and_then_by_index() -> None:
    world = World(priority_classes={"high": 1000, "low": -5})
    tasks = [_of_class("lo", 1, "low"), _of_class("a", 2, ""), _of_class("hi", 12, "high"), _of_class("b", 1, "gone")]
    world.submit(job_object(tasks=tasks))
    world.run(until=lambda: len(world.pods()) == 16)
    order = [pod["metadata"]["name"] for pod in world.created]
    assert order == [*(f"j-hi-{index}" for index in range(12)), "j-a-0", "j-a-1", "j-b-0", "j-lo-0"]


class _Picky:
    """Fails for the pods of one task, from its second index on."""

    def __init__(self, plan: Plan, flags: Flags) -> None:
        self._task = flags.text("task")

    def children(self) -> tuple[Child, ...]:
        return ()

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        if task.name == self._task and index:
            raise KeyError("hosts")


@pytest.fixture
def picky() -> Iterator[None]:
    register("picky", flags={"task": ""}, make=_Picky)
    try:
        yield
    finally:
        del KNOWN["picky"], PLUGIN_FLAGS["picky"]


@pytest.mark.usefixtures("picky")
def test_a_plugin_that_fails_for_one_task_leaves_the_others_alone() -> None:
    world = World()
    world.submit(job_object(tasks=[task("good", 2), task("bad", 2)], plugins={"picky": ["--task=bad"]}, minAvailable=4))
    world.run(until=lambda: bool(world.pods()))
    world.settle()
    assert set(world.pods()) == {"j-good-0", "j-good-1"}
    status = world.job()["status"]
    assert status["state"]["reason"] == "PluginError"
    assert status["state"]["message"] == "task bad: plugin picky failed: KeyError: 'hosts'"
    assert status["pending"] == 2, "what isn't made isn't counted"
    assert world.reconcile().requeue_at == world.now + timedelta(seconds=60)
    world.settle()
    reported = [event.message for event in world.events if event.reason == "PluginError"]
    assert reported == ["task bad: plugin picky failed: KeyError: 'hosts'"]


@pytest.mark.usefixtures("picky")
def test_a_running_job_says_which_pods_it_lacks_and_why() -> None:
    world = World()
    tasks = [task("good", 2), task("bad", 2)]
    world.submit(job_object(tasks=tasks, plugins={"picky": ["--task=bad"]}, minAvailable=2))
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    assert world.job()["status"]["state"]["reason"] == "PluginError"
    world.change(JOBS, "j", lambda job: job["spec"].update(plugins={}))
    world.run(until=lambda: len(world.pods()) == 4)
    world.settle()
    assert "reason" not in world.job()["status"]["state"]


def test_a_running_job_that_may_not_grow_says_so() -> None:
    world = World()
    world.submit(job_object(tasks=[task("w", 4, minAvailable=1)], minAvailable=1))
    made = 0

    def full(_: Json) -> None:
        nonlocal made
        made += 1
        if made == 2:
            world.refusal = 'pods "j-w-2" is forbidden: exceeded quota: small'

    world.on_create = full
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    status = world.job()["status"]
    assert (status["state"]["reason"], status["running"], status.get("pending")) == ("FailedCreate", 2, None)
    assert status["state"]["message"] == world.refusal
    world.on_create, world.refusal = None, ""
    world.run(until=lambda: world.job()["status"]["running"] == 4)
    assert "reason" not in world.job()["status"]["state"]


def test_a_job_without_names_for_its_tasks_is_run_where_no_webhook_gave_them() -> None:
    world = World()
    tasks = [task("", 2, "sleep 1"), task("", 1, "sleep 1")]
    body = job_object(tasks=tasks)
    for given in body["spec"]["tasks"]:
        del given["name"]
    body["spec"]["queue"] = "default"
    world.put(JOBS, body)
    world.run(until=lambda: world.phase() == "Completed")
    assert sorted(world.pods()) == ["j-default0-0", "j-default0-1", "j-default1-0"]
    assert world.job()["status"]["succeeded"] == 3
