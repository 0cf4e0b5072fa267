"""Shared by the cluster components: the connection, the Lease, health and metrics servers, graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from vcbatch._version import __version__
from vcbatch.api.names import COMPONENTS_NAMESPACE
from vcbatch.api.program_rights import Feature, Right, Rights, needed
from vcbatch.cli.base.options import LEVELS
from vcbatch.cli.base.output import CliError
from vcbatch.cli.components.listening import listen
from vcbatch.cli.components.options import ComponentOptions
from vcbatch.cli.components.tracing import tracing
from vcbatch.hosting.checks import Check, Checks
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Background, PartFailedError
from vcbatch.observe import logging as logs
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.client.http import ClientLimits, HttpApi
from vcbatch.runtime.client.kubeconfig import CertificateRefusedError, Connection, KubeconfigError, load, shake_hands
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.leader.lease import LeaderElector, LeadershipLostError, LeaseConfig
from vcbatch.runtime.own_rights import UNANSWERED_SECONDS, OwnRights
from vcbatch.runtime.random import SystemRandom
from vcbatch.runtime.serving import HealthServer, Pulse
from vcbatch.runtime.tracing.tracer import Tracer

log = logging.getLogger(__name__)

_ASKING = ClientLimits(connections=1, streams=0, request_timeout=10.0, retries=1)

LEADERSHIP_LOST = 3
"""Exit status of a replica that lost its Lease; a restart is all that it needs."""


@dataclass(slots=True, kw_only=True)
class Component:
    """The environment of a component's work. The work sets `ready` once it has started; without an `elector` all
    replicas work."""

    api: HttpApi
    clock: SystemClock
    random: SystemRandom
    meter: PrometheusMeter
    identity: str
    ready: asyncio.Event
    health: Health
    checks: Checks
    """The checks that /readyz reports; the work replaces those that were announced for it."""
    elector: LeaderElector | None = None
    tracer: Tracer | None = None
    """The tracer that records spans, where tracing is on."""

    def exposition(self) -> tuple[str, bytes]:
        """Content type and body of a metrics scrape."""
        for name, error in self.checks.errors().items():
            self.meter.gauge("ready_check", 0.0 if error else 1.0, check=name)
        return self.meter.exposition()

    def working(self) -> str:
        """Why this replica doesn't work yet; "" where it works or is on standby."""
        return "" if self.standing_by or self.ready.is_set() else "the caches aren't filled yet"

    @property
    def standing_by(self) -> bool:
        return self.elector is not None and not self.elector.leading


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The description of a component: `part` selects its metrics, `name` is also the name of its Lease, `checks` are
    those that its work provides."""

    part: str
    name: str
    checks: Sequence[str]
    rights: Sequence[Rights]
    features: Callable[[], Collection[Feature]] = frozenset
    """The features that are on now; permissions that only other features need may be missing."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Objects whose names differ from those in the shipped roles."""
    namespace: str = COMPONENTS_NAMESPACE
    """The namespace of its namespaced permissions."""
    unanswered: float = UNANSWERED_SECONDS
    """Seconds without a response of the API server after which the program's permissions count as unknown."""


Work = Callable[[Component], Awaitable[None]]


def run_component(options: ComponentOptions, work: Work, program: Program) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit status: 1 where a part failed permanently, `LEADERSHIP_LOST` where
    the Lease was lost. Raises `CliError` for options that can't work."""
    logs.configure(level=LEVELS[options.log_level])
    identity = f"{socket.gethostname()}_{os.getpid()}_{SystemRandom().token(8)}"
    election = options.election(name=program.name, identity=identity)
    try:
        asyncio.run(_run(options, work, election, program))
    except (KubeconfigError, CertificateRefusedError) as error:
        raise CliError(str(error)) from error
    except PartFailedError as error:
        log.critical("ending: %s", error)
        return 1
    except LeadershipLostError as error:
        log.error("exiting, so that two replicas never decide at once: %s", error)
        return LEADERSHIP_LOST
    return 0


