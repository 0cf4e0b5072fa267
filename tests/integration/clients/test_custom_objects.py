"""Our kinds through the official client: its custom objects API, its dynamic client, and server-side apply."""

from __future__ import annotations

import getpass
import json
from typing import Any

import pytest
from kubernetes import client, dynamic, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from tests.integration.clients.waiting import until
from tests.integration.up.manifests import job
from vcbatch.api import names

Json = dict[str, Any]
Place = tuple[str, str, str, str]
JOBS = ("batch.volcano.sh", "v1alpha1")
QUEUES = ("scheduling.volcano.sh", "v1beta1", "queues")
TOO_MANY_CPUS = "5000"


@pytest.fixture
def custom(connection: client.ApiClient) -> client.CustomObjectsApi:
    return client.CustomObjectsApi(connection)


def waiting_job(name: str, **spec: Any) -> Json:
    """More than the machine has, so that nothing but its status changes while a test looks at it."""
    return json.loads(job(name, "true", cpu=TOO_MANY_CPUS, **spec))


def annotated(custom: client.CustomObjectsApi, at: Place, name: str) -> Json | None:
    """What was sent in the place of the object; None where the object changed since it was read."""
    read = custom.get_namespaced_custom_object(*at, name)
    read["metadata"]["annotations"] = {"note": "n"}
    try:
        custom.replace_namespaced_custom_object(*at, name, read)
    except ApiException as error:
        assert error.status == 409, error.body
        return None
    return read


def test_a_job_through_the_custom_objects_api(custom: client.CustomObjectsApi, namespace: str):
    at = (*JOBS, namespace, "jobs")
    made = custom.create_namespaced_custom_object(*at, waiting_job("a"))
    assert made["spec"]["queue"] == "default" and made["metadata"]["generation"] == 1

    def phase() -> str:
        status = custom.get_namespaced_custom_object_status(*at, "a").get("status") or {}
        return (status.get("state") or {}).get("phase", "")

    until(lambda: phase() == "Pending")
    listed = custom.list_namespaced_custom_object(*at, limit=1)
    assert [one["metadata"]["name"] for one in listed["items"]] == ["a"]
    assert listed["kind"] == "JobList" and listed["items"][0]["kind"] == "Job"

    merged = custom.patch_namespaced_custom_object(
        *at, "a", {"metadata": {"labels": {"x": "1"}}}, _content_type="application/merge-patch+json"
    )
    assert merged["metadata"]["labels"] == {"x": "1"}
    operations = [{"op": "replace", "path": "/metadata/labels/x", "value": "2"}]
    patched = custom.patch_namespaced_custom_object(*at, "a", operations, _content_type="application/json-patch+json")
    assert patched["metadata"]["labels"] == {"x": "2"}
    with pytest.raises(ApiException) as error:
        custom.patch_namespaced_custom_object(
            *at, "a", {"spec": {}}, _content_type="application/strategic-merge-patch+json"
        )
    assert error.value.status == 415

    stale = until(lambda: annotated(custom, at, "a"))
    with pytest.raises(ApiException) as error:
        custom.replace_namespaced_custom_object(*at, "a", stale)
    assert error.value.status == 409 and json.loads(error.value.body)["reason"] == "Conflict"

    annotations = custom.get_namespaced_custom_object(*at, "a")["metadata"]["annotations"]
    assert annotations == {"note": "n", names.USER: getpass.getuser()}
    gone = custom.delete_namespaced_custom_object(*at, "a", propagation_policy="Foreground")
    assert gone["kind"] in ("Status", "Job")
    until(lambda: not custom.list_namespaced_custom_object(*at)["items"])


def test_a_job_that_cant_work_is_refused_with_the_reason(custom: client.CustomObjectsApi, namespace: str):
    bad = waiting_job("bad", queue="nowhere")
    with pytest.raises(ApiException) as error:
        custom.create_namespaced_custom_object(*JOBS, namespace, "jobs", bad)
    assert error.value.status in (400, 403, 422)
    assert "nowhere" in json.loads(error.value.body)["message"]


