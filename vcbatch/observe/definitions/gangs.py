"""The metrics of single gangs, under Volcano's names."""

from __future__ import annotations

from typing import Final

from vcbatch.observe.definitions.metric import BY_SCHEDULER, Kind, Metric, Section, Unit, geometric

_GANG: Final = ("job_name", "queue", "job_namespace")
_GANG_MS: Final = geometric(100, 120_000, 30)

GANG_METRICS: Final = Section(
    title="Gangs",
    metrics=(
        Metric(
            name="volcano_unschedule_task_count",
            kind=Kind.GAUGE,
            labels=("job_id",),
            objects=True,
            programs=BY_SCHEDULER,
            help="Pods that a gang lacks for its minimum. job_id is NAMESPACE/NAME of the PodGroup.",
        ),
        Metric(
            name="volcano_job_retry_counts",
            kind=Kind.COUNTER,
            labels=("job_id",),
            objects=True,
            programs=BY_SCHEDULER,
            help="Scheduling cycles in which a gang was tried and stayed pending. job_id is NAMESPACE/NAME of the "
            "PodGroup.",
        ),
        Metric(
            name="volcano_job_share",
            kind=Kind.GAUGE,
            unit=Unit.RATIO,
            labels=("job_ns", "job_id"),
            objects=True,
            programs=BY_SCHEDULER,
            help="Dominant share of a gang (plugin drf). job_id is the name of the PodGroup.",
        ),
        Metric(
            name="volcano_e2e_job_scheduling_start_time",
            kind=Kind.GAUGE,
            unit=Unit.TIMESTAMP,
            labels=_GANG,
            objects=True,
            programs=BY_SCHEDULER,
            help="Time at which the scheduler first observed a gang.",
        ),
        Metric(
            name="volcano_e2e_job_scheduling_last_time",
            kind=Kind.GAUGE,
            unit=Unit.TIMESTAMP,
            labels=_GANG,
            objects=True,
            programs=BY_SCHEDULER,
            help="Time at which a pod of a gang was last placed.",
        ),
        Metric(
            name="volcano_e2e_job_scheduling_duration",
            kind=Kind.GAUGE,
            unit=Unit.MILLISECONDS,
            labels=_GANG,
            objects=True,
            programs=BY_SCHEDULER,
            help="Time from a gang's creation until a pod of it was last placed.",
        ),
        Metric(
            name="volcano_e2e_job_scheduling_latency_milliseconds",
            kind=Kind.HISTOGRAM,
            unit=Unit.MILLISECONDS,
            buckets=_GANG_MS,
            programs=BY_SCHEDULER,
            help="Time from a gang's creation until its minimum was placed.",
        ),
    ),
)
