"""Objects and shortcuts for the tests of the kinds."""

from __future__ import annotations

from typing import Any

from tests.unit.apiserver.core.servers import Answer, Client

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


def container(**more: Any) -> Json:
    return {"name": "c", "image": "busybox", **more}


def pod(name: str = "p", *, metadata: Json | None = None, **spec: Any) -> Json:
    spec.setdefault("containers", [container()])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(metadata or {})}, "spec": spec}


async def made(client: Client, path: str, obj: Json) -> Json:
    answer = await client.post(path, obj)
    assert answer.code == 201, answer.body
    return answer.body


async def make_pod(client: Client, name: str = "p", **more: Any) -> Json:
    return await made(client, PODS, pod(name, **more))


async def set_status(client: Client, path: str, status: Json) -> Answer:
    answer = await client.merge(f"{path}/status", {"status": status})
    assert answer.code == 200, answer.body
    return answer


async def bind(client: Client, name: str = "p", node: str = "n", **metadata: Any) -> Answer:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"kind": "Node", "name": node},
    }
    return await client.post(f"{PODS}/{name}/binding", binding)


def causes(answer: Answer) -> list[str]:
    """The errors of a 422 as `field: message`."""
    assert answer.code == 422, answer.body
    return [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]


async def rows(client: Client, path: str) -> list[dict[str, Any]]:
    """Cells of a table by column name."""
    answer = await client.get(path, headers=TABLE)
    assert answer.code == 200, answer.body
    names = [column["name"] for column in answer.body["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in answer.body["rows"]]
