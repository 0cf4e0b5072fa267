"""The CRDs: no drift, small enough, and what Volcano's accept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import yaml

from vcbatch.api import crd
from vcbatch.api.crd.facets import FACETS
from vcbatch.api.crd.schemas import core_type, core_types
from vcbatch.api.job import JobStatus
from vcbatch.api.model import Json, wire_name
from vcbatch.api.resources import CUSTOM_RESOURCES

ROOT = Path(__file__).parents[3]
KINDS = [resource.kind for resource in CUSTOM_RESOURCES]


def version(kind: str) -> Json:
    return crd.render(kind)["spec"]["versions"][0]


def at(kind: str, path: str) -> Json:
    """The schema of a field, `[]` for a list's items, `{}` for a map's values."""
    schema = version(kind)["schema"]["openAPIV3Schema"]
    for part in path.split("."):
        name = part.rstrip("[]{}")
        schema = schema["properties"][name]
        if part.endswith("[]"):
            schema = schema["items"]
        if part.endswith("{}"):
            schema = schema["additionalProperties"]
    return schema


def walk(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


def test_the_files_are_what_the_models_say() -> None:
    files = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    assert files == crd.documents(), "run `vcbatch crds` and commit what it writes"


@pytest.mark.parametrize("name", sorted(crd.documents()))
def test_client_side_apply_can_keep_a_document(name: str) -> None:
    text = crd.documents()[name]
    assert len(text.encode()) < crd.LARGEST_DOCUMENT
    assert len(json.dumps(yaml.safe_load(text))) < crd.LARGEST_DOCUMENT / 2
    assert "&id" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_structural(kind: str) -> None:
    """What kube-apiserver demands of a CRD's schema."""
    for path, schema in walk(version(kind)["schema"]["openAPIV3Schema"]):
        if schema.get("x-kubernetes-int-or-string"):
            assert "type" not in schema, path
            continue
        assert schema["type"] in ("object", "array", "string", "integer", "boolean"), path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert set(schema.get("required", [])) <= set(schema.get("properties", {})), path
        if schema["type"] == "array":
            assert "items" in schema, path
        if schema.get("x-kubernetes-list-type") == "map":
            items = schema["items"]
            for key in schema["x-kubernetes-list-map-keys"]:
                keyed = key in items.get("required", []) or "default" in items["properties"][key]
                assert keyed, f"{path}: the key {key} has to be required or to have a default"
        if "default" in schema and schema["type"] == "integer":
            assert schema.get("minimum", 0) <= schema["default"] <= schema.get("maximum", 2**31 - 1), path


@pytest.mark.parametrize(
    ("kind", "scope", "short_names", "subresources", "columns"),
    [
        ("Job", "Namespaced", ["vcjob", "vj"], {"status": {}}, ["STATUS", "minAvailable", "RUNNINGS", "AGE", "QUEUE"]),
        ("CronJob", "Namespaced", ["cronvcjob", "cronvj"], {"status": {}}, []),
        ("Command", "Namespaced", None, None, []),
        ("Queue", "Cluster", ["q", "queue-v1beta1"], {"status": {}}, ["PARENT"]),
        # Integrators create PodGroups together with their status.
        ("PodGroup", "Namespaced", ["pg", "podgroup-v1beta1"], {}, ["STATUS", "minMember", "RUNNINGS", "AGE", "QUEUE"]),
        ("JobFlow", "Namespaced", ["jf"], {"status": {}}, ["Status", "Age"]),
        ("JobTemplate", "Namespaced", ["jt"], {"status": {}}, []),
        ("HyperNode", "Cluster", ["hn"], {"status": {}}, ["Tier", "TierName", "NodeCount", "Age"]),
        ("Numatopology", "Cluster", ["numatopo"], None, []),
    ],
)
def test_kinds_are_served_as_by_volcano(
    kind: str, scope: str, short_names: list[str] | None, subresources: Json | None, columns: list[str]
) -> None:
    spec = crd.render(kind)["spec"]
    assert spec["scope"] == scope
    assert spec["names"].get("shortNames") == short_names
    assert version(kind).get("subresources") == subresources
    assert [column["name"] for column in version(kind).get("additionalPrinterColumns", [])] == columns


