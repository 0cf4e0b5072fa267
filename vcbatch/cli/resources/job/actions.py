"""`vcbatch job suspend|resume|delete`: what is asked of the controllers by a Command, or of the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from vcbatch.api.phases import Action, JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.cli.access import Access, access_options
from vcbatch.cli.completion.names import job_names
from vcbatch.cli.output import CliError, say
from vcbatch.cli.resources.fields import uid_of
from vcbatch.cli.vcctl.bus import ask
from vcbatch.core.waiting import phase_of
from vcbatch.seams.api import Api

Json = dict[str, Any]

_SUSPENDED: Final = (JobPhase.ABORTED, JobPhase.ABORTING)


def _names(function: Any) -> Any:
    return click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=job_names)(function)


@click.command("suspend")
@_names
@access_options
def suspend(names: Sequence[str], access: Access) -> int:
    """Stop jobs until they are resumed: their pods go, and what has succeeded is remembered."""

    async def work(api: Api, name: str) -> None:
        phase = phase_of(await api.get(JOBS, name, namespace=access.namespace))
        if phase in _SUSPENDED:
            say(f"job {name} is suspended already")
            return
        if phase.finished:
            raise CliError(f"job {name} is {phase}: there is nothing to suspend")
        await ask(api, JOBS, name, Action.ABORT_JOB, namespace=access.namespace, at=access.namespace)
        say(f"job {name} is being suspended")

    return access.each(names, work)


@click.command("resume")
@_names
@access_options
def resume(names: Sequence[str], access: Access) -> int:
    """Let suspended jobs go on: pods that have succeeded aren't run again. It costs no retry."""

    async def work(api: Api, name: str) -> None:
        phase = phase_of(await api.get(JOBS, name, namespace=access.namespace))
        if phase not in _SUSPENDED:
            hint = f"Run it again with `vcbatch job requeue {name}`." if phase.finished else ""
            raise CliError(f"job {name} isn't suspended: it is {phase}", hint=hint)
        await ask(api, JOBS, name, Action.RESUME_JOB, namespace=access.namespace, at=access.namespace)
        say(f"job {name} is being resumed")

    return access.each(names, work)


@click.command("delete")
@_names
@click.option("--keep-pods", is_flag=True, help="Leave what it made, such as its pods, to nobody.")
@access_options
def delete(names: Sequence[str], access: Access, keep_pods: bool) -> int:
    """Delete jobs, with their pods and whatever else they made."""

    async def work(api: Api, name: str) -> None:
        job = await api.get(JOBS, name, namespace=access.namespace)
        propagation = "Orphan" if keep_pods else "Background"
        await api.delete(JOBS, name, namespace=access.namespace, uid=uid_of(job), propagation=propagation)
        say(f"job {name} is deleted")

    return access.each(names, work)
