"""One pod on a simulated node, from its start to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from vcbatch.api.pod import TERMINAL_PHASES, PodPhase
from vcbatch.api.reasons import ContainerReason, PodStatusReason
from vcbatch.api.resources import PODS
from vcbatch.interfaces.api import Api, ApiError, PatchKind
from vcbatch.interfaces.clock import Clock
from vcbatch.local.kubelet import lifecycle
from vcbatch.local.kubelet.lifecycle import FRESH, ContainerState, Ended, Running, Waiting
from vcbatch.local.kubelet.status import Verdict, changed, disrupted, lost_states, pod_status
from vcbatch.local.virtual.node import ADDRESS
from vcbatch.local.virtual.pretence import PodPretence, Pretence

Json = dict[str, Any]

_RETRY_SECONDS = 0.5
_PULL_RETRY = timedelta(seconds=1)
_KILLED = 137


class PodRun:
    """Simulates one pod, and writes to the API server what a kubelet would."""

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
        """Returns once nothing of the pod changes any more by itself."""
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
            if plan.renew:
                self._states = lifecycle.renewed(self._states)
                plan = lifecycle.plan(self._spec, self._states, now)
            for name in plan.kill:
                self._kill(name, now)
            for name in plan.start:
                self._begin(name, now)
            for name in plan.end:
                self._due[name] = now
            for backoff in plan.backoffs:
                self._back_off(backoff)
            await self._report(now)
            if plan.finished:
                return
            if plan.kill:
                continue
            moments = [*self._due.values(), *(m for m in (plan.requeue_at, self._eviction()) if m is not None)]
            if not moments:
                return
            await self._clock.sleep((min(moments) - self._clock.now()).total_seconds())

    async def end(self, pod: Json) -> None:
        """End a deleted pod: its containers end as its annotations say, its status is written, and it is deleted.
        Cancelled where it is deleted already."""
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        seconds, _ = self._pretence.stop(grace_seconds=grace)
        await self._clock.sleep(seconds)
        now = self._clock.now()
        self._stored = pod.get("status") or {}
        if self._stored.get("phase") not in TERMINAL_PHASES:
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

    def _eviction(self) -> datetime | None:
        after = self._pretence.evicted_after
        return None if after is None else self._started + timedelta(seconds=after)

    def _judge(self, now: datetime) -> None:
        moment = self._eviction()
        if self._verdict is None and moment is not None and moment <= now:
            self._verdict = Verdict(reason=PodStatusReason.EVICTED, message="The node was low on resource: memory.")

    def _begin(self, name: str, now: datetime) -> None:
        """Start the container, or simulate what precedes it: pulling its image, and the time to create it."""
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
                self._states[name] = _ended(state, state.state, now, code=end.exit_code, reason=end.reason)
            elif isinstance(state.state, Waiting) and state.state.reason == ContainerReason.ERR_IMAGE_PULL:
                message = f'Back-off pulling image "{self._containers[name].get("image")}"'
                self._states[name] = lifecycle.waiting(state, ContainerReason.IMAGE_PULL_BACK_OFF, message)
                self._stuck.add(name)
            else:
                self._start(name, now)

    def _kill(self, name: str, now: datetime) -> None:
        self._due.pop(name, None)
        state = self._states[name]
        if isinstance(state.state, Running):
            self._states[name] = _ended(state, state.state, now, code=_KILLED, reason=ContainerReason.ERROR)

    def _end_all(self, now: datetime, *, codes: Mapping[str, int]) -> None:
        """End running containers with these exit codes; a container that waits to be restarted keeps its last exit."""
        self._due.clear()
        for name, state in self._states.items():
            if isinstance(state.state, Running):
                reason = ContainerReason.ERROR if codes[name] else ContainerReason.COMPLETED
                self._states[name] = _ended(state, state.state, now, code=codes[name], reason=reason)
            elif isinstance(state.state, Waiting) and state.last is not None:
                self._states[name] = replace(state, state=state.last, last=None)

    async def _report(self, now: datetime, *, over: bool = False) -> None:
        """Write the status where it has changed. `over`: nothing will run any more, so the phase is terminal."""
        status = pod_status(
            spec=self._spec,
            states=self._states,
            previous=self._stored,
            now=now,
            host_ip=ADDRESS,
            pod_ip=ADDRESS,
            start_time=self._started,
            verdict=self._verdict,
        )
        if over and status["phase"] not in TERMINAL_PHASES:
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
                    kind=PatchKind.STRATEGIC,  # conditions of other clients stay
                )
            except ApiError as error:
                if error.not_found or (error.conflict and await _gone(self._api, self._pod)):
                    return
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                self._stored = written.get("status") or {}
                return


def _ended(state: ContainerState, run: Running, now: datetime, *, code: int, reason: str) -> ContainerState:
    end = Ended(exit_code=code, started_at=run.started_at, finished_at=now, reason=reason)
    return lifecycle.ended(state, end)


def _final_phase(spec: Json, states: Mapping[str, ContainerState]) -> PodPhase:
    """Succeeded where every container has exited with 0, else Failed."""
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
