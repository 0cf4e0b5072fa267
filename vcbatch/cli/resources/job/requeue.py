"""`vcbatch job requeue`: put a job back to the end of its queue, or run a finished one again."""

from __future__ import annotations

from typing import Any, Final

import click

from vcbatch.api.phases import Action, JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.cli.access import Access, access_options
from vcbatch.cli.completion.names import job_names, queue_names
from vcbatch.cli.output import CliError, note, say
from vcbatch.cli.resources.fields import uid_of
from vcbatch.cli.resources.job.copies import manifest_of, name_again
from vcbatch.cli.vcctl.bus import ask
from vcbatch.core.waiting import phase_of
from vcbatch.runtime.clock import BlockingClock
from vcbatch.seams.api import Api, ApiError
from vcbatch.seams.clock import Clock

Json = dict[str, Any]

_PATIENCE: Final = 60.0
_LOOK: Final = 0.2


@click.command("requeue")
@click.argument("name", shell_complete=job_names)
@click.option("--name", "new_name", metavar="NEW", help="What the new job is called where NAME is finished.")
@click.option(
    "-q",
    "--queue",
    metavar="QUEUE",
    help="Another queue for the new job where NAME is finished.",
    shell_complete=queue_names,
)
@access_options
def command(name: str, access: Access, new_name: str | None, queue: str | None) -> int:
    """Put a job back to the end of its queue, or run a finished one again.

    A job that waits or runs is suspended and resumed: its pods go, what has succeeded isn't run again, and it costs no
    retry. Should this command be stopped between the two, the job is suspended; `vcbatch job resume` goes on.

    A job that is finished can't run again. A new one is made like it, and the old one stays as it is.
    """

    async def work(api: Api) -> str:
        job = await api.get(JOBS, name, namespace=access.namespace)
        if phase_of(job).finished:
            return await run_again(api, job, new_name=new_name or "", queue=queue or "")
        if new_name or queue:
            hint = f"Move it with `vcbatch job move {name} QUEUE`." if queue else ""
            raise CliError(f"job {name} isn't finished: --name and --queue are for a new job", hint=hint)
        await suspend(api, job, clock=BlockingClock())
        await ask(api, JOBS, name, Action.RESUME_JOB, namespace=access.namespace, at=access.namespace)
        return f"job {name} is requeued"

    say(access.once(work))
    return 0


async def run_again(api: Api, job: Json, *, new_name: str, queue: str) -> str:
    """Make a job like a finished one; the sentence that says so. Raises `CliError` where that was done before."""
    name = job["metadata"]["name"]
    wanted = new_name or name_again(name)
    try:
        await api.create(JOBS, manifest_of(job, name=wanted, queue=queue), namespace=job["metadata"]["namespace"])
    except ApiError as error:
        if not error.already_exists:
            raise
        raise CliError(
            f"job {wanted} is there already", hint="Is it the one that you want? Choose another with --name."
        ) from error
    return f"job {wanted} is made like {name}, which stays as it is ({phase_of(job)})"


async def suspend(api: Api, job: Json, *, clock: Clock) -> None:
    """Suspend a job that isn't finished and wait until it is taken note of. Raises `CliError` where that lasts."""
    metadata = job["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    if phase_of(job) not in (JobPhase.ABORTING, JobPhase.ABORTED):
        await ask(api, JOBS, name, Action.ABORT_JOB, namespace=namespace, at=namespace)
        note(f"suspending job {name}")
    deadline = clock.monotonic() + _PATIENCE
    while True:
        now = await api.get(JOBS, name, namespace=namespace)
        if uid_of(now) != uid_of(job):
            raise CliError(f"job {name} was replaced by another meanwhile")
        phase = phase_of(now)
        if phase in (JobPhase.ABORTING, JobPhase.ABORTED):
            return
        if phase.finished:
            raise CliError(f"job {name} became {phase} before it could be suspended")
        if clock.monotonic() > deadline:
            raise CliError(
                f"job {name} isn't suspended after {_PATIENCE:.0f} s: it is {phase}",
                hint="Do the controllers run? `vcbatch doctor` tells. Nothing was changed but the wish to suspend it.",
            )
        await clock.sleep(_LOOK)
