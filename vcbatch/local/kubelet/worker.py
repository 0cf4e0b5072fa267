"""Carries out one pod: what `lifecycle` decides, step by step, until the pod is gone.

A step looks at everything there is, does what is due, writes the status if it changed, and sleeps until something
happens: the pod changed, a container ended, a probe turned, or time is up. Nothing is decided from which of these it
was, so that a lost or doubled wake-up does no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from vcbatch.api.pod import TERMINAL_PHASES, PodPhase
from vcbatch.api.reasons import ContainerReason, KubeletEvent, PodStatusReason
from vcbatch.api.resources import PODS
from vcbatch.local.kubelet import blueprint, ending, lifecycle, records, volumes
from vcbatch.local.kubelet.container_run import ContainerRun
from vcbatch.local.kubelet.devices import DevicesUnavailableError
from vcbatch.local.kubelet.environment import ConfigError
from vcbatch.local.kubelet.lifecycle import FRESH, ContainerState, Ended, Running, Waiting
from vcbatch.local.kubelet.node_services import NodeServices
from vcbatch.local.kubelet.pod_events import PodEvents
from vcbatch.local.kubelet.provision import Provision
from vcbatch.local.kubelet.records import PodRecord, Run
from vcbatch.local.kubelet.retry import Retry
from vcbatch.local.kubelet.sandbox import Mode
from vcbatch.local.kubelet.status import Verdict, changed, closed_states, disrupted, lost_states, phase, pod_status
from vcbatch.seams.api import ApiError, PatchKind
from vcbatch.seams.processes import ProcessExit, ProcessRef, ProcessStartError

Json = dict[str, Any]
log = logging.getLogger(__name__)

_DEFAULT_GRACE = 30.0


class PodWorker:
    """One pod of this node. `run` returns when nothing of the pod is left here."""

    def __init__(self, pod: Json, node: NodeServices) -> None:
        self.pod = pod
        self._node = node
        self._record = PodRecord(node.config.root / "pods" / pod["metadata"]["uid"])
        self._states: dict[str, ContainerState] = {}
        self._live: dict[str, ContainerRun] = {}
        self._exits: list[tuple[str, ProcessExit]] = []
        self._wake = asyncio.Event()
        self._gone = False
        self._stopping: float | None = None  # grace in seconds, once the whole kubelet stops
        self._verdict: Verdict | None = None
        self._given = Provision(node, self._record)
        self._written: Json | None = None
        self._retry = Retry(node.clock)
        self._refresh = False
        self._events = PodEvents(node.events, lambda: self.pod)

    # What others tell a worker ---------------------------------------------------------------------------------------

    def update(self, pod: Json) -> None:
        """The pod object has changed."""
        self.pod = pod
        self._wake.set()

    def remove(self) -> None:
        """The pod object is gone: whatever still runs is ended at once."""
        self._gone = True
        self._wake.set()

    def stop(self, grace: float) -> None:
        """The kubelet stops: end the containers within `grace` seconds, and say so in the pod's status."""
        self._stopping = grace
        self._wake.set()

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

    # Logs ------------------------------------------------------------------------------------------------------------

    def log_record(self, container: str, *, previous: bool) -> Path | None:
        """The record of the run whose log is asked for; None where there is none (yet)."""
        runs = self._record.runs(container)
        index = 2 if previous else 1
        return runs[-index].path if len(runs) >= index else None

    def has_ended(self, container: str, record: Path) -> bool:
        """Whether that run of a container has ended, so that its log is complete."""
        live = self._live.get(container)
        return live is None or live.run.path != record

    def has_container(self, name: str) -> bool:
        return self._find_container(name) is not None

    def state_of(self, container: str) -> ContainerState:
        return self._states.get(container, FRESH)

    # What clients connect with ---------------------------------------------------------------------------------------

    def live_run(self, container: str) -> ContainerRun | None:
        """The run of a container that is under way; None where none is."""
        return self._live.get(container)

    @property
    def is_running(self) -> bool:
        return bool(self._live)

    @property
    def address(self) -> str:
        """The pod's own address; "" before it has one."""
        return self._given.address

    # Running ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry the pod out until it is gone from the API, or until the kubelet has stopped and it has ended."""
        try:
            await self._take_over()
            while not await self._careful_step():
                await self._sleep()
        finally:
            for live in self._live.values():
                live.cancel()

    async def _careful_step(self) -> bool:
        """A step that fails for a reason nobody thought of fails the pod: its processes are ended and it says why."""
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
        self._retry.look()
        now = self._node.clock.now()
        self._note_exits()
        if self._gone:
            return await self._vanish()
        if self._already_over():
            self._given.release(self.pod["metadata"]["uid"])
            if self.pod["metadata"].get("deletionTimestamp"):
                return await self._say_goodbye()
            return self._stopping is not None
        if self._must_end(now):
            for name in self._live:
                self._end(name, self._grace())
        else:
            await self._carry_on(now)
        await self._write_status(now)
        if self._stopping is not None:
            return not self._live
        return False

    def _already_over(self) -> bool:
        stored = (self._written or self.pod.get("status") or {}).get("phase")
        return not self._live and not self._exits and stored in TERMINAL_PHASES

    def _must_end(self, now: datetime) -> bool:
        """Whether the pod is to end now, whatever its containers would do."""
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
        plan = lifecycle.plan(self.pod["spec"], self._states, now)
        if plan.renew:
            self._states = lifecycle.renewed(self._states)
            plan = lifecycle.plan(self.pod["spec"], self._states, now)
        for name in plan.kill:
            await self._kill_to_restart(name)
        for backoff in plan.backoffs:
            self._back_off(backoff)
        for name in plan.end:
            self._end(name, self._grace())
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
                self._cannot_start(name, error)
            return
        for name in names:
            if self._gone or self._stopping is not None:
                return
            try:
                await self._start(name, objects)
            except (ConfigError, volumes.VolumeError, OSError) as error:
                self._cannot_start(name, error)

    def _prepare(self, objects: blueprint.Objects) -> None:
        """Address, devices and volumes: once per pod, and on record before any of it is used."""
        if not self._given.exists:
            self._given.take_share(self.pod)
            self._events.without_effect(self._node.sandbox.mode)
        self._given.make_volumes(self.pod, objects)

    async def _refresh_volumes(self) -> None:
        self._refresh = False
        self._given.refresh_volumes(self.pod, await self._given.fetch_objects(self.pod))

    async def _start(self, name: str, objects: blueprint.Objects) -> None:
        container, given = self._container(name), self._given
        drawn = blueprint.draw(
            pod=self.pod,
            container=container,
            address=given.address,
            allotment=given.facts.allotment,
            paths=given.paths,
            objects=objects,
            node=self._node,
        )
        if self._node.sandbox.mode is not Mode.USERNS:
            needed, words = blueprint.linkable_mounts(self.pod, drawn.mounts)
            self._events.not_isolated(words)
            given.place_links(needed)
        self._node.hosts.write(self.pod["metadata"]["uid"])
        self._events.translated(drawn.translations)
        state = self._states.get(name, FRESH)
        began = lifecycle.started(state, Running(started_at=self._node.clock.now()))
        run = self._record.new_run(
            name, started_at=self._node.clock.now(), restarts=began.restarts, crashes=began.crashes
        )
        spec = blueprint.process_spec(
            pod=self.pod,
            container=container,
            blueprint=drawn,
            record=self._record,
            run=run,
            allotment=given.facts.allotment,
            node=self._node,
        )
        self._retry.worked()
        try:
            async with self._node.starts:
                ref = await self._node.processes.start(spec)
        except ProcessStartError as error:
            self._start_failed(name, run, error)
            return
        self._states[name] = replace(began, state=self._running(container, run))
        self._follow(container, run, ref, fresh=True)
        image = container.get("image")
        note = f" as a process; its image {image} is not used" if image else " as a process"
        self._events.tell(KubeletEvent.STARTED, f"Started container {name}{note}", container=name)

    def _start_failed(self, name: str, run: Run, error: ProcessStartError) -> None:
        now = self._node.clock.now()
        records.write_start_failure(
            run.path, exit_code=error.exit_code, message=str(error), finished_at=now.timestamp()
        )
        before = self._states.get(name, FRESH)
        began = lifecycle.started(before, Running(started_at=now))
        self._states[name] = lifecycle.ended(
            began,
            Ended(
                exit_code=error.exit_code,
                started_at=now,
                finished_at=now,
                reason=ContainerReason.START_ERROR,
                message=str(error),
                container_id=self._container_id(name, run),
            ),
        )
        self._events.warn(KubeletEvent.FAILED, f"Error: {error}", container=name)
        self._wake.set()

    def _cannot_start(self, name: str, error: Exception) -> None:
        """Something that the container needs isn't there: wait, and look again later or when it changes."""
        in_config = isinstance(error, ConfigError)
        reason = ContainerReason.CONFIG_ERROR if in_config else ContainerReason.CONTAINER_CREATING
        message = str(error)
        state = self._states.get(name, FRESH)
        if state.state != Waiting(reason=reason, message=message):
            self._states[name] = lifecycle.waiting(state, reason, message)
            event = KubeletEvent.FAILED if in_config else KubeletEvent.FAILED_MOUNT
            text = f"Error: {message}" if in_config else f"MountVolume.SetUp failed: {message}"
            self._events.warn(event, text, container=name)
        self._retry.later()

    def _back_off(self, backoff: lifecycle.Backoff) -> None:
        metadata = self.pod["metadata"]
        seconds = int(backoff.delay.total_seconds())
        length = f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
        place = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        message = f"back-off {length} restarting failed container={backoff.container} pod={place}"
        state = self._states[backoff.container]
        if isinstance(state.state, Waiting) and state.state.message == message:
            return
        self._states[backoff.container] = lifecycle.waiting(state, ContainerReason.CRASH_LOOP_BACK_OFF, message)
        text = f"Back-off restarting failed container {backoff.container} in pod {place}"
        self._events.warn(KubeletEvent.BACK_OFF, text, container=backoff.container)

    # Following a run -------------------------------------------------------------------------------------------------

    def _running(self, container: Json, run: Run) -> Running:
        probed = container.get("startupProbe") is not None
        return Running(
            started_at=run.started_at,
            container_id=self._container_id(container["name"], run),
            started=not probed,
            ready=container.get("readinessProbe") is None,
        )

    def _follow(self, container: Json, run: Run, ref: ProcessRef, *, fresh: bool) -> None:
        name = container["name"]

        def tell(reason: str, message: str) -> None:
            self._events.warn(reason, message, container=name)

        def exited(process_exit: ProcessExit) -> None:
            self._exits.append((name, process_exit))
            self._wake.set()

        def probed(field: str, ok: bool, message: str) -> None:
            self._on_probe(container, field, ok=ok, message=message)

        live = ContainerRun(
            container=container,
            run=run,
            ref=ref,
            address=self._given.address,
            node=self._node,
            tell=tell,
            exited=exited,
            probed=probed,
        )
        self._live[name] = live
        live.follow(started=container.get("startupProbe") is None, hook_grace=self._grace() if fresh else None)

    def _note_exits(self) -> None:
        exits, self._exits = self._exits, []
        for name, process_exit in exits:
            live = self._live.pop(name, None)
            if live is None:
                continue
            live.cancel()
            self._states[name] = lifecycle.ended(self._states[name], self._end_of(name, live.run, process_exit))

    def _end_of(self, name: str, run: Run, process_exit: ProcessExit) -> Ended:
        container_id = self._container_id(name, run)
        return ending.ended(self._container(name), run, process_exit, container_id=container_id)

    def _on_probe(self, container: Json, field: str, *, ok: bool, message: str) -> None:
        name = container["name"]
        state = self._states[name]
        if not isinstance(state.state, Running):
            return
        kind = field.removesuffix("Probe")
        if not ok:
            text = f"{kind.capitalize()} probe failed: {message}"
            self._events.warn(KubeletEvent.UNHEALTHY, text, container=name)
        if field == "readinessProbe":
            self._states[name] = replace(state, state=replace(state.state, ready=ok))
        elif ok and field == "startupProbe":
            self._states[name] = replace(state, state=replace(state.state, started=True))
            self._live[name].start_probes()
        elif not ok:
            grace = float(container[field].get("terminationGracePeriodSeconds") or self._grace())
            text = f"Container {name} failed {kind} probe, will be restarted"
            self._events.tell(KubeletEvent.KILLING, text, container=name)
            self._live[name].end(grace)
        self._wake.set()

    # Ending ----------------------------------------------------------------------------------------------------------

    def _grace(self) -> float:
        """Seconds that containers get between SIGTERM and SIGKILL."""
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        grace = spec.get("terminationGracePeriodSeconds")
        if metadata.get("deletionTimestamp"):
            grace = metadata.get("deletionGracePeriodSeconds", grace)
        seconds = _DEFAULT_GRACE if grace is None else float(grace)
        return seconds if self._stopping is None else min(seconds, self._stopping)

    def _end(self, name: str, grace: float) -> None:
        live = self._live.get(name)
        if live is not None and live.end(grace):
            self._events.tell(KubeletEvent.KILLING, f"Stopping container {name}", container=name)

    async def _kill_to_restart(self, name: str) -> None:
        live = self._live.get(name)
        if live is not None and live.kill_at is None:
            live.kill_at = self._node.clock.monotonic()
            self._events.tell(
                KubeletEvent.KILLING, f"Stopping container {name}: all containers restart", container=name
            )
            await live.kill_if_overdue()

    async def kill_out_of_memory(self) -> None:
        """End containers whose memory is above their limit."""
        for live in list(self._live.values()):
            await live.kill_if_out_of_memory()

    @property
    def has_memory_limits(self) -> bool:
        return any(live.memory_limit for live in self._live.values())

    async def _vanish(self) -> bool:
        """The API knows the pod no more: nothing of it may stay."""
        for live in list(self._live.values()):
            await live.kill()
        if self._live:
            return False
        self._given.release(self.pod["metadata"]["uid"])
        self._record.remove()
        return True

    async def _say_goodbye(self) -> bool:
        """Everything has ended and is told: let the API remove the pod."""
        metadata = self.pod["metadata"]
        try:
            await self._node.api.delete(
                PODS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"], grace_seconds=0
            )
        except ApiError as error:
            if not error.not_found and not error.conflict:
                self._retry.soon()
                return False
        self._record.remove()
        return True

    # Status ----------------------------------------------------------------------------------------------------------

    async def _write_status(self, now: datetime) -> None:
        deleting = bool(self.pod["metadata"].get("deletionTimestamp"))
        over = self._must_be_over()
        if over and deleting and self._verdict is None and not self._finished():
            # A deleted pod ends in a terminal phase, so that whoever counts outcomes sees one (KEP-3329).
            self._states = closed_states(self.pod["spec"], self._states)
        previous = self._written or self.pod.get("status") or {}
        status = pod_status(
            spec=self.pod["spec"],
            states=self._states,
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
        return ending and not self._live

    def _finished(self) -> bool:
        return phase(self.pod["spec"], self._states) in TERMINAL_PHASES

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
                return  # gone, or another pod of this name: the watch will say so
            raise
        self._written = stored.get("status") or status
        self._retry.now()

    async def _guarded(self, work: Any) -> None:
        """Do it, or look again later: a server that doesn't answer never ends a pod."""
        try:
            await work
        except (ApiError, OSError) as error:
            log.warning("pod %s/%s: %s", self.pod["metadata"]["namespace"], self.pod["metadata"]["name"], error)
            self._retry.later()

    # Waiting ---------------------------------------------------------------------------------------------------------

    async def _sleep(self) -> None:
        """Until something happened or the earliest moment at which time alone makes a difference."""
        delay = self._next_delay()
        if self._wake.is_set():
            await asyncio.sleep(0)
        elif delay is None:
            await self._wake.wait()
        else:
            timer = asyncio.ensure_future(self._node.clock.sleep(delay))
            waiter = asyncio.ensure_future(self._wake.wait())
            try:
                await asyncio.wait((timer, waiter), return_when=asyncio.FIRST_COMPLETED)
            finally:
                timer.cancel()
                waiter.cancel()
        for live in list(self._live.values()):
            await live.kill_if_overdue()

    def _next_delay(self) -> float | None:
        now, monotonic = self._node.clock.now(), self._node.clock.monotonic()
        delays = [live.kill_at - monotonic for live in self._live.values() if live.kill_at is not None]
        if (left := self._retry.left) is not None:
            delays.append(left)
        deadline = self._deadline()
        if deadline is not None and self._verdict is None:
            delays.append((deadline - now).total_seconds())
        if self._verdict is None and not self.pod["metadata"].get("deletionTimestamp"):
            again = lifecycle.plan(self.pod["spec"], self._states, now).look_again_at
            if again is not None:
                delays.append((again - now).total_seconds())
        return max(0.0, min(delays)) if delays else None

    # Taking over -----------------------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        """Find out what a former kubelet left of this pod, and go on from there."""
        over = (self.pod.get("status") or {}).get("phase") in TERMINAL_PHASES
        if not self._given.restore(self.pod, over=over):
            self._states = lost_states(self.pod, self._node.clock.now())
            return
        for container in self._containers():
            await self._take_over_container(container)
        if self._live:
            await self._guarded(self._find_volumes())

    async def _find_volumes(self) -> None:
        with contextlib.suppress(ConfigError, volumes.VolumeError):
            self._prepare(await self._given.fetch_objects(self.pod))

    async def _take_over_container(self, container: Json) -> None:
        name = container["name"]
        for run in self._record.runs(name):
            found = await self._node.processes.adopt(run.path)
            state = self._states.get(name, FRESH)
            base = replace(
                lifecycle.started(state, self._running(container, run)), restarts=run.restarts, crashes=run.crashes
            )
            if isinstance(found, ProcessExit):
                self._states[name] = lifecycle.ended(base, self._end_of(name, run, found))
            elif found is not None:
                self._states[name] = base
                self._follow(container, run, found, fresh=False)

    # Small things ----------------------------------------------------------------------------------------------------

    def _containers(self) -> list[Json]:
        spec = self.pod["spec"]
        return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]

    def _find_container(self, name: str) -> Json | None:
        return next((c for c in self._containers() if c["name"] == name), None)

    def _container(self, name: str) -> Json:
        container = self._find_container(name)
        if container is None:
            raise KeyError(name)
        return container

    def _container_id(self, name: str, run: Run) -> str:
        return f"process://{self.pod['metadata']['uid']}/{name}/{run.number}"
