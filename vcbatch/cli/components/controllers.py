"""`vcbatch controllers`: the controllers on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from vcbatch.api.names import CONTROLLERS_LEASE, DEFAULT_SCHEDULER
from vcbatch.api.program_rights import CONTROLLERS, Feature
from vcbatch.api.resources import LEASES
from vcbatch.cli.base.output import CliError
from vcbatch.cli.components.component import Component, Program, run_component
from vcbatch.cli.components.controllers_options import controllers_options, followed
from vcbatch.cli.components.job_plugins import add_job_plugins
from vcbatch.cli.components.options import ComponentOptions, component_options
from vcbatch.core.hypernode import parse_discovery
from vcbatch.core.sharding import parse_sharding
from vcbatch.hosting.supervise import Part, Supervisor, never
from vcbatch.interfaces.accounting import AccountingError, AccountingStore
from vcbatch.runtime.accounting.recorder import KEPT_DAYS
from vcbatch.runtime.accounting.store import open_store
from vcbatch.runtime.bootstrap import ensure_queues
from vcbatch.runtime.caches import memory
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.configuration.trouble import ConfigurationTrouble
from vcbatch.runtime.control_plane import ControlPlane
from vcbatch.runtime.events.own_object import OwnObject


@click.command("controllers")
@component_options
@click.option(
    "--scheduler-name", "scheduler_names", multiple=True, default=(DEFAULT_SCHEDULER,), show_default=True,
    metavar="NAME", help="Create PodGroups for plain pods with this schedulerName; may be repeated.",
)  # fmt: skip
@controllers_options
@click.option(
    "--sharding-conf", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=None, metavar="FILE",
    help="Volcano's sharding.yaml, which assigns nodes to schedulers.  [default: no NodeShards]",
)  # fmt: skip
@click.option(
    "--accounting-store", metavar="URL", envvar="VCBATCH_ACCOUNTING_STORE", default=None,
    help="Store of accounting records: sqlite:///PATH or postgresql://USER@HOST/DATABASE.  "
         "[env: VCBATCH_ACCOUNTING_STORE; default: no accounting]",
)  # fmt: skip
@click.option(
    "--accounting-days", type=click.IntRange(1, 36_500), default=KEPT_DAYS, show_default=True, metavar="N",
    help="Age in days at which accounting records are deleted.",
)  # fmt: skip
def command(
    scheduler_names: tuple[str, ...],
    *,
    inherit_owner_annotations: bool,
    controller_conf: Path | None,
    sharding_conf: Path | None,
    accounting_store: str | None,
    accounting_days: int,
    **options: Any,
) -> int:
    """Run the controllers of Jobs, CronJobs, JobFlows, JobTemplates, Queues, PodGroups, Commands and HyperNodes."""
    add_job_plugins()
    discovery = followed(controller_conf, parse_discovery)
    sharding = followed(sharding_conf, parse_sharding)
    common = ComponentOptions(**options)
    store = _store(accounting_store)

    async def work(component: Component) -> None:
        informers = Informers(component.api, clock=component.clock, random=component.random, meter=component.meter)
        plane = ControlPlane(
            component.api,
            component.api.connection,
            informers,
            clock=component.clock,
            random=component.random,
            meter=component.meter,
            host=component.identity,
            scheduler_names=scheduler_names,
            inherit_owner_annotations=inherit_owner_annotations,
            discovery=discovery,
            sharding=sharding,
            health=component.health,
            tracer=component.tracer,
            accounting=store,
            accounting_days=accounting_days,
        )
        component.checks.put("watches", plane.unfollowed)
        component.checks.put("reconciles", plane.stuck)
        reporters: list[Part] = []
        if common.leader_elect:
            own = OwnObject(component.api, LEASES, common.leader_elect_resource_namespace, CONTROLLERS_LEASE)
            trouble = ConfigurationTrouble(filter(None, (discovery, sharding)), plane.recorder, own)
            reporters.append(Part(name="telling of configurations", run=trouble.run))
        await _work(component, informers, plane, reporters)

    features = {Feature.SHARDING: sharding, Feature.DISCOVERY: discovery}
    on = frozenset(feature for feature, configuration in features.items() if configuration is not None)
    program = Program(
        part="controllers",
        name=CONTROLLERS_LEASE,
        checks=("watches", "reconciles"),
        rights=CONTROLLERS,
        features=lambda: on,
        namespace=common.leader_elect_resource_namespace,
    )
    return run_component(common, work, program)


def _store(url: str | None) -> AccountingStore | None:
    """The store at the URL. Raises `CliError` where it can't work."""
    if not url:
        return None
    try:
        return open_store(url)
    except AccountingError as error:
        raise CliError(str(error), hint="See docs/accounting.md for --accounting-store.") from error


async def _work(component: Component, informers: Informers, plane: ControlPlane, reporters: Sequence[Part]) -> None:
    async def follow() -> None:
        # Pods are listed after the jobs: with an older list of pods, those of newer jobs would seem to be lost.
        await plane.listed()
        await supervisor.run(*informers.parts(), *plane.parts(), *reporters, Part(name="readiness", run=ready))

    async def ready() -> None:
        await ensure_queues(component.api, clock=component.clock, random=component.random)
        await informers.synced()
        await plane.custom_resources.watching.wait()
        memory.settle()
        component.ready.set()
        await never()

    supervisor = Supervisor(clock=component.clock, random=component.random, health=component.health)
    await supervisor.run(*plane.sources(), Part(name="the controllers", run=follow, restart=False))
