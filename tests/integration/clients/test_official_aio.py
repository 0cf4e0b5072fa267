"""The asynchronous half of the official client on the running program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio import client, config, dynamic, utils, watch
from kubernetes.aio.client.rest import ApiException

from tests.integration.clients.waiting import until_async
from tests.integration.up.manifests import job

Json = dict[str, Any]
JOBS = ("batch.volcano.sh", "v1alpha1")


@pytest.fixture
async def loop_connection(kubeconfig: Path) -> AsyncIterator[client.ApiClient]:
    """A session belongs to one event loop, and every test has its own."""
    await config.load_kube_config(config_file=str(kubeconfig))
    async with client.ApiClient() as connection:
        yield connection


@pytest.fixture
def core(loop_connection: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(loop_connection)


async def test_objects_and_pages(core: client.CoreV1Api, namespace: str):
    bodies = [{"metadata": {"name": f"c{number}", "labels": {"own": "1"}}} for number in range(5)]
    await asyncio.gather(*(core.create_namespaced_config_map(namespace, body) for body in bodies))
    page = await core.list_namespaced_config_map(namespace, label_selector="own", limit=3)
    rest = await core.list_namespaced_config_map(
        namespace, label_selector="own", limit=3, _continue=page.metadata._continue
    )
    assert [one.metadata.name for one in (*page.items, *rest.items)] == [f"c{number}" for number in range(5)]
    stale = page.items[0]
    patched = await core.patch_namespaced_config_map("c0", namespace, {"data": {"k": "v"}})
    assert patched.data == {"k": "v"}
    with pytest.raises(ApiException) as error:
        await core.replace_namespaced_config_map("c0", namespace, stale)
    assert error.value.status == 409
    await core.delete_collection_namespaced_config_map(namespace, label_selector="own")
    assert not (await core.list_namespaced_config_map(namespace, label_selector="own")).items


async def test_a_watch_goes_on_where_it_was(core: client.CoreV1Api, namespace: str):
    version = (await core.list_namespaced_config_map(namespace)).metadata.resource_version
    await core.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}})
    async with watch.Watch() as first:
        events = first.stream(core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=1)
        seen = [(event["type"], event["object"].metadata.name) async for event in events]
    await core.delete_namespaced_config_map("a", namespace)
    async with watch.Watch() as second:
        async for event in second.stream(
            core.list_namespaced_config_map, namespace, resource_version=first.resource_version, timeout_seconds=20
        ):
            seen.append((event["type"], event["object"].metadata.name))
            break
    assert seen == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_job_runs_and_its_output_is_followed(
    loop_connection: client.ApiClient, core: client.CoreV1Api, namespace: str
):
    custom = client.CustomObjectsApi(loop_connection)
    await custom.create_namespaced_custom_object(*JOBS, namespace, "jobs", json.loads(job("j", "echo one; echo two")))

    async def completed() -> bool:
        read = await custom.get_namespaced_custom_object_status(*JOBS, namespace, "jobs", "j")
        return ((read.get("status") or {}).get("state") or {}).get("phase") == "Completed"

    await until_async(completed)
    following = await core.read_namespaced_pod_log_without_preload_content("j-w-0", namespace, follow=True)
    assert await following.content.read() == b"one\ntwo\n"


async def test_the_dynamic_client_and_files(loop_connection: client.ApiClient, namespace: str, tmp_path: Path):
    found = await dynamic.DynamicClient(loop_connection)
    queues = await found.resources.get(api_version="scheduling.volcano.sh/v1beta1", kind="Queue")
    assert "default" in {one.metadata.name for one in (await queues.get()).items}
    maps = await found.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
    applied = await maps.server_side_apply(body=body, namespace=namespace, field_manager="test")
    assert applied.data.a == "1"
    file = tmp_path / "secret.yaml"
    file.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n")
    await utils.create_from_yaml(loop_connection, str(file), namespace=namespace)
    assert (await client.CoreV1Api(loop_connection).read_namespaced_secret("s", namespace)).data == {"a": "Yg=="}
