"""The metrics of scheduling cycles, their results and the scheduler configuration."""

from __future__ import annotations

from typing import Final

from vcbatch.observe.definitions.metric import BY_SCHEDULER, Kind, Metric, Section, Unit, geometric

_CYCLE_MS: Final = geometric(1, 5000, 20)
_ACTION_MS: Final = geometric(1, 2000, 20)
_PLUGIN_MS: Final = geometric(0.1, 100, 15)
_STAGE_MS: Final = geometric(0.1, 500, 20)
_TASK_MS: Final = geometric(50, 60_000, 30)

_CYCLES: Final = (
    Metric(
        name="vcbatch_cycles_total",
        kind=Kind.COUNTER,
        programs=BY_SCHEDULER,
        help="Scheduling cycles that succeeded.",
    ),
    Metric(
        name="vcbatch_cycle_duration_seconds",
        kind=Kind.HISTOGRAM,
        unit=Unit.SECONDS,
        programs=BY_SCHEDULER,
        help="Duration of a scheduling cycle.",
    ),
    Metric(
        name="vcbatch_last_cycle_timestamp_seconds",
        kind=Kind.GAUGE,
        unit=Unit.TIMESTAMP,
        programs=BY_SCHEDULER,
        help="Time of the last successful scheduling cycle, 0 before the first. No cycles run while nothing changes.",
    ),
    Metric(
        name="vcbatch_cycle_due_timestamp_seconds",
        kind=Kind.GAUGE,
        unit=Unit.TIMESTAMP,
        programs=BY_SCHEDULER,
        help="Time since when changes wait for a scheduling cycle, 0 if there are none.",
    ),
    Metric(
        name="vcbatch_binds_total",
        kind=Kind.COUNTER,
        labels=("result",),
        known=(("bound",), ("refused",)),
        programs=BY_SCHEDULER,
        help="Bind attempts by result: bound, or refused (rejected permanently).",
    ),
    Metric(
        name="vcbatch_evictions_total",
        kind=Kind.COUNTER,
        labels=("action",),
        known=(("preempt",), ("reclaim",)),
        programs=BY_SCHEDULER,
        help="Evicted pods, by the action that decided the eviction.",
    ),
    Metric(
        name="vcbatch_scheduler_writes_failed_total",
        kind=Kind.COUNTER,
        labels=("kind",),
        programs=BY_SCHEDULER,
        help="Writes of the scheduler that the API server rejected.",
    ),
    Metric(
        name="vcbatch_config_last_reload_successful",
        kind=Kind.GAUGE,
        from_start=False,
        programs=BY_SCHEDULER,
        help="1 if the latest scheduler configuration is in use, 0 if it is invalid. No series before the first is "
        "read.",
    ),
    Metric(
        name="vcbatch_config_reloads_total",
        kind=Kind.COUNTER,
        labels=("result",),
        known=(("applied",), ("refused",)),
        programs=BY_SCHEDULER,
        help="Reloads of the scheduler configuration by result: applied, or refused (invalid).",
    ),
    Metric(
        name="vcbatch_plugin_failures_total",
        kind=Kind.COUNTER,
        labels=("plugin",),
        programs=BY_SCHEDULER,
        help="Errors of custom plugins and actions.",
    ),
    Metric(
        name="vcbatch_plugin_slow_cycles_total",
        kind=Kind.COUNTER,
        labels=("plugin",),
        programs=BY_SCHEDULER,
        help="Scheduling cycles that took longer than 5 s because of a custom plugin or action.",
    ),
)
_VOLCANO: Final = (
    Metric(
        name="volcano_e2e_scheduling_latency_milliseconds",
        kind=Kind.HISTOGRAM,
        unit=Unit.MILLISECONDS,
        buckets=_CYCLE_MS,
        programs=BY_SCHEDULER,
        help="Duration of a scheduling cycle.",
    ),
    Metric(
        name="volcano_open_session_duration_milliseconds",
        kind=Kind.HISTOGRAM,
        unit=Unit.MILLISECONDS,
        buckets=_CYCLE_MS,
        programs=BY_SCHEDULER,
        help="Time to open a session.",
    ),
    Metric(
        name="volcano_action_scheduling_latency_milliseconds",
        kind=Kind.HISTOGRAM,
        unit=Unit.MILLISECONDS,
        labels=("action",),
        buckets=_ACTION_MS,
        programs=BY_SCHEDULER,
        help="Duration of an action.",
    ),
    Metric(
        name="volcano_plugin_scheduling_latency_milliseconds",
        kind=Kind.HISTOGRAM,
        unit=Unit.MILLISECONDS,
        labels=("plugin", "OnSession"),
        buckets=_PLUGIN_MS,
        programs=BY_SCHEDULER,
        help="Time that a plugin needs when a session opens and closes.",
    ),
    Metric(
        name="volcano_task_scheduling_latency_milliseconds",
        kind=Kind.HISTOGRAM,
        unit=Unit.MILLISECONDS,
        labels=("stage",),
        buckets=_TASK_MS,
        programs=BY_SCHEDULER,
        help="Time from a pod's creation until the scheduler watched it (Watched), placed it (Assumed), bound its "
        "claims (PreBound) and bound it (Bound).",
    ),
    Metric(
        name="volcano_scheduling_stage_duration_milliseconds",
        kind=Kind.HISTOGRAM,
        unit=Unit.MILLISECONDS,
        labels=("stage",),
        buckets=_STAGE_MS,
        programs=BY_SCHEDULER,
        help="Time to bind a pod's claims (PreBind), and to bind the pod (Bind).",
    ),
    Metric(
        name="volcano_schedule_attempts_total",
        kind=Kind.COUNTER,
        labels=("result",),
        programs=BY_SCHEDULER,
        help="Pods by result: scheduled, unschedulable, or error (rejected by the API server).",
    ),
    Metric(
        name="volcano_total_preemption_attempts",
        kind=Kind.COUNTER,
        programs=BY_SCHEDULER,
        help="Scheduling cycles with evictions.",
    ),
    Metric(
        name="volcano_pod_preemption_victims",
        kind=Kind.GAUGE,
        programs=BY_SCHEDULER,
        help="Pods that the last scheduling cycle evicted.",
    ),
    Metric(
        name="volcano_eviction_transactions_total",
        kind=Kind.COUNTER,
        labels=("action",),
        programs=BY_SCHEDULER,
        help="Evicted pods, by the action that decided the eviction.",
    ),
)

SCHEDULER_METRICS: Final = Section(
    title="Scheduler",
    metrics=_CYCLES + _VOLCANO,
    after="""\
Custom plugins are described in [own-plugins.md](own-plugins.md). Filters and scores are computed for all nodes in
single operations, so the stages `Predicate` and `Scoring` have no separate times. The metrics `namespace_…`, which
Volcano never sets, `goroutines` and `vgpu_…` are not available.
""",
)
