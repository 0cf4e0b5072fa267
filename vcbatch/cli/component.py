"""What the cluster components have in common: a connection, a Lease, health and metrics servers, a clean end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from vcbatch.cli.output import CliError
from vcbatch.observe import logging as logs
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.client import HttpApi
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.kubeconfig import KubeconfigError, load
from vcbatch.runtime.lease import LeaderElector, LeadershipLostError, LeaseConfig
from vcbatch.runtime.random import SystemRandom
from vcbatch.runtime.serving import Address, AddressError, HealthServer
from vcbatch.runtime.supervise import PartFailedError

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., object])
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _AddressType(click.ParamType):
    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Address | None:
        if isinstance(value, Address):
            return value
        try:
            return Address.parse(str(value))
        except AddressError as error:
            self.fail(str(error), param, ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentOptions:
    """The options of `component_options`."""

    kubeconfig: Path | None
    context: str | None
    leader_elect: bool
    leader_elect_namespace: str
    healthz_address: Address | None
    listen_address: Address | None
    log_level: str


def component_options(function: F) -> F:
    for option in reversed(
        (
            click.option(
                "--kubeconfig",
                type=click.Path(dir_okay=False, path_type=Path),
                default=None,
                metavar="FILE",
                help="Cluster to work on.  [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]",
            ),
            click.option("--context", default=None, metavar="NAME", help="Context of the kubeconfig."),
            click.option(
                "--leader-elect/--no-leader-elect",
                default=True,
                show_default=True,
                help="Work only while holding the Lease, so that replicas may stand by.",
            ),
            click.option(
                "--leader-elect-namespace",
                default="volcano-system",
                show_default=True,
                metavar="NAMESPACE",
                help="Where the Lease is.",
            ),
            click.option(
                "--healthz-address",
                type=_AddressType(),
                default=None,
                help="Serve /healthz and /readyz there.  [default: nowhere]",
            ),
            click.option(
                "--listen-address",
                type=_AddressType(),
                default=None,
                help="Serve /metrics there.  [default: nowhere]",
            ),
            click.option("--log-level", type=click.Choice(list(_LEVELS)), default="info", show_default=True),
        )
    ):
        function = option(function)
    return function


@dataclass(slots=True, kw_only=True)
class Component:
    """What a component's work is given. `ready` is to be set once it works."""

    api: HttpApi
    clock: SystemClock
    random: SystemRandom
    meter: PrometheusMeter
    identity: str
    ready: asyncio.Event
    leading: bool = False


def run_component(options: ComponentOptions, work: Callable[[Component], Awaitable[None]], *, lease: str) -> int:
    """Run until SIGTERM or SIGINT. Raises `CliError` for what can't work, and when the Lease is lost."""
    logs.configure(level=_LEVELS[options.log_level])
    try:
        asyncio.run(_run(options, work, lease))
    except (KubeconfigError, PartFailedError) as error:
        raise CliError(str(error)) from error
    except LeadershipLostError as error:
        raise CliError(f"{error}; ending, so that nothing is decided by two") from error
    return 0


async def _run(options: ComponentOptions, work: Callable[[Component], Awaitable[None]], lease: str) -> None:
    clock, random = SystemClock(), SystemRandom()
    connection = load(options.kubeconfig, context=options.context)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(HttpApi(connection, clock=clock, random=random))
        component = Component(
            api=api,
            clock=clock,
            random=random,
            meter=PrometheusMeter(),
            identity=f"{socket.gethostname()}_{os.getpid()}_{random.token(8)}",
            ready=asyncio.Event(),
        )
        stack.push_async_callback((await _serve(options, component)).close)
        task = asyncio.ensure_future(_lead(options, component, work, lease))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            log.info("stopped")


async def _lead(
    options: ComponentOptions, component: Component, work: Callable[[Component], Awaitable[None]], lease: str
) -> None:
    async def lead() -> None:
        component.leading = True
        component.meter.gauge("leading", 1)
        await work(component)

    if not options.leader_elect:
        await lead()
        return
    config = LeaseConfig(namespace=options.leader_elect_namespace, name=lease, identity=component.identity)
    elector = LeaderElector(component.api, config, clock=component.clock, random=component.random)
    await elector.run(lead)


async def _serve(options: ComponentOptions, component: Component) -> HealthServer:
    """A replica that stands by is ready: it is where it should be. One that leads is when it works."""
    server = HealthServer(
        ready=lambda: component.ready.is_set() or (options.leader_elect and not component.leading),
        metrics=component.meter.exposition,
    )
    try:
        for address in {options.healthz_address, options.listen_address} - {None}:
            await server.listen(address)  # type: ignore[arg-type]
    except OSError as error:
        await server.close()
        raise CliError(f"can't listen: {error.strerror or error}") from error
    return server