async def _run(options: ComponentOptions, work: Work, election: LeaseConfig, program: Program) -> None:
    clock, random = SystemClock(), SystemRandom()
    meter = PrometheusMeter(programs=(program.part,))
    meter.gauge("build_info", 1, component=program.part, version=__version__)
    connection = load(options.kubeconfig, context=options.context)
    await shake_hands(connection)
    async with AsyncExitStack() as stack:
        elector: LeaderElector | None = None
        if options.leader_elect:
            limits = ClientLimits(connections=2, request_timeout=election.renew_deadline / 2, retries=1)
            # A separate client: renewals never wait for other requests, and they aren't fenced.
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
        tracer = stack.enter_context(tracing(program.name, election.identity, on=options.tracing))
        component = Component(
            api=await stack.enter_async_context(api),
            clock=clock,
            random=random,
            meter=meter,
            identity=election.identity,
            health=Health(clock),
            ready=asyncio.Event(),
            checks=Checks("readyz"),
            elector=elector,
            tracer=tracer,
        )
        # A separate client: a replica on standby may not write, but checks its permissions nevertheless.
        asking = HttpApi(_as(connection, _agent(election, "own-rights")), clock=clock, random=random, limits=_ASKING)
        rights = OwnRights(
            await stack.enter_async_context(asking),
            partial(_needed, options, program),
            namespace=program.namespace,
            clock=clock,
            unanswered=program.unanswered,
        )
        component.health.on_failure = lambda task: component.meter.count("task_failures", task=task)
        if elector is not None:
            elector.errors = component.health.error
        pulse = Pulse(clock)
        alive = {"event-loop": pulse.error, **({"lease": elector.error} if elector is not None else {})}
        _put_checks(component, program, alive, rights)
        server = HealthServer(alive=Checks("healthz", alive), ready=component.checks, metrics=component.exposition)
        listen(server, health=options.healthz_address, metrics=options.listen_address)
        stack.callback(server.close)
        task = asyncio.ensure_future(_until_ended(component, elector, work, pulse, rights))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        with suppress(asyncio.CancelledError):
            await task
        log.info("stopped")


async def _until_ended(
    component: Component, elector: LeaderElector | None, work: Work, pulse: Pulse, rights: OwnRights
) -> None:
    async def lead() -> None:
        component.meter.gauge("leader", 1)
        try:
            await work(component)
        finally:
            component.meter.gauge("leader", 0)

    beside = Background(clock=component.clock, random=component.random, health=component.health)
    beside.keep("the heartbeat", pulse.run)
    beside.keep("reviewing our rights", rights.run)
    try:
        await (elector.run(lead) if elector is not None else lead())
    finally:
        await beside.close()


def _put_checks(component: Component, program: Program, alive: Mapping[str, Check], rights: OwnRights) -> None:
    """Register all checks of /readyz, in their order. Those of the work fail until it replaces them; on standby they
    pass, as there is nothing to check."""
    checks, elector = component.checks, component.elector
    for name, check in alive.items():
        checks.put(name, check)
    if elector is not None:
        checks.put("lease", partial(_lease_error, elector))
    checks.put("permissions", rights.error)
    checks.put("tasks", component.health.error)
    checks.put("caches", component.working)
    for name in program.checks:
        checks.put(name, lambda: "" if component.standing_by else "not started yet")


def _lease_error(elector: LeaderElector) -> str:
    """Why the replica isn't ready as far as the Lease goes; one on standby is ready where it could take over."""
    if elector.leading:
        return elector.error()
    return "" if elector.in_touch else "the Lease can't be read or taken"


def _needed(options: ComponentOptions, program: Program) -> Sequence[Right]:
    features = {*program.features(), *([Feature.ELECTION] if options.leader_elect else [])}
    return needed(program.rights, features, renamed=program.renamed)


def _agent(election: LeaseConfig, *more: str) -> str:
    """The user agent. The identity distinguishes replicas of one service account in the server's audit log."""
    return " ".join((f"{election.name}/{__version__} ({election.identity})", *more))


def _as(connection: Connection, agent: str) -> Connection:
    return replace(connection, headers={**connection.headers, "User-Agent": agent})
