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
    """The names that differ between the two kinds."""

    cron_job: Resource
    job: Resource
    slot: str
    """The job annotation that has the slot for which the job was created."""
    remembers: bool
    """Whether the status has fields for the controller's own data."""
    propagation: str | None
    """The propagation policy of the deletion of a job. Without one, Kubernetes' own jobs orphan their pods."""
    reasons: Mapping[CronJobReason, str] = field(default_factory=dict[CronJobReason, str])
    """Event reasons that differ from Volcano's."""
    created: str
    """The message of the event about a new job, with `{job}` and `{cron_job}`."""
    completed: str
    """The message of the event about a finished one, with `{job}` and `{outcome}`."""


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
    """The names that the CronJob uses: Volcano's or Kubernetes'."""
    return KUBERNETES if isinstance(cron_job, BatchCronJob) else VOLCANO


def outcome_of(job: AnyJob) -> Outcome | None:
    """How the job ended; None while it isn't finished, which includes suspended and aborted jobs."""
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
    """When the job ended; None where its status doesn't have the time."""
    if isinstance(job, BatchJob):
        return read_time(job.status.end.last_transition_time if job.status.end is not None else None)
    return read_time(job.status.state.last_transition_time)


def standing_of(job: AnyJob) -> str:
    """The state of the job, in one word for messages."""
    if isinstance(job, BatchJob):
        return outcome_of(job) or ("Suspended" if job.suspended else "Running")
    return job.phase


def read_time(text: str | None) -> datetime | None:
    """The instant; None where the text is missing or malformed."""
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
