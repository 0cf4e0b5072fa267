"""The parts of `vcbatch up`, and the order in which they start and stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

from vcbatch._version import __version__
from vcbatch.api.names import CONTROLLERS_LEASE
from vcbatch.api.queue import DEFAULT
from vcbatch.cli.base.output import CliError
from vcbatch.cli.components.controllers_options import followed
from vcbatch.cli.components.listening import listen
from vcbatch.cli.local.accounting import attempts_in
from vcbatch.cli.local.definitions import ensure_definitions
from vcbatch.cli.local.kubelets import KubeletOptions, Kubelets
from vcbatch.cli.local.options import LocalOptions
from vcbatch.cli.local.report import Report, report_of
from vcbatch.cli.local.scheduling import LocalScheduling, ensure_lease
from vcbatch.cli.local.serving import SCHEDULER_NAMES, set_up_webhooks, start_server
from vcbatch.core.accounting import ATTEMPTS
from vcbatch.core.hypernode import parse_discovery
from vcbatch.hosting.checks import Checks
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Part, Supervisor
from vcbatch.local.environments import Environments
from vcbatch.local.kubelet import Retention
from vcbatch.observe.definitions.metric import CONTROLLERS, SCHEDULER
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.accounting.store import sqlite_store
from vcbatch.runtime.bootstrap import ensure_queues
from vcbatch.runtime.caches import memory
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.configuration.trouble import ConfigurationTrouble
from vcbatch.runtime.control_plane import ControlPlane
from vcbatch.runtime.metrics.meter import Meter, NoMeter
from vcbatch.runtime.probes import Sockets
from vcbatch.runtime.random import SystemRandom
from vcbatch.runtime.serving import HealthServer
from vcbatch.runtime.workloads import Workloads
from webhooks.policies.expressions import CONTROLLERS_ACCOUNT, user_of

_READY_SECONDS: Final = 60.0
# kopf takes longest to start. Jobs are accepted without it, and only reconciled later, so readiness doesn't wait long
# for it.
_KOPF_SECONDS: Final = 5.0


class LocalProgram:
    """The parts of `vcbatch up` and the order in which they start and stop.

    Raises:
        CliError: a file that the options name can't be used.
    """

    def __init__(self, options: LocalOptions) -> None:
        self._options = options
        self._clock = SystemClock()
        self._random = SystemRandom()
        self._meter: Meter = NoMeter()
        self._health = Health(self._clock, on_failure=lambda task: self._meter.count("task_failures", task=task))
        self._discovery = followed(options.controller_conf, parse_discovery)

    async def run(self, stop: asyncio.Event, ready: Callable[[Report], None]) -> None:
        """Start, call `ready`, and run until `stop`; then stop in reverse order, pods before the server."""
        close = self._serve_metrics()
        try:
            await self._run(stop, ready)
        finally:
            close()

    def _serve_metrics(self) -> Callable[[], None]:
        """Start the metrics server if the options have an address; returns the function that stops it."""
        if self._options.listen_address is None:
            return lambda: None
        meter = self._meter = PrometheusMeter(programs=(CONTROLLERS, SCHEDULER))
        meter.gauge("build_info", 1, component="up", version=__version__)
        meter.gauge("leader", 1)  # without leader election: this is the only replica
        server = HealthServer(alive=Checks("healthz"), ready=Checks("readyz"), metrics=meter.exposition)
        listen(server, health=None, metrics=self._options.listen_address)
        return server.close

    async def _run(self, stop: asyncio.Event, ready: Callable[[Report], None]) -> None:
        clock, random, health = self._clock, self._random, self._health
        kubelets = await Kubelets.open(self._kubelet_options(), clock=clock, random=random, health=health)
        async with AsyncExitStack() as stack:
            server = await start_server(self._options, clock=clock, random=random, health=health)
            stack.push_async_callback(server.stop)
            await ensure_definitions(server.api)
            await set_up_webhooks(server, self._options)
            await ensure_queues(server.api, clock=self._clock, random=self._random)
            informers = Informers(server.api, clock=self._clock, random=self._random, meter=self._meter)
            connection = load(server.kubeconfig)
            plane = ControlPlane(
                server.api_as(user_of(CONTROLLERS_ACCOUNT)),  # the user that the webhooks recognize as the controllers
                connection,
                informers,
                clock=self._clock,
                random=self._random,
                host=socket.gethostname(),
                scheduler_names=SCHEDULER_NAMES,
                inherit_owner_annotations=self._options.inherit_owner_annotations,
                discovery=self._discovery,
                meter=self._meter,
                asks=Sockets(local=True),
                health=health,
                accounting=sqlite_store(self._options.state.accounting),
            )
            server.serve_list(ATTEMPTS, attempts_in(self._options.state.accounting, clock))
            workloads = Workloads(
                server.api, informers, clock=self._clock, random=self._random, host=socket.gethostname()
            )
            scheduling = LocalScheduling(server.api, informers, self._options, clock=self._clock, random=self._random)
            scheduler = await scheduling.parts(self._meter)
            server.connect_kubelet(kubelets, kept_logs=kubelets.kept_logs)
            await kubelets.start(server.api, lost=server.losses)
            stack.push_async_callback(kubelets.stop)
            supervisor = Supervisor(clock=clock, random=random, health=health)
            parts = [*plane.sources(), *plane.parts(), *workloads.parts(), *informers.parts(), *scheduler]
            if self._discovery is not None:
                own = await ensure_lease(server.api, CONTROLLERS_LEASE)
                trouble = ConfigurationTrouble([self._discovery], plane.recorder, own)
                parts.append(Part(name="telling of the configuration", run=trouble.run))
            parts.append(Part(name="the API server", run=server.ended, restart=False))
            parts.append(Part(name="the kubelet", run=kubelets.ended, restart=False))
            running = asyncio.create_task(supervisor.run(*parts), name="supervisor")
            stack.push_async_callback(_cancel, running)
            if not await _either(self._until_ready(plane, informers, kubelets), running, stop):
                return
            memory.settle()
            ready(await report_of(server, kubelets, self._options))
            await _either(stop.wait(), running, stop)

    def _kubelet_options(self) -> KubeletOptions:
        options = self._options
        return KubeletOptions(
            root=options.state.kubelet,
            environments=Environments.of(options.state.path),
            mode=options.kubelet_mode,
            virtual_nodes=options.virtual_nodes,
            virtual_node_size=options.virtual_node_size or {},
            kept_logs=options.state.kept_logs,
            retention=Retention(age=options.log_retention, size=options.log_retention_size)
            if options.log_retention
            else None,
        )

    async def _until_ready(self, plane: ControlPlane, informers: Informers, kubelets: Kubelets) -> None:
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await plane.listed()
                await informers.synced()
                await plane.queue_open(DEFAULT)
                await kubelets.ready()
        except TimeoutError:
            raise CliError(f"vcbatch was not ready after {_READY_SECONDS:.0f} s") from None
        with suppress(TimeoutError):
            async with asyncio.timeout(_KOPF_SECONDS):
                await plane.custom_resources.watching.wait()


async def _either(goal: Coroutine[Any, Any, Any], running: asyncio.Task[None], stop: asyncio.Event) -> bool:
    """True once the goal is reached, False where `stop` is set first. Raises the exception that ended `running`."""
    tasks = [asyncio.ensure_future(goal), asyncio.ensure_future(stop.wait())]
    try:
        await asyncio.wait([*tasks, running], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        if tasks[0].done():
            tasks[0].result()
            return True
        return False
    finally:
        for task in tasks:
            await _cancel(task)


async def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
