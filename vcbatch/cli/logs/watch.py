"""A job as it goes on: its phase and its reasons, followed beside its log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.cli.resources.fields import text
from vcbatch.cli.resources.kinds import job_phase, job_why
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom
from vcbatch.sdk.watching import changes
from vcbatch.seams.api import Api

Json = dict[str, Any]


async def follow_status(api: Api, job: Json, tell: Callable[[Json | None], None]) -> None:
    """Tell each picture of the job, and None once it is deleted; until it has finished, or is gone."""
    metadata = job["metadata"]
    batches = changes(
        api,
        JOBS,
        namespace=metadata["namespace"],
        field_selector=f"metadata.name={metadata['name']}",
        clock=SystemClock(),
        random=SystemRandom(),
    )
    first = True
    async with aclosing(batches) as stream:
        async for batch in stream:
            ours = [change for change in batch if change.object["metadata"]["uid"] == metadata["uid"]]
            if any(change.deleted for change in ours) or (first and not ours):
                tell(None)
                return
            first = False
            for change in ours:
                tell(change.object)
                if finished(change.object):
                    return


def finished(job: Json) -> bool:
    """Whether the job can never run again."""
    phase = job_phase(job)
    return any(phase == known and known.finished for known in JobPhase)


def standing(job: Json) -> str:
    """How it stands, in a few words: the phase, and why it is in it."""
    phase, why = job_phase(job), job_why(job)
    return f"{phase}: {why}" if why else phase


def waits(job: Json) -> str:
    """What is said while a job hasn't started: why, as far as that is known yet."""
    name, why = text(job, "metadata", "name"), job_why(job)
    if job_phase(job) == JobPhase.ABORTED:
        return f"{name} is suspended: {why}" if why else f"{name} is suspended"
    return f"{name} waits: {why}" if why else f"{name} waits to be started"
