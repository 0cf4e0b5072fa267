"""The progress of a job: its phase and pending reasons, followed along with its log."""

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
from vcbatch.core.waiting import phase_of
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom
from vcbatch.sdk.watching import changes

Json = dict[str, Any]


async def follow_status(
    api: Api,
    job: Json,
    report: Callable[[Json | None], None],
    *,
    on_trouble: Callable[[ApiError], None] | None = None,
) -> None:
    """Report each state of the job until it has finished or is deleted; None for a deletion. `on_trouble` is called for
    failed retries."""
    metadata = job["metadata"]
    batches = changes(
        api,
        JOBS,
        namespace=metadata["namespace"],
        field_selector=f"metadata.name={metadata['name']}",
        clock=SystemClock(),
        random=SystemRandom(),
        on_trouble=on_trouble,
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
    """Whether the phase of the job is final."""
    return phase_of(job).finished


_PATIENCE: Final = 2.0
"""Seconds that a job may be pending without a known reason before that is reported."""


class Waits:
    """Reports changes of a job's pending reason. A pending job without a known reason is reported only after a delay,
    as most jobs start at once."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._said = ""
        self._later: asyncio.TimerHandle | None = None

    def update(self, job: Json) -> None:
        """Process the job's current state."""
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
    """Report why a job that hasn't started is pending, until it has finished or is deleted."""
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
    """The message for a job without running pods: its phase and the reason, as far as it is known; empty for a job with
    running pods."""
    name, phase, why = text(job, "metadata", "name"), job_phase(job), job_why(job)
    if phase not in _WAITING:
        return ""
    return f"{name} {_WAITING[phase]}: {why}" if why else f"{name} {_WAITING[phase]}"


_WAITING: Final[dict[str, str]] = {
    JobPhase.PENDING: "is pending",
    JobPhase.RESTARTING: "is restarting",
    JobPhase.ABORTED: "is suspended",
}
