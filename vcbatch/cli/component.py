"""What the cluster components have in common: a connection, a Lease, health and metrics servers, a clean end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace

from vcbatch._version import __version__
from vcbatch.cli.component_options import ComponentOptions
from vcbatch.cli.listening import listen
from vcbatch.cli.options import LEVELS
from vcbatch.cli.output import CliError
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import PartFailedError
from vcbatch.observe import logging as logs
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.client.http import ClientLimits, HttpApi
from vcbatch.runtime.client.kubeconfig import CertificateRefusedError, Connection, KubeconfigError, load, shake_hands
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.leader.lease import LeaderElector, LeadershipLostError, LeaseConfig
from vcbatch.runtime.random import SystemRandom
from vcbatch.runtime.serving import HealthServer, Pulse

log = logging.getLogger(__name__)

LEADERSHIP_LOST = 3
"""Exit status of a replica that had to let go of its Lease: nothing is wrong with it that a new start doesn't mend."""


@dataclass(slots=True, kw_only=True)
class Component:
    """What a component's work is given. `ready` is to be set once it works; without an `elector` all replicas work."""

    api: HttpApi
    clock: SystemClock
    random: SystemRandom
    meter: PrometheusMeter
    identity: str
    ready: asyncio.Event
    health: Health
    elector: LeaderElector | None = None


Work = Callable[[Component], Awaitable[None]]


def run_component(options: ComponentOptions, work: Work, *, program: str, name: str) -> int:
    """Run until SIGTERM or SIGINT; `program` says which metrics are exported, `name` is that of the Lease too. Returns
    the exit status: 1 where a part of it failed for good, `LEADERSHIP_LOST` where the Lease was lost. Raises `CliError`
    for what can't work."""
    logs.configure(level=LEVELS[options.log_level])
    identity = f"{socket.gethostname()}_{os.getpid()}_{SystemRandom().token(8)}"
    election = options.election(name=name, identity=identity)
    try:
        asyncio.run(_run(options, work, election, program))
    except (KubeconfigError, CertificateRefusedError) as error:
        raise CliError(str(error)) from error
    except PartFailedError as error:
        log.critical("ending: %s", error)
        return 1
    except LeadershipLostError as error:
        log.error("ending, so that nothing is decided by two: %s", error)
        return LEADERSHIP_LOST
    return 0


async def _run(options: ComponentOptions, work: Work, election: LeaseConfig, program: str) -> None:
    clock, random = SystemClock(), SystemRandom()
    meter = PrometheusMeter(programs=(program,))
    meter.gauge("build_info", 1, component=program, version=__version__)
    connection = load(options.kubeconfig, context=options.context)
    await shake_hands(connection)
    async with AsyncExitStack() as stack:
        elector: LeaderElector | None = None
        if options.leader_elect:
            limits = ClientLimits(connections=2, request_timeout=election.renew_deadline / 2, retries=1)
            # A client of its own: renewals never wait behind other requests, and no fence stops them.
            agent = _agent(election, "leader-election")
            keeper = HttpApi(_as(connection, agent), clock=clock, random=random, limits=limits, meter=meter)
            elector = LeaderElector(
                await stack.enter_async_context(keeper), election, clock=clock, random=random, meter=meter
            )
        api = HttpApi(
            _as(connection, _agent(election)),
            clock=clock,
            random=random,
            may_write=elector.may_write if elector is not None else None,
            meter=meter,
        )
        component = Component(
            api=await stack.enter_async_context(api),
            clock=clock,
            random=random,
            meter=meter,
            identity=election.identity,
            health=Health(clock),
            ready=asyncio.Event(),
            elector=elector,
        )
        component.health.on_failure = lambda task: component.meter.count("task_failures", task=task)
        if elector is not None:
            elector.faults = component.health.fault
        pulse = Pulse(clock)
        server = HealthServer(
            alive=[pulse.fault, *([elector.fault] if elector is not None else [])],
            ready=[lambda: _unready(component, elector), component.health.fault],
            metrics=component.meter.exposition,
        )
        listen(server, health=options.healthz_address, metrics=options.listen_address)
        stack.callback(server.close)
        task = asyncio.ensure_future(_until_ended(component, elector, work, pulse))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        with suppress(asyncio.CancelledError):
            await task
        log.info("stopped")


async def _until_ended(component: Component, elector: LeaderElector | None, work: Work, pulse: Pulse) -> None:
    async def lead() -> None:
        component.meter.gauge("leading", 1)
        try:
            await work(component)
        finally:
            component.meter.gauge("leading", 0)

    beating = asyncio.ensure_future(pulse.run())
    try:
        await (elector.run(lead) if elector is not None else lead())
    finally:
        beating.cancel()


def _unready(component: Component, elector: LeaderElector | None) -> str:
    """A replica that stands by is ready where it could take over; one that leads once it works."""
    if elector is None or elector.leading:
        return "" if component.ready.is_set() else "the caches aren't filled yet"
    return "" if elector.in_touch else "the Lease can't be read or taken"


def _agent(election: LeaseConfig, *more: str) -> str:
    """The user agent: the identity tells the replicas of one service account apart in the server's audit log."""
    return " ".join((f"{election.name}/{__version__} ({election.identity})", *more))


def _as(connection: Connection, agent: str) -> Connection:
    return replace(connection, headers={**connection.headers, "User-Agent": agent})
