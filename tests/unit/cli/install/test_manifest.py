"""The manifest that is installed: choices change its objects."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.cli.base.output import CliError
from vcbatch.cli.install.kinds import ORDER, resource_of, title_of
from vcbatch.cli.install.manifest import Choices, chosen, shipped
from vcbatch.cli.inventory.drift import shipped as definitions

Json = dict[str, Any]


def made(**choices: Any) -> list[Json]:
    return chosen(shipped(), Choices(**{"crds": False, **choices}))


def titles(objects: list[Json]) -> list[str]:
    return [title_of(one) for one in objects]


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [one for key, each in value.items() for one in (*strings(key), *strings(each))]
    if isinstance(value, list):
        return [one for each in value for one in strings(each)]
    return [value] if isinstance(value, str) else []


def programs(objects: list[Json]) -> dict[str, Json]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == "Deployment"}


def arguments(deployment: Json) -> list[str]:
    return list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])


def test_it_has_the_definitions_of_this_version() -> None:
    crds = {one["metadata"]["name"]: one["spec"] for one in shipped() if one["kind"] == "CustomResourceDefinition"}
    assert crds == {name: one["spec"] for name, one in definitions().items()}


def test_rights_come_before_programs_and_judges_last() -> None:
    kinds = [resource_of(one) for one in chosen(shipped(), Choices())]
    places = [ORDER.index(one) for one in kinds]
    assert places == sorted(places)
    assert kinds[0].kind == "Namespace"
    assert kinds[-1].kind == "ValidatingWebhookConfiguration"


def test_all_of_it_is_marked_as_made_by_the_installer_and_nothing_as_helms() -> None:
    objects = made(admission="policies") + made(policy='actions: "allocate"\n')
    assert {one["metadata"]["labels"]["app.kubernetes.io/managed-by"] for one in objects} == {"vcbatch-install"}
    assert not [text for text in strings(objects) if "helm.sh" in text]


@pytest.mark.parametrize("admission", ["webhooks", "policies", "none"])
def test_another_namespace_leaves_no_trace_of_the_first(admission: str) -> None:
    objects = made(namespace="batch", admission=admission, policy='actions: "allocate"\n')
    assert not [text for text in strings(objects) if "volcano-system" in text]
    assert titles(objects)[0] == "namespace/batch"
    exempt = [text for text in strings(objects) if "batch/vcbatch-controllers" in text or ":batch:vcbatch-c" in text]
    assert bool(exempt) is (admission != "none")
    assert {one["metadata"]["namespace"] for one in objects if resource_of(one).namespaced} == {"batch"}
    assert "--leader-elect-resource-namespace=batch" in arguments(programs(objects)["vcbatch-scheduler"])
    subjects = [
        subject for one in objects for subject in one.get("subjects", ()) if subject["kind"] == "ServiceAccount"
    ]
    assert {subject["namespace"] for subject in subjects} == {"batch"}


def test_images_names_policy_and_replicas() -> None:
    image = "registry.example:5000/batch/vcbatch@sha256:" + "a" * 64
    policy = 'actions: "allocate"\n'
    objects = made(image=image, scheduler_names=("a", "b"), policy=policy, replicas=1, node_selectors=("pool:gpu",))
    for deployment in programs(objects).values():
        assert deployment["spec"]["replicas"] == 1
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image
        named = [one for one in arguments(deployment) if one.startswith("--scheduler-name=")]
        assert named == ["--scheduler-name=a", "--scheduler-name=b"]
    scheduler = programs(objects)["vcbatch-scheduler"]["spec"]["template"]["spec"]
    reported = scheduler["containers"][0]
    assert "--scheduler-conf=/etc/vcbatch/scheduler/volcano-scheduler.conf" in reported["args"]
    assert "--node-selector=pool:gpu" in reported["args"]
    assert {"name": "policy", "mountPath": "/etc/vcbatch/scheduler", "readOnly": True} in reported["volumeMounts"]
    (stored,) = [one for one in objects if one["kind"] == "ConfigMap"]
    assert stored["data"] == {"volcano-scheduler.conf": policy}
    assert {"name": "policy", "configMap": {"name": stored["metadata"]["name"]}} in scheduler["volumes"]


def test_the_defaults_are_the_charts() -> None:
    plain = {title_of(one): one for one in shipped()}
    assert {title_of(one): one for one in chosen(shipped(), Choices())} == plain


@pytest.mark.parametrize("admission", ["policies", "none"])
def test_without_webhooks_nothing_of_them_is_left(admission: str) -> None:
    objects = made(admission=admission)
    assert programs(objects).keys() == {"vcbatch-controllers", "vcbatch-scheduler"}
    assert not [one for one in titles(objects) if "webhook" in one or "volcano-admission" in one]
    judged = [one for one in titles(objects) if "admissionpolic" in one]
    assert bool(judged) is (admission == "policies")


def test_single_components() -> None:
    objects = made(components=("scheduler",))
    assert programs(objects).keys() == {"vcbatch-scheduler"}
    assert not [one for one in titles(objects) if "controllers" in one or "webhooks" in one]
    assert "serviceaccount/vcbatch-scheduler" in titles(objects)


@pytest.mark.parametrize(
    "choices",
    [
        {"image": "no image"},
        {"image": "x:y:z"},
        {"image": "-x"},
        {"components": ("kubelet",)},
        {"components": ()},
        {"replicas": 0},
        {"scheduler_names": ("",)},
        {"scheduler_names": ("--x",)},
        {"scheduler_names": ("x" * 64,)},
    ],
)
def test_choices_that_cant_be_made(choices: Json) -> None:
    with pytest.raises(CliError):
        made(**choices)


def test_kinds_that_are_no_part_of_an_installation() -> None:
    with pytest.raises(CliError):
        resource_of({"apiVersion": "v1", "kind": "Pod"})
