"""`vcbatch job list` and `job get`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click

from vcbatch.api.phases import JobPhase
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.names import queue_names
from vcbatch.cli.resources.kinds import JOB, job_phase, job_queue
from vcbatch.cli.resources.listing import Asked, get_command, list_options, show_list

getting = get_command(JOB)


@click.command("list")
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    metavar="QUEUE",
    help="Filter by queue; may be repeated.",
    shell_complete=queue_names,
)
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice(list(JobPhase), case_sensitive=False),
    metavar="PHASE",
    help="Filter by phase; may be repeated.",
)
@list_options(namespaced=True)
@access_options
def listing(access: Access, asked: Asked, queues: tuple[str, ...], phases: tuple[JobPhase, ...]) -> int:
    """List jobs with the number of running or succeeded pods, and why they are pending or failed."""
    return show_list(access, JOB, replace(asked, keep=_keep(queues, phases)))


def _keep(queues: Sequence[str], phases: Sequence[JobPhase]) -> Callable[[dict[str, Any]], bool] | None:
    """A filter by queue and phase, None for no filter. Servers can't select custom resources by these fields."""
    if not queues and not phases:
        return None
    return lambda job: (not queues or job_queue(job) in queues) and (not phases or job_phase(job) in phases)
