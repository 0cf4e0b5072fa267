"""`vcbatch scheduler`: the gang scheduler on a cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from vcbatch.api.names import DEFAULT_SCHEDULER, SCHEDULER_LEASE
from vcbatch.api.program_rights import SCHEDULER
from vcbatch.api.queue import DEFAULT
from vcbatch.api.resources import LEASES
from vcbatch.cli.base.output import CliError
from vcbatch.cli.components.component import Component, Program, run_component
from vcbatch.cli.components.feature_gates import QUEUE_GATES, feature_gates_option
from vcbatch.cli.components.options import ComponentOptions, DurationType, component_options
from vcbatch.cli.components.recorder import recorded_scheduler
from vcbatch.cli.components.scheduler_features import features_on
from vcbatch.cli.components.share import read_share, share_options
from vcbatch.cli.files.plugin_files import extensions_option
from vcbatch.cli.files.policy_file import read_policy
from vcbatch.hosting.supervise import Part, Supervisor, never
from vcbatch.runtime.bootstrap import ensure_queues
from vcbatch.runtime.caches import memory
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.scheduling.extender import HttpConsultant
from vcbatch.runtime.scheduling.lease_notice import LeaseNotice
from vcbatch.runtime.scheduling.loop import LoopConfig, SchedulerLoop
from vcbatch.runtime.scheduling.policy_source import FollowedPolicy, PolicyConfigMap, PolicyFile, PolicySource
from vcbatch.scheduler import Policy, Scheduler, default_policy, parse_policy
from vcbatch.scheduler.framework.policy import Extensions
from vcbatch.scheduler.model.share import ShardingMode
from vcbatch.scheduler.policy.text import effective
from vcbatch.scheduler.simulation.recording import Settings


@click.command("scheduler")
@component_options
@click.option(
    "--scheduler-conf", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=None, metavar="FILE",
    help="Scheduler configuration file (Volcano's format); reloaded on change.  [default: built-in]",
)  # fmt: skip
@click.option(
    "--scheduler-configmap", default=None, metavar="NAMESPACE/NAME[:KEY]",
    help="ConfigMap with the scheduler configuration; reloaded on change.",
)  # fmt: skip
@extensions_option
@click.option(
    "--scheduler-name", "names", multiple=True, default=(DEFAULT_SCHEDULER,), show_default=True, metavar="NAME",
    help="schedulerName of the pods to schedule; may be repeated.",
)  # fmt: skip
@click.option(
    "--default-queue", default=DEFAULT, show_default=True, metavar="QUEUE", help="Queue of PodGroups without a queue."
)
@click.option(
    "--schedule-period", type=DurationType(), default="1s", show_default=True,
    help="Upper bound for the pause between scheduling cycles.",
)  # fmt: skip
@feature_gates_option
@share_options
@click.option(
    "--record-cycles", type=click.Path(file_okay=False, path_type=Path), default=None, metavar="DIR",
    help="Record input and decisions to a ring of files in this directory, for `vcbatch replay`.",
)  # fmt: skip
def command(
    scheduler_conf: Path | None,
    scheduler_configmap: str | None,
    extensions: Extensions,
    names: tuple[str, ...],
    default_queue: str,
    schedule_period: float,
    feature_gates: Mapping[str, bool],
    node_selector: tuple[str, ...],
    sharding_mode: str,
    sharding_name: str,
    lease: str,
    record_cycles: Path | None,
    **options: Any,
) -> int:
    """Run the scheduler."""
    if scheduler_conf is not None and scheduler_configmap is not None:
        raise click.UsageError("--scheduler-conf and --scheduler-configmap are mutually exclusive")
    if scheduler_conf is not None:
        read_policy(scheduler_conf, extensions=extensions)  # an invalid one is rejected before there is a connection
    common = ComponentOptions(**options)
    share = read_share(
        node_selector=node_selector,
        sharding_mode=sharding_mode,
        sharding_name=sharding_name,
        environment=os.environ,
        leader_elect=common.leader_elect,
    )
    parse = partial(parse_policy, extensions=extensions)
    queue_gates = feature_gates.get(QUEUE_GATES, False)
    in_force = _InForce()

    async def work(component: Component) -> None:
        recorder = _recorder(component, names[0])
        source = _source(component, common, lease, scheduler_conf, scheduler_configmap)
        followed = None
        policy = None
        if source is not None:
            followed = FollowedPolicy(source, parse, clock=component.clock, recorder=recorder, meter=component.meter)
            component.checks.put("policy", partial(_policy_error, followed, source.name))
            sending = asyncio.ensure_future(recorder.run())
            try:
                policy = await followed.first()
            finally:
                sending.cancel()
        settings = Settings(
            taken=component.clock.now(),
            policy=None if policy is None else effective(policy, metrics=False),
            scheduler_names=names,
            default_queue=default_queue,
            share=share,
            queue_gates=queue_gates,
        )
        scheduler = recorded_scheduler(policy, settings, record_cycles)
        scheduler.consultant = HttpConsultant(clock=component.clock)
        own = _own(component, common, lease)
        if source is None:
            component.checks.put("policy", lambda: "")  # the built-in one

        def say(policy: Policy) -> None:
            in_force.policy = policy
            _say(component, "" if source is None else source.name, settings, policy)

        say(policy or default_policy())
        await _work(component, scheduler, recorder, followed, own, LoopConfig(period=schedule_period), say)

    program = Program(
        part="scheduler",
        name=lease,
        checks=("watches", "policy", "cycle"),
        rights=SCHEDULER,
        features=lambda: features_on(
            in_force.policy, queue_gates=queue_gates, sharded=share.mode is not ShardingMode.NONE
        ),
        renamed={SCHEDULER_LEASE: lease},
        namespace=common.leader_elect_resource_namespace,
    )
    return run_component(common, work, program)


@dataclass(slots=True)
class _InForce:
    """The policy in force; None until one is loaded."""

    policy: Policy | None = None


def _policy_error(followed: FollowedPolicy, source: str) -> str:
    """The readiness error of the policy. It omits the policy's text, which may contain passwords; an event and the log
    have it."""
    if not followed.error:
        return "" if followed.policy is not None else "not read yet"
    holds = "nothing is scheduled" if followed.policy is None else "the last valid configuration stays in use"
    return f"{source} is invalid; {holds}"


def _source(
    component: Component, options: ComponentOptions, lease: str, path: Path | None, configmap: str | None
) -> PolicySource | None:
    """The source of the policy; None for the built-in one."""
    if configmap is not None:
        try:
            return PolicyConfigMap.parse(component.api, configmap)
        except ValueError as error:
            raise CliError(f"--scheduler-configmap: {error}") from error
    if path is None:
        return None
    return PolicyFile(path, own=_own(component, options, lease))


def _own(component: Component, options: ComponentOptions, lease: str) -> OwnObject | None:
    """The object on which events about the scheduler itself are recorded."""
    if not options.leader_elect:
        return None
    return OwnObject(component.api, LEASES, options.leader_elect_resource_namespace, lease)


def _say(component: Component, source: str, settings: Settings, policy: Policy) -> None:
    """Record on the Lease, where there is one, that this policy is in force."""
    if component.elector is not None:
        component.elector.say(LeaseNotice.of(component.identity, source, settings, policy).annotations())


def _recorder(component: Component, name: str) -> Recorder:
    meter = component.meter
    return Recorder(
        component.api,
        clock=component.clock,
        random=component.random,
        component=name,
        host=component.identity,
        on_drop=lambda count: meter.count("events_dropped", count, component="scheduler"),
    )


async def _work(
    component: Component,
    scheduler: Scheduler,
    recorder: Recorder,
    followed: FollowedPolicy | None,
    own: OwnObject | None,
    config: LoopConfig,
    say: Callable[[Policy], None],
) -> None:
    clock, random, meter = component.clock, component.random, component.meter
    informers = Informers(component.api, clock=clock, random=random, meter=meter)
    loop = SchedulerLoop(
        component.api,
        scheduler,
        informers,
        recorder,
        clock=clock,
        random=random,
        config=config,
        meter=meter,
        own=own,
        tracer=component.tracer,
    )

    component.checks.put("watches", informers.error)
    component.checks.put("cycle", loop.error)

    def take(policy: Policy) -> None:
        loop.use(policy)
        say(policy)

    async def ready() -> None:
        await ensure_queues(component.api, clock=clock, random=random)
        await informers.synced()
        memory.settle()
        component.ready.set()
        await never()

    parts = [
        *informers.parts(),
        *loop.parts(),
        Part(name="sending the scheduler's events", run=recorder.run),
        Part(name="readiness", run=ready),
    ]
    if followed is not None:
        parts.append(Part(name="following the policy", run=partial(followed.follow, take)))
    await Supervisor(clock=clock, random=random, health=component.health).run(*parts)
