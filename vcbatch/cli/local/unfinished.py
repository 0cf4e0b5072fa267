"""The jobs that are in progress when the local server stops, and those that it continues when it starts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from vcbatch.api.phases import Action, JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access
from vcbatch.cli.base.bus import request_of
from vcbatch.cli.base.fields import name_of, namespace_of, number, uid_of
from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.base.state import StateDir
from vcbatch.cli.resources.kinds import job_phase
from vcbatch.interfaces.api import Api

Json = dict[str, Any]

_PATIENCE: Final = timedelta(seconds=10)
_LOOK: Final = 0.2
_NAMED: Final = 3
_SUSPENDED: Final = (JobPhase.ABORTING, JobPhase.ABORTED)


def running(state: StateDir) -> list[Json]:
    """The jobs with running pods; none where the server doesn't respond."""

    async def fetch(api: Api) -> list[Json]:
        return [job for job in (await api.list(JOBS)).items if number(job, "status", "running")]

    try:
        return _access(state).once(fetch)
    except CliError:
        return []


def suspend(state: StateDir, jobs: Sequence[Json], *, seconds: float) -> None:
    """Suspend the jobs and wait until their pods have ended. Raises `CliError` where that takes longer than `seconds`,
    or the server doesn't respond."""
    access, deadline = _access(state), time.monotonic() + seconds

    async def request(api: Api) -> None:
        for job in jobs:
            space = namespace_of(job)
            await request_of(api, JOBS, name_of(job), uid_of(job), Action.ABORT_JOB, at=space)

    async def rest(api: Api) -> list[Json]:
        waiting = {uid_of(job) for job in jobs}
        return [job for job in (await api.list(JOBS)).items if uid_of(job) in waiting and not _at_rest(job)]

    access.once(request)
    while left := access.once(rest):
        if time.monotonic() > deadline:
            raise CliError(
                f"{titled(left)} not suspended after {seconds:.0f} s; vcbatch is still running",
                hint="Wait longer with --timeout SECONDS, or stop without --suspend-running.",
            )
        time.sleep(_LOOK)
    note(f"suspended {titled(jobs)}")


def note_stopped(jobs: Sequence[Json]) -> None:
    """Report what becomes of jobs whose pods were stopped with the server."""
    note(f"{titled(jobs)} stopped while running")
    note("  The next `vcbatch up` starts a job again if it has a policy for PodEvicted,")
    note("  as those of `vcbatch run` have; otherwise its pods count as failed.")
    note("  To suspend running jobs first, use --suspend-running.")


async def continued(api: Api) -> list[str]:
    """What a server that has started continues, as lines."""
    jobs = (await api.list(JOBS)).items
    unfinished = [job for job in jobs if not JobPhase(job_phase(job) or JobPhase.PENDING).finished]
    suspended = [job for job in unfinished if job_phase(job) in _SUSPENDED]
    active = [job for job in unfinished if job_phase(job) not in _SUSPENDED]
    lines = [f"Continuing {titled(active)}"] if active else []
    if suspended:
        lines.append(f"Suspended: {titled(suspended)}. To resume one: vcbatch job resume NAME")
    return lines


def titled(jobs: Sequence[Json]) -> str:
    """`job default/a`, `2 jobs: default/a, default/b`, or `9 jobs: default/a, default/b, default/c, ...`."""
    names = [f"{namespace_of(job)}/{name_of(job)}" for job in jobs]
    if len(names) == 1:
        return f"job {names[0]}"
    return f"{len(names):,} jobs: {', '.join([*names[:_NAMED], *['...'][: len(names) > _NAMED]])}"


def _at_rest(job: Json) -> bool:
    phase = JobPhase(job_phase(job) or JobPhase.PENDING)
    return phase is JobPhase.ABORTED or phase.finished


def _access(state: StateDir) -> Access:
    return Access(kubeconfig=state.kubeconfig, request_timeout=_PATIENCE)
