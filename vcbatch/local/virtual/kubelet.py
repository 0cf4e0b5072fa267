"""The kubelet of simulated nodes: writes statuses like a real one, and starts no process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from vcbatch.api.names import VIRTUAL_NODE
from vcbatch.api.pod import PodPhase
from vcbatch.api.resources import NODES, PODS
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Background, first_of
from vcbatch.interfaces.api import Api, ApiError, PatchKind
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.local.kubelet.informer import Informer
from vcbatch.local.virtual.node import VirtualNode, missing
from vcbatch.local.virtual.run import PodRun

Json = dict[str, Any]
log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5


class VirtualKubelet:
    """Registers `nodes`, and simulates the pods bound to them and to every other Node with the label of virtual nodes.
    Deterministic: the same objects lead to the same statuses; only the pauses between retries are random."""

    def __init__(
        self, api: Api, clock: Clock, random: Random, *, nodes: Sequence[VirtualNode] = (), health: Health | None = None
    ) -> None:
        self._api = api
        self._clock = clock
        self._registered = nodes
        self._runs: dict[str, PodRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[str, str] = {}
        self.ready = asyncio.Event()
        self._nodes = Informer(api=api, clock=clock, random=random, resource=NODES, changed=self._node_changed)
        self._mine: set[str] = set()
        self._background = Background(clock=clock, random=random, health=health)
        self._pods = Informer(api=api, clock=clock, random=random, resource=PODS, changed=self._changed)

    def node_of(self, namespace: str, name: str) -> str | None:
        """The virtual node of a pod; None for one that isn't on any."""
        pod = self._pods.find(namespace, name)
        node = pod["spec"].get("nodeName") if pod is not None else None
        return node if node in self._mine else None

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. The pods stay as they are; the next virtual kubelet continues with them."""
        try:
            for node in self._registered:
                await self._register(node)
            self._background.keep("virtual kubelet: nodes", self._nodes.run)
            self._background.keep("virtual kubelet: pods", self._pods.run)
            await first_of(stop, self._nodes.synced)
            if not stop.is_set():
                self.ready.set()
                await stop.wait()
        finally:
            await self._background.close()

    async def _register(self, node: VirtualNode) -> None:
        while True:
            try:
                await self._api.create(NODES, node.object(self._clock.now()))
            except ApiError as error:
                if error.already_exists:
                    await self._bring_up_to_date(node.name, node.changes)
                    return
                log.warning("registering the virtual node %s failed: %s", node.name, error.message)
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                return

    async def _bring_up_to_date(self, name: str, changes: Callable[[Json], tuple[Json, Json]]) -> None:
        """Patch labels and status of a Node with the result of `changes` for the current Node; nothing where it doesn't
        exist."""
        while True:
            try:
                node = await self._api.get(NODES, name)
                labels, status = changes(node)
                if labels:
                    await self._api.patch(NODES, name, {"metadata": {"labels": labels}})
                if status:
                    patch = {"status": status}
                    await self._api.patch(NODES, name, patch, subresource="status", kind=PatchKind.STRATEGIC)
            except ApiError as error:
                if error.not_found:
                    return
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                return

    def _node_changed(self, old: Json | None, new: Json | None) -> None:
        node = new or old or {}
        name: str = node["metadata"]["name"]
        virtual = new is not None and (node["metadata"].get("labels") or {}).get(VIRTUAL_NODE) == "true"
        if virtual == (name in self._mine):
            return
        pods = [pod for pod in self._pods.objects.values() if pod["spec"].get("nodeName") == name]
        if not virtual:
            self._mine.discard(name)
            for pod in pods:
                self._forget(pod["metadata"]["uid"])
            return
        self._mine.add(name)
        if not any(each.get("type") == "Ready" for each in (node.get("status") or {}).get("conditions") or ()):
            self._background.finish("virtual kubelet: status", partial(self._make_ready, name), about=name)
        for pod in pods:
            self._changed(None, pod)

    async def _make_ready(self, name: str) -> None:
        """Set the status of a Node that was created by a user without conditions."""
        await self._bring_up_to_date(name, lambda node: missing(node, self._clock.now()))

    def _changed(self, old: Json | None, new: Json | None) -> None:
        pod = new or old
        if pod is None or pod["spec"].get("nodeName") not in self._mine:
            return
        uid = pod["metadata"]["uid"]
        if new is None:
            self._forget(uid)
        elif deleted_at := new["metadata"].get("deletionTimestamp"):
            self._end(new, deleted_at)
        elif uid not in self._runs and (new.get("status") or {}).get("phase") not in (
            PodPhase.SUCCEEDED,
            PodPhase.FAILED,
        ):
            self._runs[uid] = run = PodRun(self._api, self._clock, new)
            self._start(new, run.run)

    def _end(self, pod: Json, deleted_at: str) -> None:
        """End the pod, once for each deletion timestamp: a second deletion may bring it forward."""
        uid = pod["metadata"]["uid"]
        if self._ending.get(uid) == deleted_at:
            return
        run = self._runs.get(uid) or PodRun(self._api, self._clock, pod)
        self._forget(uid)
        self._runs[uid], self._ending[uid] = run, deleted_at
        self._start(pod, partial(run.end, pod))

    def _start(self, pod: Json, work: Callable[[], Awaitable[None]]) -> None:
        metadata = pod["metadata"]
        about = f"{metadata['namespace']}/{metadata['name']} ({metadata['uid']})"
        self._tasks[metadata["uid"]] = self._background.finish("virtual kubelet: pod", work, about=about)

    def _forget(self, uid: str) -> None:
        self._runs.pop(uid, None)
        self._ending.pop(uid, None)
        task = self._tasks.pop(uid, None)
        if task is not None:
            task.cancel()
