"""`vcbatch job cancel`: end jobs that nobody waits for any more."""

from __future__ import annotations

import click

from vcbatch.api.phases import Action
from vcbatch.api.resources import JOBS
from vcbatch.cli.access import Access, access_options
from vcbatch.cli.completion.names import job_names
from vcbatch.cli.output import say
from vcbatch.core.waiting import phase_of
from vcbatch.seams.api import Api


@click.command("cancel")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...", shell_complete=job_names)
@access_options
def command(access: Access, jobs: tuple[str, ...]) -> int:
    """End jobs: their pods get SIGTERM and their time to end. What ran and why it ended stays to be seen; `vcbatch
    delete` takes a job away altogether."""
    from vcbatch.cli.vcctl.bus import ask

    async def cancel(api: Api, name: str) -> None:
        namespace = access.namespace
        phase = phase_of(await api.get(JOBS, name, namespace=namespace))
        if phase.finished:
            say(f"job {name} has ended already: it is {phase}")
            return
        await ask(api, JOBS, name, Action.TERMINATE_JOB, namespace=namespace, at=namespace)
        say(f"job {name} is being cancelled")

    return access.each(jobs, cancel)
