"""Whether an object can work: pure rules, each with all its faults at once."""

from vcbatch.api.validate.access import namespace_faults
from vcbatch.api.validate.command import command_faults, commanded_queue
from vcbatch.api.validate.cronjob import cronjob_faults
from vcbatch.api.validate.fault import Cause, Fault, sentence
from vcbatch.api.validate.hypernode import hypernode_faults
from vcbatch.api.validate.job import generated_name, job_faults
from vcbatch.api.validate.job_update import job_update_faults
from vcbatch.api.validate.jobflow import jobflow_faults, order_faults
from vcbatch.api.validate.lookup import Lookup, WorkLookup
from vcbatch.api.validate.pod import pod_faults, pod_update_faults
from vcbatch.api.validate.podgroup import attempt_faults, podgroup_faults
from vcbatch.api.validate.queue import DEFAULT_RULES, QueueRules, queue_deletion_faults, queue_faults
from vcbatch.api.validate.resize import resize_faults
from vcbatch.api.validate.types import type_faults
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
    "Fault",
    "Lookup",
    "QueueRules",
    "WorkLookup",
    "attempt_faults",
    "command_faults",
    "commanded_queue",
    "cronjob_faults",
    "cronjob_warnings",
    "finished_job_warnings",
    "generated_name",
    "hypernode_faults",
    "hypernode_warnings",
    "job_faults",
    "job_update_faults",
    "job_warnings",
    "jobflow_faults",
    "jobflow_warnings",
    "jobtemplate_warnings",
    "namespace_faults",
    "order_faults",
    "pod_faults",
    "pod_update_faults",
    "podgroup_faults",
    "queue_deletion_faults",
    "queue_faults",
    "queue_warnings",
    "resize_faults",
    "sentence",
    "type_faults",
    "written_job_warnings",
    "written_queue_warnings",
]
