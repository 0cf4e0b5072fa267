"""The official Python client against the embedded server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic import DynamicClient

from tests.integration.apiserver.test_server import running


def _pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i", "command": ["true"]}]},
    }


def _session(kubeconfig: Path) -> None:
    configuration = client.Configuration()
    config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    with client.ApiClient(configuration) as connection:
        core = client.CoreV1Api(connection)
        _pods(core)
        _watching(core)
        _events(core, client.EventsV1Api(connection))
        _dynamic(connection)
        _leases(client.CoordinationV1Api(connection))


def _pods(core: client.CoreV1Api) -> None:
    made = core.create_namespaced_pod("default", _pod("p"))
    assert made.metadata.uid and made.status.phase == "Pending"
    core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"b": "c"}}})
    core.patch_namespaced_pod_status("p", "default", {"status": {"phase": "Running"}})
    read = core.read_namespaced_pod("p", "default")
    assert (read.metadata.labels["b"], read.status.phase) == ("c", "Running")
    target = client.V1ObjectReference(kind="Node", name="n", api_version="v1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p"), target=target)
    core.create_namespaced_pod_binding("p", "default", binding, _preload_content=False)
    assert core.list_namespaced_pod("default", field_selector="spec.nodeName=n").items[0].metadata.name == "p"
    stale = core.read_namespaced_pod("p", "default")
    core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"b": "d"}}})
    try:
        core.replace_namespaced_pod("p", "default", stale)
        raise AssertionError("a stale replace was taken")
    except ApiException as conflict:
        assert conflict.status == 409
    core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
    try:
        core.read_namespaced_pod("p", "default")
        raise AssertionError("a deleted pod was read")
    except ApiException as missing:
        assert missing.status == 404


def _watching(core: client.CoreV1Api) -> None:
    for name in ("a", "b", "c"):
        core.create_namespaced_config_map("default", {"metadata": {"name": name, "labels": {"own": "1"}}})
    page = core.list_namespaced_config_map("default", label_selector="own", limit=2)
    rest = core.list_namespaced_config_map("default", label_selector="own", limit=2, _continue=page.metadata._continue)
    assert [one.metadata.name for one in (*page.items, *rest.items)] == ["a", "b", "c"]
    core.delete_collection_namespaced_config_map("default", label_selector="own")
    stream = watch.Watch().stream(
        core.list_namespaced_config_map,
        "default",
        resource_version=page.metadata.resource_version,
        timeout_seconds=1,
    )
    assert [(event["type"], event["object"].metadata.name) for event in stream] == [
        ("DELETED", "a"),
        ("DELETED", "b"),
        ("DELETED", "c"),
    ]


def _events(core: client.CoreV1Api, events: client.EventsV1Api) -> None:
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    body = {"metadata": {"name": "e"}, "involvedObject": involved, "reason": "R", "message": "m", "type": "Normal"}
    # Of a whole second the client leaves out the fraction, which a server refuses.
    body["eventTime"] = "2026-01-01T00:00:00.000001Z"
    body |= {"reportingComponent": "test", "reportingInstance": "t", "action": "A"}
    core.create_namespaced_event("default", body)
    assert events.list_namespaced_event("default").items[0].note == "m"


def _dynamic(connection: client.ApiClient) -> None:
    maps = DynamicClient(connection).resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body={"metadata": {"name": "dynamic"}, "data": {"k": "v"}}, namespace="default")
    assert maps.get(name="dynamic", namespace="default").data.k == "v"


def _leases(leases: client.CoordinationV1Api) -> None:
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.123456Z"}}
    leases.create_namespaced_lease("default", body)
    assert leases.read_namespaced_lease("l", "default").spec.renew_time.microsecond == 123456


async def test_a_session_of_the_official_client(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        await asyncio.to_thread(_session, server.kubeconfig)