def test_a_watch_of_jobs_follows_one_to_its_end(custom: client.CustomObjectsApi, namespace: str):
    at = (*JOBS, namespace, "jobs")
    version = custom.list_namespaced_custom_object(*at)["metadata"]["resourceVersion"]
    custom.create_namespaced_custom_object(*at, json.loads(job("quick", "true", replicas=2)))
    phases: list[str] = []
    watcher = watch.Watch()
    for event in watcher.stream(
        custom.list_namespaced_custom_object, *at, resource_version=version, timeout_seconds=30
    ):
        phase = ((event["object"].get("status") or {}).get("state") or {}).get("phase", "")
        if phase and phase not in phases:
            phases.append(phase)
        if phase == "Completed":
            watcher.stop()
    assert phases[0] == "Pending" and phases[-1] == "Completed"
    assert set(phases) <= {"Pending", "Running", "Completing", "Completed"}
    assert int(watcher.resource_version) > int(version)


def test_queues_are_cluster_objects(custom: client.CustomObjectsApi, namespace: str):
    name = f"q-{namespace}"
    body = {"apiVersion": "/".join(QUEUES[:2]), "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 2}}
    made = custom.create_cluster_custom_object(*QUEUES, body)
    assert made["spec"]["weight"] == 2

    def state() -> str:
        return (custom.get_cluster_custom_object_status(*QUEUES, name).get("status") or {}).get("state", "")

    until(lambda: state() == "Open")
    custom.patch_cluster_custom_object(
        *QUEUES, name, {"spec": {"weight": 3}}, _content_type="application/merge-patch+json"
    )
    assert custom.get_cluster_custom_object(*QUEUES, name)["spec"]["weight"] == 3
    assert name in {one["metadata"]["name"] for one in custom.list_cluster_custom_object(*QUEUES)["items"]}
    custom.delete_cluster_custom_object(*QUEUES, name)
    with pytest.raises(ApiException) as error:
        custom.get_cluster_custom_object(*QUEUES, name)
    assert error.value.status == 404


def test_the_dynamic_client_finds_and_uses_every_kind(connection: client.ApiClient, namespace: str):
    found = dynamic.DynamicClient(connection)
    jobs = found.resources.get(api_version="batch.volcano.sh/v1alpha1", kind="Job")
    assert "vcjob" in jobs.short_names and "status" in jobs.subresources
    made = jobs.create(body=waiting_job("a"), namespace=namespace)
    assert made.metadata.generation == 1
    assert jobs.get(name="a", namespace=namespace).spec.tasks[0].replicas == 1
    labels = {"metadata": {"labels": {"x": "1"}}}
    jobs.patch(name="a", namespace=namespace, body=labels, content_type="application/merge-patch+json")
    assert [one.metadata.name for one in jobs.get(namespace=namespace, label_selector="x").items] == ["a"]

    version = jobs.get(namespace=namespace).metadata.resourceVersion
    jobs.delete(name="a", namespace=namespace)
    events = jobs.watch(namespace=namespace, resource_version=version, timeout=20)
    assert next(event["object"].metadata.name for event in events if event["type"] == "DELETED") == "a"
    with pytest.raises(NotFoundError):
        jobs.get(name="a", namespace=namespace)


def test_fields_have_owners_who_share_and_fight(connection: client.ApiClient, namespace: str):
    maps = dynamic.DynamicClient(connection).resources.get(api_version="v1", kind="ConfigMap")

    def body(**data: str) -> Json:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}

    def apply(owner: str, *, force: bool | None = None, **data: str) -> Any:
        return maps.server_side_apply(
            body=body(**data), namespace=namespace, field_manager=owner, force_conflicts=force
        )

    apply("one", a="1", b="1")
    assert apply("two", c="2").data.to_dict() == {"a": "1", "b": "1", "c": "2"}
    with pytest.raises(ConflictError, match='conflict with \\\\"one\\\\"'):
        apply("two", a="2", c="2")
    assert apply("two", a="2", c="2", force=True).data.to_dict() == {"a": "2", "b": "1", "c": "2"}
    assert apply("one", b="1").data.to_dict() == {"a": "2", "b": "1", "c": "2"}
    assert apply("one").to_dict()["data"] == {"a": "2", "c": "2"}, "what its only owner leaves out goes"
    jobs = dynamic.DynamicClient(connection).resources.get(api_version="batch.volcano.sh/v1alpha1", kind="Job")
    assert jobs.server_side_apply(body=waiting_job("j"), namespace=namespace, field_manager="one").metadata.uid
