"""Filling a control plane: thousands of nodes and pods by a client that costs little itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from tests.cluster.controlplane import ControlPlane, Json, fake_node
from vcbatch.api import names
from vcbatch.api.resources import NODES, PODGROUPS, PODS
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

T = TypeVar("T")
SIDE_BY_SIDE = 32


@asynccontextmanager
async def administrator(plane: ControlPlane) -> AsyncIterator[HttpApi]:
    async with HttpApi(load(plane.kubeconfig), clock=SystemClock(), random=SystemRandom()) as api:
        yield api


async def side_by_side(
    act: Callable[[T], Awaitable[object]], items: Iterable[T], *, at_once: int = SIDE_BY_SIDE
) -> None:
    """Act on all of them, so many at a time; the first failure ends it."""
    left = iter(items)

    async def work() -> None:
        for item in left:
            await act(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())


async def add_nodes(api: HttpApi, count: int, *, cpu: str = "32", run: bool = True) -> list[str]:
    """Create nodes that are ready at once; those that don't `run` have nobody who runs their pods."""
    bodies = [
        fake_node(f"node-{index}", cpu=cpu, memory="256Gi", pods="110", labels={}, more={}) for index in range(count)
    ]
    for body in bodies if not run else ():
        del body["metadata"]["annotations"]
    await side_by_side(lambda body: api.create(NODES, body), bodies)
    return [body["metadata"]["name"] for body in bodies]


def podgroup(name: str, *, minimum: int, phase: str = "Running") -> Json:
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": PODGROUPS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": minimum, "queue": "default"},
        "status": {"phase": phase, "running": 0},
    }


def pod(name: str, *, cpu: str = "1", node: str = "", group: str = "", scheduler: str = "volcano") -> Json:
    """A pod of the size that training jobs' pods have: labels, a dozen variables, requests."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/training:2026.11",
        "command": ["sh", "-c", "sleep 36000"],
        "env": [{"name": f"SETTING_{number}", "value": f"value-{number}" * 4} for number in range(12)],
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    }
    body: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"team": "research", "experiment": "llm-7b", "role": "worker"},
        },
        "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container]},
    }
    if group:
        body["metadata"]["annotations"] = {names.GROUP_NAME: group}
    if node:
        body["spec"]["nodeName"] = node
    return body


async def add_bound_pods(api: HttpApi, count: int, nodes: list[str], *, members: int = 30) -> None:
    """Create pods that have their nodes already, in gangs of `members` that have started."""
    groups = [f"gang-{number}" for number in range((count + members - 1) // members)]
    await side_by_side(lambda name: api.create(PODGROUPS, podgroup(name, minimum=members), namespace="default"), groups)
    bodies = (
        pod(f"pod-{number}", node=nodes[number % len(nodes)], group=groups[number // members])
        for number in range(count)
    )
    await side_by_side(lambda body: api.create(PODS, body, namespace="default"), bodies)