@pytest.mark.parametrize(
    ("kind", "path", "want"),
    [
        ("Job", "spec.minAvailable", {"minimum": 0, "format": "int32"}),
        ("Job", "spec.queue", {"default": "default", "maxLength": 253}),
        ("Job", "spec.maxRetry", {"default": 3, "minimum": 0}),
        ("Job", "spec.minSuccess", {"minimum": 1}),
        ("Job", "spec.schedulerName", {"maxLength": 63}),
        ("Job", "spec.tasks", {"minItems": 1}),
        ("Job", "spec.tasks[].name", {"maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}),
        ("Job", "spec.tasks[].partitionPolicy", {"required": ["partitionSize", "totalPartitions"]}),
        ("Job", "spec.tasks[].partitionPolicy.minPartitions", {"default": 0, "minimum": 0}),
        ("Job", "spec.volumes[]", {"required": ["mountPath"]}),
        ("Job", "spec.volumes[].mountPath", {"minLength": 1, "pattern": "^[^:]+$"}),
        ("Job", "spec.plugins{}", {"type": "array"}),
        ("Job", "spec.networkTopology.mode", {"default": "hard", "enum": ["hard", "soft"]}),
        ("Job", "spec.ttlSecondsAfterFinished", {"minimum": 0}),
        ("Job", "status.conditions[]", {"required": ["status"]}),
        ("Job", "status.state.lastTransitionTime", {"format": "date-time"}),
        ("CronJob", "spec", {"required": ["jobTemplate", "schedule"]}),
        ("CronJob", "spec.concurrencyPolicy", {"default": "Allow", "enum": ["Allow", "Forbid", "Replace"]}),
        ("CronJob", "spec.startingDeadlineSeconds", {"format": "int64", "minimum": 0}),
        ("CronJob", "spec.suspend", {"default": False}),
        ("Queue", "spec.weight", {"default": 1, "minimum": 1, "maximum": 65535}),
        ("Queue", "spec.dequeueStrategy", {"default": "traverse", "enum": ["fifo", "traverse"]}),
        ("Queue", "spec.capability{}", {"x-kubernetes-int-or-string": True}),
        ("Queue", "status.state", {"enum": ["Open", "Closed", "Closing", "Unknown"]}),
        ("PodGroup", "spec.queue", {"default": "default"}),
        ("PodGroup", "spec.subGroupPolicy[].subGroupSize", {"default": 1, "minimum": 1}),
        ("PodGroup", "status.conditions[].transitionID", {"type": "string"}),
        ("PodGroup", "status.phase", {"enum": ["Pending", "Running", "Unknown", "Inqueue", "Completed"]}),
        ("Command", "target", {"required": ["apiVersion", "kind", "name", "uid"]}),
        ("JobFlow", "spec.flows[]", {"required": ["name"]}),
        ("JobFlow", "spec.flows[].dependsOn.probe.tcpSocketList[]", {"required": ["port"]}),
        ("JobFlow", "spec.flows[].patch.jobSpec.maxRetry", {"default": None}),
        ("JobFlow", "status.unKnowJobs", {"type": "array"}),
        ("JobTemplate", "spec.tasks", {"minItems": 1}),
        ("HyperNode", "spec", {"required": ["tier"]}),
        ("HyperNode", "spec.members", {"minItems": 1}),
        ("HyperNode", "spec.members[].type", {"enum": ["Node", "HyperNode"]}),
    ],
)
def test_fields_have_volcanos_bounds(kind: str, path: str, want: Json) -> None:
    schema = at(kind, path)
    assert {key: schema.get(key) for key in want} == want


def test_metadata_inside_is_limited_to_what_is_copied() -> None:
    kept = {"annotations", "finalizers", "labels", "name", "namespace"}
    assert set(at("Job", "spec.tasks[].template.metadata")["properties"]) == kept
    assert set(at("CronJob", "spec.jobTemplate.metadata")["properties"]) == kept


def test_the_job_status_follows_the_model() -> None:
    served = set(at("Job", "status")["properties"])
    assert served == {wire_name(attribute) for attribute in JobStatus.model_fields}


@pytest.mark.parametrize("model", sorted(FACETS, key=lambda model: model.__name__))
def test_facets_are_about_fields_that_exist(model: Any) -> None:
    assert set(FACETS[model]) <= set(model.model_fields)


# Kubernetes' own types, which explain themselves elsewhere.
FOREIGN = re.compile(
    r"template\.|[cC]laim\.|label(Selector|Match)\.|^\.spec\.selector\.|[mM]etadata|target\.|active\[\]|\.conditions\[\]"
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_ours_explains_itself(kind: str) -> None:
    silent = [
        path
        for path, schema in walk(version(kind)["schema"]["openAPIV3Schema"])
        if path and path[-1] not in "]}" and not FOREIGN.search(path) and not schema.get("description")
    ]
    assert silent == []


@cache
def published() -> Json:
    """What Kubernetes publishes of its types, from the package that tests carry."""
    found = util.find_spec("kubernetes_validate")
    if found is None or not found.submodule_search_locations:
        pytest.skip("kubernetes-validate isn't installed")
    base = Path(found.submodule_search_locations[0])
    return json.loads((base / "kubernetes-json-schema/v1.36.0-local/_definitions.json").read_text())["$defs"]


def definition(name: str) -> Json:
    prefixes = ("io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1.")
    return next(published()[prefix + name] for prefix in prefixes if prefix + name in published())


def plain(schema: Json) -> str:
    """A type as both sides can be compared: `[string]`, `{quantity}`, `int64`, `Container`."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit(".", 1)[-1]
        return {"Quantity": "int-or-string", "IntOrString": "int-or-string", "ObjectMeta": "object"}.get(name, "object")
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    if kind == "array":
        return f"[{plain(schema['items'])}]"
    if "additionalProperties" in schema:
        return f"{{{plain(schema['additionalProperties'])}}}"
    return schema.get("format") or kind


MERGE = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys")


@pytest.mark.parametrize("name", [name for name in core_types() if name != "PodTemplateSpec"])
def test_pod_types_are_those_of_kubernetes(name: str) -> None:
    ours, theirs = core_type(name), definition(name)
    assert sorted(ours.get("required", [])) == sorted(theirs.get("required", []))
    assert {key: plain(schema) for key, schema in ours["properties"].items()} == {
        key: plain(schema) for key, schema in theirs["properties"].items()
    }
    for key, schema in theirs["properties"].items():
        assert [ours["properties"][key].get(rule) for rule in MERGE] == [schema.get(rule) for rule in MERGE], key


ADDED_IN_1_37 = {
    "PodSpec": "evictionResponders",
    "VolumeMount": "bindMountOptions",
    "EmptyDirVolumeSource": "mode",
    "GRPCAction": "mode",
    "HTTPGetAction": "protocol",
    **dict.fromkeys(
        ["ConfigMapVolumeSource", "DownwardAPIVolumeSource", "ProjectedVolumeSource", "SecretVolumeSource"],
        "defaultUser",
    ),
    **dict.fromkeys(
        [
            "KeyToPath",
            "DownwardAPIVolumeFile",
            "ClusterTrustBundleProjection",
            "PodCertificateProjection",
            "ServiceAccountTokenProjection",
        ],
        "user",
    ),
}
"""What the client library's release has beyond the table's. Each new field is taken over or named here."""


def client_type(written: str) -> str:
    """A type as the client library writes it, in the words of `plain`."""
    if written.startswith("List["):
        return f"[{client_type(written[5:-1])}]"
    if written.startswith("Dict["):
        return f"{{{client_type(written.partition(', ')[2][:-1])}}}"
    return {"int": "integer", "str": "string", "bool": "boolean", "object": "int-or-string"}.get(written, "object")


def loosened(of_type: str) -> str:
    """The library has one kind of integer, and amounts are strings to it."""
    return of_type.replace("int32", "integer").replace("int64", "integer").replace("{int-or-string}", "{string}")


@pytest.mark.parametrize("name", [name for name in core_types() if name != "PodTemplateSpec"])
def test_pod_types_are_those_of_the_client_library(name: str) -> None:
    from kubernetes import client

    model = getattr(client, f"V1{name}", None) or getattr(client, f"CoreV1{name}")
    theirs = {model.attribute_map[key]: client_type(written) for key, written in model.openapi_types.items()}
    if name in ADDED_IN_1_37:
        del theirs[ADDED_IN_1_37[name]]
    ours = {key: loosened(plain(schema)) for key, schema in core_type(name)["properties"].items()}
    amounts = {key for key, kind in ours.items() if kind == "int-or-string" and theirs.get(key) == "string"}
    assert ours == theirs | dict.fromkeys(amounts, "int-or-string")
