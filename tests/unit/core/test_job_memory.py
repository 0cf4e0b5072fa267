"""What a job remembers between two looks, and what it forgets: pods that went, restarts of a part, timeouts, what the
plugins keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.names import JOB_RETRY_COUNT
from vcbatch.api.pod import Pod
from vcbatch.api.resources import COMMANDS, CONFIGMAPS, JOBS, PODS, SERVICES
from vcbatch.api.timestamps import format_time
from vcbatch.core.job import decide


def running(*tasks: Json, **spec: Any) -> World:
    world = World()
    total = sum(each["replicas"] for each in tasks)
    world.submit(job_object(tasks=list(tasks), **spec))
    world.run(until=lambda: world.job()["status"].get("running") == total)
    world.settle()
    return world


def losses(world: World) -> list[Json]:
    return world.job()["status"]["ledger"]["losses"]


# Pods that went ------------------------------------------------------------------------------------------------------


def gone(world: World, name: str) -> Pod:
    """Take a pod away; as it was last."""
    pod = msgspec.convert(world.objects[PODS, name], Pod)
    world.remove(PODS, name)
    return pod


def after(world: World, *departed: Pod) -> Json:
    """The evidence that a look finds which knows of these."""
    status = decide(replace(world.view(), departed=departed), now=world.now).status
    assert status is not None
    (loss,) = status.status["ledger"]["losses"]
    return loss


def test_the_last_words_of_a_pod_that_is_gone_are_its_cause() -> None:
    world = running(task("w", 2))
    world.evict("j-w-1")
    pod = gone(world, "j-w-1")
    loss = after(world, pod)
    assert (loss["pod"], loss["uid"], loss["node"], loss["cause"]) == ("j-w-1", pod.metadata.uid, "node-1", "Preempted")


def test_a_pod_that_is_gone_without_a_word_was_deleted() -> None:
    world = running(task("w", 2))
    pod = gone(world, "j-w-1")
    loss = after(world, pod)
    assert (loss["uid"], loss["node"], loss["cause"]) == (pod.metadata.uid, "node-1", "Deleted")


def test_a_failed_pod_that_is_gone_unseen_was_deleted() -> None:
    """What it failed of is its own doing; that it is gone is somebody's, and that is answered."""
    world = running(task("w", 2))
    world.end_pod("j-w-1", 3)
    assert after(world, gone(world, "j-w-1"))["cause"] == "Deleted"


def test_of_a_pod_that_nobody_saw_go_only_the_name_is_known() -> None:
    world = running(task("w", 2))
    world.remove(PODS, "j-w-1")
    loss = after(world)
    assert (loss["pod"], loss["cause"], loss.get("uid"), loss.get("node")) == ("j-w-1", "Deleted", None, None)


def test_the_last_words_of_an_older_attempt_say_nothing_of_this_one() -> None:
    world = running(task("w", 2))
    world.evict("j-w-1")
    old = gone(world, "j-w-1")
    world.command("RestartJob", target=world.job())
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    world.remove(PODS, "j-w-1")
    assert decide(replace(world.view(), departed=[old]), now=world.now).status is not None
    status = decide(replace(world.view(), departed=[old]), now=world.now).status
    assert status is not None
    assert status.status["ledger"]["losses"][-1]["cause"] == "Deleted"


def test_a_pod_that_went_before_it_was_written_down_that_it_was_there_is_lost_as_well() -> None:
    world = World(binds=False)
    world.submit(job_object(tasks=[task("w", 2)]))
    world.reconcile()
    world.schedule()
    world.reconcile()
    assert len(world.pods()) == 2
    assert "ledger" not in world.job()["status"]
    world.evict("j-w-1")
    assert after(world, gone(world, "j-w-1"))["cause"] == "Preempted"


def test_a_pod_that_a_restart_took_is_not_lost() -> None:
    world = running(task("w", 2), policies=[{"exitCode": 3, "action": "RestartPod"}])
    world.end_pod("j-w-1", 3)
    world.reconcile()
    assert world.phase() == "Restarting"
    known, old = losses(world), gone(world, "j-w-1")
    decision = decide(replace(world.view(), departed=[old]), now=world.now)
    assert decision.status is None or decision.status.status["ledger"]["losses"] == known


