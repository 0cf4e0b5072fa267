"""All metrics: names, help texts, labels, buckets, and which programs export them.

Those with the prefix `volcano` have the names, labels, units and buckets of Volcano's scheduler, so that its dashboards
show them (https://github.com/volcano-sh/volcano, pkg/scheduler/metrics, pkg/controllers/metrics).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CONTROLLERS: Final = "controllers"
SCHEDULER: Final = "scheduler"
WEBHOOKS: Final = "webhooks"
PROGRAMS: Final = (CONTROLLERS, SCHEDULER, WEBHOOKS)
"""`vcbatch up` exports the metrics of the first two."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_VOLCANO = "volcano"


def _geometric(first: float, last: float, count: int) -> tuple[float, ...]:
    return tuple(float(f"{first * (last / first) ** (step / (count - 1)):.4g}") for step in range(count))


_CYCLE_MS = _geometric(1, 5000, 20)
_ACTION_MS = _geometric(1, 2000, 20)
_PLUGIN_MS = _geometric(0.1, 100, 15)
_STAGE_MS = _geometric(0.1, 500, 20)
_TASK_MS = _geometric(50, 60_000, 30)
_GANG_MS = _geometric(100, 120_000, 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One metric: its help text and its labels."""

    help: str
    programs: tuple[str, ...] = PROGRAMS
    labels: tuple[str, ...] = ()
    prefix: str = ""
    """Replaces the program's own prefix: `volcano` for metrics that dashboards for Volcano show."""
    buckets: tuple[float, ...] = _SECONDS
    objects: bool = False
    """Whether labels name objects: the series are removed with the objects. Such a counter of Volcano's is exposed
    under its exact name, without `_total`."""
    known: tuple[tuple[str, ...], ...] = ()
    """Label values that are exported from the start, so that the first increment is visible as one."""


def _volcano(
    text: str, *labels: str, buckets: tuple[float, ...] = _SECONDS, programs: tuple[str, ...] = (SCHEDULER,)
) -> Described:
    return Described(help=text, labels=labels, prefix=_VOLCANO, buckets=buckets, programs=programs)


def _of_objects(text: str, *labels: str, programs: tuple[str, ...] = (SCHEDULER,)) -> Described:
    return Described(help=text, labels=labels, prefix=_VOLCANO, objects=True, programs=programs)


_GANG = ("job_name", "queue", "job_namespace")
_QUEUE_AMOUNTS = {
    "allocated": "a queue holds",
    "request": "a queue's gangs hold or wait for",
    "deserved": "a queue deserves",
    "capacity": "the queue's capability is",
    "real_capacity": "a queue may hold at most, others' guarantees seen to",
    "inqueue": "gangs that were admitted are still to get",
}
"""The exposed quantities of each queue, with their descriptions. A resource without a limit has no series."""


def _queue_amounts() -> dict[str, Described]:
    out: dict[str, Described] = {}
    for amount, of in _QUEUE_AMOUNTS.items():
        out[f"queue_{amount}_milli_cpu"] = _of_objects(f"CPU that {of}, in thousandths.", "queue_name")
        out[f"queue_{amount}_memory_bytes"] = _of_objects(f"Memory that {of}.", "queue_name")
        out[f"queue_{amount}_scalar_resources"] = _of_objects(
            f"Of other resources what {of}, in thousandths.", "queue_name", "resource"
        )
    return out


_BY_CONTROLLERS = (CONTROLLERS,)
_BY_SCHEDULER = (SCHEDULER,)
_BY_WEBHOOKS = (WEBHOOKS,)
_ELECTED = (CONTROLLERS, SCHEDULER)
_EVICTING = (("preempt",), ("reclaim",))

COUNTERS: dict[str, Described] = {
    "api_requests": Described(
        help="Requests to the API server by HTTP method (WATCH for watches) and status; `error` where none came back.",
        labels=("method", "code"),
    ),
    "relists": Described(help="Lists made because a watch could not be continued.", labels=("resource",)),
    "audit_repairs": Described(
        help="Objects that a list found different from the cache.", labels=("resource",), programs=_BY_CONTROLLERS
    ),
    "task_failures": Described(help="Background tasks that failed and were started again.", labels=("task",)),
    "kopf_restarts": Described(help="Times that kopf was started again after it ended.", programs=_BY_CONTROLLERS),
    "reconciles": Described(
        help="Reconciles by their result: done, gone, stale (repeated), refused (by the API server), error.",
        labels=("controller", "result"),
        programs=_BY_CONTROLLERS,
    ),
    "workqueue_retries": Described(
        help="Objects put back into a work queue after a reconcile that failed.",
        labels=("controller",),
        programs=_BY_CONTROLLERS,
    ),
    "binds": Described(
        help="Pods bound, or refused for good.",
        labels=("result",),
        programs=_BY_SCHEDULER,
        known=(("bound",), ("refused",)),
    ),
    "policy_reloads": Described(
        help="Scheduling policies that came into force, or were refused.",
        labels=("result",),
        programs=_BY_SCHEDULER,
        known=(("applied",), ("refused",)),
    ),
    "plugin_failures": Described(
        help="Errors of plugins and actions of the user's own.", labels=("plugin",), programs=_BY_SCHEDULER
    ),
    "plugin_slow": Described(
        help="Cycles that took longer than 5 s because of a plugin or an action of the user's own.",
        labels=("plugin",),
        programs=_BY_SCHEDULER,
    ),
    "cycles": Described(help="Scheduling cycles that succeeded.", programs=_BY_SCHEDULER),
    "evictions": Described(
        help="Pods that were evicted for others, by the action that decided it.",
        labels=("action",),
        programs=_BY_SCHEDULER,
        known=_EVICTING,
    ),
    "eviction_transactions": _volcano("Evictions, as Volcano counts them.", "action"),
    "schedule_attempts": _volcano("Pods placed (scheduled), not placed (unschedulable), refused (error).", "result"),
    "total_preemption_attempts": _of_objects("Cycles with evictions."),
    "jobs_finished": Described(
        help="Jobs of a queue that came to an end, by the phase in which they ended.",
        labels=("queue", "phase"),
        objects=True,
        programs=_BY_CONTROLLERS,
    ),
    "job_completed_phase_count": _of_objects(
        "Times that a job was Completed.", "job_name", "queue_name", programs=_BY_CONTROLLERS
    ),
    "job_failed_phase_count": _of_objects(
        "Times that a job was Failed.", "job_name", "queue_name", programs=_BY_CONTROLLERS
    ),
    "jobflow_succeed_phase_count": _of_objects(
        "Flows of a namespace that succeeded.", "jobflow_namespace", programs=_BY_CONTROLLERS
    ),
    "jobflow_failed_phase_count": _of_objects(
        "Flows of a namespace that failed.", "jobflow_namespace", programs=_BY_CONTROLLERS
    ),
    "job_retry_counts": _of_objects("Cycles in which a gang was tried and has to wait.", "job_id"),
    "scheduler_writes_failed": Described(
        help="Writes of the scheduler that were refused.", labels=("kind",), programs=_BY_SCHEDULER
    ),
    "admission_reviews": Described(
        help="Admission reviews answered.", labels=("path", "allowed"), programs=_BY_WEBHOOKS
    ),
    "admission_failures": Described(
        help="Admission reviews that ended without a judgement: timeout, unavailable (what the rules need can't be "
        "read), error (of vcbatch).",
        labels=("path", "reason"),
        programs=_BY_WEBHOOKS,
    ),
    "admission_turned_away": Described(
        help="Admission requests that were refused before they were read.",
        labels=("code",),
        programs=_BY_WEBHOOKS,
        known=(("429",),),
    ),
    "events_dropped": Described(
        help="Events that were not sent: too many, or refused.", labels=("component",), programs=_ELECTED
    ),
}
GAUGES: dict[str, Described] = {
    "build_info": Described(help="1; the labels are the program and its version.", labels=("component", "version")),
    "workqueue_depth": Described(
        help="Objects in a work queue that wait to be reconciled.", labels=("controller",), programs=_BY_CONTROLLERS
    ),
    "ready_check": Described(help="1 where a check of /readyz passes, 0 where it fails.", labels=("check",)),
    "leading": Described(help="1 while this replica works; without leader election, each does."),
    "lease_held": Described(help="1 while this replica holds the Lease.", labels=("lease",), programs=_ELECTED),
    "lease_transitions": Described(
        help="How often the Lease changed its holder, as the Lease says.", labels=("lease",), programs=_ELECTED
    ),
    "last_cycle_timestamp_seconds": Described(
        help="When the last scheduling cycle succeeded, Unix seconds; 0 before the first.", programs=_BY_SCHEDULER
    ),
    "cycle_due_timestamp_seconds": Described(
        help="Since when something waits for a scheduling cycle, Unix seconds; 0 where nothing does.",
        programs=_BY_SCHEDULER,
    ),
    "policy_refused": Described(
        help="1 while the policy that is in force isn't the one that was given last.", programs=_BY_SCHEDULER
    ),
    "gangs_waiting": Described(
        help="Gangs that wait, by queue and by the reason that their PodGroup gives.",
        labels=("queue", "reason"),
        objects=True,
        programs=_BY_SCHEDULER,
    ),
    "oldest_waiting_gang_timestamp_seconds": Described(
        help="Since when that gang of a queue waits which waits longest, Unix seconds; no series where none waits.",
        labels=("queue",),
        objects=True,
        programs=_BY_SCHEDULER,
    ),
    "jobs": Described(
        help="Jobs of a queue by phase.", labels=("queue", "phase"), objects=True, programs=_BY_CONTROLLERS
    ),
    "job_pods": Described(
        help="Pods of a job by phase, as its status counts them.",
        labels=("job_namespace", "job_name", "phase"),
        objects=True,
        programs=_BY_CONTROLLERS,
    ),
    "job_restarts": Described(
        help="How often a job was restarted, as its status counts it.",
        labels=("job_namespace", "job_name"),
        objects=True,
        programs=_BY_CONTROLLERS,
    ),
    "unschedule_job_count": _volcano("Gangs that wait."),
    "pod_preemption_victims": _volcano("Pods that the last cycle evicted."),
    **_queue_amounts(),
    "queue_share": _of_objects("The largest part that a queue holds of anything it deserves.", "queue_name"),
    "queue_weight": _of_objects("The weight of a queue.", "queue_name"),
    "queue_overused": _of_objects(
        "1 where a queue holds all (proportion), or more (capacity) than it deserves.", "queue_name"
    ),
    **{
        f"queue_pod_group_{phase}_count": _of_objects(
            f"PodGroups of a queue that are {phase}.", "queue_name", programs=_BY_CONTROLLERS
        )
        for phase in ("pending", "running", "unknown", "inqueue", "completed")
    },
    "job_share": _of_objects("The dominant share of a gang.", "job_ns", "job_id"),
    "unschedule_task_count": _of_objects("Pods that a gang lacks for its minimum.", "job_id"),
    "e2e_job_scheduling_duration": _of_objects("From a gang's creation to its last placement, milliseconds.", *_GANG),
    "e2e_job_scheduling_start_time": _of_objects("When a gang was seen first, Unix seconds.", *_GANG),
    "e2e_job_scheduling_last_time": _of_objects("When a pod of a gang was placed last, Unix seconds.", *_GANG),
    "certificate_remaining_seconds": Described(
        help="Until the serving certificate (leaf) and who signed it (authority) expire.",
        labels=("certificate",),
        programs=_BY_WEBHOOKS,
    ),
}
DURATIONS: dict[str, Described] = {
    "api_request_seconds": Described(
        help="From a request to the API server to the end of the answer, watches left out.", labels=("method",)
    ),
    "cycle_seconds": Described(help="Duration of a scheduling cycle.", programs=_BY_SCHEDULER),
    "e2e_scheduling_latency_milliseconds": _volcano("Duration of a scheduling cycle.", buckets=_CYCLE_MS),
    "open_session_duration_milliseconds": _volcano(
        "Until plugins had seen the snapshot, in a cycle.", buckets=_CYCLE_MS
    ),
    "action_scheduling_latency_milliseconds": _volcano("Duration of an action.", "action", buckets=_ACTION_MS),
    "plugin_scheduling_latency_milliseconds": _volcano(
        "Duration of a plugin's work when a cycle begins and ends.", "plugin", "OnSession", buckets=_PLUGIN_MS
    ),
    "e2e_job_scheduling_latency_milliseconds": _volcano(
        "From a gang's creation until it had its minimum.", buckets=_GANG_MS
    ),
    "task_scheduling_latency_milliseconds": _volcano(
        "From a pod's creation until the scheduler knew it (Watched), had a place (Assumed), its claims were bound "
        "(PreBound), and it was bound (Bound).",
        "stage",
        buckets=_TASK_MS,
    ),
    "scheduling_stage_duration_milliseconds": _volcano(
        "Duration of binding a pod's claims (PreBind) and of binding it (Bind).", "stage", buckets=_STAGE_MS
    ),
    "controller_job_to_pod_creation_latency_milliseconds": _volcano(
        "From a job's creation until a pod of it was made.", buckets=_TASK_MS, programs=_BY_CONTROLLERS
    ),
    "admission_seconds": Described(help="Time to answer an admission review.", labels=("path",), programs=_BY_WEBHOOKS),
    "reconcile_seconds": Described(
        help="Duration of a reconcile, writes included.", labels=("controller",), programs=_BY_CONTROLLERS
    ),
}
