"""Runs one pod: executes the plans of `lifecycle`, step by step, until the pod is deleted.

A step reads the whole state, does what is due, writes the status if it changed, and sleeps until something happens: the
pod changed, a container exited, a probe's verdict changed, or a delay is over. No decision depends on which of these it
was, so that a lost or repeated wake-up does no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta
from typing import Any

from vcbatch.api.pod import TERMINAL_PHASES, PodPhase
from vcbatch.api.reasons import PodStatusReason
from vcbatch.api.resources import PODS
from vcbatch.hosting.supervise import pause
from vcbatch.interfaces.api import ApiError, PatchKind
from vcbatch.local.kubelet import blueprint, lifecycle, volumes
from vcbatch.local.kubelet.container_run import ContainerRun
from vcbatch.local.kubelet.containers import Containers
from vcbatch.local.kubelet.devices import DevicesUnavailableError
from vcbatch.local.kubelet.environment import ConfigError
from vcbatch.local.kubelet.node_services import NodeServices
from vcbatch.local.kubelet.pod_events import PodEvents
from vcbatch.local.kubelet.provision import Provision
from vcbatch.local.kubelet.records import PodRecord
from vcbatch.local.kubelet.retry import Retry
from vcbatch.local.kubelet.status import Verdict, changed, closed_states, disrupted, lost_states, phase, pod_status

Json = dict[str, Any]
log = logging.getLogger(__name__)

_DEFAULT_GRACE = 30.0


class PodWorker:
    """One pod of this node. `run` returns when nothing of the pod is left here."""

    def __init__(self, pod: Json, node: NodeServices) -> None:
        self.pod = pod
        self._node = node
        self._record = PodRecord(node.config.root / "pods" / pod["metadata"]["uid"])
        self._wake = asyncio.Event()
        self._gone = False
        self._stopping: float | None = None  # grace period in seconds, once the whole kubelet stops
        self._verdict: Verdict | None = None
        self._given = Provision(node, self._record)
        self._written: Json | None = None
        self._retry = Retry(node.clock)
        self._refresh = False
        self._events = PodEvents(node.events, lambda: self.pod)
        self.containers = Containers(
            pod=lambda: self.pod,
            node=node,
            record=self._record,
            given=self._given,
            events=self._events,
            retry=self._retry,
            grace=self._grace,
            wake=self._wake,
        )

    # Notifications ----------------------------------------------------------------------------------------------------

    def update(self, pod: Json) -> None:
        """The pod object has changed."""
        self.pod = pod
        self._wake.set()

    def remove(self) -> None:
        """The pod object was deleted: end its containers at once."""
        self._gone = True
        self._wake.set()

    def stop(self, grace: float) -> None:
        """The kubelet stops: terminate the containers within `grace` seconds, and report that in the pod's status."""
        self._stopping = grace
        self._wake.set()

    def successor(self) -> PodWorker:
        """A worker that replaces this one after an error: it continues from the records, as after a restart of the
        kubelet."""
        other = PodWorker(self.pod, self._node)
        other._gone, other._stopping = self._gone, self._stopping
        return other

    def objects_changed(self) -> None:
        """A ConfigMap or Secret that the pod reads has changed."""
        self._refresh = True
        self._retry.now()
        self._wake.set()

    @property
    def references(self) -> set[tuple[str, str]]:
        return volumes.references(self.pod["spec"])

    @property
    def group(self) -> str:
        return blueprint.group_of(self.pod)

    # Client connections -----------------------------------------------------------------------------------------------

    def live_run(self, container: str) -> ContainerRun | None:
        """The active run of a container; None where there is none."""
        return self.containers.live.get(container)

    @property
    def is_running(self) -> bool:
        return bool(self.containers.live)

    @property
    def address(self) -> str:
        """The pod's own address; "" before it has one."""
        return self._given.address

    # Running ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the pod until it is deleted from the API server, or until the kubelet has stopped and the pod has
        ended."""
        try:
            await self._take_over()
            while not await self._careful_step():
                await self._sleep()
        finally:
            self.containers.forget()

    async def _careful_step(self) -> bool:
        """Run a step. An unexpected error fails the pod: its processes are ended, and its status has the reason."""
        try:
            return await self._step()
        except Exception as error:
            if self._verdict is not None:
                raise
            log.exception("pod %s/%s", self.pod["metadata"]["namespace"], self.pod["metadata"]["name"])
            message = f"the kubelet can't run this pod: {type(error).__name__}: {error}"
            self._verdict = Verdict(reason=PodStatusReason.UNEXPECTED_ADMISSION_ERROR, message=message)
            self._wake.set()
            return False

    async def _step(self) -> bool:
        self._wake.clear()
        self._retry.checked()
        now = self._node.clock.now()
        self.containers.note_exits()
        if self._gone:
            return await self._vanish()
        if self._already_over():
            self._given.release(self.pod["metadata"]["uid"])
            if self.pod["metadata"].get("deletionTimestamp"):
                return await self._say_goodbye()
            return self._stopping is not None
        if self._must_end(now):
            for name in self.containers.live:
                self.containers.end(name)
        else:
            await self._carry_on(now)
        await self._write_status(now)
        if self._stopping is not None:
            return not self.containers.live
        return False

    def _already_over(self) -> bool:
        stored = (self._written or self.pod.get("status") or {}).get("phase")
        return self.containers.idle and stored in TERMINAL_PHASES

    def _must_end(self, now: datetime) -> bool:
        """Whether the pod has to end now, regardless of its containers."""
        if self._verdict is None:
            self._verdict = self._judge(now)
        return self._verdict is not None or bool(self.pod["metadata"].get("deletionTimestamp"))

    def _judge(self, now: datetime) -> Verdict | None:
        deadline = self._deadline()
        if deadline is not None and now >= deadline:
            message = "Pod was active on the node longer than the specified deadline"
            return Verdict(reason=PodStatusReason.DEADLINE_EXCEEDED, message=message)
        if self._stopping is not None:
            message = "Pod was terminated in response to imminent node shutdown."
            return Verdict(reason=PodStatusReason.TERMINATED, message=message)
        return None

    def _deadline(self) -> datetime | None:
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        if seconds is None or not self._given.exists:
            return None
        return self._given.facts.start_time + timedelta(seconds=seconds)

    async def _carry_on(self, now: datetime) -> None:
        plan = lifecycle.plan(self.pod["spec"], self.containers.states, now)
        if plan.renew:
            self.containers.states = lifecycle.renewed(self.containers.states)
            plan = lifecycle.plan(self.pod["spec"], self.containers.states, now)
        for name in plan.kill:
            await self.containers.kill_to_restart(name)
        for backoff in plan.backoffs:
            self.containers.back_off(backoff)
        for name in plan.end:
            self.containers.end(name)
        if plan.start and not self._retry.waits:
            await self._start_all(plan.start)
        elif self._refresh and self._given.has_volumes:
            await self._guarded(self._refresh_volumes())

    # Starting --------------------------------------------------------------------------------------------------------

    async def _start_all(self, names: Any) -> None:
        try:
            objects = await self._given.fetch_objects(self.pod)
            self._prepare(objects)
        except DevicesUnavailableError as error:
            self._verdict = Verdict(reason=PodStatusReason.UNEXPECTED_ADMISSION_ERROR, message=str(error))
            return
        except (ConfigError, volumes.VolumeError, ApiError, OSError) as error:
            for name in names:
                self.containers.cannot_start(name, error)
            return
        for name in names:
            if self._gone or self._stopping is not None:
                return
            try:
                await self.containers.start(name, objects)
            except (ConfigError, volumes.VolumeError, OSError) as error:
                self.containers.cannot_start(name, error)

    def _prepare(self, objects: blueprint.Objects) -> None:
        """Allocate address, devices and volumes: once per pod, and recorded before any of it is used."""
        if not self._given.exists:
            self._given.take_share(self.pod)
            self._events.without_effect(self._node.sandbox.mode)
        self._given.make_volumes(self.pod, objects)

    async def _refresh_volumes(self) -> None:
        self._refresh = False
        self._given.refresh_volumes(self.pod, await self._given.fetch_objects(self.pod))

    # Ending ----------------------------------------------------------------------------------------------------------

    def _grace(self) -> float:
        """Seconds between SIGTERM and SIGKILL for the containers."""
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        grace = spec.get("terminationGracePeriodSeconds")
        if metadata.get("deletionTimestamp"):
            grace = metadata.get("deletionGracePeriodSeconds", grace)
        seconds = _DEFAULT_GRACE if grace is None else float(grace)
        return seconds if self._stopping is None else min(seconds, self._stopping)

    async def _vanish(self) -> bool:
        """The API server doesn't know the pod any more: remove everything of it."""
        for live in list(self.containers.live.values()):
            await live.kill()
        if self.containers.live:
            return False
        self._given.release(self.pod["metadata"]["uid"])
        self._remove_record()
        return True

    def _remove_record(self) -> None:
        """Remove the record of the deleted pod; the logs of a job's pod are kept."""
        if self._node.kept_logs is not None:
            self._node.kept_logs.keep(self._record)
        else:
            self._record.remove()

    async def _say_goodbye(self) -> bool:
        """Everything has ended and is reported: let the API server remove the pod."""
        metadata = self.pod["metadata"]
        try:
            await self._node.api.delete(
                PODS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"], grace_seconds=0
            )
        except ApiError as error:
            if not error.not_found and not error.conflict:
                self._retry.soon()
                return False
        self._remove_record()
        return True

    # Status ----------------------------------------------------------------------------------------------------------

    async def _write_status(self, now: datetime) -> None:
        deleting = bool(self.pod["metadata"].get("deletionTimestamp"))
        over = self._must_be_over()
        if over and deleting and self._verdict is None and not self._finished():
            # A deleted pod ends in a terminal phase, so that programs that count outcomes see one (KEP-3329).
            self.containers.states = closed_states(self.pod["spec"], self.containers.states)
        previous = self._written or self.pod.get("status") or {}
        status = pod_status(
            spec=self.pod["spec"],
            states=self.containers.states,
            previous=previous,
            now=now,
            host_ip=self._node.host_ip,
            pod_ip=self._given.address,
            start_time=self._given.facts.start_time if self._given.exists else now,
            verdict=self._verdict,
        )
        if over and deleting and status["phase"] in (PodPhase.RUNNING, PodPhase.PENDING):
            status["phase"] = str(PodPhase.FAILED)
        if over and self._verdict is not None and self._verdict.reason == PodStatusReason.TERMINATED:
            status["conditions"] = [*status["conditions"], disrupted(self._verdict, now)]
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status["conditions"])
        self._node.hosts.describe(self.pod, ready=ready)
        if changed(previous, status):
            await self._guarded(self._patch_status(status))
        if self._already_over():
            self._wake.set()

    def _must_be_over(self) -> bool:
        ending = self._verdict is not None or bool(self.pod["metadata"].get("deletionTimestamp"))
        return ending and not self.containers.live

    def _finished(self) -> bool:
        return phase(self.pod["spec"], self.containers.states) in TERMINAL_PHASES

    async def _patch_status(self, status: Json) -> None:
        metadata = self.pod["metadata"]
        patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
        try:
            stored = await self._node.api.patch(
                PODS,
                metadata["name"],
                patch,
                namespace=metadata["namespace"],
                subresource="status",
                kind=PatchKind.STRATEGIC,
            )
        except ApiError as error:
            if error.not_found or error.conflict:
                return  # deleted, or another pod of this name: the watch will report it
            raise
        self._written = stored.get("status") or status
        self._retry.now()

    async def _guarded(self, work: Any) -> None:
        """Await `work`, and retry later on an error: a server that doesn't answer never ends a pod."""
        try:
            await work
        except (ApiError, OSError) as error:
            log.warning("pod %s/%s: %s", self.pod["metadata"]["namespace"], self.pod["metadata"]["name"], error)
            self._retry.later()

    # Waiting ---------------------------------------------------------------------------------------------------------

    async def _sleep(self) -> None:
        """Sleep until something happens, or until the earliest time at which time alone changes the plan."""
        delay = self._next_delay()
        if self._wake.is_set():
            await asyncio.sleep(0)
        elif delay is None:
            await self._wake.wait()
        else:
            await pause(self._node.clock, delay, woken=self._wake)
        for live in list(self.containers.live.values()):
            await live.kill_if_overdue()

    def _next_delay(self) -> float | None:
        now, monotonic = self._node.clock.now(), self._node.clock.monotonic()
        delays = [live.kill_at - monotonic for live in self.containers.live.values() if live.kill_at is not None]
        if (left := self._retry.left) is not None:
            delays.append(left)
        deadline = self._deadline()
        if deadline is not None and self._verdict is None:
            delays.append((deadline - now).total_seconds())
        if self._verdict is None and not self.pod["metadata"].get("deletionTimestamp"):
            again = lifecycle.plan(self.pod["spec"], self.containers.states, now).requeue_at
            if again is not None:
                delays.append((again - now).total_seconds())
        return max(0.0, min(delays)) if delays else None

    # Restart ----------------------------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        """Read the records of a former kubelet about this pod, and continue from them."""
        over = (self.pod.get("status") or {}).get("phase") in TERMINAL_PHASES
        if not self._given.restore(self.pod, over=over):
            self.containers.states = lost_states(self.pod, self._node.clock.now())
            return
        for container in self.containers.all():
            await self.containers.take_over(container)
        if self.containers.live:
            await self._guarded(self._find_volumes())

    async def _find_volumes(self) -> None:
        with contextlib.suppress(ConfigError, volumes.VolumeError):
            self._prepare(await self._given.fetch_objects(self.pod))
