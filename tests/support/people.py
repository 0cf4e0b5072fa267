"""Actions of users and failures of the infrastructure for simulations: random changes of jobs, pods, queues and nodes,
from a seed."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.scenarios.simulated import SimulatedWorld
from vcbatch.api.resources import COMMANDS, JOBS, NODES, PODS, QUEUES, Resource
from vcbatch.interfaces.api import Api, ApiError, WatchEvent
from vcbatch.interfaces.clock import Clock

Json = dict[str, Any]

ENDED = frozenset({"Completed", "Failed", "Terminated"})


@dataclass(kw_only=True)
class StaleApi:
    """Watches that stall at times and repeat events. The order is kept, as on every server."""

    api: Api
    clock: Clock
    random: Random
    share: float = 0.1
    longest: float = 3.0  # seconds

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        return getattr(self.api, verb)

    async def watch(self, *args: Any, **kwargs: Any) -> AsyncIterator[WatchEvent[Any]]:
        async for event in self.api.watch(*args, **kwargs):
            if self.random.random() < self.share:
                await self.clock.sleep(self.random.random() * self.longest)
            yield event
            if self.random.random() < self.share:
                yield event


@dataclass(kw_only=True)
class People:
    """Does one action at a time. It records by UID which actions were done to a job, since they decide what may
    follow."""

    world: SimulatedWorld
    random: Random
    manifests: dict[str, Json]
    nodes: list[str]
    asked: dict[str, Counter[str]] = field(default_factory=dict)
    disturbed: set[str] = field(default_factory=set)
    """Jobs that lost pods without causing it, or were resized."""
    story: list[str] = field(default_factory=list)

    async def act(self) -> None:
        act = self.random.choice(
            [self.command, self.command, self.delete_pod, self.scale, self.replace, self.turn_queue, self.lose_node]
        )
        try:
            await act()
        except ApiError as error:
            # Errors are valid results: a finished job can't be scaled, a name may be in use for a moment.
            self.story.append(f"refused: {error.message}")

    async def command(self, action: str = "", job: Json | None = None) -> None:
        job = job or await self._some(JOBS)
        action = action or self.random.choice(["AbortJob", "ResumeJob", "ResumeJob", "TerminateJob", "RestartJob"])
        if job is None:
            return
        metadata = job["metadata"]
        body: Json = {
            "apiVersion": COMMANDS.api_version,
            "kind": COMMANDS.kind,
            "metadata": {"name": f"command-{len(self.story)}", "namespace": self.world.namespace},
            "action": action,
            "target": {
                "apiVersion": JOBS.api_version,
                "kind": JOBS.kind,
                "name": metadata["name"],
                "uid": metadata["uid"],
                "controller": True,
            },
        }
        await self.world.api.create(COMMANDS, body, namespace=self.world.namespace)
        self.asked.setdefault(metadata["uid"], Counter())[action] += 1
        self._report(action, job)

    async def delete_pod(self) -> None:
        pod = await self._some(PODS)
        if pod is None:
            return
        self.disturbed.add(pod["metadata"]["ownerReferences"][0]["uid"])
        self._report("delete", pod)
        await self._delete(PODS, pod)

    async def scale(self) -> None:
        job = await self._some(JOBS)
        if job is None:
            return
        spec = copy.deepcopy(job["spec"])
        replicas = self.random.randint(1, 6)
        minimum = self.random.randint(1, replicas)
        spec["tasks"][0] |= {"replicas": replicas, "minAvailable": minimum}
        patch = {"spec": {"tasks": spec["tasks"], "minAvailable": minimum}}
        self.disturbed.add(job["metadata"]["uid"])
        await self.world.api.patch(JOBS, job["metadata"]["name"], patch, namespace=self.world.namespace)
        self._report(f"scale to {replicas}", job)

    async def replace(self) -> None:
        """Delete a job and create another one of its name at once."""
        job = await self._some(JOBS)
        if job is None:
            return
        await self._delete(JOBS, job, propagation="Background")
        self._report("replace", job)
        manifest = self.manifests[job["metadata"]["name"]]
        await self.world.api.create(JOBS, copy.deepcopy(manifest), namespace=self.world.namespace)

    async def turn_queue(self, action: str = "") -> None:
        action = action or self.random.choice(["OpenQueue", "CloseQueue"])
        queue = await self.world.api.get(QUEUES, "side")
        target = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "name": "side", "controller": True}
        target["uid"] = queue["metadata"]["uid"]
        body: Json = {
            "apiVersion": COMMANDS.api_version,
            "kind": COMMANDS.kind,
            "metadata": {"name": f"command-{len(self.story)}", "namespace": self.world.namespace},
            "action": action,
            "target": target,
        }
        await self.world.api.create(COMMANDS, body, namespace=self.world.namespace)
        self._report(action, queue)

    async def lose_node(self) -> None:
        """Delete a node and its pods, as the pod garbage collector of a cluster does, and create it again."""
        api, name = self.world.api, self.random.choice(self.nodes)
        node = await api.get(NODES, name)
        await self._delete(NODES, node)
        self._report("lose", node)
        for pod in (await api.list(PODS, namespace=self.world.namespace)).items:
            if pod["spec"].get("nodeName") == name:
                await self._lose(pod)
        await self.world.pass_time(self.random.random() * 10)
        for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
            node["metadata"].pop(key, None)
        await api.create(NODES, node)

    async def _lose(self, pod: Json) -> None:
        self.disturbed.add(pod["metadata"]["ownerReferences"][0]["uid"])
        api, metadata = self.world.api, pod["metadata"]
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        try:
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                conditions = [*(pod.get("status") or {}).get("conditions", ()), condition]
                patch = {"status": {"phase": "Failed", "conditions": conditions}}
                namespace = self.world.namespace
                await api.patch(PODS, metadata["name"], patch, namespace=namespace, subresource="status")
            await self._delete(PODS, pod, grace_seconds=0)
        except ApiError as error:
            if not error.not_found:
                raise

    async def settle_everything(self) -> None:
        """Stop the disturbances: open the queue and resume suspended jobs."""
        await self.turn_queue("OpenQueue")
        for job in (await self.world.api.list(JOBS, namespace=self.world.namespace)).items:
            if _phase(job) not in ENDED:
                await self.command("ResumeJob", job)

    async def _some(self, resource: Resource) -> Json | None:
        items = (await self.world.api.list(resource, namespace=self.world.namespace)).items
        return self.random.choice(list(items)) if items else None

    async def _delete(self, resource: Resource, obj: Json, **options: Any) -> None:
        namespace = self.world.namespace if resource.namespaced else None
        await self.world.api.delete(
            resource, obj["metadata"]["name"], namespace=namespace, uid=obj["metadata"]["uid"], **options
        )

    def _report(self, what: str, obj: Json) -> None:
        self.story.append(f"{self.world.clock.monotonic():.1f} {what} {obj['metadata']['name']}")


def _phase(job: Json) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase", "")
