"""A job as it goes on: its phase and its reasons, followed beside its log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final

from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.fields import text
from vcbatch.cli.base.output import note
from vcbatch.cli.resources.kinds import job_phase, job_why
from vcbatch.interfaces.api import Api
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom
from vcbatch.sdk.watching import changes

Json = dict[str, Any]


async def follow_status(api: Api, job: Json, report: Callable[[Json | None], None]) -> None:
    """Report each state of the job, and None once it is deleted; until it has finished or is deleted."""
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
                report(None)
                return
            first = False
            for change in ours:
                report(change.object)
                if finished(change.object):
                    return


def finished(job: Json) -> bool:
    """Whether the job can never run again."""
    phase = job_phase(job)
    return any(phase == known and known.finished for known in JobPhase)


_PATIENCE: Final = 2.0
"""Seconds that a job may wait without a known reason before that is worth a word."""


class Waits:
    """Reports why a job waits, when that changes. Until a reason is known, that it waits is reported only after a
    while: most jobs start at once."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._said = ""
        self._later: asyncio.TimerHandle | None = None

    def update(self, job: Json) -> None:
        """Take note of how the job is now."""
        text, known = waits(job), bool(job_why(job))
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if not text:
            self._said = ""
        elif known:
            self._say(text)
        else:
            self._later = asyncio.get_running_loop().call_later(_PATIENCE, self._say, text)

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._report(text)

    def close(self) -> None:
        if self._later is not None:
            self._later.cancel()


async def say_why(api: Api, job: Json) -> None:
    """Report why a job that hasn't started waits, until it has finished or is deleted."""
    waiting = Waits(note)

    def update(now: Json | None) -> None:
        if now is None:
            note(f"{job['metadata']['name']} was deleted")
        else:
            waiting.update(now)

    try:
        await follow_status(api, job, update)
    finally:
        waiting.close()


def waits(job: Json) -> str:
    """What is said while a job has no pods that run: why, as far as that is known yet; empty once it has."""
    name, phase, why = text(job, "metadata", "name"), job_phase(job), job_why(job)
    if phase not in _WAITING:
        return ""
    return f"{name} {_WAITING[phase]}: {why}" if why else f"{name} {_WAITING[phase]}"


_WAITING: Final[dict[str, str]] = {
    JobPhase.PENDING: "is pending",
    JobPhase.RESTARTING: "is restarting",
    JobPhase.ABORTED: "is suspended",
}
