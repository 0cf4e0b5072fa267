"""`vcbatch webhooks`: the admission service on a cluster."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from vcbatch.api.admission import Settings
from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.validate import QueueRules
from vcbatch.cli.options import LEVELS, AddressType
from vcbatch.cli.output import CliError
from vcbatch.observe import logging as logs
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.client import HttpApi
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.informers import Informers
from vcbatch.runtime.kubeconfig import KubeconfigError, load
from vcbatch.runtime.random import SystemRandom
from vcbatch.runtime.serving import Address, HealthServer
from vcbatch.runtime.supervise import Part, PartFailedError, Supervisor, never
from webhooks.app import build
from webhooks.certificates import CertificateError, Certificates
from webhooks.server import listen, serve
from webhooks.service import AdmissionService
from webhooks.world import World

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    kubeconfig: Path | None
    context: str | None
    listen_address: str
    port: int
    tls_cert_file: Path
    tls_private_key_file: Path
    healthz_address: Address | None
    scheduler_name: tuple[str, ...]
    max_queue_depth: int
    enable_queue_allocated_pods_check: bool
    enable_root_queue_protection: bool
    log_level: str


@click.command("webhooks")
@click.option(
    "--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), default=None, metavar="FILE",
    help="Cluster to work for.  [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]",
)  # fmt: skip
@click.option("--context", default=None, metavar="NAME", help="Context of the kubeconfig.")
@click.option("--listen-address", default="0.0.0.0", show_default=True, metavar="HOST", help="Serve there.")  # noqa: S104 - it is asked from other machines
@click.option("--port", type=click.IntRange(1, 65535), default=8443, show_default=True, metavar="N", help="With TLS.")
@click.option("--tls-cert-file", type=_FILE, required=True, metavar="FILE", help="Certificate in PEM; may be replaced.")
@click.option("--tls-private-key-file", type=_FILE, required=True, metavar="FILE", help="Its key in PEM.")
@click.option(
    "--healthz-address", type=AddressType(), default=None,
    help="Serve /healthz, /readyz and /metrics without TLS there, besides the port.  [default: nowhere]",
)  # fmt: skip
@click.option(
    "--scheduler-name", multiple=True, default=(DEFAULT_SCHEDULER,), show_default=True, metavar="NAME",
    help="Pods with this schedulerName are ours; may be repeated. The first is for jobs that name none.",
)  # fmt: skip
@click.option(
    "--max-queue-depth", type=click.IntRange(1, 64), default=QueueRules().max_depth, show_default=True, metavar="N",
    help="How deep a queue may be below the root.",
)  # fmt: skip
@click.option(
    "--enable-queue-allocated-pods-check", is_flag=True, help="Refuse to delete a queue in which pods are placed."
)
@click.option(
    "--enable-root-queue-protection/--disable-root-queue-protection", default=QueueRules().protect_root,
    show_default=True, help="Refuse to change the limits of the root queue.",
)  # fmt: skip
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True)
def command(**options: Any) -> int:
    """Run the admission service of the cluster of the kubeconfig."""
    given = _Options(**options)
    logs.configure(level=LEVELS[given.log_level])
    try:
        asyncio.run(_until_stopped(given))
    except (KubeconfigError, PartFailedError, CertificateError) as error:
        raise CliError(str(error)) from error
    return 0


async def _until_stopped(options: _Options) -> None:
    running = asyncio.ensure_future(_run(options))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return


async def _run(options: _Options) -> None:
    clock, random, meter = SystemClock(), SystemRandom(), PrometheusMeter()
    certificates = Certificates(options.tls_cert_file, options.tls_private_key_file, clock=clock, meter=meter)
    async with AsyncExitStack() as stack:
        connection = load(options.kubeconfig, context=options.context)
        api = await stack.enter_async_context(HttpApi(connection, clock=clock, random=random))
        informers = Informers(api, clock=clock, random=random, meter=meter)
        world = World(api, informers)
        service = AdmissionService(world=world, clock=clock, meter=meter, settings=_settings(options))
        app = build(service, meter=meter, exposition=meter.exposition)
        health = HealthServer(ready=lambda: world.complete, metrics=meter.exposition)
        stack.push_async_callback(health.close)
        try:
            listener = stack.enter_context(listen(options.listen_address, options.port))
            if options.healthz_address is not None:
                await health.listen(options.healthz_address)
        except OSError as error:
            raise CliError(f"can't listen: {error.strerror or error}") from error

        async def fill() -> None:
            await world.synced()
            await never()

        await Supervisor(clock=clock, random=random).run(
            Part(name="serving admission", run=lambda: serve(app, listener, certificates.context), restart=False),
            Part(name="following the certificate", run=certificates.follow),
            Part(name="filling the caches", run=fill),
            *informers.parts(),
        )


def _settings(options: _Options) -> Settings:
    rules = QueueRules(
        max_depth=options.max_queue_depth,
        keep_allocated=options.enable_queue_allocated_pods_check,
        protect_root=options.enable_root_queue_protection,
    )
    return Settings(schedulers=options.scheduler_name, queues=rules)
