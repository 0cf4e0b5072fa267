"""The containers of one pod: their states and active runs. `lifecycle` decides which action is due for which container,
and the worker when to carry it out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from vcbatch.api.reasons import ContainerReason, KubeletEvent
from vcbatch.interfaces.processes import ProcessExit, ProcessRef, ProcessStartError
from vcbatch.local.kubelet import blueprint, ending, lifecycle, records
from vcbatch.local.kubelet.container_run import ContainerRun
from vcbatch.local.kubelet.environment import ConfigError
from vcbatch.local.kubelet.lifecycle import FRESH, ContainerState, Ended, Running, Waiting
from vcbatch.local.kubelet.node_services import NodeServices
from vcbatch.local.kubelet.pod_events import PodEvents
from vcbatch.local.kubelet.provision import Provision
from vcbatch.local.kubelet.records import PodRecord, Run
from vcbatch.local.kubelet.retry import Retry
from vcbatch.local.kubelet.sandbox import Mode

Json = dict[str, Any]


class Containers:
    """`pod` returns the current pod, `grace` the seconds between SIGTERM and SIGKILL. `wake` is set when something
    happened to a container."""

    def __init__(
        self,
        *,
        pod: Callable[[], Json],
        node: NodeServices,
        record: PodRecord,
        given: Provision,
        events: PodEvents,
        retry: Retry,
        grace: Callable[[], float],
        wake: asyncio.Event,
    ) -> None:
        self.states: dict[str, ContainerState] = {}
        """By name; containers that were never started are missing."""
        self.live: dict[str, ContainerRun] = {}
        """The active runs, by container."""
        self._pod = pod
        self._node = node
        self._record = record
        self._given = given
        self._events = events
        self._retry = retry
        self._grace = grace
        self._wake = wake
        self._exits: list[tuple[str, ProcessExit]] = []

    @property
    def idle(self) -> bool:
        """Whether no container runs, and `note_exits` has processed all exits."""
        return not self.live and not self._exits

    # States -----------------------------------------------------------------------------------------------------------

    def state_of(self, container: str) -> ContainerState:
        """The container's state, also before its first start."""
        return self.states.get(container, FRESH)

    def has(self, name: str) -> bool:
        """Whether the pod has such a container."""
        return self._find_container(name) is not None

    def log_record(self, container: str, *, previous: bool) -> Path | None:
        """The record of the run whose log is requested; None where there is none (yet)."""
        runs = self._record.runs(container)
        index = 2 if previous else 1
        return runs[-index].path if len(runs) >= index else None

    def has_ended(self, container: str, record: Path) -> bool:
        """Whether that run of a container has ended, so that its log is complete."""
        live = self.live.get(container)
        return live is None or live.run.path != record

    @property
    def has_memory_limits(self) -> bool:
        """Whether a running container has a memory limit."""
        return any(live.memory_limit for live in self.live.values())

    # Starting --------------------------------------------------------------------------------------------------------

    async def start(self, name: str, objects: blueprint.Objects) -> None:
        """Start a container and monitor it; one that can't be executed has ended at once.

        Raises:
            ConfigError, VolumeError, OSError: an object or resource that it needs is missing.
        """
        container, given = self._container(name), self._given
        drawn = blueprint.draw(
            pod=self._pod(),
            container=container,
            address=given.address,
            allotment=given.facts.allotment,
            paths=given.paths,
            objects=objects,
            node=self._node,
        )
        if self._node.sandbox.mode is not Mode.USERNS:
            needed, words = blueprint.linkable_mounts(self._pod(), drawn.mounts)
            self._events.not_isolated(words)
            given.place_links(needed)
        self._node.hosts.write(self._pod()["metadata"]["uid"])
        self._events.translated(drawn.translations)
        state = self.states.get(name, FRESH)
        began = lifecycle.started(state, Running(started_at=self._node.clock.now()))
        if self._node.kept_logs is not None:
            self._node.kept_logs.keep_earlier(self._record, name, at_most=records.KEPT_RUNS - 1)
        run = self._record.new_run(
            name, started_at=self._node.clock.now(), restarts=began.restarts, crashes=began.crashes
        )
        try:
            spec = blueprint.process_spec(
                pod=self._pod(),
                container=container,
                blueprint=drawn,
                record=self._record,
                run=run,
                allotment=given.facts.allotment,
                node=self._node,
            )
            async with self._node.starts:
                ref = await self._node.processes.start(spec)
        except ProcessStartError as error:
            self._retry.worked()
            self._start_failed(name, run, error)
            return
        except OSError:
            self._record.forget_run(run.path)
            raise
        self._retry.worked()
        self.states[name] = replace(began, state=self._running(container, run))
        self._follow(container, run, ref, fresh=True)
        image = container.get("image")
        note = f" as a process; its image {image} is not used" if image else " as a process"
        self._events.report(KubeletEvent.STARTED, f"Started container {name}{note}", container=name)

    def _start_failed(self, name: str, run: Run, error: ProcessStartError) -> None:
        now = self._node.clock.now()
        records.write_start_failure(
            run.path, exit_code=error.exit_code, message=str(error), finished_at=now.timestamp()
        )
        before = self.states.get(name, FRESH)
        began = lifecycle.started(before, Running(started_at=now))
        self.states[name] = lifecycle.ended(
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

    def cannot_start(self, name: str, error: Exception) -> None:
        """Record that something the container needs is missing: retry later or when it changes."""
        in_config = isinstance(error, ConfigError)
        reason = ContainerReason.CONFIG_ERROR if in_config else ContainerReason.CONTAINER_CREATING
        message = str(error)
        state = self.states.get(name, FRESH)
        if state.state != Waiting(reason=reason, message=message):
            self.states[name] = lifecycle.waiting(state, reason, message)
            event = KubeletEvent.FAILED if in_config else KubeletEvent.FAILED_MOUNT
            text = f"Error: {message}" if in_config else f"MountVolume.SetUp failed: {message}"
            self._events.warn(event, text, container=name)
        self._retry.later()

    def back_off(self, backoff: lifecycle.Backoff) -> None:
        """Report that the container's restart is delayed."""
        metadata = self._pod()["metadata"]
        seconds = int(backoff.delay.total_seconds())
        length = f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
        place = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        message = f"back-off {length} restarting failed container={backoff.container} pod={place}"
        state = self.states[backoff.container]
        if isinstance(state.state, Waiting) and state.state.message == message:
            return
        self.states[backoff.container] = lifecycle.waiting(state, ContainerReason.CRASH_LOOP_BACK_OFF, message)
        text = f"Back-off restarting failed container {backoff.container} in pod {place}"
        self._events.warn(KubeletEvent.BACK_OFF, text, container=backoff.container)

    async def take_over(self, container: Json) -> None:
        """Take over the active runs of a former kubelet, and process those that have ended since."""
        name = container["name"]
        for run in self._record.runs(name):
            found = await self._node.processes.adopt(run.path)
            state = self.states.get(name, FRESH)
            base = replace(
                lifecycle.started(state, self._running(container, run)), restarts=run.restarts, crashes=run.crashes
            )
            if isinstance(found, ProcessExit):
                self.states[name] = lifecycle.ended(base, self._end_of(name, run, found))
            elif found is not None:
                self.states[name] = base
                self._follow(container, run, found, fresh=False)

    # Monitoring a run -------------------------------------------------------------------------------------------------

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

        def report(reason: str, message: str) -> None:
            self._events.warn(reason, message, container=name)

        def exited(process_exit: ProcessExit) -> None:
            self._exits.append((name, process_exit))
            self._wake.set()

        def probed(field: str, ok: bool, message: str) -> None:
            self._on_probe(container, field, ok=ok, message=message)

        metadata = self._pod()["metadata"]
        live = ContainerRun(
            pod=f"{metadata['namespace']}/{metadata['name']}",
            container=container,
            run=run,
            ref=ref,
            address=self._given.address,
            node=self._node,
            report=report,
            exited=exited,
            probed=probed,
        )
        self.live[name] = live
        live.follow(started=container.get("startupProbe") is None, hook_grace=self._grace() if fresh else None)

    def note_exits(self) -> None:
        """Process the exits since the last call."""
        exits, self._exits = self._exits, []
        for name, process_exit in exits:
            live = self.live.pop(name, None)
            if live is None:
                continue
            live.cancel()
            self.states[name] = lifecycle.ended(self.states[name], self._end_of(name, live.run, process_exit))

    def _end_of(self, name: str, run: Run, process_exit: ProcessExit) -> Ended:
        container_id = self._container_id(name, run)
        return ending.ended(self._container(name), run, process_exit, container_id=container_id)

    def _on_probe(self, container: Json, field: str, *, ok: bool, message: str) -> None:
        name = container["name"]
        state = self.states[name]
        if not isinstance(state.state, Running):
            return
        kind = field.removesuffix("Probe")
        if not ok:
            text = f"{kind.capitalize()} probe failed: {message}"
            self._events.warn(KubeletEvent.UNHEALTHY, text, container=name)
        if field == "readinessProbe":
            self.states[name] = replace(state, state=replace(state.state, ready=ok))
        elif ok and field == "startupProbe":
            self.states[name] = replace(state, state=replace(state.state, started=True))
            self.live[name].start_probes()
        elif not ok:
            grace = float(container[field].get("terminationGracePeriodSeconds") or self._grace())
            text = f"Container {name} failed {kind} probe, will be restarted"
            self._events.report(KubeletEvent.KILLING, text, container=name)
            self.live[name].end(grace)
        self._wake.set()

    # Terminating ------------------------------------------------------------------------------------------------------

    def end(self, name: str) -> None:
        """Terminate a container within the pod's grace period."""
        live = self.live.get(name)
        if live is not None and live.end(self._grace()):
            self._events.report(KubeletEvent.KILLING, f"Stopping container {name}", container=name)

    async def kill_to_restart(self, name: str) -> None:
        """Kill a container that restarts together with all others."""
        live = self.live.get(name)
        if live is not None and live.kill_at is None:
            live.kill_at = self._node.clock.monotonic()
            self._events.report(
                KubeletEvent.KILLING, f"Stopping container {name}: all containers restart", container=name
            )
            await live.kill_if_overdue()

    async def kill_out_of_memory(self) -> None:
        """Kill containers whose memory is above their limit."""
        for live in list(self.live.values()):
            await live.kill_if_out_of_memory()

    def forget(self) -> None:
        """Stop monitoring the runs; their processes continue."""
        for live in self.live.values():
            live.cancel()

    # Helpers ----------------------------------------------------------------------------------------------------------

    def all(self) -> list[Json]:
        """The containers of the specification, init containers first."""
        spec = self._pod()["spec"]
        return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]

    def _find_container(self, name: str) -> Json | None:
        return next((c for c in self.all() if c["name"] == name), None)

    def _container(self, name: str) -> Json:
        container = self._find_container(name)
        if container is None:
            raise KeyError(name)
        return container

    def _container_id(self, name: str, run: Run) -> str:
        return f"process://{self._pod()['metadata']['uid']}/{name}/{run.number}"
