"""A session of the asynchronous client: what an operator does all day."""

from __future__ import annotations

import asyncio
from typing import Any

from kubernetes.aio import client, config, dynamic, watch

from tests.fidelity.clients.observing import Observer, Session
from tests.fidelity.golden import Answers
from tests.fidelity.servers import Server

Json = dict[str, Any]
JOBS = ("batch.volcano.sh", "v1alpha1")


async def _play(server: Server, namespace: str) -> Answers:
    settings = client.Configuration()
    await config.load_kube_config(config_file=str(server.kubeconfig), client_configuration=settings)
    async with client.ApiClient(settings) as connection:
        seen = Observer(namespace, connection.sanitize_for_serialization)
        await _operate(connection, seen, namespace)
        return seen.answers


async def _operate(connection: client.ApiClient, seen: Observer, namespace: str) -> None:
    core, custom = client.CoreV1Api(connection), client.CustomObjectsApi(connection)
    body: Json = {"metadata": {"name": "a", "finalizers": ["kopf.zalando.org/KopfFinalizerMarker"]}, "data": {"k": "1"}}
    await seen.wait("create", lambda: core.create_namespaced_config_map(namespace, body))
    await seen.wait("create again", lambda: core.create_namespaced_config_map(namespace, body))
    await seen.wait("read nothing", lambda: core.read_namespaced_config_map("none", namespace))
    await seen.wait("patch", lambda: core.patch_namespaced_config_map("a", namespace, {"data": {"k": "2"}}))
    operations = [{"op": "add", "path": "/metadata/annotations", "value": {"kopf.dev/touched": "1"}}]
    await seen.wait("patch by operations", lambda: core.patch_namespaced_config_map("a", namespace, operations))
    stale = await core.read_namespaced_config_map("a", namespace)
    await core.patch_namespaced_config_map("a", namespace, {"data": {"k": "3"}})
    await seen.wait("replace what is old", lambda: core.replace_namespaced_config_map("a", namespace, stale))
    await seen.wait("delete", lambda: core.delete_namespaced_config_map("a", namespace))
    removal = [
        {"op": "test", "path": "/metadata/finalizers/0", "value": "kopf.zalando.org/KopfFinalizerMarker"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    await seen.wait("remove the finalizer", lambda: core.patch_namespaced_config_map("a", namespace, removal))
    await seen.wait("remove it again", lambda: core.patch_namespaced_config_map("a", namespace, removal))

    version = (await core.list_namespaced_secret(namespace)).metadata.resource_version
    for name in ("x", "y"):
        await core.create_namespaced_secret(namespace, {"metadata": {"name": name}})
    await core.delete_namespaced_secret("x", namespace)

    async def events() -> Any:
        found: list[Any] = []
        async with watch.Watch() as stream:
            options = {"resource_version": version, "timeout_seconds": 5}
            async for event in stream.stream(core.list_namespaced_secret, namespace, **options):
                found.append([event["type"], event["object"].metadata.name])
                if len(found) == 3:
                    break
        return found

    await seen.wait("events", events)
    container = {"name": "main", "image": "i"}
    job = {
        "apiVersion": "/".join(JOBS),
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "minAvailable": 1,
            "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [container]}}}],
        },
    }
    jobs = (*JOBS, namespace, "jobs")
    await seen.wait("create a job", lambda: custom.create_namespaced_custom_object(*jobs, job))
    annotated = {"metadata": {"annotations": {"a": "b"}}}
    await seen.wait("annotate the job", lambda: custom.patch_namespaced_custom_object(*jobs, "j", annotated))
    status = {"status": {"state": {"phase": "Pending"}}}
    await seen.wait("its status", lambda: custom.patch_namespaced_custom_object_status(*jobs, "j", status))
    await seen.wait("delete the job", lambda: custom.delete_namespaced_custom_object(*jobs, "j"))
    many = [{"metadata": {"name": f"many-{number}"}} for number in range(20)]
    await asyncio.gather(*(core.create_namespaced_secret(namespace, one) for one in many))

    async def names() -> Any:
        found: list[str] = []
        token = None
        while token != "":
            page = await core.list_namespaced_secret(namespace, limit=6, _continue=token or None)
            found += [one.metadata.name for one in page.items]
            token = page.metadata._continue or ""
        return found

    await seen.wait("all pages", names)
    await seen.wait("delete all", lambda: core.delete_collection_namespaced_secret(namespace))
    api = await dynamic.DynamicClient(connection)
    maps = await api.resources.get(api_version="v1", kind="ConfigMap")
    dynamic_body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}

    async def create() -> Any:
        return (await maps.create(body=dynamic_body, namespace=namespace)).to_dict()

    await seen.wait("create dynamically", create)
    await seen.wait("and again", create)


def _session(server: Server, namespace: str) -> Answers:
    return asyncio.run(_play(server, namespace))


SESSIONS: dict[str, Session] = {"asynchronous": _session}
