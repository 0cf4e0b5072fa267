"""Servers without sockets for tests, in virtual time."""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.assembly import build
from vcbatch.local.apiserver.handler import Request
from vcbatch.local.apiserver.kernel import Kernel
from vcbatch.local.apiserver.request import parse_query
from vcbatch.local.apiserver.response import Pieces

Json = dict[str, Any]

ADMIN = User(name="admin", groups=("system:masters", "system:authenticated"))
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def virtual(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test in virtual time."""

    @functools.wraps(test)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        run(test(*args, **kwargs))

    return wrapper


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    body: Any
    headers: Sequence[tuple[str, str]] = ()

    @property
    def items(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]

    @property
    def message(self) -> str:
        return self.body["message"]


class Client:
    """Sends requests to a kernel's handler and decodes the answers."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        user: User = ADMIN,
    ) -> Answer:
        route, _, query = path.partition("?")
        encoded = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        response = await self.kernel.handler.handle(
            Request(
                method=method,
                path=route,
                query=parse_query(query),
                headers={"content-type": "application/json", **(headers or {})},
                body=encoded,
                user=user,
            )
        )
        assert response is not None
        if not isinstance(response.body, bytes | Pieces):
            return Answer(response.code, response.body)
        body = bytes(response.body)
        is_json = response.content_type == "application/json"
        return Answer(response.code, json.loads(body) if is_json else body, response.headers)

    async def get(self, path: str, **kwargs: Any) -> Answer:
        return await self.send("GET", path, **kwargs)

    async def post(self, path: str, body: Any, **kwargs: Any) -> Answer:
        return await self.send("POST", path, body, **kwargs)

    async def put(self, path: str, body: Any, **kwargs: Any) -> Answer:
        return await self.send("PUT", path, body, **kwargs)

    async def merge(self, path: str, body: Any, **kwargs: Any) -> Answer:
        headers = {"content-type": "application/merge-patch+json"}
        return await self.send("PATCH", path, body, headers=headers, **kwargs)

    async def delete(self, path: str, body: Any = None, **kwargs: Any) -> Answer:
        return await self.send("DELETE", path, body, **kwargs)

    async def events(self, path: str, **kwargs: Any) -> list[Json]:
        """All events of a watch that ends by itself (`timeoutSeconds`, or an error)."""
        stream = (await self.get(path, **kwargs)).body
        return [json.loads(line) async for chunk in stream for line in chunk.splitlines()]

    async def make(self, name: str, **metadata: Any) -> Json:
        answer = await self.post(CONFIGMAPS, configmap(name, **metadata))
        assert answer.code == 201, answer.body
        return answer.body


def configmap(name: str, *, data: Json | None = None, **metadata: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"k": "v"} if data is None else data,
    }


def owner(obj: Json, **more: Any) -> Json:
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        **more,
    }


@asynccontextmanager
async def server(state_dir: Path | None = None, **more: Any) -> AsyncIterator[Client]:
    kernel = build(clock=VirtualClock(), random=SeededRandom(7), state_dir=state_dir, **more)
    await kernel.start()
    try:
        yield Client(kernel)
    finally:
        await kernel.stop()


CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
SERVICE = ("ops", "checks")
"""A service in the server's process, as `services` takes it."""


def webhook(name: str = "check.example.com", **more: Any) -> Json:
    """A webhook of `SERVICE` on config maps."""
    namespace, service = SERVICE
    return {
        "name": name,
        "clientConfig": {"service": {"namespace": namespace, "name": service, "path": f"/{name}"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


async def configure(client: Client, kind: str, *webhooks: Json, name: str = "checks") -> Answer:
    """Make a configuration; `kind` is mutating or validating."""
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind.capitalize()}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }
    answer = await client.post(CONFIGURATIONS.format(kind), body)
    assert answer.code == 201, answer.body
    return answer
