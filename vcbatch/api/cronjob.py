"""CronJobs, ours (`batch.volcano.sh/v1alpha1`) and Kubernetes' own (`batch/v1`): jobs created on a schedule."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from vcbatch.api.batch_job import BatchJobSpec
from vcbatch.api.job import JobSpec
from vcbatch.api.model import Metadata, Model, Object


class ConcurrencyPolicy(StrEnum):
    """What is done with a slot while the last slot's job still runs."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"


class EmbeddedJob(Model):
    """The job to create: of its metadata only labels and annotations are copied."""

    metadata: Metadata = Field(default_factory=Metadata)
    spec: JobSpec = Field(default_factory=JobSpec)


class CronJobSpec(Model):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: EmbeddedJob = Field(default_factory=EmbeddedJob)
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class ObjectReference(Model):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class CronJobLedger(Model):
    """The state that the CronJob controller keeps between reconciliations. Volcano has no such field."""

    not_before: str | None = None
    """When the controllers observed a change of the schedule: earlier slots belong to the old schedule."""


class CronJobStatus(Model):
    active: list[ObjectReference] = Field(default_factory=list[ObjectReference])
    last_schedule_time: str | None = None
    last_successful_time: str | None = None
    ledger: CronJobLedger = Field(default_factory=CronJobLedger)


class CronJob(Object):
    spec: CronJobSpec = Field(default_factory=CronJobSpec)
    status: CronJobStatus = Field(default_factory=CronJobStatus)


class EmbeddedBatchJob(Model):
    metadata: Metadata = Field(default_factory=Metadata)
    spec: BatchJobSpec = Field(default_factory=BatchJobSpec)


class BatchCronJobSpec(Model):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: EmbeddedBatchJob = Field(default_factory=EmbeddedBatchJob)
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class BatchCronJob(Object):
    """Kubernetes' own: the same fields, with a template of Kubernetes' own Job."""

    spec: BatchCronJobSpec = Field(default_factory=BatchCronJobSpec)
    status: CronJobStatus = Field(default_factory=CronJobStatus)


AnyCronJob = CronJob | BatchCronJob
