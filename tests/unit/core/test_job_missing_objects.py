"""What pods of a job name and doesn't exist: all of it in the job's status at once, and once in its events."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.messages import missing_objects, objects_missing
from vcbatch.api.pod_references import Reference, references_of
from vcbatch.api.resources import (
    CONFIGMAPS,
    JOBS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    PRIORITYCLASSES,
    SECRETS,
    SERVICEACCOUNTS,
)
from vcbatch.core.job import read_job, wanted_children, wanted_references

CLAIM, CONFIG = Reference(PERSISTENTVOLUMECLAIMS, "data"), Reference(CONFIGMAPS, "settings")
SECRET, ACCOUNT = Reference(SECRETS, "keys"), Reference(SERVICEACCOUNTS, "runner")


def _env(**value_from: Json) -> Json:
    return {"name": "E", "valueFrom": value_from}


NAMED: dict[str, tuple[Json, list[Reference]]] = {
    "nothing": ({"containers": [{"name": "c", "env": [{"name": "A", "value": "b"}]}]}, []),
    "a claim": ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}, [CLAIM]),
    "a claim of its own": ({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}, []),
    "a ConfigMap as files": ({"volumes": [{"name": "v", "configMap": {"name": "settings"}}]}, [CONFIG]),
    "a Secret as files": ({"volumes": [{"name": "v", "secret": {"secretName": "keys"}}]}, [SECRET]),
    "both in one volume": (
        {
            "volumes": [
                {
                    "name": "v",
                    "projected": {
                        "sources": [
                            {"secret": {"name": "keys"}},
                            {"configMap": {"name": "settings"}},
                            {"serviceAccountToken": {"path": "t"}},
                        ]
                    },
                }
            ]
        },
        [SECRET, CONFIG],
    ),
    "a ConfigMap as variables": ({"containers": [{"envFrom": [{"configMapRef": {"name": "settings"}}]}]}, [CONFIG]),
    "a Secret as variables": ({"initContainers": [{"envFrom": [{"secretRef": {"name": "keys"}}]}]}, [SECRET]),
    "one variable each": (
        {
            "containers": [
                {
                    "env": [
                        _env(configMapKeyRef={"name": "settings", "key": "k"}),
                        _env(secretKeyRef={"name": "keys", "key": "k"}),
                        _env(fieldRef={"fieldPath": "metadata.name"}),
                    ]
                }
            ]
        },
        [CONFIG, SECRET],
    ),
    "a Secret of a driver": (
        {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "keys"}}}]},
        [SECRET],
    ),
    "a Secret of a file share": ({"volumes": [{"name": "v", "azureFile": {"secretName": "keys"}}]}, [SECRET]),
    "a service account": ({"serviceAccountName": "runner"}, [ACCOUNT]),
    "a service account by its old name": ({"serviceAccount": "runner"}, [ACCOUNT]),
    "the default service account": ({"serviceAccountName": "default"}, []),
    "a priority class": ({"priorityClassName": "urgent"}, [Reference(PRIORITYCLASSES, "urgent")]),
    "a priority class of Kubernetes": ({"priorityClassName": "system-node-critical"}, []),
    "optional ones": (
        {
            "volumes": [
                {"name": "a", "configMap": {"name": "settings", "optional": True}},
                {"name": "b", "secret": {"secretName": "keys", "optional": True}},
                {"name": "c", "projected": {"sources": [{"secret": {"name": "keys", "optional": True}}]}},
            ],
            "containers": [
                {
                    "envFrom": [{"configMapRef": {"name": "settings", "optional": True}}],
                    "env": [_env(secretKeyRef={"name": "keys", "key": "k", "optional": True})],
                }
            ],
        },
        [],
    ),
    "one that is optional in one place and not in the other": (
        {
            "volumes": [{"name": "a", "configMap": {"name": "settings", "optional": True}}],
            "containers": [{"envFrom": [{"configMapRef": {"name": "settings", "optional": False}}]}],
        },
        [CONFIG],
    ),
    "the same twice": ({"containers": [{"envFrom": [{"secretRef": {"name": "keys"}}] * 2}] * 2}, [SECRET]),
    "Secrets to pull images with": ({"imagePullSecrets": [{"name": "keys"}]}, []),
    "what can't be read": ({"volumes": [1, {"configMap": [], "secret": "x"}], "containers": "c"}, []),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_a_pod_needs(name: str) -> None:
    spec, wanted = NAMED[name]
    assert references_of(spec) == wanted


def _with(given: Json, **pod: Any) -> Json:
    given["template"]["spec"] |= pod
    return given


def _names(name: str) -> Json:
    return {"volumes": [{"name": "v", "configMap": {"name": name}}]}


def _world(*tasks: Json, absent: set[Reference], **spec: Any) -> World:
    world = World(absent=absent)
    world.submit(job_object(tasks=list(tasks), **spec))
    return world


def _state(world: World) -> tuple[str, str, str]:
    state = world.job()["status"]["state"]
    return state["phase"], state.get("reason", ""), state.get("message", "")


def _reported(world: World) -> list[str]:
    return [event.message for event in world.events if event.reason == "ObjectsMissing"]


def test_all_is_named_at_once_and_taken_back_when_it_is_there() -> None:
    both = {**_names("settings"), "serviceAccountName": "runner"}
    world = _world(_with(task("a", 1), **both), _with(task("b", 1), **both), absent={CONFIG, ACCOUNT})
    world.binds = False
    world.settle()
    said = "ServiceAccount runner and ConfigMap settings don't exist, named by pods of tasks a and b"
    assert _state(world) == ("Pending", "ObjectsMissing", said)
    world.absent = {CONFIG}
    world.settle()
    less = "ConfigMap settings doesn't exist, named by pods of tasks a and b"
    assert _state(world) == ("Pending", "ObjectsMissing", less)
    assert _reported(world) == [said, less]
    world.absent, world.binds = set(), True
    world.run(until=lambda: world.phase() == "Running")
    assert _state(world) == ("Running", "", "")
    assert _reported(world) == [said, less]


@pytest.mark.parametrize("lets_in", [True, False])
def test_it_is_named_while_the_gang_waits_for_its_turn_as_well(lets_in: bool) -> None:
    world = _world(_with(task("a", 1), **_names("settings")), absent={CONFIG})
    world.lets_in, world.binds = lets_in, False
    world.settle()
    world.schedule()
    world.settle()
    assert _state(world)[1] == "ObjectsMissing"


def test_what_the_server_refuses_is_said_beside_it() -> None:
    world = _world(_with(task("a", 1), **_names("settings")), absent={CONFIG})
    world.refusal = 'pods "j-a-0" is forbidden: serviceaccount "x" not found'
    world.run(until=lambda: _state(world)[1] == "FailedCreate")
    _, _, said = _state(world)
    assert missing_objects(said) == [("ConfigMap", "settings")]
    assert 'serviceaccount "x" not found' in said
    for _ in range(3):
        world.step()
        world.settle()
    assert len(_reported(world)) == 1


def test_a_claim_of_the_job_that_is_missing_is_said_beside_it_and_each_once() -> None:
    volumes = [{"mountPath": "/data", "volumeClaimName": "data"}]
    world = _world(_with(task("a", 1), **_names("settings")), absent={CONFIG, CLAIM}, volumes=volumes)
    world.settle()
    phase, reason, said = _state(world)
    assert (phase, reason) == ("Pending", "PVCError")
    assert missing_objects(said) == [("ConfigMap", "settings")]
    assert "PersistentVolumeClaim data, of spec.volumes[0], doesn't exist" in said
    for _ in range(3):
        world.step()
        world.settle()
    assert [event.reason for event in world.events].count("PVCError") == 1
    assert len(_reported(world)) == 1


def test_a_task_that_waits_for_another_needs_nothing_yet() -> None:
    late = _with(task("late", 1, dependsOn={"name": ["early"]}), **_names("settings"))
    world = _world(task("early", 1), late, absent={CONFIG}, minAvailable=1)
    world.binds = False
    world.settle()
    assert "ObjectsMissing" not in _state(world)
    world.binds = True
    world.run(until=lambda: "ObjectsMissing" in _state(world))
    assert _state(world)[0] == "Running"


def test_a_job_whose_pods_all_run_misses_nothing() -> None:
    world = _world(_with(task("a", 2), **_names("settings")), absent=set())
    world.run(until=lambda: world.phase() == "Running")
    world.absent = {CONFIG}
    world.settle()
    assert _state(world) == ("Running", "", "")
    assert wanted_references(read_job(world.job()), ()) == []


def test_what_the_job_and_its_plugins_make_is_not_missing() -> None:
    given = job_object(
        tasks=[_with(task("a", 1), volumes=[
            {"name": "hosts", "configMap": {"name": "j-svc"}},
            {"name": "keys", "secret": {"secretName": "j-ssh"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "other", "configMap": {"name": "settings"}},
        ])],
        plugins={"svc": [], "ssh": []}, volumes=[{"mountPath": "/data", "volumeClaimName": "data"}],
    )  # fmt: skip
    job = read_job(World().submit(given))
    assert wanted_references(job, wanted_children(job)) == [CONFIG]
    alone = read_job(World().submit({**given, "spec": {**given["spec"], "plugins": {}}}))
    assert {str(one) for one in wanted_references(alone, wanted_children(alone))} == {
        "ConfigMap j-svc",
        "Secret j-ssh",
        "ConfigMap settings",
    }


def test_the_priority_class_of_the_job_counts_for_tasks_without_one() -> None:
    given = job_object(tasks=[task("a", 1), _with(task("b", 1), priorityClassName="low")], priorityClassName="high")
    job = read_job(World().submit(given))
    assert [one.name for one in wanted_references(job, ())] == ["high", "low"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_a_sentence_names_is_read_from_it_again(count: int) -> None:
    objects = [("ConfigMap", "a.b"), ("Secret", "and"), ("PersistentVolumeClaim", "x-1")][:count]
    said = objects_missing(objects, tasks=["w", "v"])
    assert missing_objects(said) == objects
    assert missing_objects(f"{said}; something else") == objects
    assert missing_objects(f"something else; {said}") == []
    assert missing_objects("queue 'q' doesn't exist") == []


def test_a_sentence_of_others_takes_no_time_to_be_read() -> None:
    assert missing_objects("ConfigMap a, " * 20_000) == []


def test_pods_are_created_all_the_same() -> None:
    """So that the rest of what is wrong with them, which only a server or a node can tell, is told as well."""
    world = _world(_with(task("a", 2), **_names("settings")), absent={CONFIG})
    world.binds = False
    world.run(until=lambda: len(world.all(PODS)) == 2)
    assert world.objects[JOBS, "j"]["status"]["state"]["reason"] == "ObjectsMissing"
