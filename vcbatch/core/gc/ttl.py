"""Deletion of finished jobs and flows by `ttlSecondsAfterFinished` (Volcano
`pkg/controllers/garbagecollector`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from vcbatch.api.job import Job
from vcbatch.api.jobflow import JobFlow
from vcbatch.api.resources import JOBFLOWS, JOBS
from vcbatch.api.retention import retention
from vcbatch.api.timestamps import parse_time
from vcbatch.core.machine import Delete, ObjectRef, ref_of

_AWAITED_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Expiry:
    """The deletion, where it is due, else the time at which it will be."""

    delete: Delete | None = None
    due: datetime | None = None


def expiry_of(job: Job, *, now: datetime, awaited: bool = False) -> Expiry:
    """The expiry of a job. An aborted job isn't finished: it may be resumed. A job whose end has no readable time never
    expires. One for whose end another job waits, which has yet to record it (`awaited`), is kept for up to 10 minutes
    more."""
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None or not job.phase.finished:
        return Expiry()
    ref = ref_of(JOBS, job)
    ttl += _AWAITED_SECONDS if awaited else 0
    return _expiry(ref, ended=job.status.state.last_transition_time or "", ttl=ttl, now=now)


def flow_expiry(flow: JobFlow, *, finished: str, now: datetime) -> Expiry:
    """The expiry of a flow that ended at `finished`, which is empty while the flow continues. Its jobs are deleted with
    it. A flow whose end has no readable time never expires."""
    ttl = retention(flow.metadata.annotations)
    if ttl is None or not finished:
        return Expiry()
    ref = ref_of(JOBFLOWS, flow)
    return _expiry(ref, ended=finished, ttl=ttl, now=now)


def _expiry(ref: ObjectRef, *, ended: str, ttl: int, now: datetime) -> Expiry:
    try:
        due = parse_time(ended) + timedelta(seconds=ttl)
    except (OverflowError, ValueError):
        return Expiry()
    return Expiry(due=due) if now < due else Expiry(delete=Delete(ref=ref, propagation="Foreground"))
