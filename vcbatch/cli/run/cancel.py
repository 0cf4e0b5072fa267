"""`vcbatch job cancel`: end jobs and keep their records."""

from __future__ import annotations

import click

from vcbatch.api.phases import Action
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.output import say
from vcbatch.cli.base.titles import title
from vcbatch.cli.resources.job.selection import Selection, chosen, selection_options
from vcbatch.core.waiting import phase_of
from vcbatch.interfaces.api import Api


@click.command("cancel")
@selection_options("Cancel")
@access_options
def command(access: Access, selection: Selection) -> int:
    """Cancel jobs: their pods are terminated gracefully. The jobs and their status are kept; to delete them, use
    `vcbatch job delete`.

    Without NAME, the unfinished jobs that match all options are cancelled, after confirmation.
    """
    from vcbatch.cli.base.bus import request

    async def cancel(api: Api, name: str) -> None:
        namespace = access.namespace
        phase = phase_of(await api.get(JOBS, name, namespace=namespace))
        if phase.finished:
            say(f"{title(JOBS, name)} already finished ({phase})")
            return
        await request(api, JOBS, name, Action.TERMINATE_JOB, namespace=namespace, at=namespace)
        say(f"{title(JOBS, name)} cancelled")

    jobs = chosen(access, selection, verb="cancel", keep=lambda job: not phase_of(job).finished)
    return 1 if jobs is None else access.each(jobs, cancel)
