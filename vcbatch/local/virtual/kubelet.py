"""The kubelet of nodes that only pretend: statuses as a real one would write them, and no process at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from vcbatch.api.pod import PodPhase
from vcbatch.api.reasons import ContainerReason, KubeletConditionReason
from vcbatch.api.resources import NODES, PODS
from vcbatch.api.timestamps import format_time
from vcbatch.local.kubelet import lifecycle
from vcbatch.local.kubelet.informer import Informer
from vcbatch.local.kubelet.lifecycle import FRESH, ContainerState, Ended, Running
from vcbatch.local.kubelet.status import changed, pod_status
from vcbatch.local.virtual.commands import pretence
from vcbatch.seams.api import Api, ApiError
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

Json = dict[str, Any]
log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_ADDRESS = "10.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualNode:
    """A node to pretend: `capacity` by resource name, as quantities."""

    name: str
    capacity: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    taints: Sequence[Json] = ()

    def object(self, now: datetime) -> Json:
        """The Node, ready from the start."""
        size = {"pods": "110", **self.capacity}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": KubeletConditionReason.KUBELET_READY,
            "message": "this node only pretends",
            "lastHeartbeatTime": format_time(now),
            "lastTransitionTime": format_time(now),
        }
        return {
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "metadata": {"name": self.name, "labels": dict(self.labels)},
            "spec": {"taints": list(self.taints)} if self.taints else {},
            "status": {"capacity": size, "allocatable": size, "conditions": [ready]},
        }


class VirtualKubelet:
    """Registers its nodes and pretends to run what is bound to them. Same pictures, same statuses: it draws nothing
    from chance but the pauses between retries."""

    def __init__(self, api: Api, clock: Clock, random: Random, *, nodes: Sequence[VirtualNode]) -> None:
        self._api = api
        self._clock = clock
        self._nodes = {node.name: node for node in nodes}
        self._runs: dict[str, asyncio.Task[None]] = {}
        self.ready = asyncio.Event()
        self._pods = Informer(api=api, clock=clock, random=random, resource=PODS, changed=self._changed)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`. The pods stay as they are; whoever pretends next goes on with them."""
        following: asyncio.Task[None] | None = None
        try:
            for node in self._nodes.values():
                await self._register(node)
            following = asyncio.create_task(self._pods.run(), name="virtual kubelet: pods")
            self.ready.set()
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({stopping, following}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        finally:
            tasks = [task for task in (following, *self._runs.values()) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _register(self, node: VirtualNode) -> None:
        while True:
            try:
                await self._api.create(NODES, node.object(self._clock.now()))
            except ApiError as error:
                if error.already_exists:
                    return
                log.warning("registering the virtual node %s failed: %s", node.name, error.message)
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                return

    def _changed(self, old: Json | None, new: Json | None) -> None:
        pod = new or old
        if pod is None or pod["spec"].get("nodeName") not in self._nodes:
            return
        uid = pod["metadata"]["uid"]
        ending = new is None or "deletionTimestamp" in new["metadata"]
        if ending and uid in self._runs:
            self._runs.pop(uid).cancel()
        if new is None or uid in self._runs:
            return
        if ending:
            self._runs[uid] = asyncio.create_task(self._end(new))
        elif (new.get("status") or {}).get("phase") not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            self._runs[uid] = asyncio.create_task(_Run(self._api, self._clock, new).run())

    async def _end(self, pod: Json) -> None:
        """Every pretended container heeds SIGTERM at once."""
        metadata = pod["metadata"]
        while True:
            try:
                await self._api.delete(
                    PODS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"], grace_seconds=0
                )
            except ApiError as error:
                if error.not_found or (error.conflict and await _gone(self._api, pod)):
                    break
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                break
        self._runs.pop(metadata["uid"], None)


class _Run:
    """One pod from its start to its end."""

    def __init__(self, api: Api, clock: Clock, pod: Json) -> None:
        self._api = api
        self._clock = clock
        self._pod = pod
        self._spec: Json = pod["spec"]
        self._stored: Json = pod.get("status") or {}
        self._started = clock.now()
        self._states: dict[str, ContainerState] = {}
        self._due: dict[str, datetime] = {}
        self._containers = {
            container["name"]: container
            for container in (*(self._spec.get("initContainers") or ()), *(self._spec.get("containers") or ()))
        }

    async def run(self) -> None:
        while True:
            now = self._clock.now()
            self._end_what_is_due(now)
            plan = lifecycle.plan(self._spec, self._states, now)
            for name in plan.start:
                self._start(name, now)
            for name in plan.end:
                self._due[name] = now
            await self._report(now)
            if plan.finished:
                return
            moments = [*self._due.values(), *([plan.look_again_at] if plan.look_again_at else [])]
            if not moments:
                return
            await self._clock.sleep((min(moments) - self._clock.now()).total_seconds())

    def _start(self, name: str, now: datetime) -> None:
        state = self._states.get(name, FRESH)
        self._states[name] = lifecycle.started(state, Running(started_at=now))
        seconds = pretence(self._containers[name]).seconds
        if seconds is not None:
            self._due[name] = now + timedelta(seconds=seconds)

    def _end_what_is_due(self, now: datetime) -> None:
        for name, moment in list(self._due.items()):
            state = self._states[name]
            if moment > now or not isinstance(state.state, Running):
                continue
            del self._due[name]
            code = pretence(self._containers[name]).exit_code
            reason = ContainerReason.ERROR if code else ContainerReason.COMPLETED
            end = Ended(exit_code=code, started_at=state.state.started_at, finished_at=now, reason=reason)
            self._states[name] = lifecycle.ended(state, end)

    async def _report(self, now: datetime) -> None:
        status = pod_status(
            spec=self._spec,
            states=self._states,
            previous=self._stored,
            now=now,
            host_ip=_ADDRESS,
            pod_ip=_ADDRESS,
            start_time=self._started,
        )
        metadata = self._pod["metadata"]
        while changed(self._stored, status):
            try:
                written = await self._api.patch(
                    PODS,
                    metadata["name"],
                    {"metadata": {"uid": metadata["uid"]}, "status": status},
                    namespace=metadata["namespace"],
                    subresource="status",
                )
            except ApiError as error:
                if error.not_found or (error.conflict and await _gone(self._api, self._pod)):
                    return
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                self._stored = written.get("status") or {}
                return


async def _gone(api: Api, pod: Json) -> bool:
    """Whether a conflict means that another pod has the name now."""
    metadata = pod["metadata"]
    try:
        stored = await api.get(PODS, metadata["name"], namespace=metadata["namespace"])
    except ApiError as error:
        return error.not_found
    return stored["metadata"]["uid"] != metadata["uid"]
