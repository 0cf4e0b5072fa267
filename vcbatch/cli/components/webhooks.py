"""`vcbatch webhooks`: the admission service on a cluster."""

from __future__ import annotations

import asyncio
import importlib
import logging
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from vcbatch.api.admission import Settings
from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.program_rights import CERTIFICATES_SECRET, WEBHOOKS, Feature
from vcbatch.api.validate import QueueRules
from vcbatch.cli.base.options import LEVELS, AddressType
from vcbatch.cli.base.output import CliError
from vcbatch.cli.components.component import Component, Program, run_component
from vcbatch.cli.components.feature_gates import QUEUE_GATES, feature_gates_option
from vcbatch.cli.components.job_plugins import add_job_plugins
from vcbatch.cli.components.options import ComponentOptions, DurationType
from vcbatch.cli.components.tracing import tracing_option
from vcbatch.hosting.supervise import Part, Supervisor, never
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.caches.memory import settle
from vcbatch.runtime.caches.watch import ASKED
from vcbatch.runtime.configuration.followed_file import ConfigurationError
from vcbatch.runtime.serving import Address
from webhooks.access import SubjectAccess
from webhooks.certificates.context import CertificateError, ServingContext
from webhooks.certificates.files import FileCertificates
from webhooks.certificates.managed import ManagedCertificates
from webhooks.certificates.trust import Trust
from webhooks.configurations import SERVICE, Target, pointed, shipped
from webhooks.kept_configurations import KeptConfigurations, RulesLease
from webhooks.policies.expressions import OF_A_JOB, user_of
from webhooks.server import listen, serve
from webhooks.service import AdmissionService
from webhooks.settings import FollowedSettings
from webhooks.world import World

log = logging.getLogger(__name__)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    kubeconfig: Path | None
    context: str | None
    listen_address: str
    port: int
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    tls_secret_name: str
    webhook_namespace: str
    webhook_service_name: str
    webhook_url: str
    manage_configurations: bool
    ca_cert_file: Path | None
    controllers_account: str
    include_job_pods: bool
    graceful_shutdown_time: float
    healthz_address: Address | None
    admission_conf: Path | None
    scheduler_name: tuple[str, ...]
    max_queue_depth: int
    enable_queue_allocated_pods_check: bool
    enable_root_queue_protection: bool
    check_queue_access: bool
    feature_gates: Mapping[str, bool]
    log_level: str
    tracing: bool


