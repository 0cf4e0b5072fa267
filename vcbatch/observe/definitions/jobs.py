"""The metrics of jobs and flows."""

from __future__ import annotations

from typing import Final

from vcbatch.observe.definitions.metric import BY_CONTROLLERS, Kind, Metric, Section, Unit, geometric

_POD_MS: Final = geometric(50, 60_000, 30)

JOB_METRICS: Final = Section(
    title="Jobs and flows",
    before="Jobs and flows that finished before the controllers started aren't counted as finished.\n",
    metrics=(
        Metric(
            name="vcbatch_job_pods",
            kind=Kind.GAUGE,
            labels=("job_namespace", "job_name", "phase"),
            objects=True,
            programs=BY_CONTROLLERS,
            help="Pods of a job by phase, from the job's status.",
        ),
        Metric(
            name="vcbatch_job_restarts",
            kind=Kind.GAUGE,
            labels=("job_namespace", "job_name"),
            objects=True,
            programs=BY_CONTROLLERS,
            help="Restarts of a job, from status.retryCount.",
        ),
        Metric(
            name="volcano_job_completed_phase_count",
            kind=Kind.COUNTER,
            labels=("job_name", "queue_name"),
            objects=True,
            programs=BY_CONTROLLERS,
            help="Times that a job completed, until it is deleted. job_name is NAMESPACE/NAME.",
        ),
        Metric(
            name="volcano_job_failed_phase_count",
            kind=Kind.COUNTER,
            labels=("job_name", "queue_name"),
            objects=True,
            programs=BY_CONTROLLERS,
            help="Times that a job failed, until it is deleted. job_name is NAMESPACE/NAME.",
        ),
        Metric(
            name="volcano_jobflow_succeed_phase_count",
            kind=Kind.COUNTER,
            labels=("jobflow_namespace",),
            objects=True,
            programs=BY_CONTROLLERS,
            help="Flows of a namespace that succeeded.",
        ),
        Metric(
            name="volcano_jobflow_failed_phase_count",
            kind=Kind.COUNTER,
            labels=("jobflow_namespace",),
            objects=True,
            programs=BY_CONTROLLERS,
            help="Flows of a namespace that failed.",
        ),
        Metric(
            name="volcano_controller_job_to_pod_creation_latency_milliseconds",
            kind=Kind.HISTOGRAM,
            unit=Unit.MILLISECONDS,
            buckets=_POD_MS,
            programs=BY_CONTROLLERS,
            help="Time from a job's creation until the creation of each of its pods, in whole seconds, including "
            "later attempts.",
        ),
    ),
)
