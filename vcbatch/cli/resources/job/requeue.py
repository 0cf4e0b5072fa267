"""`vcbatch job requeue`: move a job to the end of its queue, or rerun a finished one."""

from __future__ import annotations

from typing import Any, Final

import click

from vcbatch.api.phases import Action, JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.bus import request
from vcbatch.cli.base.fields import uid_of
from vcbatch.cli.base.names import job_names, queue_names
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.titles import title
from vcbatch.cli.resources.job.copies import manifest_of, name_again
from vcbatch.core.waiting import phase_of
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.clock import BlockingClock

Json = dict[str, Any]

_PATIENCE: Final = 60.0
_LOOK: Final = 0.2


@click.command("requeue")
@click.argument("name", shell_complete=job_names)
@click.option("--name", "new_name", metavar="NEW", help="Name of the new job, if NAME has finished.")
@click.option(
    "-q",
    "--queue",
    metavar="QUEUE",
    help="Queue of the new job, if NAME has finished.",
    shell_complete=queue_names,
)
@access_options
def command(name: str, access: Access, new_name: str | None, queue: str | None) -> int:
    """Move a job to the end of its queue, or resubmit a finished one.

    A pending or running job is suspended and resumed: its pods are deleted, succeeded pods aren't run again, and it
    doesn't count as a retry. If the command is interrupted, the job may stay suspended; use `vcbatch job resume`.

    For a finished job, a new job with the same spec is created. The finished job isn't changed.
    """

    async def work(api: Api) -> str:
        job = await api.get(JOBS, name, namespace=access.namespace)
        if phase_of(job).finished:
            return await run_again(api, job, new_name=new_name or "", queue=queue or "")
        if new_name or queue:
            hint = f"To move it: `vcbatch job move {name} QUEUE`" if queue else ""
            raise CliError(f"job {name} has not finished; --name and --queue apply to finished jobs", hint=hint)
        await suspend(api, job, clock=BlockingClock())
        await request(api, JOBS, name, Action.RESUME_JOB, namespace=access.namespace, at=access.namespace)
        return f"{title(JOBS, name)} requeued"

    say(access.once(work))
    return 0


async def run_again(api: Api, job: Json, *, new_name: str, queue: str) -> str:
    """Create a job like a finished one; returns the message for the user. Raises `CliError` where it was created
    before."""
    name = job["metadata"]["name"]
    wanted = new_name or name_again(name)
    try:
        await api.create(
            JOBS, manifest_of(job, name=wanted, queue=queue, again=True), namespace=job["metadata"]["namespace"]
        )
    except ApiError as error:
        if not error.already_exists:
            raise
        raise CliError(f"job {wanted} already exists", hint="Choose another name with --name.") from error
    return f"{title(JOBS, wanted)} created from {name} ({phase_of(job)})"


async def suspend(api: Api, job: Json, *, clock: Clock) -> None:
    """Suspend an unfinished job and wait until its controller has processed that. Raises `CliError` after a timeout."""
    metadata = job["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    if phase_of(job) not in (JobPhase.ABORTING, JobPhase.ABORTED):
        await request(api, JOBS, name, Action.ABORT_JOB, namespace=namespace, at=namespace)
        note(f"suspending job {name}")
    deadline = clock.monotonic() + _PATIENCE
    while True:
        now = await api.get(JOBS, name, namespace=namespace)
        if uid_of(now) != uid_of(job):
            raise CliError(f"job {name} was replaced by another job of the same name")
        phase = phase_of(now)
        if phase in (JobPhase.ABORTING, JobPhase.ABORTED):
            return
        if phase.finished:
            raise CliError(f"job {name} is {phase}; it finished before it was suspended")
        if clock.monotonic() > deadline:
            raise CliError(
                f"job {name} is still {phase} after {_PATIENCE:.0f} s; timed out waiting for suspension",
                hint="Check the controllers with `vcbatch doctor`. The request to suspend the job stays in effect.",
            )
        await clock.sleep(_LOOK)
