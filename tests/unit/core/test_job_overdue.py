"""Pods that outstay their deletion are named, with what holds each of them, in every phase that waits for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.messages import and_waits, without_wait
from vcbatch.api.resources import JOBS, PODGROUPS, PODS
from vcbatch.api.timestamps import format_time

HELD = "waits until these are gone: "
BY_BOTH = "pod j-w-0 (held by finalizer a/b; node node-1 hasn't said that it ended)"


def running(replicas: int = 2, **spec: Any) -> World:
    world = World()
    world.submit(job_object(tasks=[task("w", replicas)], **spec))
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    return world


def hold(world: World, name: str, *finalizers: str) -> None:
    """The pod is asked to go now and doesn't."""
    pod = world.objects[PODS, name]
    pod["metadata"]["finalizers"] = list(finalizers)
    world.delete_pod(name)


def state(world: World) -> tuple[str, str, str]:
    found = world.job()["status"]["state"]
    return str(found["phase"]), str(found.get("reason", "")), found.get("message", "")


def all_but(world: World, *names: str) -> None:
    for name in world.pods().keys() - set(names):
        world.remove(PODS, name)


ACTIONS = {
    "RestartJob": "Restarting",
    "AbortJob": "Aborting",
    "CompleteJob": "Completing",
    "TerminateJob": "Terminating",
}


@pytest.mark.parametrize(("action", "phase"), ACTIONS.items())
def test_each_phase_that_waits_for_pods_names_the_one_that_stays(action: str, phase: str) -> None:
    world = running()
    world.command(action, target=world.job())
    world.settle()
    hold(world, "j-w-0", "a/b")
    all_but(world, "j-w-0")
    world.settle()
    began = state(world)
    assert began[:2] == (phase, "CommandIssued")
    assert HELD not in began[2]
    deleted = world.now
    world.now = deleted + timedelta(seconds=4)
    assert world.reconcile().requeue_at == deleted + timedelta(seconds=5)
    world.now = deleted + timedelta(seconds=5)
    world.settle()
    assert state(world) == (phase, "CommandIssued", f"{began[2]}; {HELD}{BY_BOTH}")
    assert world.reconcile().nothing_to_do
    world.remove(PODS, "j-w-0")
    world.settle()
    after = state(world)
    assert after[0] != phase
    assert HELD not in after[2]


def test_a_pod_that_ended_is_held_by_its_finalizers_alone() -> None:
    world = running(policies=[{"event": "PodFailed", "action": "RestartJob"}])
    world.objects[PODS, "j-w-0"]["metadata"]["finalizers"] = ["a/b", "c/d"]
    world.end_pod("j-w-0", 1)
    world.settle()
    all_but(world, "j-w-0")
    world.now += timedelta(seconds=6)
    world.settle()
    phase, reason, message = state(world)
    assert (phase, reason) == ("Restarting", "PodFailed")
    assert message.endswith(f"exited with code 1 on node node-1; {HELD}pod j-w-0 (held by finalizers a/b, c/d)")


def test_a_pod_of_a_lost_node_names_the_node() -> None:
    world = running(policies=[{"event": "PodFailed", "action": "RestartJob"}])
    world.end_pod("j-w-1", 1)
    world.settle()
    all_but(world, "j-w-0")
    world.now += timedelta(seconds=6)
    world.settle()
    assert state(world)[2].endswith(f"{HELD}pod j-w-0 (node node-1 hasn't said that it ended)")


def test_many_pods_are_counted() -> None:
    world = running(6)
    world.command("AbortJob", target=world.job())
    world.settle()
    world.now += timedelta(seconds=6)
    world.settle()
    message = state(world)[2]
    assert all(f"pod j-w-{index} (" in message for index in range(3))
    assert "j-w-3" not in message
    assert message.endswith(" and 3 more")


def test_a_podgroup_that_stays_is_named_too() -> None:
    world = running()
    world.command("RestartJob", target=world.job())
    world.reconcile()
    all_but(world)
    group: Json = world.put(PODGROUPS, {"metadata": {"name": f"j-{world.job()['metadata']['uid']}"}, "spec": {}})
    group["metadata"] |= {"deletionTimestamp": format_time(world.now), "finalizers": ["a/b"]}
    world.now += timedelta(seconds=6)
    world.reconcile()
    assert state(world)[2].endswith(f"{HELD}PodGroup {group['metadata']['name']} (held by finalizer a/b)")


def test_a_pod_that_keeps_its_index_from_a_running_job_is_told_and_then_not_any_more() -> None:
    world = running(3, minAvailable=1)
    hold(world, "j-w-0", "a/b")
    world.settle()
    world.now += timedelta(seconds=6)
    world.settle()
    assert state(world) == ("Running", "PodTerminating", f"{HELD}{BY_BOTH}")
    world.remove(PODS, "j-w-0")
    world.settle()
    assert state(world) == ("Running", "", "")


def test_a_gang_that_waits_for_a_pod_to_go_says_so() -> None:
    world = running(2)
    hold(world, "j-w-0", "a/b")
    world.settle()

    def pending(pod: Json) -> None:
        pod["status"] = {"phase": "Pending"}

    world.change(PODS, "j-w-1", pending)
    world.change(JOBS, "j", lambda job: job["status"]["state"].update(phase="Pending"))
    world.change(JOBS, "j", lambda job: job["status"]["conditions"].append({"status": "Pending"}))
    world.now += timedelta(seconds=6)
    world.settle()
    assert state(world) == ("Pending", "PodTerminating", f"{HELD}{BY_BOTH}")


@pytest.mark.parametrize("cause", ["", "pod a failed", "x" * 2000])
def test_what_began_it_is_read_back_from_a_message_that_names_what_is_waited_for(cause: str) -> None:
    said = and_waits(cause, f"{HELD}pod a")
    assert without_wait(said) == (cause if len(cause) < 400 else cause[:397] + "...")
    assert without_wait(and_waits(without_wait(said), f"{HELD}pod b")) == without_wait(said)
    assert without_wait(cause) == cause
