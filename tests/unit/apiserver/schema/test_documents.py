"""Discovery and OpenAPI documents."""

from __future__ import annotations

import json

import pytest

from vcbatch.local.apiserver import discovery, kinds, openapi
from vcbatch.local.apiserver.crds import CrdRegistry
from vcbatch.local.apiserver.schema import descriptions

from .test_definitions import NOW, accepted, definition

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture(autouse=True)
def no_descriptions(monkeypatch):
    monkeypatch.setattr(descriptions, "load", dict)


@pytest.fixture(scope="module")
def served():
    registry = CrdRegistry()
    registry.reconcile(accepted(definition()), NOW)
    return [*kinds.served(), *registry.served()]


def read(reply):
    return json.loads(reply.body) if isinstance(reply.body, bytes) else reply.body


def discovered(served, path, **headers):
    return read(discovery.documents(served, path, headers, {}))


def test_core_and_groups(served):
    assert discovered(served, "/api", host="h:1")["serverAddressByClientCIDRs"][0]["serverAddress"] == "h:1"
    groups = discovered(served, "/apis")["groups"]
    assert groups[-1] == {
        "name": "example.com",
        "versions": [{"groupVersion": "example.com/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "example.com/v1", "version": "v1"},
    }
    assert discovery.documents(served, "/apis/nope", {}, {}) is None
    assert discovery.documents(served, "/api/v1/pods", {}, {}) is None


def test_a_version_lists_resources_and_subresources(served):
    resources = discovered(served, "/apis/example.com/v1")["resources"]
    assert [one["name"] for one in resources] == ["widgets", "widgets/status", "widgets/scale"]
    assert resources[2] == {
        "name": "widgets/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }
    pods = {one["name"]: one for one in discovered(served, "/api/v1")["resources"]}
    assert pods["pods"]["shortNames"] == ["po"]
    assert pods["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="
    assert pods["pods/eviction"]["kind"] == "Eviction"


def test_the_aggregated_form_is_given_to_who_asks_for_it(served):
    reply = discovery.documents(served, "/apis", {"accept": f"{V2},application/json"}, {})
    assert reply.content_type == V2
    document = read(reply)
    assert document["apiVersion"] == "apidiscovery.k8s.io/v2"
    (group,) = [one for one in document["items"] if one["metadata"]["name"] == "example.com"]
    (resource,) = group["versions"][0]["resources"]
    assert resource["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Widget"}
    assert [one["subresource"] for one in resource["subresources"]] == ["status", "scale"]
    plain = discovery.documents(served, "/apis", {"accept": f"application/json,{V2}"}, {})
    assert plain.content_type == "application/json"


@pytest.mark.parametrize("accept", ["application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", V2])
def test_the_order_of_the_parameters_of_a_media_type_is_free(served, accept):
    assert "APIGroupDiscoveryList" in discovery.documents(served, "/api", {"accept": accept}, {}).content_type


def test_versions_are_preferred_as_kubernetes_does():
    versions = ["v1alpha1", "foo", "v1", "v2beta1", "v2", "v1beta2", "v10"]
    ordered = ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]
    assert sorted(versions, key=discovery.version_order) == ordered


def test_it_does_not_pretend_to_be_a_kubernetes_distribution(served):
    assert "vcbatch" in discovered(served, "/version")["gitVersion"]


def test_the_openapi_index_changes_with_what_is_served(served):
    before = read(openapi.documents(served, "/openapi/v3", {}, {}))["paths"]
    registry = CrdRegistry()
    crd = definition()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "new"
    registry.reconcile(accepted(crd), NOW)
    others = [entry for entry in served if not entry.generated]
    after = read(openapi.documents([*others, *registry.served()], "/openapi/v3", {}, {}))["paths"]
    assert before["api/v1"] == after["api/v1"]
    assert before["apis/example.com/v1"] != after["apis/example.com/v1"]


def test_every_patch_tells_that_fields_are_validated(served):
    for name in read(openapi.documents(served, "/openapi/v3", {}, {}))["paths"]:
        document = read(openapi.documents(served, f"/openapi/v3/{name}", {}, {}))
        for path, operations in document["paths"].items():
            patch = operations.get("patch")
            if patch:
                assert "fieldValidation" in {one["name"] for one in patch["parameters"]}, path
                assert patch["x-kubernetes-group-version-kind"]["kind"]


def test_every_reference_of_a_document_leads_somewhere(served):
    for name in read(openapi.documents(served, "/openapi/v3", {}, {}))["paths"]:
        text = openapi.documents(served, f"/openapi/v3/{name}", {}, {}).body.decode()
        schemas = json.loads(text)["components"]["schemas"]
        for part in text.split('"$ref":"#/components/schemas/')[1:]:
            assert part.partition('"')[0] in schemas, (name, part[:80])


def test_kinds_are_found_by_group_version_and_kind(served):
    schemas = read(openapi.documents(served, "/openapi/v3/apis/example.com/v1", {}, {}))["components"]["schemas"]
    widget = schemas["com.example.v1.Widget"]
    assert widget["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Widget"}]
    assert set(widget["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}


def test_an_unchanged_document_is_not_sent_again(served):
    tag = openapi.documents(served, "/openapi/v3/api/v1", {}, {}).headers["Etag"]
    again = openapi.documents(served, "/openapi/v3/api/v1", {"if-none-match": tag}, {})
    assert (again.code, again.body) == (304, b"")


def test_descriptions_come_from_the_installed_client():
    pytest.importorskip("kubernetes.client.models")
    words = descriptions.collect()
    assert words["core/v1.PodSpec"]["containers"].startswith("List of containers")
    assert "openapi_types" not in words["core/v1.Pod"][""]
