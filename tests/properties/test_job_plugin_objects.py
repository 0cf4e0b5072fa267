"""Whatever others do to the objects of a job's plugins: once they let them be, the job has them again and runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.job_world import World, job_object, task
from vcbatch.api.resources import CONFIGMAPS, NETWORKPOLICIES, PODS, SECRETS, SERVICES
from vcbatch.api.timestamps import format_time

NAMES = {CONFIGMAPS: "j-svc", SERVICES: "j", NETWORKPOLICIES: "j", SECRETS: "j-ssh"}
ACTIONS = ("delete", "take", "begin to delete", "edit", "lose a pod", "ask for a restart", "let time pass", "run")


def act(world: World, action: str, kind: Any) -> None:
    name = NAMES[kind]
    stored = world.objects.get((kind, name))
    match action:
        case "delete":
            world.remove(kind, name)
        case "take":
            world.remove(kind, name)
            world.put(kind, {"metadata": {"name": name}, "data": {"mine": "1"}})
        case "begin to delete" if stored is not None:
            stored["metadata"]["deletionTimestamp"] = format_time(world.now)
            stored["metadata"]["finalizers"] = ["example.com/hold"]
        case "edit" if stored is not None:
            stored["data"] = {"edited": "1"}
        case "lose a pod" if pods := sorted(world.pods()):
            world.remove(PODS, pods[0])
        case "ask for a restart":
            world.command("RestartJob", target=world.job())
        case "let time pass":
            world.now += timedelta(seconds=40)
        case "run":
            for _ in range(4):
                world.settle()
                world.step()
        case _:
            pass


@settings(max_examples=examples(150))
@given(
    first=st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(list(NAMES))), max_size=3),
    later=st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(list(NAMES))), max_size=8),
)
def test_a_job_has_its_plugins_objects_again_once_their_names_are_free(first: list[Any], later: list[Any]) -> None:
    world = World()
    for action, kind in first:
        if action == "take":
            act(world, action, kind)
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    world.submit(job_object(tasks=[task("w", 2)], plugins={"svc": [], "ssh": []}, policies=policies, maxRetry=99))
    for action, kind in later:
        act(world, action, kind)
        world.settle()
        for (resource, name), stored in world.objects.items():
            if NAMES.get(resource) == name and stored.get("data") == {"mine": "1"}:
                assert not stored["metadata"].get("ownerReferences"), "what is somebody else's stays theirs"
    uid = world.job()["metadata"]["uid"]
    in_the_way = [(kind, name) for kind, name in NAMES.items() if not _is_the_jobs(world.objects.get((kind, name)))]
    world.now += timedelta(seconds=31)
    world.settle()
    if in_the_way and world.phase() in ("Pending", "Running"):
        assert world.job()["status"]["state"].get("reason") in ("PluginError", "BackOff")
    for kind, name in in_the_way:
        world.remove(kind, name)
    world.run(until=lambda: world.phase() == "Running", most=2000)
    world.settle()
    for kind, name in NAMES.items():
        owners = world.objects[kind, name]["metadata"]["ownerReferences"]
        assert [owner["uid"] for owner in owners] == [uid]
    assert "reason" not in world.job()["status"]["state"]


def _is_the_jobs(stored: Any) -> bool:
    """Whether nothing is in the way of it: it is absent, or the job's and not being deleted."""
    if stored is None:
        return True
    return bool(stored["metadata"].get("ownerReferences")) and not stored["metadata"].get("deletionTimestamp")
