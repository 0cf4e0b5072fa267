"""Where pods are sent by the file of resource groups."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request, Settings
from vcbatch.api.defaults import json_patch
from vcbatch.api.model import Json
from vcbatch.api.resource_groups import MalformedResourceGroups, default_pod, parse_resource_groups
from vcbatch.api.resources import PODS

AFFINITY = '{"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}'
CONFIGURATION: Json = {
    "resourceGroups": [
        {
            "resourceGroup": "management",
            "object": {"key": "namespace", "value": ["mng"]},
            "schedulerName": "default-scheduler",
            "tolerations": [{"key": "mng", "operator": "Exists"}],
            "labels": {"type": "management"},
            "affinity": AFFINITY,
        },
        {"resourceGroup": "cpu", "object": {"key": "annotation", "value": ["pool: cpu"]}, "labels": {"type": "cpu"}},
        {"resourceGroup": "gpu", "schedulerName": "volcano", "labels": {"type": "gpu"}, "affinity": ""},
    ]
}
GROUPS = parse_resource_groups(CONFIGURATION)


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    return {"metadata": {"annotations": annotations or {}}, "spec": spec}


def sent(given: Json, namespace: str = "ns") -> Json:
    return dict(default_pod(given, GROUPS, namespace=namespace)["spec"])


def test_pods_of_a_namespace() -> None:
    spec = sent(pod(nodeSelector={"zone": "a"}, tolerations=[{"key": "own"}]), "mng")
    assert spec["nodeSelector"] == {"zone": "a", "type": "management"}
    assert spec["tolerations"] == [{"key": "own"}, {"key": "mng", "operator": "Exists"}]
    assert spec["affinity"] == {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert spec["schedulerName"] == "default-scheduler"


def test_pods_keep_the_affinity_they_have() -> None:
    assert sent(pod(affinity={"podAffinity": {}}), "mng")["affinity"] == {"podAffinity": {}}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"pool": "cpu"}, "cpu"),
        ({"pool": "gpu"}, None),
        ({"volcano.sh/resource-group": "gpu"}, "gpu"),
        ({"volcano.sh/resource-group": "cpu"}, None),  # a group with a key of its own isn't asked for by name
        ({}, None),
    ],
)
def test_pods_with_annotations(annotations: dict[str, str], expected: str | None) -> None:
    assert sent(pod(annotations)).get("nodeSelector", {}).get("type") == expected


def test_the_first_group_that_takes_a_pod_has_it() -> None:
    assert sent(pod({"pool": "cpu"}), "mng")["nodeSelector"] == {"type": "management"}


def test_a_pod_that_is_sent_again_stays_as_it_is() -> None:
    settings = Settings(resource_groups=GROUPS)
    request = Request(resource=PODS, operation=Operation.CREATE, name="p", namespace="mng", object=pod())
    once = admission.mutate(request, None, settings)  # type: ignore[arg-type] - nothing is looked up
    again = Request(resource=PODS, operation=Operation.CREATE, name="p", namespace="mng", object=once)
    assert json_patch(once, admission.mutate(again, None, settings)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("empty", [None, {}, {"resourceGroups": []}, {"resourceGroups": None}])
def test_without_groups_pods_are_left_alone(empty: Any) -> None:
    given = pod({"volcano.sh/resource-group": "gpu"})
    assert default_pod(given, parse_resource_groups(empty), namespace="ns") is given


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "config: Invalid value"),
        ({"resourceGroups": {}}, "config.resourceGroups: Invalid value"),
        ({"resourceGroups": [{"labels": {"a": 1}}]}, "labels.a"),
        ({"resourceGroups": [{"tolerations": [{"key": 1}]}]}, r"tolerations\[0\].key"),
        ({"resourceGroups": [{"label": {}}]}, "unknown label; known are resourceGroup"),
        ({"resourceGroups": [{"object": {"key": "user"}}]}, "'user', want namespace, annotation or nothing"),
        ({"resourceGroups": [{"object": {"key": "annotation", "value": ["gpu"]}}]}, "'gpu', want an annotation"),
        ({"resourceGroups": [{"affinity": "{"}]}, "want the JSON of an affinity"),
        ({"resourceGroups": [{"affinity": '{"nodeAffinity": []}'}]}, "affinity.nodeAffinity"),
        ({"resourceGroups": [{"affinity": "[]"}]}, "affinity"),
        ({"resourceGroups": [{}] * 1001}, "at most 1000"),
    ],
)
def test_what_cant_be_meant_is_refused_with_its_place(document: Any, said: str) -> None:
    with pytest.raises(MalformedResourceGroups, match=said):
        parse_resource_groups(document)
