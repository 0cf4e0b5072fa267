"""The kubelet of nodes that only pretend: statuses as a real one would write them, and no process at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from vcbatch.api.names import VIRTUAL_NODE
from vcbatch.api.pod import PodPhase
from vcbatch.api.reasons import ContainerReason, KubeletConditionReason, PodStatusReason
from vcbatch.api.resources import NODES, PODS
from vcbatch.api.timestamps import format_time
from vcbatch.local.kubelet import lifecycle
from vcbatch.local.kubelet.informer import Informer
from vcbatch.local.kubelet.lifecycle import FRESH, ContainerState, Ended, Running, Waiting
from vcbatch.local.kubelet.status import Verdict, changed, disrupted, lost_states, pod_status
from vcbatch.local.virtual.pretence import PodPretence, Pretence
from vcbatch.seams.api import Api, ApiError
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

Json = dict[str, Any]
log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_ADDRESS = "10.0.0.1"
_PULL_RETRY = timedelta(seconds=1)
_KILLED = 137


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
        return {
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "metadata": {"name": self.name, "labels": {**self.labels, VIRTUAL_NODE: "true"}},
            "spec": {"taints": list(self.taints)} if self.taints else {},
            "status": {"capacity": size, "allocatable": size, "conditions": [_ready(now)]},
        }


def _ready(now: datetime) -> Json:
    return {
        "type": "Ready",
        "status": "True",
        "reason": KubeletConditionReason.KUBELET_READY,
        "message": "this node only pretends",
        "lastHeartbeatTime": format_time(now),
        "lastTransitionTime": format_time(now),
    }


class VirtualKubelet:
    """Registers `nodes`, and pretends to run what is bound to them and to every other Node with the label of virtual
    nodes. Same pictures, same statuses: it draws nothing from chance but the pauses between retries."""

    def __init__(self, api: Api, clock: Clock, random: Random, *, nodes: Sequence[VirtualNode] = ()) -> None:
        self._api = api
        self._clock = clock
        self._registered = nodes
        self._runs: dict[str, _Run] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[str, str] = {}
        self.ready = asyncio.Event()
        self._nodes = Informer(api=api, clock=clock, random=random, resource=NODES, changed=self._node_changed)
        self._mine: set[str] = set()
        self._greetings: set[asyncio.Task[None]] = set()
        self._pods = Informer(api=api, clock=clock, random=random, resource=PODS, changed=self._changed)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`. The pods stay as they are; whoever pretends next goes on with them."""
        following: list[asyncio.Task[None]] = []
        try:
            for node in self._registered:
                await self._register(node)
            following = [
                asyncio.create_task(self._nodes.run(), name="virtual kubelet: nodes"),
                asyncio.create_task(self._pods.run(), name="virtual kubelet: pods"),
            ]
            await self._nodes.synced.wait()
            self.ready.set()
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({stopping, *following}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        finally:
            tasks = [*following, *self._greetings, *self._runs.values()]
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
                if (run := self._runs.pop(pod["metadata"]["uid"], None)) is not None:
                    run.cancel()
            return
        self._mine.add(name)
        if not any(each.get("type") == "Ready" for each in (node.get("status") or {}).get("conditions") or ()):
            greeting = asyncio.create_task(self._make_ready(name))
            self._greetings.add(greeting)
            greeting.add_done_callback(self._greetings.discard)
        for pod in pods:
            self._changed(None, pod)

    async def _make_ready(self, name: str) -> None:
        """A Node that was written by hand and says nothing of its health."""
        patch = {"status": {"conditions": [_ready(self._clock.now())]}}
        while True:
            try:
                await self._api.patch(NODES, name, patch, subresource="status")
            except ApiError as error:
                if error.not_found:
                    return
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                return

    def _changed(self, old: Json | None, new: Json | None) -> None:
        pod = new or old
        if pod is None or pod["spec"].get("nodeName") not in self._nodes:
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
            self._runs[uid] = run = _Run(self._api, self._clock, new)
            self._tasks[uid] = asyncio.create_task(run.run())

    def _end(self, pod: Json, deleted_at: str) -> None:
        """Once for each moment at which the pod is to be gone: a second deletion may bring it forward."""
        uid = pod["metadata"]["uid"]
        if self._ending.get(uid) == deleted_at:
            return
        run = self._runs.get(uid) or _Run(self._api, self._clock, pod)
        self._forget(uid)
        self._runs[uid], self._ending[uid] = run, deleted_at
        self._tasks[uid] = asyncio.create_task(run.end(pod))

    def _forget(self, uid: str) -> None:
        self._runs.pop(uid, None)
        self._ending.pop(uid, None)
        task = self._tasks.pop(uid, None)
        if task is not None:
            task.cancel()


class _Run:
    """One pod from its start to its end."""

    def __init__(self, api: Api, clock: Clock, pod: Json) -> None:
        self._api = api
        self._clock = clock
        self._pod = pod
        self._spec: Json = pod["spec"]
        self._stored: Json = pod.get("status") or {}
        self._started = clock.now()
        self._pretence = PodPretence(pod)
        self._verdict: Verdict | None = None
        self._states: dict[str, ContainerState] = {}
        self._due: dict[str, datetime] = {}
        self._ends: dict[str, Pretence] = {}
        self._stuck: set[str] = set()
        self._containers = {
            container["name"]: container
            for container in (*(self._spec.get("initContainers") or ()), *(self._spec.get("containers") or ()))
        }

    async def run(self) -> None:
        if misunderstood := self._pretence.misunderstood():
            self._verdict = Verdict(reason=PodStatusReason.UNEXPECTED_ADMISSION_ERROR, message=misunderstood)
        while True:
            now = self._clock.now()
            self._judge(now)
            if self._verdict is not None:
                self._end_all(now, codes=dict.fromkeys(self._containers, _KILLED))
                await self._report(now)
                return
            self._take_what_is_due(now)
            plan = lifecycle.plan(self._spec, self._states, now)
            for name in plan.start:
                self._begin(name, now)
            for name in plan.end:
                self._due[name] = now
            for backoff in plan.backoffs:
                self._back_off(backoff)
            await self._report(now)
            if plan.finished:
                return
            await self._until_next([*self._due.values(), *([plan.look_again_at] if plan.look_again_at else [])])

    async def end(self, pod: Json) -> None:
        """The pod is deleted: its containers end as they wish, its status says so, and it goes. Cancelled where it is
        gone already."""
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        seconds, _ = self._pretence.stop(grace_seconds=grace)
        await self._clock.sleep(seconds)
        now = self._clock.now()
        self._stored = pod.get("status") or {}
        if self._stored.get("phase") not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            self._states = self._states or lost_states(pod, now)
            codes = {n: self._pretence.stopped(c, grace_seconds=grace) for n, c in self._containers.items()}
            self._end_all(now, codes=codes)
            await self._report(now, over=True)
        await self._remove()

    async def _remove(self) -> None:
        metadata = self._pod["metadata"]
        while True:
            try:
                await self._api.delete(
                    PODS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"], grace_seconds=0
                )
            except ApiError as error:
                if error.not_found or (error.conflict and await _gone(self._api, self._pod)):
                    return
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                return

    async def _until_next(self, moments: Sequence[datetime]) -> None:
        evicted = self._eviction()
        moments = [*moments, *([evicted] if evicted else [])]
        if not moments:
            await asyncio.Event().wait()
        await self._clock.sleep((min(moments) - self._clock.now()).total_seconds())

    def _eviction(self) -> datetime | None:
        after = self._pretence.evicted_after
        return None if after is None else self._started + timedelta(seconds=after)

    def _judge(self, now: datetime) -> None:
        moment = self._eviction()
        if self._verdict is None and moment is not None and moment <= now:
            self._verdict = Verdict(reason=PodStatusReason.EVICTED, message="The node was low on resource: memory.")

    def _begin(self, name: str, now: datetime) -> None:
        """Start the container, or what comes before it: its image, and the time it takes to create it."""
        if name in self._due or name in self._stuck:
            return
        container, state = self._containers[name], self._states.get(name, FRESH)
        if not self._pretence.pulls(container):
            message = f'failed to pull image "{container.get("image")}": no such host'
            self._states[name] = lifecycle.waiting(state, ContainerReason.ERR_IMAGE_PULL, message)
            self._due[name] = now + _PULL_RETRY
        elif state == FRESH and (seconds := self._pretence.start_seconds(container)):
            self._states[name] = lifecycle.waiting(state, ContainerReason.CONTAINER_CREATING)
            self._due[name] = now + timedelta(seconds=seconds)
        else:
            self._start(name, now)

    def _start(self, name: str, now: datetime) -> None:
        state = lifecycle.started(self._states.get(name, FRESH), Running(started_at=now))
        self._states[name] = state
        self._ends[name] = self._pretence.run(self._containers[name], restarts=state.restarts)
        seconds = self._ends[name].seconds
        if seconds is not None:
            self._due[name] = now + timedelta(seconds=seconds)

    def _back_off(self, backoff: lifecycle.Backoff) -> None:
        metadata = self._pod["metadata"]
        message = (
            f"back-off {backoff.delay.total_seconds():.0f}s restarting failed container={backoff.container} "
            f"pod={metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        )
        self._states[backoff.container] = lifecycle.waiting(
            self._states[backoff.container], ContainerReason.CRASH_LOOP_BACK_OFF, message
        )

    def _take_what_is_due(self, now: datetime) -> None:
        for name, moment in list(self._due.items()):
            if moment > now:
                continue
            del self._due[name]
            state = self._states[name]
            if isinstance(state.state, Running):
                end = self._ends[name]
                self._states[name] = _ended(state, now, code=end.exit_code, reason=end.reason)
            elif isinstance(state.state, Waiting) and state.state.reason == ContainerReason.ERR_IMAGE_PULL:
                message = f'Back-off pulling image "{self._containers[name].get("image")}"'
                self._states[name] = lifecycle.waiting(state, ContainerReason.IMAGE_PULL_BACK_OFF, message)
                self._stuck.add(name)
            else:
                self._start(name, now)

    def _end_all(self, now: datetime, *, codes: Mapping[str, int]) -> None:
        """What runs ends with these codes; what waits to be restarted stays as it ended."""
        self._due.clear()
        for name, state in self._states.items():
            if isinstance(state.state, Running):
                reason = ContainerReason.ERROR if codes[name] else ContainerReason.COMPLETED
                self._states[name] = _ended(state, now, code=codes[name], reason=reason)
            elif isinstance(state.state, Waiting) and state.last is not None:
                self._states[name] = replace(state, state=state.last, last=None)

    async def _report(self, now: datetime, *, over: bool = False) -> None:
        """Write the status where it says anything new. `over`: nothing will run any more, so the phase is terminal."""
        status = pod_status(
            spec=self._spec,
            states=self._states,
            previous=self._stored,
            now=now,
            host_ip=_ADDRESS,
            pod_ip=_ADDRESS,
            start_time=self._started,
            verdict=self._verdict,
        )
        if over and status["phase"] not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            status["phase"] = str(_final_phase(self._spec, self._states))
        if self._verdict is not None and self._verdict.reason == PodStatusReason.EVICTED:
            status["conditions"] = [*status["conditions"], disrupted(self._verdict, now)]
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


def _ended(state: ContainerState, now: datetime, *, code: int, reason: str) -> ContainerState:
    assert isinstance(state.state, Running)
    end = Ended(exit_code=code, started_at=state.state.started_at, finished_at=now, reason=reason)
    return lifecycle.ended(state, end)


def _final_phase(spec: Json, states: Mapping[str, ContainerState]) -> PodPhase:
    """Succeeded where every container has ended well, else Failed."""
    states_of_mains = [states.get(container["name"], FRESH).state for container in spec.get("containers") or ()]
    well = all(isinstance(state, Ended) and state.exit_code == 0 for state in states_of_mains)
    return PodPhase.SUCCEEDED if well else PodPhase.FAILED


async def _gone(api: Api, pod: Json) -> bool:
    """Whether a conflict means that another pod has the name now."""
    metadata = pod["metadata"]
    try:
        stored = await api.get(PODS, metadata["name"], namespace=metadata["namespace"])
    except ApiError as error:
        return error.not_found
    return stored["metadata"]["uid"] != metadata["uid"]
