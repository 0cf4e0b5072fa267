"""`vcbatch webhooks`: the admission service on a cluster."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from vcbatch.api.admission import Settings
from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.validate import QueueRules
from vcbatch.cli.component import Component, run_component
from vcbatch.cli.component_options import ComponentOptions
from vcbatch.cli.job_plugins import add_job_plugins
from vcbatch.cli.options import LEVELS, AddressType
from vcbatch.cli.output import CliError
from vcbatch.runtime.informers import Informers
from vcbatch.runtime.serving import Address
from vcbatch.runtime.supervise import Part, Supervisor, never
from webhooks.app import build
from webhooks.certificates import CertificateError, Certificates
from webhooks.server import listen, serve
from webhooks.service import AdmissionService
from webhooks.settings import ConfigurationError, FollowedSettings
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
    admission_conf: Path | None
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
@click.option(
    "--listen-address", default="127.0.0.1", show_default=True, metavar="HOST",
    help="Serve there; an API server on another machine needs one that it reaches.",
)  # fmt: skip
@click.option("--port", type=click.IntRange(1, 65535), default=8443, show_default=True, metavar="N", help="With TLS.")
@click.option("--tls-cert-file", type=_FILE, required=True, metavar="FILE", help="Certificate in PEM; may be replaced.")
@click.option("--tls-private-key-file", type=_FILE, required=True, metavar="FILE", help="Its key in PEM.")
@click.option(
    "--healthz-address", type=AddressType(), default=None,
    help="Serve /healthz, /readyz and /metrics without TLS there, besides the port.  [default: nowhere]",
)  # fmt: skip
@click.option(
    "--admission-conf", type=_FILE, default=None, metavar="FILE",
    help="Resource groups of pods, as Volcano's; may be replaced.  [default: none]",
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
    shared = ComponentOptions(
        kubeconfig=given.kubeconfig,
        context=given.context,
        healthz_address=given.healthz_address,
        listen_address=given.healthz_address,
        log_level=given.log_level,
    )
    add_job_plugins()
    return run_component(shared, lambda component: _work(component, given), name="vcbatch-webhooks")


async def _work(component: Component, options: _Options) -> None:
    clock, meter = component.clock, component.meter
    certificates = _certificates(options, component)
    settings = _settings(options, component)
    informers = Informers(component.api, clock=clock, random=component.random, meter=meter)
    world = World(component.api, informers)
    service = AdmissionService(world=world, clock=clock, meter=meter, settings=settings.current)
    app = build(service, meter=meter, exposition=meter.exposition)

    async def fill() -> None:
        await world.synced()
        component.ready.set()
        await never()

    with _listening(options) as listener:
        await Supervisor(clock=clock, random=component.random).run(
            Part(name="serving admission", run=lambda: serve(app, listener, certificates.context), restart=False),
            Part(name="following the certificate", run=certificates.follow),
            Part(name="following the resource groups", run=settings.follow),
            Part(name="filling the caches", run=fill),
            *informers.parts(),
        )


def _certificates(options: _Options, component: Component) -> Certificates:
    files = options.tls_cert_file, options.tls_private_key_file
    try:
        return Certificates(*files, clock=component.clock, meter=component.meter)
    except CertificateError as error:
        raise CliError(str(error)) from error


def _listening(options: _Options) -> socket.socket:
    try:
        return listen(options.listen_address, options.port)
    except OSError as error:
        where = f"{options.listen_address}:{options.port}"
        raise CliError(f"can't listen on {where}: {error.strerror or error}") from error


def _settings(options: _Options, component: Component) -> FollowedSettings:
    rules = QueueRules(
        max_depth=options.max_queue_depth,
        keep_allocated=options.enable_queue_allocated_pods_check,
        protect_root=options.enable_root_queue_protection,
    )
    settings = Settings(schedulers=options.scheduler_name, queues=rules)
    try:
        return FollowedSettings(settings, options.admission_conf, clock=component.clock)
    except ConfigurationError as error:
        raise CliError(str(error)) from error