@click.command("webhooks")
@click.option(
    "--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), default=None, metavar="FILE",
    help="Kubeconfig file.  [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]",
)  # fmt: skip
@click.option("--context", default=None, metavar="NAME", help="Kubeconfig context.")
@click.option(
    "--listen-address", default="127.0.0.1", show_default=True, metavar="HOST",
    help="Address to listen on; must be reachable from the API servers. Empty: all addresses.",
)  # fmt: skip
@click.option("--port", type=click.IntRange(1, 65535), default=8443, show_default=True, metavar="N", help="Port (TLS).")
@click.option(
    "--tls-cert-file", type=_FILE, default=None, metavar="FILE",
    help="TLS certificate (PEM); reloaded on change.  [default: generated and rotated, stored in a Secret]",
)  # fmt: skip
@click.option(
    "--tls-private-key-file", type=_FILE, default=None, metavar="FILE", help="Private key of the certificate (PEM)."
)
@click.option(
    "--tls-secret-name", default="volcano-admission-secret", show_default=True, metavar="NAME",
    help="Secret of the generated certificates, shared by all replicas.",
)  # fmt: skip
@click.option(
    "--webhook-namespace", default="volcano-system", show_default=True, metavar="NAME",
    help="Namespace of the Secret and the Service.",
)  # fmt: skip
@click.option(
    "--webhook-service-name", default=SERVICE, show_default=True, metavar="NAME",
    help="Service in the generated certificate.",
)  # fmt: skip
@click.option(
    "--webhook-url", default="", metavar="https://HOST:PORT",
    help="URL for the API servers instead of the Service; HOST is added to the generated certificate.",
)  # fmt: skip
@click.option(
    "--manage-configurations", is_flag=True,
    help="Keep the rules and CA bundle of the existing webhook configurations up to date once ready.",
)  # fmt: skip
@click.option(
    "--ca-cert-file", type=_FILE, default=None, metavar="FILE",
    help="CA certificate of --tls-cert-file (PEM), for --manage-configurations; reloaded on change.",
)  # fmt: skip
@click.option(
    "--controllers-account", default="", metavar="NAMESPACE/NAME",
    help="ServiceAccount of `vcbatch controllers`: exempt from pod validation, and may name the user of a job.  "
    "[default: vcbatch-controllers in --webhook-namespace]",
)  # fmt: skip
@click.option(
    "--include-job-pods", is_flag=True,
    help="Also validate pods and PodGroups of Jobs (with --manage-configurations). Implied by --admission-conf and "
    f"the feature gate {QUEUE_GATES}.",
)  # fmt: skip
@click.option(
    "--graceful-shutdown-time", type=DurationType(), default="10s", show_default=True,
    help="Maximum time to drain connections before shutdown.",
)  # fmt: skip
@click.option(
    "--healthz-address", type=AddressType(), default=None,
    help="Additional address of /healthz, /readyz and /metrics, without TLS.  [default: disabled]",
)  # fmt: skip
@click.option(
    "--admission-conf", type=_FILE, default=None, metavar="FILE",
    help="Resource groups (Volcano's admission configuration); reloaded on change.  [default: none]",
)  # fmt: skip
@click.option(
    "--scheduler-name", multiple=True, default=(DEFAULT_SCHEDULER,), show_default=True, metavar="NAME",
    help="schedulerName of the pods to check; may be repeated. The first is the default for jobs.",
)  # fmt: skip
@click.option(
    "--max-queue-depth", type=click.IntRange(1, 64), default=QueueRules().max_depth, show_default=True, metavar="N",
    help="Maximum depth of the queue hierarchy.",
)  # fmt: skip
@click.option(
    "--enable-queue-allocated-pods-check",
    is_flag=True,
    help="Include the number of allocated pods in the error when a queue can't be deleted.",
)
@click.option(
    "--enable-root-queue-protection/--disable-root-queue-protection", default=QueueRules().protect_root,
    show_default=True, help="Reject changes to the limits of the root queue.",
)  # fmt: skip
@click.option(
    "--check-queue-access", is_flag=True,
    help="Require permission to create queues/submit of the queue (SubjectAccessReview).",
)  # fmt: skip
@feature_gates_option
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True, help="Log level.")
@tracing_option
def command(**options: Any) -> int:
    """Run the admission webhooks."""
    given = _checked(_Options(**options))
    importlib.import_module("webhooks.app")  # fails without FastAPI, before anything has started
    shared = ComponentOptions(
        kubeconfig=given.kubeconfig,
        context=given.context,
        healthz_address=given.healthz_address,
        listen_address=given.healthz_address,
        log_level=given.log_level,
        tracing=given.tracing,
    )
    add_job_plugins()
    own = given.tls_cert_file is None
    on = {
        Feature.CERTIFICATES: own,
        Feature.CONFIGURATIONS: own or given.manage_configurations,
        Feature.RULES: given.manage_configurations,
    }
    features = [feature for feature, is_on in on.items() if is_on]
    program = Program(
        part="webhooks",
        name="vcbatch-webhooks",
        checks=("watches", "certificate"),
        rights=WEBHOOKS,
        features=lambda: features,
        renamed={CERTIFICATES_SECRET: given.tls_secret_name},
        namespace=given.webhook_namespace,
        unanswered=ASKED.silent,
    )
    return run_component(shared, lambda component: _work(component, given), program)


