"""The two kinds of CronJobs: Volcano's, and Kubernetes' own, which local mode runs. They follow the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from vcbatch.api import names
from vcbatch.api.batch_job import BatchJob, ConditionType
from vcbatch.api.cronjob import AnyCronJob, BatchCronJob
from vcbatch.api.job import Job, JobPhase
from vcbatch.api.reasons import CronJobReason
from vcbatch.api.resources import BATCH_CRONJOBS, BATCH_JOBS, CRONJOBS, JOBS, Resource
from vcbatch.api.timestamps import parse_time

AnyJob = Job | BatchJob


class Outcome(StrEnum):
    """How a job ended."""

    COMPLETED = "Complete"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """What the wire calls things."""

    cron_job: Resource
    job: Resource
    slot: str
    """The annotation of a job with the slot that it was made for."""
    remembers: bool
    """Whether the status has room for what only the controller knows."""
    propagation: str | None
    """How a job is deleted. Without a word Kubernetes' own leave their pods behind."""
    reasons: Mapping[CronJobReason, str] = field(default_factory=dict[CronJobReason, str])
    """Where events have other reasons than Volcano's."""
    created: str
    """What the event about a new job says, with `{job}` and `{cron_job}`."""
    completed: str
    """What the event about a finished one says, with `{job}` and `{outcome}`."""


VOLCANO: Final = Kinds(
    cron_job=CRONJOBS,
    job=JOBS,
    slot=names.CRONJOB_SCHEDULED_TIMESTAMP,
    remembers=True,
    propagation=None,
    created="Created job {job} for CronJob {cron_job}",
    completed="Saw completed job: {job} in active, remove",
)
KUBERNETES: Final = Kinds(
    cron_job=BATCH_CRONJOBS,
    job=BATCH_JOBS,
    slot=names.SCHEDULED_TIMESTAMP,
    remembers=False,
    propagation="Background",
    reasons={
        CronJobReason.STALE_REFERENCE: "MissingJob",
        CronJobReason.FORBID_CONCURRENT: "JobAlreadyActive",
        CronJobReason.UNPARSEABLE_SCHEDULE: "UnparseableSchedule",
        CronJobReason.INVALID_TIME_ZONE: "UnknownTimeZone",
    },
    created="Created job {job}",
    completed="Saw completed job: {job}, condition: {outcome}",
)


def kinds_of(cron_job: AnyCronJob) -> Kinds:
    """What the CronJob makes and says: as Volcano's does, or as Kubernetes' does."""
    return KUBERNETES if isinstance(cron_job, BatchCronJob) else VOLCANO


def outcome_of(job: AnyJob) -> Outcome | None:
    """None while the job may still do something: also where it is suspended or aborted."""
    if isinstance(job, BatchJob):
        end = job.status.end
        completed = end is not None and end.type == ConditionType.COMPLETE
        over = end is not None
    else:
        completed, over = job.phase is JobPhase.COMPLETED, job.phase.finished
    if not over:
        return None
    return Outcome.COMPLETED if completed else Outcome.FAILED


def ended_at(job: AnyJob) -> datetime | None:
    """When the job ended; None where nobody says so."""
    if isinstance(job, BatchJob):
        return read_time(job.status.end.last_transition_time if job.status.end is not None else None)
    return read_time(job.status.state.last_transition_time)


def standing_of(job: AnyJob) -> str:
    """A word for people."""
    if isinstance(job, BatchJob):
        return outcome_of(job) or ("Suspended" if job.suspended else "Running")
    return job.phase


def read_time(text: str | None) -> datetime | None:
    """The instant; None where nothing readable is written."""
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
