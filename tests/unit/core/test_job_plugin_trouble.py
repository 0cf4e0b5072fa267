"""Names that a job's plugins need and can't have: what is said, when, and what is held back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.flags import PLUGIN_FLAGS
from vcbatch.api.job import Job
from vcbatch.api.resources import CONFIGMAPS, JOBS, NETWORKPOLICIES, PODGROUPS, SECRETS, SERVICES, Resource
from vcbatch.core.job import PluginFailedError, decide, plugin_failed
from vcbatch.core.job.plugins import KNOWN

PLUGINS: Json = {"svc": [], "ssh": []}
NAMES = {CONFIGMAPS: "j-svc", SERVICES: "j", NETWORKPOLICIES: "j", SECRETS: "j-ssh"}


def submitted(*, taken: Json | None = None, resource: Resource = CONFIGMAPS) -> World:
    """A job with plugins, and an object that has one of the names before."""
    world = World()
    if taken is not None:
        world.put(resource, {"metadata": {"name": NAMES[resource], **taken}})
    world.submit(job_object(tasks=[task("w", 2)], plugins=PLUGINS))
    world.settle()
    world.schedule()
    world.settle()
    return world


def state(world: World) -> tuple[str, str, str]:
    found = world.job()["status"]["state"]
    return str(found["phase"]), str(found.get("reason", "")), found.get("message", "")


def controller(kind: str, name: str) -> list[Json]:
    return [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": kind, "name": name, "uid": "other", "controller": True}]


@pytest.mark.parametrize("resource", NAMES, ids=lambda resource: resource.kind)
def test_a_name_that_is_taken_keeps_the_job_pending_without_a_gang_until_it_is_free(resource: Resource) -> None:
    world = submitted(taken={}, resource=resource)
    why = f"{resource.kind} ns/{NAMES[resource]} can't be made: the name is taken by an object without a controller"
    assert state(world) == ("Pending", "PluginError", why)
    assert [(event.type, event.reason, event.message) for event in world.events] == [("Warning", "PluginError", why)]
    assert not world.all(PODGROUPS)
    assert not world.pods()
    waits = world.reconcile()
    assert waits.requeue_at == world.now + timedelta(seconds=10)
    assert waits.nothing_to_do
    world.remove(resource, NAMES[resource])
    world.run(until=lambda: world.phase() == "Running")
    assert state(world) == ("Running", "", "")


def test_all_names_that_are_taken_are_told() -> None:
    world = World()
    for resource in (CONFIGMAPS, SERVICES):
        world.put(resource, {"metadata": {"name": NAMES[resource]}})
    world.submit(job_object(plugins=PLUGINS))
    world.settle()
    _, _, message = state(world)
    assert "ConfigMap ns/j-svc can't be made" in message
    assert "Service ns/j can't be made" in message


def test_a_service_of_the_users_that_does_all_that_the_plugin_needs_is_used() -> None:
    world = World()
    selector = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns"}
    mine = {"metadata": {"name": "j"}, "spec": {"clusterIP": "None", "selector": selector, "ports": [{"port": 80}]}}
    world.put(SERVICES, mine)
    world.submit(job_object(plugins={"svc": []}))
    world.run(until=lambda: world.phase() == "Running")
    assert [stored["spec"] for stored in world.all(SERVICES)] == [mine["spec"]]
    assert not world.events


@pytest.mark.parametrize(
    ("taken", "why"),
    [
        ({"ownerReferences": controller("Job", "j")}, "the name is taken by that of a previous job j"),
        ({"deletionTimestamp": "2026-11-20T11:59:00Z"}, "the one that has the name is being deleted"),
        (
            {"deletionTimestamp": "2026-11-20T11:59:00Z", "finalizers": ["a/b", "c/d"]},
            "the one that has the name is being deleted, and its finalizers hold it: a/b, c/d",
        ),
    ],
    ids=["of a previous job", "being deleted", "held by finalizers"],
)
def test_what_is_about_to_be_removed_is_waited_for_in_silence_for_half_a_minute(taken: Json, why: str) -> None:
    world = submitted(taken=taken)
    began = world.now
    assert state(world) == ("Pending", "", "")
    for seconds in (1, 29):
        world.now = began + timedelta(seconds=seconds)
        assert world.reconcile().requeue_at == world.now + timedelta(seconds=1)
        assert not world.events
    world.now = began + timedelta(seconds=30)
    world.settle()
    assert state(world) == ("Pending", "PluginError", f"ConfigMap ns/j-svc can't be made: {why}")
    assert len(world.events) == 1
    world.remove(CONFIGMAPS, "j-svc")
    world.run(until=lambda: world.phase() == "Running")


def test_a_running_job_says_it_and_goes_on() -> None:
    world = submitted()
    world.run(until=lambda: world.phase() == "Running")
    world.remove(CONFIGMAPS, "j-svc")
    world.put(CONFIGMAPS, {"metadata": {"name": "j-svc", "ownerReferences": controller("ReplicaSet", "web")}})
    world.settle()
    why = "ConfigMap ns/j-svc can't be made: the name is taken by an object with controller ReplicaSet web"
    assert state(world) == ("Running", "PluginError", why)
    assert len(world.pods()) == 2
    world.remove(CONFIGMAPS, "j-svc")
    world.settle()
    assert state(world) == ("Running", "", "")
    assert [owner["uid"] for owner in world.all(CONFIGMAPS)[0]["metadata"]["ownerReferences"]] == [
        world.job()["metadata"]["uid"]
    ]


def test_what_the_server_refuses_is_the_jobs_reason_and_no_pod_is_counted() -> None:
    world = World()
    world.submit(job_object(plugins=PLUGINS))
    world.child_refusal = "secrets is forbidden"
    world.reconcile()
    assert state(world) == ("Pending", "PluginError", "secrets is forbidden")
    assert "pending" not in world.job()["status"]


def test_a_plugin_that_raises_is_the_jobs_reason_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any) -> Any:
        raise KeyError("x")

    monkeypatch.setitem(KNOWN, "mine", raising)
    monkeypatch.setitem(PLUGIN_FLAGS, "mine", {})
    world = World()
    world.put(JOBS, job_object(plugins={"mine": []}))
    with pytest.raises(PluginFailedError) as caught:
        decide(world.view(), now=world.now)
    first = plugin_failed(Job.parse(world.job()), caught.value, now=world.now)
    assert first.status is not None
    assert first.status.status == {"state": {"reason": "PluginError", "message": "plugin mine failed: KeyError: 'x'"}}
    assert [event.reason for event in first.events] == ["PluginError"]
    for write in world.writes_of(first):
        write()
    again = plugin_failed(Job.parse(world.job()), caught.value, now=world.now)
    assert again.nothing_to_do
    assert again.requeue_at == world.now + timedelta(seconds=60)
