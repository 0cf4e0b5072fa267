"""`vcbatch job suspend|resume|delete`: requested from the controllers by a Command, or from the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from vcbatch.api.phases import Action, JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.bus import request
from vcbatch.cli.base.fields import uid_of
from vcbatch.cli.base.names import job_names
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.base.titles import title
from vcbatch.cli.resources.job.selection import Selection, chosen, selection_options
from vcbatch.core.waiting import phase_of
from vcbatch.interfaces.api import Api

Json = dict[str, Any]

_SUSPENDED: Final = (JobPhase.ABORTED, JobPhase.ABORTING)


def _names(function: Any) -> Any:
    return click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=job_names)(function)


@click.command("suspend")
@_names
@access_options
def suspend(names: Sequence[str], access: Access) -> int:
    """Suspend jobs. Their pods are deleted; succeeded pods are remembered."""

    async def work(api: Api, name: str) -> None:
        phase = phase_of(await api.get(JOBS, name, namespace=access.namespace))
        if phase in _SUSPENDED:
            say(f"{title(JOBS, name)} already suspended")
            return
        if phase.finished:
            raise CliError(f"job {name} is {phase}; finished jobs can't be suspended")
        await request(api, JOBS, name, Action.ABORT_JOB, namespace=access.namespace, at=access.namespace)
        say(f"{title(JOBS, name)} suspended")

    return access.each(names, work)


@click.command("resume")
@_names
@access_options
def resume(names: Sequence[str], access: Access) -> int:
    """Resume suspended jobs. Succeeded pods aren't run again. Doesn't count as a retry."""

    async def work(api: Api, name: str) -> None:
        phase = phase_of(await api.get(JOBS, name, namespace=access.namespace))
        if phase not in _SUSPENDED:
            hint = f"To resubmit it: `vcbatch job requeue {name}`" if phase.finished else ""
            raise CliError(f"job {name} is {phase}, not suspended", hint=hint)
        await request(api, JOBS, name, Action.RESUME_JOB, namespace=access.namespace, at=access.namespace)
        say(f"{title(JOBS, name)} resumed")

    return access.each(names, work)


@click.command("delete")
@selection_options("Delete")
@click.option("--keep-pods", is_flag=True, help="Orphan the job's pods and other dependents.")
@access_options
def delete(access: Access, selection: Selection, keep_pods: bool) -> int:
    """Delete jobs with their pods and other dependents.

    Without NAME, the jobs that match all options are deleted, after confirmation.
    """

    async def work(api: Api, name: str) -> None:
        job = await api.get(JOBS, name, namespace=access.namespace)
        propagation = "Orphan" if keep_pods else "Background"
        await api.delete(JOBS, name, namespace=access.namespace, uid=uid_of(job), propagation=propagation)
        say(f"{title(JOBS, name)} deleted")

    names = chosen(access, selection, verb="delete")
    return 1 if names is None else access.each(names, work)
