"""One active run of one container: its process, its probes and hooks, and its termination."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from vcbatch.api.quantity import parse_quantity
from vcbatch.api.reasons import KubeletEvent
from vcbatch.interfaces.processes import CommandResult, ProcessExit, ProcessRef, Session
from vcbatch.local.kubelet import probes, records
from vcbatch.local.kubelet.node_services import NodeServices
from vcbatch.local.kubelet.records import Run

Json = dict[str, Any]
log = logging.getLogger(__name__)

Report = Callable[[str, str], None]
"""Emits a warning event about the container: its reason and its message."""

_KILL_AGAIN_SECONDS = 30.0


class ContainerRun:
    """Monitors a started process. `exited` and `probed` are called when that happens; neither may block.

    `pod` is NAMESPACE/NAME, for names of tasks; `probed` gets the field of the probe, whether it succeeded, and its
    message.
    """

    def __init__(
        self,
        *,
        pod: str,
        container: Json,
        run: Run,
        ref: ProcessRef,
        address: str,
        node: NodeServices,
        report: Report,
        exited: Callable[[ProcessExit], None],
        probed: Callable[[str, bool, str], None],
    ) -> None:
        self.run = run
        self.memory_limit = memory_limit(container)
        self.kill_at: float | None = None
        """Monotonic time at which the tree is killed; set once the container was sent SIGTERM."""
        self.container = container
        self.ref = ref
        self._name = f"{pod}/{container['name']}"
        self._address = address
        self._node = node
        self._report = report
        self._exited = exited
        self._probed = probed
        self._tasks: list[asyncio.Task[None]] = []

    def follow(self, *, started: bool, hook_grace: float | None) -> None:
        """Wait for the exit, and run the probes. `started` is True if no startup probe has to pass (any more);
        `hook_grace` is given for a new start: the time limit of a postStart hook in seconds."""
        self._repeat("exit", self._await_exit)
        hook = (self.container.get("lifecycle") or {}).get("postStart")
        if hook and hook_grace is not None:
            self._once("postStart hook", partial(self._post_start, hook, hook_grace))
        if started:
            self.start_probes()
        else:
            self._repeat("startupProbe", partial(self._probe, "startupProbe"))

    def start_probes(self) -> None:
        """Start the liveness and readiness probes: at the start, or once the startup probe has passed."""
        for field in ("livenessProbe", "readinessProbe"):
            if self.container.get(field):
                self._repeat(field, partial(self._probe, field))

    def end(self, grace: float) -> bool:
        """Terminate the container within `grace` seconds; a repeated call can only shorten them. Returns whether it was
        the first."""
        deadline = self._node.clock.monotonic() + grace
        if self.kill_at is not None:
            self.kill_at = min(self.kill_at, deadline)
            return False
        self.kill_at = deadline
        self._once("end", partial(self._report_to_end, grace))
        return True

    async def kill_if_overdue(self) -> None:
        now = self._node.clock.monotonic()
        if self.kill_at is not None and now >= self.kill_at:
            self.kill_at = now + _KILL_AGAIN_SECONDS
            await self.kill()

    async def kill(self) -> None:
        """Kill the whole tree now."""
        await self._node.processes.signal(self.ref, signal.SIGKILL)

    async def kill_if_out_of_memory(self) -> None:
        """Kill the tree if it uses more memory than the limit; recorded before it is killed."""
        if self.memory_limit and self._node.processes.exceeds_memory(self.ref, self.memory_limit):
            records.mark_out_of_memory(self.run.path)
            await self.kill()

    def cancel(self) -> None:
        """Stop monitoring the run. The process isn't affected."""
        current = asyncio.current_task()
        for task in self._tasks:
            if task is not current:
                task.cancel()

    def _repeat(self, what: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(self._node.background.finish(f"kubelet: {what}", run, about=self._name))

    def _once(self, what: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(self._node.background.once(f"kubelet: {what}", run, about=self._name))

    async def _await_exit(self) -> None:
        self._exited(await self._node.processes.wait(self.ref))

    async def _probe(self, field: str) -> None:
        probe, target, clock = self.container[field], self._target(), self._node.clock

        async def run(timeout: float) -> probes.Outcome:
            return await probes.run_handler(probe, target, timeout=timeout, clock=clock)

        await probes.watch_probe(
            probe,
            run=run,
            report=lambda ok, message: self._probed(field, ok, message),
            clock=clock,
            initially={"startupProbe": None, "livenessProbe": True, "readinessProbe": False}[field],
            until_success=field == "startupProbe",
        )

    async def _post_start(self, hook: Json, grace: float) -> None:
        outcome = await self._run_hook(hook, grace)
        if not outcome.ok:
            self._report(KubeletEvent.FAILED_POST_START_HOOK, f"PostStartHook failed: {outcome.message}")
            self.end(grace)

    async def _report_to_end(self, grace: float) -> None:
        hook = (self.container.get("lifecycle") or {}).get("preStop")
        if hook and grace > 0:
            outcome = await self._run_hook(hook, grace)
            if not outcome.ok:
                self._report(KubeletEvent.FAILED_PRE_STOP_HOOK, f"PreStopHook failed: {outcome.message}")
        await self._node.processes.signal(self.ref, signal.SIGTERM)

    async def _run_hook(self, hook: Json, grace: float) -> probes.Outcome:
        """Run a hook. One that the kubelet can't run counts as failed."""
        try:
            return await probes.run_handler(hook, self._target(), timeout=grace, clock=self._node.clock)
        except Exception as error:
            log.exception("a lifecycle hook of %s failed", self._name)
            return probes.Outcome(ok=False, message=f"{type(error).__name__}: {error}")

    async def open_session(self, argv: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        """Start an additional command in the container, connected with a client; raises `ProcessStartError`."""
        return await self._node.processes.open_session(
            self.ref,
            argv=argv,
            env=self._node.config.environment,
            working_dir=self._working_dir(),
            stdin=stdin,
            tty=tty,
        )

    async def run_on(self, argv: Sequence[str], streams: Sequence[int]) -> None:
        """Start an additional command in the container with the given streams (see `Processes.run_on`)."""
        await self._node.processes.run_on(
            self.ref,
            argv=argv,
            env=self._node.config.environment,
            working_dir=self._working_dir(),
            streams=streams,
        )

    def _working_dir(self) -> str:
        return self.container.get("workingDir") or str(self._node.config.working_dir)

    def _target(self) -> probes.Target:
        node, container, working_dir = self._node, self.container, self._working_dir()

        async def execute(argv: list[str], timeout: float) -> CommandResult:
            env = node.config.environment
            return await node.processes.run_in(self.ref, argv=argv, env=env, working_dir=working_dir, timeout=timeout)

        named = {p["name"]: p["containerPort"] for p in container.get("ports") or () if p.get("name")}
        return probes.Target(address=self._address, ports=named, execute=execute)


def memory_limit(container: Json) -> int | None:
    """The container's memory limit in bytes; None without one."""
    given = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    return None if given is None else parse_quantity(given).value() or None