# Restarts of a part --------------------------------------------------------------------------------------------------


def test_a_restart_of_a_pod_leaves_what_is_known_of_the_others() -> None:
    world = running(task("w", 4), minAvailable=1, policies=[{"exitCode": 3, "action": "RestartPod"}])
    world.end_pod("j-w-0", 0)
    world.end_pod("j-w-1", 1)
    world.settle()
    world.end_pod("j-w-2", 3)
    world.reconcile()
    record = world.job()["status"]["ledger"]["tasks"]["w"]
    assert record == {"seen": "0-1,3", "succeeded": "0", "failed": "1"}


def test_a_restart_of_a_task_forgets_all_of_it_and_nothing_else() -> None:
    policies = [{"exitCode": 3, "action": "RestartTask"}]
    world = running(task("w", 3, policies=policies), task("x", 2), minAvailable=1)
    world.end_pod("j-w-0", 0)
    world.end_pod("j-w-1", 1)
    world.end_pod("j-x-0", 0)
    world.settle()
    for name in ("j-w-0", "j-x-0"):
        world.remove(PODS, name)
    world.settle()
    world.end_pod("j-w-2", 3)
    world.reconcile()
    tasks = world.job()["status"]["ledger"]["tasks"]
    assert tasks == {"x": {"seen": "1", "succeeded": "0"}}
    world.run(until=lambda: {"j-w-0", "j-w-1", "j-w-2"} <= world.pods().keys())
    assert "j-x-0" not in world.pods()


def test_the_new_pods_of_a_restarted_part_are_not_restarted_again() -> None:
    world = running(task("w", 3), minAvailable=2, policies=[{"event": "PodFailed", "action": "RestartPod"}])
    world.end_pod("j-w-1", 1)
    world.run(until=lambda: world.job()["status"].get("running") == 3)
    uids = {name: pod["metadata"]["uid"] for name, pod in world.pods().items()}
    for _ in range(3):
        world.settle()
        world.step()
    assert {name: pod["metadata"]["uid"] for name, pod in world.pods().items()} == uids
    assert world.pods()["j-w-1"]["metadata"]["annotations"][JOB_RETRY_COUNT] == "1"
    assert "restarting" not in world.job()["status"]["ledger"]


def test_a_restart_of_a_part_ends_the_timeouts_that_concern_it_and_no_others() -> None:
    policies = [
        {"exitCode": 3, "action": "RestartPod"},
        {"event": "PodFailed", "action": "AbortJob", "timeout": "1m"},
    ]
    world = running(task("w", 3, policies=[{"event": "TaskFailed", "action": "RestartTask"}]), task("x", 2),
                    minAvailable=1, policies=policies)  # fmt: skip
    world.end_pod("j-w-0", 1)
    world.end_pod("j-x-0", 1)
    world.settle()
    waiting = {(delay["task"], delay["index"]) for delay in world.job()["status"]["ledger"]["delayed"]}
    assert waiting == {("w", 0), ("x", 0)}
    world.pods()["j-w-1"]["status"]["containerStatuses"][0]["restartCount"] = 3
    world.reconcile()
    waiting = {(delay["task"], delay["index"]) for delay in world.job()["status"]["ledger"]["delayed"]}
    assert waiting == {("x", 0)}


def test_a_restart_of_a_partition_ends_the_timeouts_of_its_pods_and_no_others() -> None:
    policies = [
        {"exitCode": 3, "action": "RestartPartition"},
        {"event": "PodFailed", "action": "AbortJob", "timeout": "1m"},
    ]
    partitions = {"totalPartitions": 2, "partitionSize": 2}
    world = running(task("w", 4, partitionPolicy=partitions), minAvailable=1, policies=policies)
    world.end_pod("j-w-0", 1)
    world.end_pod("j-w-2", 1)
    world.settle()
    world.end_pod("j-w-1", 3)
    world.reconcile()
    assert [delay["index"] for delay in world.job()["status"]["ledger"]["delayed"]] == [2]


