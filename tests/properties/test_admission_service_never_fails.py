"""Whatever is posted to the admission service, it answers: a review, or a refusal that says why."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.admission_http import app_over
from tests.support.admission_world import World, queue
from tests.support.asgi import JSON_TYPE, ask
from tests.support.examples import examples
from vcbatch.api import supported
from vcbatch.api.admission import Settings
from vcbatch.api.model import Json
from vcbatch.api.resources import COMMANDS, QUEUES
from webhooks.paths import PATHS

APP = app_over(World(known=[queue("root"), queue("default")]), Settings(unsupported=supported.NOTHING))

CONTAINER: Json = {
    "name": "c", "image": "i", "command": ["sh"], "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
    "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": 1}, "limits": {"cpu": "1", "nvidia.com/gpu": 1}},
    "ports": [{"containerPort": 80, "hostPort": 80}], "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "livenessProbe": {"httpGet": {"port": "http"}}, "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
    "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}},
}  # fmt: skip
POD: Json = {
    "containers": [CONTAINER], "initContainers": [{**CONTAINER, "name": "i", "restartPolicy": "Always"}],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "projected": {"sources": [{}]}}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]}}},
    "tolerations": [{"key": "k", "operator": "Exists"}], "hostNetwork": True, "schedulerName": "volcano",
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}],
}  # fmt: skip
TASK: Json = {
    "name": "w", "replicas": 2, "minAvailable": 1, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD},
    "policies": [{"event": "PodFailed", "action": "RestartJob", "timeout": "5m"}], "dependsOn": {"name": ["v"]},
    "partitionPolicy": {"totalPartitions": 2, "partitionSize": 1, "networkTopology": {"mode": "hard"}},
    "topologyPolicy": "single-numa-node",
}  # fmt: skip
JOB_SPEC: Json = {
    "queue": "default", "minAvailable": 1, "tasks": [TASK, {**TASK, "name": "v"}],
    "plugins": {"svc": [], "mpi": ["--master=w"]},
    "policies": [{"exitCode": 3, "action": "AbortJob"}], "volumes": [{"mountPath": "/x", "volumeClaimName": "c"}],
    "networkTopology": {"mode": "hard", "highestTierAllowed": 1}, "priorityClassName": "p",
}  # fmt: skip
SPECS: dict[str, Json] = {
    "jobs": JOB_SPEC,
    "cronjobs": {"schedule": "*/5 * * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": JOB_SPEC}},
    "queues": {"weight": 1, "parent": "default", "capability": {"cpu": "4"}, "deserved": {"cpu": "2"},
               "guarantee": {"resource": {"cpu": "1"}}},
    "podgroups": {"queue": "default", "minMember": 1, "subGroupPolicy": [{"name": "s", "networkTopology": {}}]},
    "jobflows": {"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]},
    "jobtemplates": JOB_SPEC,
    "hypernodes": {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "a.*"}}}]},
    "pods": POD,
}  # fmt: skip

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from([[], {}, [{}], [[]], {"": ""}, [None], "9" * 400, 2**63, -1, "\x00", "☃" * 70]),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3), max_size=3),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in below for place in places(item, (*path, key)))]


def spoiled(whole: Json, place: tuple[Any, ...], odd: Any) -> Json:
    if not place:
        return whole
    changed = copy.deepcopy(whole)
    at: Any = changed
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = odd
    return changed


def review(path: str, obj: Any, old: Any, operation: str) -> Json:
    resource = PATHS[path].resource
    asked = {
        "uid": "u", "operation": operation, "name": "n", "namespace": "ns", "object": obj, "oldObject": old,
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
    }  # fmt: skip
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def post(path: str, body: bytes) -> Any:
    return asyncio.run(ask(APP, "POST", path, body, headers=JSON_TYPE))


relaxed = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("path", sorted(PATHS))
@relaxed
@given(data=st.data())
def test_spoiled_objects_are_answered(path: str, data: st.DataObject) -> None:
    whole: Json = {
        "metadata": {"name": "n", "namespace": "ns", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": SPECS.get(PATHS[path].resource.plural, {}),
        "status": {"state": "Open", "allocated": {"pods": "1"}},
    }
    if PATHS[path].resource == COMMANDS:
        target = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "name": "default", "uid": "u"}
        whole |= {"action": "CloseQueue", "target": target}
    obj = spoiled(whole, data.draw(st.sampled_from(places(whole))), data.draw(ODD))
    operation = data.draw(st.sampled_from(sorted(PATHS[path].operations)))
    reply = post(path, json.dumps(review(path, obj, whole if operation != "CREATE" else None, operation)).encode())
    assert reply.code in (200, 400)
    if reply.code == 200:
        answered = reply.json["response"]
        assert answered["allowed"] or answered["status"]["message"]
        assert answered.get("status", {}).get("code") != 500, answered
        assert not any("unjudged" in warning for warning in answered.get("warnings", ()))


@pytest.mark.parametrize("path", ["/jobs/validate", "/queues/mutate"])
@relaxed
@given(body=st.binary(max_size=200) | st.recursive(ODD, lambda inner: st.dictionaries(
    st.sampled_from(["apiVersion", "kind", "request", "uid", "object"]), inner, max_size=4), max_leaves=8,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_bodies_that_are_no_review_are_refused(path: str, body: bytes) -> None:
    reply = post(path, body)
    assert reply.code == 400
    assert reply.json["message"]
