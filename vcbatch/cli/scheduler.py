"""`vcbatch scheduler`: the gang scheduler on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vcbatch.api.names import DEFAULT_SCHEDULER, SCHEDULER_LEASE
from vcbatch.api.queue import DEFAULT
from vcbatch.cli.component import Component, run_component
from vcbatch.cli.component_options import ComponentOptions, DurationType, component_options
from vcbatch.cli.output import CliError
from vcbatch.runtime import memory
from vcbatch.runtime.bootstrap import ensure_queues
from vcbatch.runtime.informers import Informers
from vcbatch.runtime.recorder import Recorder
from vcbatch.runtime.scheduler_loop import LoopConfig, SchedulerLoop
from vcbatch.runtime.supervise import Part, Supervisor, never
from vcbatch.scheduler import Policy, PolicyError, Scheduler

_LARGEST_POLICY = 1024 * 1024


@click.command("scheduler")
@component_options
@click.option(
    "--scheduler-conf", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=None, metavar="FILE",
    help="Policy file, as Volcano's.  [default: a built-in policy]",
)  # fmt: skip
@click.option(
    "--scheduler-name", "names", multiple=True, default=(DEFAULT_SCHEDULER,), show_default=True, metavar="NAME",
    help="Place pods with this schedulerName; may be repeated.",
)  # fmt: skip
@click.option(
    "--default-queue", default=DEFAULT, show_default=True, metavar="QUEUE", help="Queue of PodGroups that name none."
)
@click.option(
    "--schedule-period", type=DurationType(), default="1s", show_default=True,
    help="A cycle starts when something changed; after a long one, rest this long at most.",
)  # fmt: skip
def command(
    scheduler_conf: Path | None, names: tuple[str, ...], default_queue: str, schedule_period: float, **options: Any
) -> int:
    """Run the gang scheduler on the cluster of the kubeconfig."""
    policy = _policy(scheduler_conf)

    async def work(component: Component) -> None:
        scheduler = Scheduler(policy, scheduler_names=names, default_queue=default_queue)
        await _work(component, scheduler, names[0], LoopConfig(period=schedule_period))

    return run_component(ComponentOptions(**options), work, name=SCHEDULER_LEASE)


def _policy(path: Path | None) -> Policy | None:
    """None stands for the built-in policy."""
    if path is None:
        return None
    try:
        if path.stat().st_size > _LARGEST_POLICY:
            raise CliError(f"{path}: larger than {_LARGEST_POLICY} bytes")
        return Policy.parse(path.read_text())
    except (PolicyError, OSError, UnicodeDecodeError) as error:
        raise CliError(f"{path}: {error}") from error


async def _work(component: Component, scheduler: Scheduler, name: str, config: LoopConfig) -> None:
    clock, random, meter = component.clock, component.random, component.meter
    informers = Informers(component.api, clock=clock, random=random, meter=meter)
    recorder = Recorder(
        component.api,
        clock=clock,
        random=random,
        component=name,
        host=component.identity,
        on_drop=lambda count: meter.count("events_dropped", count, component="scheduler"),
    )
    loop = SchedulerLoop(
        component.api, scheduler, informers, recorder, clock=clock, random=random, config=config, meter=meter
    )

    async def ready() -> None:
        await ensure_queues(component.api, clock=clock, random=random)
        await informers.synced()
        memory.settle()
        component.ready.set()
        await never()

    await Supervisor(clock=clock, random=random).run(
        *informers.parts(),
        *loop.parts(),
        Part(name="sending the scheduler's events", run=recorder.run),
        Part(name="readiness", run=ready),
    )
