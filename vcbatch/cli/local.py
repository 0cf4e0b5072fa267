"""Everything on one machine, put together: the only place that knows both the runtime and the local server.

One process and one event loop: server, admission, controllers, scheduler and kubelet. kopf alone has a thread.
"""

from __future__ import annotations

import asyncio
import errno
import faulthandler
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import yaml

from vcbatch.api.admission import Settings
from vcbatch.api.names import (
    CONTROLLERS_LEASE,
    DEFAULT_SCHEDULER,
    GPU_RESOURCE,
    KUBE_SCHEDULER,
    SCHEDULER_LEASE,
)
from vcbatch.api.quantity import parse_quantity
from vcbatch.api.queue import DEFAULT
from vcbatch.api.resources import LEASES, NODES
from vcbatch.cli.admission import admission_services, ensure_webhooks, idle_notices, remove_webhooks
from vcbatch.cli.controllers_options import followed
from vcbatch.cli.definitions import ensure_definitions
from vcbatch.cli.job_plugins import add_job_plugins
from vcbatch.cli.kubelets import KubeletOptions, Kubelets
from vcbatch.cli.listening import listen
from vcbatch.cli.local_scheduler import LocalScheduler, leave
from vcbatch.cli.output import CliError, note
from vcbatch.cli.plugin_files import load as load_plugins
from vcbatch.cli.policy_file import read_policy
from vcbatch.cli.recorded import recorded_scheduler
from vcbatch.cli.state import StateDir
from vcbatch.core.hypernode import parse_discovery
from vcbatch.local.apiserver.persistence import StateError
from vcbatch.local.apiserver.server import EmbeddedServer, PortInUse
from vcbatch.local.kubelet import SandboxUnavailableError
from vcbatch.observe import logging as logs
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.bootstrap import ensure_queues
from vcbatch.runtime.caches import memory
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.configuration.trouble import ConfigurationTrouble
from vcbatch.runtime.control_plane import ControlPlane
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.meter import Meter, NoMeter
from vcbatch.runtime.probes import Sockets
from vcbatch.runtime.random import SystemRandom
from vcbatch.runtime.scheduling.extender import HttpConsultant
from vcbatch.runtime.scheduling.loop import SchedulerLoop
from vcbatch.runtime.scheduling.policy_source import FollowedPolicy, PolicyFile
from vcbatch.runtime.serving import Address, HealthServer
from vcbatch.runtime.supervise import Part, PartFailedError, Supervisor
from vcbatch.runtime.workloads import Workloads
from vcbatch.scheduler import Policy
from vcbatch.scheduler.policy.text import effective
from vcbatch.scheduler.simulation.recording import Settings as SchedulerSettings
from vcbatch.seams import ApiError

log = logging.getLogger(__name__)

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_DEFAULT_PORT = 6443
_READY_SECONDS = 60.0
_LEASE_NAMESPACE = "kube-system"
# There is no other scheduler here: a pod that names none (`kubectl run`) is ours to place too.
_SCHEDULER_NAMES = (DEFAULT_SCHEDULER, KUBE_SCHEDULER)
# kopf takes longest to start. Jobs are taken without it, only later; nobody waits long for a convenience.
_KOPF_SECONDS = 5.0

Report = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """What `vcbatch up` was asked for. `port` None means: the last one used."""

    state: StateDir
    port: int | None = None
    virtual_nodes: int = 0
    kubelet_mode: str = "auto"
    webhooks: Literal["in-process", "external"] = "in-process"
    scheduler_conf: Path | None = None
    plugins: tuple[Path, ...] = ()
    queue_gates: bool = False
    controller_conf: Path | None = None
    inherit_owner_annotations: bool = True
    record_cycles: Path | None = None
    listen_address: Address | None = None
    """Where metrics are served; nowhere where None."""


def run(options: LocalOptions, *, ready: Callable[[Report], None], to_log: bool) -> int:
    """Run until SIGINT or SIGTERM. `ready` is called once a job can be submitted. Raises `CliError`."""
    options.state.create()
    options.state.claim()
    try:
        # `kill -USR2 PID` shows where every thread is: the question to a program that hangs.
        faulthandler.register(signal.SIGUSR2, all_threads=True)
        if to_log:
            logs.configure(file=options.state.log, json_lines=True)
        else:
            logs.configure(level=logging.WARNING)
        add_job_plugins()
        if options.scheduler_conf is not None:
            read_policy(options.scheduler_conf, extensions=load_plugins(options.plugins))
        return asyncio.run(_main(options, ready, told=not to_log))
    except StateError as error:
        raise CliError(str(error)) from error
    except PortInUse as error:
        raise CliError(str(error)) from error
    except SandboxUnavailableError as error:
        raise CliError(str(error), hint="`--kubelet-mode auto` takes the best that works here.") from error
    except PartFailedError as error:
        raise CliError(str(error)) from error
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        place = error.filename or options.state.path
        raise CliError(f"the state directory {options.state.path} can't be used: {place}: {error.strerror}") from error
    finally:
        options.state.release()


