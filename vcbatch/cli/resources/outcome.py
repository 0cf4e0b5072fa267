"""The end of a job for the shell that waits for it: an exit code and a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from vcbatch.api.duration import human
from vcbatch.api.messages import cause_of, origin_of
from vcbatch.api.phases import JobPhase
from vcbatch.api.reasons import JobReason, LossCause
from vcbatch.cli.base.exit_codes import TIMED_OUT
from vcbatch.cli.base.fields import moment, number, objects, text
from vcbatch.cli.resources.kinds import job_phase, job_restarts, out_of_retries

Json = dict[str, Any]

_UNKNOWN: Final = 1


def exit_code(job: Json, pods: Iterable[Json] = ()) -> int:
    """The exit code: 0 for a completed job; else that of the container which failed first in the last attempt, as a
    shell reports it (128 + n for signal n); 124 where the job's time limit was exceeded or its deadline passed, 1 where
    nothing is known.

    vcbatch's controllers record the failures in the job's status. Volcano's don't: then they are taken from `pods`.
    """
    if job_phase(job) == JobPhase.COMPLETED:
        return 0
    if text(job, "status", "state", "reason") in (JobReason.DEADLINE_EXCEEDED, JobReason.DEADLINE_PASSED):
        return TIMED_OUT
    return _first(_losses(job)) or _first(_failures(pods)) or _UNKNOWN


def sentence(job: Json, *, now: datetime) -> str:
    """The result as a sentence: `train-x7k2p completed after 3m12s`, or its failure with the reason."""
    name, phase = text(job, "metadata", "name"), job_phase(job)
    created, ended = moment(job, "metadata", "creationTimestamp"), moment(job, "status", "state", "lastTransitionTime")
    span = max((ended or now) - (created or now), timedelta())
    restarts = job_restarts(job)
    again = f" and {restarts} restart{'' if restarts == 1 else 's'}" if restarts else ""
    said = f"{name} {phase.lower()} after {human(span)}{again}"
    why = cause_of(origin_of(text(job, "status", "state", "message") or text(job, "status", "state", "reason")))
    if out_of_retries(job):
        why = why.rpartition("; ")[0] or why  # the number of restarts is mentioned already
    return f"{said}: {why}" if why and phase != JobPhase.COMPLETED else said


def _first(codes: Iterable[tuple[int, str, int]]) -> int:
    """The code of the earliest failure in the last attempt; entries are attempt, time and code."""
    known = sorted(codes)
    last = [code for attempt, _, code in known if attempt == known[-1][0]]
    return last[0] if last else 0


def _losses(job: Json) -> Iterable[tuple[int, str, int]]:
    for loss in objects(job, "status", "ledger", "losses"):
        code = number(loss, "exitCode") or (128 + number(loss, "signal") if number(loss, "signal") else 0)
        if code and not _is_infrastructure(text(loss, "cause")):
            yield number(loss, "version"), text(loss, "time"), code


def _is_infrastructure(cause: str) -> bool:
    return any(cause == known and known.infrastructure for known in LossCause)


def _failures(pods: Iterable[Json]) -> Iterable[tuple[int, str, int]]:
    for pod in pods:
        for kind in ("containerStatuses", "initContainerStatuses"):
            for status in objects(pod, "status", kind):
                code = number(status, "state", "terminated", "exitCode")
                if code:
                    yield 0, text(status, "state", "terminated", "finishedAt"), code