def test_what_waits_for_a_whole_task_names_no_pod() -> None:
    world = running(task("w", 2), policies=[{"event": "TaskFailed", "action": "AbortJob", "timeout": "1m"}])
    world.pods()["j-w-1"]["status"]["containerStatuses"][0]["restartCount"] = 3
    world.settle()
    (delay,) = world.job()["status"]["ledger"]["delayed"]
    assert delay == {"event": "TaskFailed", "task": "w", "since": format_time(world.now)}


def test_a_new_pod_stays_while_others_of_its_restart_are_still_going() -> None:
    world = running(
        task("w", 2, policies=[{"event": "PodFailed", "action": "RestartTask"}]), task("x", 2), minAvailable=1
    )
    world.end_pod("j-w-0", 1)
    world.settle()
    world.remove(PODS, "j-w-0")
    world.settle()
    assert set(world.pods()) == {"j-w-0", "j-w-1", "j-x-0", "j-x-1"}
    assert "deletionTimestamp" not in world.pods()["j-w-0"]["metadata"]
    assert "deletionTimestamp" in world.pods()["j-w-1"]["metadata"]


# Suspension ----------------------------------------------------------------------------------------------------------


def test_a_resumed_job_waits_for_all_of_the_old_attempt_to_go() -> None:
    """Also where one pod less would be enough for its gang."""
    world = running(task("w", 3), minAvailable=1)
    world.command("AbortJob", target=world.job())
    world.reconcile()
    world.command("ResumeJob", target=world.job())
    world.reconcile()
    assert world.job()["status"]["ledger"]["restartingJob"] is True
    world.remove(PODS, "j-w-0")
    world.settle()
    assert world.phase() == "Restarting"
    assert "j-w-0" not in world.pods()
    world.run(until=lambda: world.phase() == "Running")


# Commands ------------------------------------------------------------------------------------------------------------


def test_a_command_for_a_namesake_is_removed_and_says_so() -> None:
    world = running(task("w", 2))
    world.command("TerminateJob", target={**world.job(), "metadata": {"name": "j", "uid": "older"}}, name="late")
    (event,) = world.reconcile().events
    assert event.reason == "CommandRejected"
    assert "late" in event.message
    assert "older" in event.message
    assert world.phase() == "Running"
    assert not world.all(COMMANDS)


# Jobs that can't be run ----------------------------------------------------------------------------------------------


def test_why_a_job_cant_be_run_is_told_once() -> None:
    world = World()
    world.submit(job_object(plugins={"nccl": []}))
    assert [event.reason for event in world.reconcile().events] == ["Unsupported"]
    began = world.job()["status"]["state"]["lastTransitionTime"]
    world.step(seconds=60)
    world.change(JOBS, "j", lambda job: job["metadata"].update(labels={"x": "y"}))
    assert not world.reconcile().events
    state = world.job()["status"]["state"]
    assert (state["phase"], state["lastTransitionTime"]) == ("Pending", began)
    assert len(world.job()["status"]["conditions"]) == 1


# What the plugins keep -----------------------------------------------------------------------------------------------


def test_what_plugins_keep_is_a_whole_object_of_the_jobs() -> None:
    world = World()
    world.submit(job_object(plugins={"svc": []}))
    made = {ensure.resource: ensure.body for ensure in decide(world.view(), now=world.now).ensures}
    for resource, name in ((SERVICES, "j"), (CONFIGMAPS, "j-svc")):
        body = made[resource]
        assert (body["apiVersion"], body["kind"]) == (resource.api_version, resource.kind)
        assert (body["metadata"]["name"], body["metadata"]["namespace"]) == (name, "ns")
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("Job", "j", True)


