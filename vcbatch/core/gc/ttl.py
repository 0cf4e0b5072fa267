"""`ttlSecondsAfterFinished`: when a finished job is deleted (volcano-controllers.md 4.6)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from vcbatch.api.job import Job
from vcbatch.api.resources import JOBS
from vcbatch.api.timestamps import parse_time
from vcbatch.core.machine import Delete, ObjectRef


@dataclass(frozen=True, slots=True)
class Expiry:
    """The deletion, where it is due, else when it will be."""

    delete: Delete | None = None
    due: datetime | None = None


def expiry_of(job: Job, *, now: datetime) -> Expiry:
    """Whether the job's time is over. An aborted job isn't finished: it may be resumed. A job whose end has no
    readable time never expires."""
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None or not job.phase.finished:
        return Expiry()
    try:
        ended = parse_time(job.status.state.last_transition_time or "")
    except ValueError:
        return Expiry()
    due = ended + timedelta(seconds=ttl)
    if now < due:
        return Expiry(due=due)
    ref = ObjectRef(resource=JOBS, namespace=job.namespace, name=job.name, uid=job.uid)
    return Expiry(delete=Delete(ref=ref, propagation="Foreground"))