async def _main(options: LocalOptions, ready: Callable[[Report], None], *, told: bool) -> int:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_report_stray)
    stop = asyncio.Event()

    def end() -> None:
        if told and not stop.is_set():
            note("\nStopping; pods get up to 10 s to end ...")
        stop.set()

    # A terminal that is closed would otherwise end us without a goodbye to the pods.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end)
    loop.add_signal_handler(signal.SIGUSR1, _print_tasks)
    await LocalProgram(options).run(stop, ready)
    return 0


def _print_tasks() -> None:
    """`kill -USR1 PID` shows what every task waits for: the question to a program in which something doesn't happen."""
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        sys.stderr.write(f"{task.get_name()}\n")
        awaited: Any = task.get_coro()
        while (frame := getattr(awaited, "cr_frame", None)) is not None:
            sys.stderr.write(f"  {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}\n")
            awaited = awaited.cr_await
    sys.stderr.flush()


def _report_stray(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What no task was there to receive: told, never swallowed."""
    log.error("%s", context.get("message", "an error in the event loop"), exc_info=context.get("exception"))


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
        self._discovery = followed(options.controller_conf, parse_discovery)

    async def run(self, stop: asyncio.Event, ready: Callable[[Report], None]) -> None:
        """Start, call `ready`, and run until `stop`; then end in the opposite order, pods before the server."""
        close = self._serve_metrics()
        try:
            await self._run(stop, ready)
        finally:
            close()

    def _serve_metrics(self) -> Callable[[], None]:
        """Serve them where that is asked for; returns what ends it."""
        if self._options.listen_address is None:
            return lambda: None
        meter = self._meter = PrometheusMeter()
        server = HealthServer(alive=[], ready=[], metrics=meter.exposition)
        listen(server, health=None, metrics=self._options.listen_address)
        return server.close

    async def _run(self, stop: asyncio.Event, ready: Callable[[Report], None]) -> None:
        kubelets = await Kubelets.open(self._kubelet_options(), clock=self._clock, random=self._random)
        async with AsyncExitStack() as stack:
            server = await self._start_server()
            stack.push_async_callback(server.stop)
            await ensure_definitions(server.api)
            await self._set_up_webhooks(server)
            await ensure_queues(server.api, clock=self._clock, random=self._random)
            informers = Informers(server.api, clock=self._clock, random=self._random, meter=self._meter)
            connection = load(server.kubeconfig)
            plane = ControlPlane(
                server.api,
                connection,
                informers,
                clock=self._clock,
                random=self._random,
                host=socket.gethostname(),
                scheduler_names=_SCHEDULER_NAMES,
                inherit_owner_annotations=self._options.inherit_owner_annotations,
                discovery=self._discovery,
                meter=self._meter,
                asks=Sockets(local=True),
            )
            workloads = Workloads(
                server.api, informers, clock=self._clock, random=self._random, host=socket.gethostname()
            )
            loop, recorder, policy = await self._scheduler(server, informers)
            server.connect_kubelet(kubelets)
            await kubelets.start(server.api)
            stack.push_async_callback(kubelets.stop)
            supervisor = Supervisor(clock=self._clock, random=self._random)
            parts = [*plane.sources(), *plane.parts(), *workloads.parts(), *informers.parts(), *loop.parts()]
            parts.append(Part(name="sending the scheduler's events", run=recorder.run))
            if self._discovery is not None:
                own = await self._ensure_lease(server, CONTROLLERS_LEASE)
                trouble = ConfigurationTrouble([self._discovery], plane.recorder, own)
                parts.append(Part(name="telling of the configuration", run=trouble.run))
            if policy is not None:
                parts.append(Part(name="following the policy", run=partial(policy.follow, partial(self._use, loop))))
            parts.append(Part(name="the API server", run=server.ended, restart=False))
            parts.append(Part(name="the kubelet", run=kubelets.ended, restart=False))
            running = asyncio.create_task(supervisor.run(*parts), name="supervisor")
            stack.push_async_callback(_cancel, running)
            if not await _either(self._until_ready(plane, informers, kubelets), running, stop):
                return
            memory.settle()
            ready(await self._report(server, kubelets))
            await _either(stop.wait(), running, stop)

    def _kubelet_options(self) -> KubeletOptions:
        options = self._options
        return KubeletOptions(
            root=options.state.kubelet, mode=options.kubelet_mode, virtual_nodes=options.virtual_nodes
        )

    async def _start_server(self) -> EmbeddedServer:
        asked = self._options.port
        first = asked if asked is not None else _last_port(self._options.state.kubeconfig)
        try:
            return await self._serve_on(first)
        except PortInUse:
            if asked is not None:
                raise
            return await self._serve_on(0)

    async def _serve_on(self, port: int) -> EmbeddedServer:
        server = EmbeddedServer(
            state_dir=self._options.state.path,
            clock=self._clock,
            random=self._random,
            port=port,
            services=admission_services(self._clock, Settings(queue_gates=self._options.queue_gates)),
            notices=idle_notices(_SCHEDULER_NAMES),
        )
        try:
            await server.start()
        except OSError as error:
            raise CliError(f"the API server can't start on port {port}: {error.strerror or error}") from error
        return server

    async def _set_up_webhooks(self, server: EmbeddedServer) -> None:
        """Without ours no job or queue is judged, but for what the user's own webhooks say."""
        if self._options.webhooks == "in-process":
            await ensure_webhooks(server.api)
        else:
            await remove_webhooks(server.api)

    async def _scheduler(
        self, server: EmbeddedServer, informers: Informers
    ) -> tuple[SchedulerLoop, Recorder, FollowedPolicy | None]:
        recorder = Recorder(
            server.api, clock=self._clock, random=self._random, component=DEFAULT_SCHEDULER, host=socket.gethostname()
        )
        own = OwnObject(server.api, LEASES, _LEASE_NAMESPACE, SCHEDULER_LEASE)
        followed = None
        if self._options.scheduler_conf is not None:
            await self._ensure_lease(server, SCHEDULER_LEASE)
            parse = partial(Policy.parse, extensions=load_plugins(self._options.plugins))
            source = PolicyFile(self._options.scheduler_conf, own=own)
            followed = FollowedPolicy(source, parse, clock=self._clock, recorder=recorder, meter=self._meter)
        policy = None if followed is None else await followed.first()
        settings = self._settings(policy)
        self._leave(settings)
        scheduler = recorded_scheduler(policy, settings, self._options.record_cycles)
        scheduler.consultant = HttpConsultant(clock=self._clock)
        loop = SchedulerLoop(
            server.api,
            scheduler,
            informers,
            recorder,
            clock=self._clock,
            random=self._random,
            meter=self._meter,
            own=own,
        )
        return loop, recorder, followed

    def _settings(self, policy: Policy | None) -> SchedulerSettings:
        return SchedulerSettings(
            taken=self._clock.now(),
            policy=None if policy is None else effective(policy, metrics=False),
            scheduler_names=_SCHEDULER_NAMES,
            queue_gates=self._options.queue_gates,
        )

    def _leave(self, settings: SchedulerSettings) -> None:
        options = self._options
        leave(
            options.state,
            LocalScheduler(settings=settings, policy_file=options.scheduler_conf, plugins=options.plugins),
        )

    def _use(self, loop: SchedulerLoop, policy: Policy) -> None:
        """Decide by another policy from now on."""
        loop.use(policy)
        try:
            self._leave(self._settings(policy))
        except OSError as error:
            log.error("commands go by the policy of before: %s: %s", self._options.state.scheduler, error.strerror)

    async def _ensure_lease(self, server: EmbeddedServer, name: str) -> OwnObject:
        """An object that tells what is wrong with a file of the configuration, as such a Lease does on a cluster."""
        body = {"metadata": {"name": name}, "spec": {"holderIdentity": socket.gethostname()}}
        try:
            await server.api.create(LEASES, body, namespace=_LEASE_NAMESPACE)
        except ApiError as error:
            if not error.already_exists:
                raise
        return OwnObject(server.api, LEASES, _LEASE_NAMESPACE, name)

    async def _until_ready(self, plane: ControlPlane, informers: Informers, kubelets: Kubelets) -> None:
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await plane.listed()
                await informers.synced()
                await plane.queue_open(DEFAULT)
                await kubelets.ready()
        except TimeoutError:
            raise CliError(f"vcbatch did not get ready in {_READY_SECONDS:.0f} s") from None
        with suppress(TimeoutError):
            async with asyncio.timeout(_KOPF_SECONDS):
                await plane.custom_resources.watching.wait()

    async def _report(self, server: EmbeddedServer, kubelets: Kubelets) -> Report:
        machine = "no pods run on this machine"
        if kubelets.node_name is not None:
            machine = _size((await server.api.get(NODES, kubelets.node_name))["status"]["allocatable"])
            machine += f"; pods run as processes ({kubelets.mode})"
        if self._options.virtual_nodes:
            machine += f"; {_count(self._options.virtual_nodes, 'virtual node')}"
        return {"server": server.url, "kubeconfig": str(server.kubeconfig), "machine": machine}


def _size(capacity: dict[str, str]) -> str:
    text = f"{_count(parse_quantity(capacity['cpu']).value(), 'CPU')}, {_memory(capacity['memory'])}"
    gpus = int(capacity.get(GPU_RESOURCE, "0"))
    return f"{text}, {_count(gpus, 'GPU')}" if gpus else text


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _memory(quantity: str) -> str:
    return f"{parse_quantity(quantity).value() / 2**30:.0f} GiB"


def _last_port(kubeconfig: Path) -> int:
    """The port of the last time, so that shells which know it go on working."""
    try:
        document = yaml.safe_load(kubeconfig.read_text())
        return int(document["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    except (OSError, ValueError, KeyError, IndexError, TypeError, yaml.YAMLError):
        return _DEFAULT_PORT


async def _either(goal: Coroutine[Any, Any, Any], running: asyncio.Task[None], stop: asyncio.Event) -> bool:
    """True once the goal is reached, False where `stop` comes first. Raises what ended `running`."""
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