async def _work(component: Component, options: _Options) -> None:
    from webhooks.app import build

    clock, meter = component.clock, component.meter
    certificates = _certificates(component, options)
    settings = _settings(options, component)
    informers = Informers(component.api, clock=clock, random=component.random, meter=meter)
    world = World(component.api, informers, with_pods=options.enable_queue_allocated_pods_check)
    rights = SubjectAccess(component.api)
    service = AdmissionService(
        world=world,
        clock=clock,
        meter=meter,
        settings=settings.current,
        access=rights if options.check_queue_access else None,
        rights=rights,
        tracer=component.tracer,
    )
    component.checks.put(
        "watches", lambda: "; ".join(filter(None, (informers.error(ASKED), certificates.unfollowed())))
    )
    component.checks.put("certificate", partial(_certificate_error, certificates))
    app = build(service, meter=meter, exposition=component.exposition, ready=component.checks)

    async def answer() -> None:
        await certificates.serving.wait()
        await serve(
            app,
            listener,
            certificates.context.tls,
            clock=clock,
            drain_seconds=options.graceful_shutdown_time,
        )

    kept = _kept(component, options, certificates, settings, lambda: service.world.complete)

    async def fill() -> None:
        await asyncio.gather(world.synced(), certificates.trusted.wait(), *([kept.usable.wait()] if kept else []))
        settle()
        component.ready.set()
        try:
            await never()
        finally:
            component.ready.clear()

    with _listening(options) as listener:
        await Supervisor(clock=clock, random=component.random, health=component.health).run(
            Part(name="serving admission", run=answer, restart=False),
            Part(name="following the resource groups", run=settings.follow),
            Part(name="becoming ready", run=fill),
            *certificates.parts,
            *([Part(name="keeping the webhook configurations", run=kept.keep)] if kept else []),
            *informers.parts(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Certificates:
    """`serving`: there is a certificate to serve. `trusted`: the API servers have the authorities to verify it, as far
    as this program configures them."""

    context: ServingContext
    serving: asyncio.Event
    trusted: asyncio.Event
    parts: Sequence[Part]
    trust: Trust | None = None
    """The webhook configurations, where they are watched."""
    bundle: Callable[[], bytes] = lambda: b""
    """The certificate authorities."""
    unfollowed: Callable[[], str] = lambda: ""
    """Why the inputs of the certificates may be out of date; "" where they aren't."""


def _certificate_error(certificates: _Certificates) -> str:
    if certificates.context.loaded is not None and not certificates.trusted.is_set():
        return "not yet written to the webhook configurations"
    return certificates.context.error()


def _certificates(component: Component, options: _Options) -> _Certificates:
    context = ServingContext(clock=component.clock, meter=component.meter)
    if options.tls_cert_file is not None and options.tls_private_key_file is not None:
        return _of_files(component, context, options, options.tls_cert_file, options.tls_private_key_file)
    informers = Informers(component.api, clock=component.clock, random=component.random, meter=component.meter)
    trust = Trust(component.api, informers)
    managed = ManagedCertificates(
        component.api,
        trust,
        namespace=options.webhook_namespace,
        secret=options.tls_secret_name,
        names=_names(options),
        context=context,
        clock=component.clock,
    )
    parts = [Part(name="keeping the certificates", run=managed.keep), *informers.parts()]
    return _Certificates(
        context=context,
        serving=managed.serving,
        trusted=managed.trusted,
        parts=parts,
        trust=trust,
        bundle=lambda: managed.bundle,
        unfollowed=partial(informers.error, ASKED),
    )


def _of_files(
    component: Component, context: ServingContext, options: _Options, certificate: Path, key: Path
) -> _Certificates:
    try:
        files = FileCertificates(certificate, key, context=context, clock=component.clock)
    except CertificateError as error:
        raise CliError(str(error)) from error
    there = asyncio.Event()
    there.set()
    parts = [Part(name="following the certificate", run=files.follow)]
    if not options.manage_configurations:
        return _Certificates(context=context, serving=there, trusted=there, parts=parts)
    informers = Informers(component.api, clock=component.clock, random=component.random, meter=component.meter)
    trust = Trust(component.api, informers)
    parts += informers.parts()
    return _Certificates(
        context=context,
        serving=there,
        trusted=there,
        parts=parts,
        trust=trust,
        unfollowed=partial(informers.error, ASKED),
    )


def _kept(
    component: Component,
    options: _Options,
    certificates: _Certificates,
    settings: FollowedSettings,
    well: Callable[[], bool],
) -> KeptConfigurations | None:
    """The manager of the webhook configurations, where the options request one. Otherwise features about pods of Jobs
    may need other configurations, which is logged."""
    ours = shipped()
    about_jobs = options.admission_conf is not None or settings.current().queue_gates
    if not options.manage_configurations or certificates.trust is None:
        if about_jobs:
            log.warning(
                "resource groups and scheduling gates reach the pods of Jobs only where the webhook configurations "
                "come from `python -m webhooks --include-job-pods`: the match condition %s leaves these pods out",
                OF_A_JOB,
            )
        return None
    file = options.ca_cert_file

    def wanted() -> Sequence[dict[str, Any]]:
        now = settings.current()
        target = Target(
            service=options.webhook_service_name,
            namespace=options.webhook_namespace,
            url=options.webhook_url,
            controllers=_controllers_account(options),
            job_pods=options.include_job_pods or bool(now.resource_groups) or now.queue_gates,
            schedulers=now.schedulers,
            groups=now.resource_groups,
        )
        return pointed(ours, ca_bundle=file.read_bytes() if file is not None else b"", target=target)

    lease = RulesLease(
        component.api, namespace=options.webhook_namespace, identity=component.identity, clock=component.clock
    )
    return KeptConfigurations(
        component.api,
        certificates.trust,
        lease,
        wanted=wanted,
        bundle=certificates.bundle,
        well=lambda: well() and component.ready.is_set() and not component.health.error(),
        clock=component.clock,
    )


def _names(options: _Options) -> frozenset[str]:
    """The names in the certificate: an API server requires `SERVICE.NAMESPACE.svc`, or the host of the URL."""
    service, namespace = options.webhook_service_name, options.webhook_namespace
    host = urlsplit(options.webhook_url).hostname
    return frozenset(
        {service, f"{service}.{namespace}", f"{service}.{namespace}.svc", *([host] if host is not None else [])}
    )


def _checked(options: _Options) -> _Options:
    if (options.tls_cert_file is None) != (options.tls_private_key_file is None):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file must be used together")
    if options.manage_configurations and options.tls_cert_file is not None and options.ca_cert_file is None:
        raise click.UsageError("--manage-configurations with --tls-cert-file requires --ca-cert-file")
    account = options.controllers_account
    if account and re.fullmatch("[a-z0-9.-]+/[a-z0-9.-]+", account) is None:
        raise click.BadParameter(f"must be NAMESPACE/NAME, got {account!r}", param_hint="--controllers-account")
    try:
        url = urlsplit(options.webhook_url)
        good = not options.webhook_url or (url.scheme == "https" and bool(url.hostname))
    except ValueError:
        good = False
    if not good:
        raise click.BadParameter(f"must be https://HOST:PORT, got {options.webhook_url!r}", param_hint="--webhook-url")
    return options


def _listening(options: _Options) -> socket.socket:
    try:
        return listen(options.listen_address, options.port)
    except OSError as error:
        where = f"{options.listen_address}:{options.port}"
        raise CliError(f"can't listen on {where}: {error.strerror or error}") from error


def _controllers_account(options: _Options) -> str:
    """The service account of the controllers, as NAMESPACE/NAME."""
    return options.controllers_account or f"{options.webhook_namespace}/vcbatch-controllers"


def _settings(options: _Options, component: Component) -> FollowedSettings:
    rules = QueueRules(
        max_depth=options.max_queue_depth,
        keep_allocated=options.enable_queue_allocated_pods_check,
        protect_root=options.enable_root_queue_protection,
    )
    gates = options.feature_gates.get(QUEUE_GATES, False)
    settings = Settings(
        schedulers=options.scheduler_name,
        queues=rules,
        queue_gates=gates,
        controllers=user_of(_controllers_account(options)),
    )
    try:
        return FollowedSettings(settings, options.admission_conf, clock=component.clock)
    except ConfigurationError as error:
        raise CliError(str(error)) from error
