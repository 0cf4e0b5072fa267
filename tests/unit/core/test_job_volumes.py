"""The volumes of a job: which claims are made, when, and what happens where one isn't there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api import names
from vcbatch.api.resources import JOBS, PERSISTENTVOLUMECLAIMS

SPEC: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
OWN: Json = {"mountPath": "/own", "volumeClaim": SPEC}
DATA: Json = {"mountPath": "/data", "volumeClaimName": "data"}


def _world(*volumes: Json, **spec: Any) -> World:
    world = World()
    world.submit(job_object(tasks=spec.pop("tasks", None), volumes=list(volumes), **spec))
    return world


def _claim(world: World, name: str, **status: str) -> Json:
    body = {"metadata": {"name": name}, "spec": SPEC, "status": {"phase": "Bound", **status}}
    return world.put(PERSISTENTVOLUMECLAIMS, body)


def _claims(world: World) -> list[str]:
    return sorted(claim["metadata"]["name"] for claim in world.all(PERSISTENTVOLUMECLAIMS))


def _reported(world: World) -> list[str]:
    return [event.message for event in world.events if event.reason == "PVCError"]


def _state(world: World) -> tuple[str, str]:
    state = world.job()["status"]["state"]
    return state["phase"], state.get("reason", "")


def _runs(world: World) -> bool:
    return world.phase() == "Running"


def test_a_claim_without_a_name_is_made_once_and_named_in_the_spec() -> None:
    world = _world(OWN)
    world.run(until=lambda: _runs(world))
    (claim,) = world.all(PERSISTENTVOLUMECLAIMS)
    name = claim["metadata"]["name"]
    assert re.fullmatch(r"j-pvc-[0-9a-z]{12}", name)
    assert claim["spec"] == SPEC
    owner = claim["metadata"]["ownerReferences"][0]
    assert (owner["uid"], owner["controller"]) == (world.job()["metadata"]["uid"], True)
    assert world.job()["spec"]["volumes"] == [{**OWN, "volumeClaimName": name}]
    assert world.job()["status"]["controlledResources"][f"volume-pvc-{name}"] == name
    assert not _reported(world)


@pytest.mark.parametrize("crash", range(11))
def test_it_is_made_once_wherever_the_controller_dies(crash: int) -> None:
    world = _world(OWN, {**OWN, "mountPath": "/other"})
    world.crash_at = crash
    world.run(until=lambda: _runs(world))
    assert world.crashes == 1
    assert len(_claims(world)) == 2
    assert [volume["volumeClaimName"] in _claims(world) for volume in world.job()["spec"]["volumes"]] == [True, True]


def test_every_container_of_a_pod_mounts_the_claims_and_no_init_container_does() -> None:
    twice = {"mountPath": "/again", "volumeClaimName": "data"}
    worker = task("w", 1)
    worker["template"]["spec"] |= {
        "containers": [
            {"name": "a", "image": "i", "volumeMounts": [{"name": "mine", "mountPath": "/mine"}]},
            {"name": "b", "image": "i"},
        ],
        "initContainers": [{"name": "first", "image": "i"}],
        "volumes": [{"name": "mine", "emptyDir": {}}],
    }
    world = _world(DATA, twice, OWN, tasks=[worker])
    _claim(world, "data")
    world.run(until=lambda: bool(world.created))
    spec = world.created[0]["spec"]
    mine, *added = spec["volumes"]
    assert mine == {"name": "mine", "emptyDir": {}}
    assert sorted(volume["persistentVolumeClaim"]["claimName"] for volume in added) == _claims(world)
    source = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in added}
    assert all(re.fullmatch(r"j-[0-9a-z]{12}", name) for name in source)
    for container in spec["containers"]:
        mounts = [(m["mountPath"], source.get(m["name"], m["name"])) for m in container["volumeMounts"]]
        own = [] if container["name"] == "b" else [("/mine", "mine")]
        assert mounts == [*own, ("/data", "data"), ("/again", "data"), ("/own", _claims(world)[1])]
    assert "volumeMounts" not in spec["initContainers"][0]
    assert worker["template"]["spec"]["volumes"] == [mine], "the job itself was changed"


@pytest.mark.parametrize("job", ["j" * 50, "a.b-c.d" * 7, "x" * 49 + "-.y"])
def test_names_of_volumes_fit(job: str) -> None:
    name = names.claim_volume_name(job, "uid", "claim")
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name)


def test_a_missing_claim_keeps_the_job_waiting_and_is_told_once() -> None:
    world = _world(DATA, OWN)
    for _ in range(5):
        world.settle()
        world.step()
    assert _state(world) == ("Pending", "PVCError")
    assert len(_reported(world)) == 1
    assert "PersistentVolumeClaim data" in _reported(world)[0]
    assert "spec.volumes[0]" in _reported(world)[0]
    made = _claims(world)
    assert len(made) == 1, "the other claim is made, once"
    assert not world.created
    _claim(world, "data")
    world.run(until=lambda: _runs(world))
    assert _claims(world) == sorted(["data", *made])
    assert _state(world) == ("Running", "")
    assert set(world.job()["status"]["controlledResources"].values()) == {"data", *made}


def test_the_name_taken_by_somebody_else_is_said_and_the_claim_is_not_used() -> None:
    world = World()
    job = world.submit(job_object(volumes=[OWN], uid="job-uid"))
    name = names.claim_name("j", job["metadata"]["uid"], 0)
    _claim(world, name)
    world.settle()
    assert _state(world) == ("Pending", "PVCError")
    assert "taken" in world.job()["status"]["state"]["message"]
    world.remove(PERSISTENTVOLUMECLAIMS, name)
    world.run(until=lambda: _runs(world))
    assert len(_claims(world)) == 1


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda claim: claim["metadata"].update(deletionTimestamp="2026-11-20T12:00:00Z"), "is being deleted"),
        (lambda claim: claim["status"].update(phase="Lost"), "has lost its volume"),
    ],
)
def test_a_restart_waits_for_a_claim_that_is_going(harm: Any, words: str) -> None:
    world = _world(DATA, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    _claim(world, "data")
    world.run(until=lambda: _runs(world))
    before = len(world.created)
    world.change(PERSISTENTVOLUMECLAIMS, "data", harm)
    world.settle()
    assert _state(world) == ("Running", ""), "what runs goes on"
    world.end_pod("j-w-0", 1)
    for _ in range(6):
        world.settle()
        world.step()
    assert _state(world) == ("Pending", "PVCError")
    assert words in world.job()["status"]["state"]["message"]
    assert len(world.created) == before
    world.remove(PERSISTENTVOLUMECLAIMS, "data")
    world.settle()
    assert "doesn't exist" in world.job()["status"]["state"]["message"]
    _claim(world, "data")
    world.run(until=lambda: _runs(world))


def test_a_claim_of_the_job_that_is_deleted_is_not_made_empty_again() -> None:
    world = _world(OWN, policies=[{"event": "PodEvicted", "action": "RestartPod"}], minAvailable=1)
    world.run(until=lambda: _runs(world))
    (name,) = _claims(world)
    world.remove(PERSISTENTVOLUMECLAIMS, name)
    world.delete_pod("j-w-0")
    for _ in range(6):
        world.settle()
        world.step()
    assert _claims(world) == []
    assert "is gone with what it held" in world.job()["status"]["state"]["message"]
    assert len(_reported(world)) == 1


def test_restarts_keep_the_claims_and_the_mounts() -> None:
    world = _world(OWN, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    world.run(until=lambda: _runs(world))
    before = world.all(PERSISTENTVOLUMECLAIMS)[0]["metadata"]["uid"]
    world.end_pod("j-w-0", 1)
    world.run(until=lambda: world.job()["status"].get("retryCount") == 1 and _runs(world))
    assert [claim["metadata"]["uid"] for claim in world.all(PERSISTENTVOLUMECLAIMS)] == [before]
    assert len({str(pod["spec"]["volumes"]) for pod in world.created}) == 1


def test_claims_go_with_the_job_and_not_before() -> None:
    world = _world(OWN, tasks=[task("w", 1, "exit 0")])
    world.run(until=lambda: world.phase() == "Completed")
    world.settle()
    (name,) = _claims(world)
    assert world.job()["status"]["controlledResources"] == {f"volume-pvc-{name}": name}
    world.remove(JOBS, "j")
    assert _claims(world) == []


def test_a_name_that_a_client_takes_out_of_the_spec_comes_back() -> None:
    """As `kubectl apply` of the manifest does, since a list is replaced whole."""
    world = _world(OWN)
    world.run(until=lambda: _runs(world))
    named = world.job()["spec"]["volumes"]
    world.change(JOBS, "j", lambda job: job["spec"].update(volumes=[OWN]))
    world.settle()
    assert world.job()["spec"]["volumes"] == named
    assert len(_claims(world)) == 1


def test_a_claim_that_the_server_refuses_is_explained_on_the_job() -> None:
    world = _world(OWN)
    world.claim_refusal = "exceeded quota: storage"
    world.settle()
    assert _state(world) == ("Pending", "PVCError")
    assert world.job()["status"]["state"]["message"] == "exceeded quota: storage"
    assert not _reported(world), "told by the one who was refused"
    world.claim_refusal = ""
    world.run(until=lambda: _runs(world))
    assert _state(world) == ("Running", "")
