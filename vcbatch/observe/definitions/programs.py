"""The metrics of every program."""

from __future__ import annotations

from typing import Final

from vcbatch.observe.definitions.metric import CONTROLLERS, SCHEDULER, Kind, Metric, Section, Unit

_ELECTED: Final = (SCHEDULER, CONTROLLERS)

PROGRAM_METRICS: Final = Section(
    title="All components",
    metrics=(
        Metric(
            name="vcbatch_build_info",
            kind=Kind.GAUGE,
            labels=("component", "version"),
            help="1. The labels are the program (scheduler, controllers, webhooks, up) and its version.",
        ),
        Metric(
            name="vcbatch_ready_check",
            kind=Kind.GAUGE,
            labels=("check",),
            help="1 if a check of /readyz passes, 0 if it fails.",
        ),
        Metric(
            name="vcbatch_leader",
            kind=Kind.GAUGE,
            help="1 if this replica is the leader, otherwise 0. Without leader election, 1 on each replica.",
        ),
        Metric(
            name="vcbatch_lease_held",
            kind=Kind.GAUGE,
            labels=("lease",),
            programs=_ELECTED,
            help="1 if this replica holds the Lease, 0 on a standby.",
        ),
        Metric(
            name="vcbatch_lease_transitions",
            kind=Kind.GAUGE,
            labels=("lease",),
            programs=_ELECTED,
            help="Changes of the Lease's holder, from the Lease. Every replica exports the same number.",
        ),
        Metric(
            name="vcbatch_api_requests_total",
            kind=Kind.COUNTER,
            labels=("method", "code"),
            help="Requests to the API server by HTTP method (WATCH for watches) and status (error if there was no "
            "response). Requests of kopf aren't counted.",
        ),
        Metric(
            name="vcbatch_api_request_duration_seconds",
            kind=Kind.HISTOGRAM,
            unit=Unit.SECONDS,
            labels=("method",),
            help="Time from a request to the API server to the end of its response, without watches.",
        ),
        Metric(
            name="vcbatch_relists_total",
            kind=Kind.COUNTER,
            labels=("resource",),
            help="Lists because a watch could not be continued.",
        ),
        Metric(
            name="vcbatch_task_failures_total",
            kind=Kind.COUNTER,
            labels=("task",),
            help="Background tasks that failed and were restarted.",
        ),
        Metric(
            name="vcbatch_events_dropped_total",
            kind=Kind.COUNTER,
            labels=("component",),
            programs=_ELECTED,
            help="Events that were not sent, because they were rate-limited or rejected.",
        ),
    ),
    after="""\
Each program also exports the standard metrics of its process: `process_cpu_seconds_total`,
`process_resident_memory_bytes`, `process_virtual_memory_bytes`, `process_start_time_seconds`, `process_open_fds` and
`process_max_fds`.
""",
)
