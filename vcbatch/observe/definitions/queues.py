"""The metrics of queues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vcbatch.observe.definitions.metric import BY_CONTROLLERS, BY_SCHEDULER, Kind, Metric, Section, Unit

_QUANTITIES: Final = {
    "allocated": "allocated to a queue and its child queues",
    "request": "allocated to a queue or requested by its pending pods, child queues included",
    "deserved": "up to which a queue can reclaim (its deserved share)",
    "capacity": "of a queue's spec.capability",
    "real_capacity": "that a queue can use at most, after the guarantees of other queues",
    "inqueue": "in minResources of admitted gangs of a queue that are not allocated yet",
}
"""The exported quantities of each queue. A resource without a limit has no series."""


def _quantities() -> Iterator[Metric]:
    for quantity, text in _QUANTITIES.items():
        for resource, what, unit, labels in (
            ("milli_cpu", "CPU", Unit.THOUSANDTHS, ()),
            ("memory_bytes", "Memory", Unit.BYTES, ()),
            ("scalar_resources", "Other resources", Unit.THOUSANDTHS, ("resource",)),
        ):
            yield Metric(
                name=f"volcano_queue_{quantity}_{resource}",
                kind=Kind.GAUGE,
                unit=unit,
                labels=("queue_name", *labels),
                objects=True,
                programs=BY_SCHEDULER,
                help=f"{what} {text}." + (" Pods are whole." if labels else ""),
            )


_OF_QUEUES: Final = (
    Metric(
        name="volcano_queue_share",
        kind=Kind.GAUGE,
        unit=Unit.RATIO,
        labels=("queue_name",),
        objects=True,
        programs=BY_SCHEDULER,
        help="Highest ratio of usage to deserved share over all resources of a queue.",
    ),
    Metric(
        name="volcano_queue_overused",
        kind=Kind.GAUGE,
        labels=("queue_name",),
        objects=True,
        programs=BY_SCHEDULER,
        help="1 if a queue uses all of its deserved share (plugin proportion) or more (plugin capacity), otherwise 0.",
    ),
    Metric(
        name="volcano_queue_weight",
        kind=Kind.GAUGE,
        labels=("queue_name",),
        objects=True,
        programs=BY_SCHEDULER,
        help="Weight of a queue.",
    ),
    Metric(
        name="vcbatch_pending_gangs",
        kind=Kind.GAUGE,
        labels=("queue", "reason"),
        objects=True,
        programs=BY_SCHEDULER,
        help="Pending gangs, by the reason on their PodGroup. PodGroupMissing has an empty queue, because only the "
        "PodGroup specifies the queue.",
    ),
    Metric(
        name="vcbatch_oldest_pending_gang_timestamp_seconds",
        kind=Kind.GAUGE,
        unit=Unit.TIMESTAMP,
        labels=("queue",),
        objects=True,
        programs=BY_SCHEDULER,
        help="Time since when the gang that has been pending longest is pending: its creation, or when it became "
        "pending again. No series if no gang is pending.",
    ),
    Metric(
        name="volcano_unschedule_job_count", kind=Kind.GAUGE, programs=BY_SCHEDULER, help="Pending gangs of all queues."
    ),
    Metric(
        name="vcbatch_jobs",
        kind=Kind.GAUGE,
        labels=("queue", "phase"),
        objects=True,
        programs=BY_CONTROLLERS,
        help="Existing jobs, by phase.",
    ),
    Metric(
        name="vcbatch_jobs_finished_total",
        kind=Kind.COUNTER,
        labels=("queue", "phase"),
        objects=True,
        programs=BY_CONTROLLERS,
        help="Jobs that finished since the controllers started, by final phase.",
    ),
)
_POD_GROUPS: Final = tuple(
    Metric(
        name=f"volcano_queue_pod_group_{phase}_count",
        kind=Kind.GAUGE,
        labels=("queue_name",),
        objects=True,
        programs=BY_CONTROLLERS,
        help=f"PodGroups of a queue in the phase {phase.capitalize()}.",
    )
    for phase in ("pending", "inqueue", "running", "unknown", "completed")
)

QUEUE_METRICS: Final = Section(
    title="Queues",
    metrics=(*_quantities(), *_OF_QUEUES, *_POD_GROUPS),
    after="""\
There is no series for a resource without a limit. `deserved`, `capacity`, `real_capacity`, `inqueue`, `share` and
`overused` require the plugin `proportion` or `capacity`. [queues.md](queues.md) describes the quantities.
""",
)