@pytest.mark.parametrize("leaving", [False, True])
def test_what_plugins_keep_is_deleted_once(leaving: bool) -> None:
    world = running(task("w", 1, "sleep 1"), plugins={"svc": []})
    if leaving:
        world.objects[SERVICES, "j"]["metadata"]["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    world.end_pod("j-w-0", 0)
    refs = [delete.ref for delete in decide(world.view(), now=world.now).deletes if delete.ref.resource is SERVICES]
    assert [(ref.namespace, ref.name) for ref in refs] == ([] if leaving else [("ns", "j")])


@pytest.mark.parametrize(
    "owner", [{"uid": "other", "controller": True}, {"uid": "mine", "controller": False}, None], ids=str
)
def test_what_isnt_the_jobs_own_is_never_deleted(owner: Json | None) -> None:
    world = running(task("w", 1, "sleep 1"), plugins={"svc": []})
    if owner is not None and owner["uid"] == "mine":
        owner = {**owner, "uid": world.job()["metadata"]["uid"]}
    world.objects[SERVICES, "j"]["metadata"]["ownerReferences"] = [owner] if owner else []
    world.end_pod("j-w-0", 0)
    deleted = {delete.ref.resource for delete in decide(world.view(), now=world.now).deletes}
    assert SERVICES not in deleted
    assert CONFIGMAPS in deleted


def test_what_somebody_changed_in_a_plugins_object_is_mended_and_no_more() -> None:
    world = running(task("w", 2), plugins={"svc": []})
    data = world.objects[CONFIGMAPS, "j-svc"]["data"]
    kept = dict(data)
    first = min(data)
    data[first] = "wrong"
    data["stray"] = "x"
    (ensure,) = decide(world.view(), now=world.now).ensures
    assert ensure.update == {"data": {first: kept[first], "stray": None}}
    del world.objects[CONFIGMAPS, "j-svc"]["data"]
    (ensure,) = decide(world.view(), now=world.now).ensures
    assert ensure.update == {"data": kept}


# Dependencies that can't come true -----------------------------------------------------------------------------------


def waiting_for(*, failing: list[str], **depends: str) -> World:
    """`c` needs `a` and `b`, and `d` needs `c`; `a` and `b` run and aren't ready, or have failed. The gang is whole
    with three that started or never can."""
    world = World()
    tasks = [
        task("a", 1),
        task("b", 1),
        task("c", 1, dependsOn={"name": ["a", "b"], **depends}),
        task("d", 1, dependsOn={"name": ["c"]}),
    ]
    world.submit(job_object(tasks=tasks, minAvailable=3))
    world.settle()
    world.schedule()
    world.settle()
    for name, pod in world.pods().items():
        world.start_pod(pod)
        pod["status"]["containerStatuses"][0]["ready"] = False
        if name[2] in failing:
            world.end_pod(name, 1)
    world.settle()
    return world


@pytest.mark.parametrize(
    ("iteration", "failing", "phase"),
    [
        ("any", ["a"], "Pending"),
        ("all", ["a"], "Running"),
        ("", ["b"], "Running"),
        ("all", [], "Pending"),
        ("any", ["a", "b"], "Failed"),
    ],
)
def test_a_task_is_hopeless_when_what_it_needs_cant_come_true(iteration: str, failing: list[str], phase: str) -> None:
    world = waiting_for(failing=failing, iteration=iteration)
    assert set(world.pods()) == {"j-a-0", "j-b-0"}
    assert world.phase() == phase


def test_a_task_that_may_lose_a_pod_is_not_hopeless_when_it_does() -> None:
    world = World()
    tasks = [task("a", 2, minAvailable=1), task("b", 1, dependsOn={"name": ["a"]})]
    world.submit(job_object(tasks=tasks, minAvailable=3))
    world.settle()
    world.schedule()
    world.settle()
    pods = world.pods()
    for pod in pods.values():
        world.start_pod(pod)
        pod["status"]["containerStatuses"][0]["ready"] = False
    world.end_pod("j-a-0", 1)
    world.settle()
    assert world.phase() == "Pending"
    pods["j-a-1"]["status"]["containerStatuses"][0]["ready"] = True
    world.settle()
    assert "j-b-0" in world.pods()
