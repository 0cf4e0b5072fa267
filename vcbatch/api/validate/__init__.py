"""Validation of objects: pure rules, each of which returns all its errors at once."""

from vcbatch.api.validate.access import namespace_errors
from vcbatch.api.validate.command import command_errors, commanded_queue
from vcbatch.api.validate.cronjob import cronjob_errors
from vcbatch.api.validate.errors import Cause, ValidationError, sentence
from vcbatch.api.validate.hypernode import hypernode_errors
from vcbatch.api.validate.job import generated_name, job_errors
from vcbatch.api.validate.job_update import job_update_errors
from vcbatch.api.validate.jobflow import jobflow_errors, order_errors
from vcbatch.api.validate.lookup import Lookup, WorkLookup
from vcbatch.api.validate.pod import pod_errors, pod_update_errors
from vcbatch.api.validate.podgroup import attempt_errors, podgroup_errors
from vcbatch.api.validate.queue import DEFAULT_RULES, QueueRules, queue_deletion_errors, queue_errors
from vcbatch.api.validate.resize import resize_errors
from vcbatch.api.validate.types import type_errors
from vcbatch.api.validate.warnings import (
    cronjob_warnings,
    finished_job_warnings,
    hypernode_warnings,
    job_warnings,
    jobflow_warnings,
    jobtemplate_warnings,
    queue_warnings,
)
from vcbatch.api.validate.written import written_job_warnings, written_queue_warnings

__all__ = [
    "DEFAULT_RULES",
    "Cause",
    "Lookup",
    "QueueRules",
    "ValidationError",
    "WorkLookup",
    "attempt_errors",
    "command_errors",
    "commanded_queue",
    "cronjob_errors",
    "cronjob_warnings",
    "finished_job_warnings",
    "generated_name",
    "hypernode_errors",
    "hypernode_warnings",
    "job_errors",
    "job_update_errors",
    "job_warnings",
    "jobflow_errors",
    "jobflow_warnings",
    "jobtemplate_warnings",
    "namespace_errors",
    "order_errors",
    "pod_errors",
    "pod_update_errors",
    "podgroup_errors",
    "queue_deletion_errors",
    "queue_errors",
    "queue_warnings",
    "resize_errors",
    "sentence",
    "type_errors",
    "written_job_warnings",
    "written_queue_warnings",
]
