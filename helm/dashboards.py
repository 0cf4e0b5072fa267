"""Writes the Grafana dashboards of the chart, helm/vcbatch/files/dashboards/*.json.

    python helm/dashboards.py [--check]

Every panel is one line below: what it shows is described, its unit is the base unit of its metric, and its queries take
the variables of the dashboard. No data source is named: each dashboard has a variable for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "vcbatch/files/dashboards"
Json = dict[str, Any]

_PROGRAM = 'cluster=~"$cluster",namespace=~"$namespace"'
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL with `{M}` for the labels that the variables choose, and what a line is called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    description: str
    unit: str
    queries: Sequence[Query]
    kind: str = "timeseries"
    width: int = 12
    height: int = 8
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    label: str
    query: str
    """`label_values(METRIC, LABEL)`."""
    everything: bool = True


@dataclass(frozen=True, slots=True)
class Dashboard:
    name: str
    title: str
    description: str
    variables: Sequence[Variable]
    rows: Sequence[tuple[str, Sequence[Panel]]]


def _quantiles(metric: str, by: str = "", scale: str = "") -> list[Query]:
    """The median and the 99th percentile of a histogram."""
    labels, legend = f"le, {by}" if by else "le", f" {{{{{by}}}}}" if by else ""
    return [
        Query(
            f"histogram_quantile({q}, sum by ({labels}) (rate({metric}_bucket{{M}}[$__rate_interval]))){scale}",
            f"p{round(q * 100)}{legend}",
        )
        for q in (0.5, 0.99)
    ]


def _rate(metric: str, by: str, more: str = "", scale: str = "") -> Query:
    matcher = f"{{M{more}}}"
    return Query(f"sum by ({by}) (rate({metric}{matcher}[$__rate_interval])){scale}", f"{{{{{by.split(', ')[-1]}}}}}")


def _stat(title: str, description: str, unit: str, expr: str, legend: str = "", width: int = 4) -> Panel:
    return Panel(title, description, unit, [Query(expr, legend)], kind="stat", width=width, height=4)


_MILLI = " / 1000"
_BASE = (
    Variable("cluster", "Cluster", "label_values(vcbatch_build_info, cluster)"),
    Variable("namespace", "Namespace", 'label_values(vcbatch_build_info{cluster=~"$cluster"}, namespace)'),
)
_QUEUE = Variable("queue", "Queue", f"label_values(volcano_queue_weight{{{_PROGRAM}}}, queue_name)")
_JOB_NAMESPACE = Variable(
    "job_namespace", "Namespace of the job", f"label_values(vcbatch_job_pods{{{_PROGRAM}}}, job_namespace)", False
)
_JOB = Variable(
    "job",
    "Job",
    f'label_values(vcbatch_job_pods{{{_PROGRAM},job_namespace="$job_namespace"}}, job_name)',
    False,
)

CLUSTER = Dashboard(
    "cluster",
    "vcbatch / Cluster",
    "State of vcbatch, and of the jobs, gangs and queues of the whole cluster.",
    _BASE,
    [
        (
            "Now",
            [
                _stat("Leases held", "1 if a replica holds the Lease, 0 if there is no leader.", "none",
                      "max by (lease) (vcbatch_lease_held{M})", "{{lease}}"),
                _stat("Readiness checks that fail", "Of all replicas, standbys included.", "none",
                      "sum(vcbatch_ready_check{M} == bool 0)"),
                _stat("Running jobs", "Jobs in the phase Running.", "none",
                      'sum(vcbatch_jobs{M,phase="Running"}) or vector(0)'),
                _stat("Pending gangs", "Pending gangs of all queues.", "none",
                      "sum(vcbatch_pending_gangs{M})"),
                _stat("Longest pending time", "Time since the oldest pending gang of all queues is pending.", "s",
                      "max(time() - vcbatch_oldest_pending_gang_timestamp_seconds{M}) or vector(0)"),
                _stat("Admission certificates", "Time until the certificates expire.", "s",
                      "min by (certificate) (vcbatch_certificate_expiration_timestamp_seconds{M}) - time()",
                      "{{certificate}}"),
            ],
        ),
        (
            "Jobs and gangs",
            [
                Panel("Jobs by phase", "Existing jobs.", "none",
                      [Query("sum by (phase) (vcbatch_jobs{M})", "{{phase}}")], stacked=True),
                Panel("Pending gangs by reason", "By the reason in the PodGroup's condition.", "none",
                      [Query("sum by (reason) (vcbatch_pending_gangs{M})", "{{reason}}")], stacked=True),
                Panel("Jobs finished", "Finished jobs per second, by final phase.", "ops",
                      [_rate("vcbatch_jobs_finished_total", "phase")]),
                Panel("Time until gangs are placed", "Time from a gang's creation until its minimum was placed.", "s",
                      _quantiles("volcano_e2e_job_scheduling_latency_milliseconds", scale=_MILLI)),
            ],
        ),
        (
            "Scheduling",
            [
                Panel("Binds", "Bind attempts per second, by result.", "ops",
                      [_rate("vcbatch_binds_total", "result")]),
                Panel("Evictions", "Evicted pods per second, by action.", "ops",
                      [_rate("vcbatch_evictions_total", "action")]),
                Panel("CPU allocated by queue", "In cores, child queues included.", "none",
                      [Query("max by (queue_name) (volcano_queue_allocated_milli_cpu{M})" + _MILLI,
                             "{{queue_name}}")]),
                Panel("Share of queues", "Highest ratio of usage to deserved share over all resources.",
                      "percentunit", [Query("max by (queue_name) (volcano_queue_share{M})", "{{queue_name}}")]),
            ],
        ),
        (
            "Admission",
            [
                Panel("Admission reviews", "Reviews per second, allowed or not.", "ops",
                      [_rate("vcbatch_admission_reviews_total", "allowed")]),
                Panel("Admission latency", "Time to answer a review, by path.", "s",
                      _quantiles("vcbatch_admission_duration_seconds", "path")),
                Panel("Admission failures", "Reviews per second without a decision, by reason.", "ops",
                      [_rate("vcbatch_admission_failures_total", "reason")]),
                Panel("Admission throttled", "Requests per second rejected because too many were in progress.",
                      "ops", [_rate("vcbatch_admission_throttled_total", "code")]),
            ],
        ),
    ],
)  # fmt: skip

_AMOUNTS = ("allocated", "request", "deserved", "real_capacity")


def _amounts(unit: str, scale: str, by: str = "queue_name", more: str = "") -> list[Query]:
    legend = " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))
    return [
        Query(
            f'max by ({by}) (volcano_queue_{amount}_{unit}{{M,queue_name=~"$queue"{more}}}){scale}',
            f"{amount.replace('_', ' ')} {legend}",
        )
        for amount in _AMOUNTS
    ]


QUEUE = Dashboard(
    "queue",
    "vcbatch / Queue",
    "Allocated, requested and deserved resources of a queue, and its jobs and gangs.",
    (*_BASE, _QUEUE),
    [
        (
            "Now",
            [
                _stat("Pending gangs", "Pending gangs of the queue.", "none",
                      'sum(vcbatch_pending_gangs{M,queue=~"$queue"}) or vector(0)', width=6),
                _stat("Longest pending time", "Time since the oldest pending gang is pending.", "s",
                      'max(time() - vcbatch_oldest_pending_gang_timestamp_seconds{M,queue=~"$queue"}) or vector(0)',
                      width=6),
                _stat("Overused", "1 if the queue uses all of its deserved share, or more.", "none",
                      'max by (queue_name) (volcano_queue_overused{M,queue_name=~"$queue"})', "{{queue_name}}",
                      width=6),
                _stat("Weight", "Weight of the queue.", "none",
                      'max by (queue_name) (volcano_queue_weight{M,queue_name=~"$queue"})', "{{queue_name}}",
                      width=6),
            ],
        ),
        (
            "Resources",
            [
                Panel("CPU", "In cores: allocated, requested, deserved share, and limit.", "none",
                      _amounts("milli_cpu", _MILLI)),
                Panel("Memory", "Allocated, requested, deserved share, and limit.", "bytes",
                      _amounts("memory_bytes", "")),
                Panel("Devices and other resources", "The same, without pods.", "none",
                      _amounts("scalar_resources", _MILLI, "queue_name, resource", ',resource!="pods"')),
                Panel("Share", "Highest ratio of usage to deserved share over all resources.",
                      "percentunit",
                      [Query('max by (queue_name) (volcano_queue_share{M,queue_name=~"$queue"})', "{{queue_name}}")]),
                Panel("Admitted and not allocated", "CPU of admitted gangs not allocated yet, in cores.", "none",
                      [Query('max by (queue_name) (volcano_queue_inqueue_milli_cpu{M,queue_name=~"$queue"})' + _MILLI,
                             "{{queue_name}}")]),
            ],
        ),
        (
            "Jobs and gangs",
            [
                Panel("Pending gangs by reason", "By the reason in the PodGroup's condition.", "none",
                      [Query('sum by (reason) (vcbatch_pending_gangs{M,queue=~"$queue"})', "{{reason}}")],
                      stacked=True),
                Panel("Jobs by phase", "Existing jobs of the queue.", "none",
                      [Query('sum by (phase) (vcbatch_jobs{M,queue=~"$queue"})', "{{phase}}")], stacked=True),
                Panel("Jobs finished", "Finished jobs per second, by final phase.", "ops",
                      [_rate("vcbatch_jobs_finished_total", "phase", ',queue=~"$queue"')]),
                Panel("PodGroups by phase", "PodGroups of the queue.", "none",
                      [Query(f'sum(volcano_queue_pod_group_{phase}_count{{M,queue_name=~"$queue"}})', phase)
                       for phase in ("pending", "inqueue", "running", "unknown", "completed")], stacked=True),
            ],
        ),
    ],
)  # fmt: skip

_GANG = 'job_namespace="$job_namespace",job_name="$job"'
_KEY = '="$job_namespace/$job"'
# The PodGroup of a job is called JOB-UID; that of pods without a job has a name of its own.
_UID = "(-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"
_GROUP = f'job_namespace="$job_namespace",job_name=~"$job{_UID}"'
_GROUP_KEY = f'=~"$job_namespace/$job{_UID}"'

JOB = Dashboard(
    "job",
    "vcbatch / Job",
    "Pods, scheduling times and restarts of one job. The series are removed when the job is deleted.",
    (*_BASE, _JOB_NAMESPACE, _JOB),
    [
        (
            "Now",
            [
                _stat("Running pods", "From the job's status.", "none",
                      f'sum(vcbatch_job_pods{{M,{_GANG},phase="running"}}) or vector(0)'),
                _stat("Missing pods", "Pods that the gang lacks for its minimum.", "none",
                      f"max(volcano_unschedule_task_count{{M,job_id{_GROUP_KEY}}})"),
                _stat("Restarts", "Restarts of the job, from its status.", "none",
                      f"max(vcbatch_job_restarts{{M,{_GANG}}})"),
                _stat("Failed attempts", "Cycles in which the gang was tried and stayed pending.", "none",
                      f"max(volcano_job_retry_counts{{M,job_id{_GROUP_KEY}}}) or vector(0)"),
                _stat("Completed", "Times that the job completed.", "none",
                      f"sum(volcano_job_completed_phase_count{{M,job_name{_KEY}}}) or vector(0)"),
                _stat("Failed", "Times that the job failed.", "none",
                      f"sum(volcano_job_failed_phase_count{{M,job_name{_KEY}}}) or vector(0)"),
            ],
        ),
        (
            "Over time",
            [
                Panel("Pods by phase", "From the job's status.", "none",
                      [Query(f"max by (phase) (vcbatch_job_pods{{M,{_GANG}}})", "{{phase}}")], stacked=True),
                Panel("Missing pods over time", "Pods that the gang lacks for its minimum.", "none",
                      [Query(f"max(volcano_unschedule_task_count{{M,job_id{_GROUP_KEY}}})", "lacking")]),
                Panel("Dominant share", "Highest ratio of usage to the cluster's capacity over all resources "
                      "(plugin drf).", "percentunit",
                      [Query(f'max(volcano_job_share{{M,job_ns="$job_namespace",job_id=~"$job{_UID}"}})', "share")]),
                Panel("Restarts", "Restarts of the job, from its status.", "none",
                      [Query(f"max(vcbatch_job_restarts{{M,{_GANG}}})", "restarts")]),
            ],
        ),
        (
            "Scheduling",
            [
                _stat("First observed", "Time at which the scheduler first observed the gang.", "dateTimeFromNow",
                      f"max(volcano_e2e_job_scheduling_start_time{{M,{_GROUP}}}) * 1000", width=8),
                _stat("Last placement", "Time at which a pod of the gang was last placed.", "dateTimeFromNow",
                      f"max(volcano_e2e_job_scheduling_last_time{{M,{_GROUP}}}) * 1000", width=8),
                _stat("From creation to placement", "From the gang's creation until a pod of it was last placed.", "s",
                      f"max(volcano_e2e_job_scheduling_duration{{M,{_GROUP}}})" + _MILLI, width=8),
            ],
        ),
    ],
)  # fmt: skip

SCHEDULER = Dashboard(
    "scheduler",
    "vcbatch / Internals",
    "Scheduler, controllers and admission: cycles, reconciles, requests, and resource usage.",
    _BASE,
    [
        (
            "Cycles",
            [
                Panel("Cycles", "Scheduling cycles per second. No cycles run while nothing changes.",
                      "ops", [Query("sum by (instance) (rate(vcbatch_cycles_total{M}[$__rate_interval]))",
                                    "{{instance}}")]),
                Panel("Duration of cycles", "Time from the start of a cycle to its decisions.", "s",
                      _quantiles("vcbatch_cycle_duration_seconds")),
                Panel("Age of the last cycle", "Time since the last successful cycle.", "s",
                      [Query("min(time() - (vcbatch_last_cycle_timestamp_seconds{M} > 0))", "age")]),
                Panel("Overdue cycles", "Time since when changes wait for a cycle; 0 if there are none.", "s",
                      [Query("max((time() - vcbatch_cycle_due_timestamp_seconds{M}) "
                             "* (vcbatch_cycle_due_timestamp_seconds{M} > bool 0))", "waiting")]),
                Panel("Duration of actions", "By action of the scheduler configuration.", "s",
                      _quantiles("volcano_action_scheduling_latency_milliseconds", "action", _MILLI)),
                Panel("Duration of plugins", "Time that a plugin needs when a session opens and closes.", "s",
                      _quantiles("volcano_plugin_scheduling_latency_milliseconds", "plugin", _MILLI)),
                Panel("Opening of sessions", "Time to open a session.", "s",
                      _quantiles("volcano_open_session_duration_milliseconds", "", _MILLI)),
                Panel("From creation to binding", "Time from a pod's creation until it was watched, placed, bound.",
                      "s", _quantiles("volcano_task_scheduling_latency_milliseconds", "stage", _MILLI)),
                Panel("Duration of binding", "Time to bind a pod's claims (PreBind), and to bind the pod (Bind).", "s",
                      _quantiles("volcano_scheduling_stage_duration_milliseconds", "stage", _MILLI)),
                Panel("Scheduling attempts", "Pods per second, by result.", "ops",
                      [_rate("volcano_schedule_attempts_total", "result")]),
                Panel("Configuration reloads", "Reloads of the scheduler configuration by result, and whether the "
                      "latest configuration is in use (1) or invalid (0).", "none",
                      [Query("sum by (result) (vcbatch_config_reloads_total{M})", "{{result}}"),
                       Query("min(vcbatch_config_last_reload_successful{M})", "last reload successful")]),
                Panel("Failed writes", "Rejected writes of the scheduler per second, by kind.", "ops",
                      [_rate("vcbatch_scheduler_writes_failed_total", "kind")]),
                Panel("Failing and slow plugins", "Errors of custom plugins per second, and slow cycles.",
                      "ops", [_rate("vcbatch_plugin_failures_total", "plugin"),
                              _rate("vcbatch_plugin_slow_cycles_total", "plugin")]),
            ],
        ),
        (
            "Controllers",
            [
                Panel("Reconciles", "Reconciles per second, by result.", "ops",
                      [_rate("vcbatch_reconcile_total", "result")]),
                Panel("Duration of reconciles", "Writes included, by controller.", "s",
                      _quantiles("vcbatch_reconcile_duration_seconds", "controller")),
                Panel("Depth of work queues", "Objects that wait to be reconciled, by controller.", "none",
                      [Query("max by (controller) (vcbatch_workqueue_depth{M})", "{{controller}}")]),
                Panel("Retries", "Requeued objects per second, by controller.", "ops",
                      [_rate("vcbatch_workqueue_retries_total", "controller")]),
                Panel("From a job's creation to its pods", "Time until each pod was created, later attempts included.",
                      "s", _quantiles("volcano_controller_job_to_pod_creation_latency_milliseconds", "", _MILLI)),
            ],
        ),
        (
            "API server",
            [
                Panel("Requests", "Requests per second to the API server, by method and status.", "ops",
                      [Query("sum by (method, code) (rate(vcbatch_api_requests_total{M}[$__rate_interval]))",
                             "{{method}} {{code}}")]),
                Panel("Duration of requests", "By method, without watches.", "s",
                      _quantiles("vcbatch_api_request_duration_seconds", "method")),
                Panel("Relists", "Lists per second because a watch could not be continued.", "ops",
                      [_rate("vcbatch_relists_total", "resource")]),
            ],
        ),
        (
            "Programs",
            [
                Panel("Leaders", "1 if the replica is the leader; without leader election, 1 on each replica.", "none",
                      [Query("vcbatch_leader{M}", "{{instance}}")]),
                Panel("Lease transitions", "Changes of each Lease's holder.", "none",
                      [Query("max by (lease) (vcbatch_lease_transitions{M})", "{{lease}}")]),
                Panel("Failing background tasks", "Tasks per second that failed and were restarted.", "ops",
                      [_rate("vcbatch_task_failures_total", "task")]),
                Panel("CPU", "Cores in use by each replica.", "none",
                      [Query("rate(process_cpu_seconds_total{M}[$__rate_interval]) "
                             "* on (job, instance) group_left (component) vcbatch_build_info{M}",
                             "{{component}} {{instance}}")]),
                Panel("Memory", "Resident memory of each replica.", "bytes",
                      [Query("process_resident_memory_bytes{M} "
                             "* on (job, instance) group_left (component) vcbatch_build_info{M}",
                             "{{component}} {{instance}}")]),
                Panel("Versions", "Replicas by program and version.", "none",
                      [Query("count by (component, version) (vcbatch_build_info{M})", "{{component}} {{version}}")]),
            ],
        ),
    ],
)  # fmt: skip

DASHBOARDS = (CLUSTER, QUEUE, JOB, SCHEDULER)


def rendered(dashboard: Dashboard) -> str:
    """The dashboard in Grafana's JSON model."""
    panels = list(_panels(dashboard))
    variables = [_data_source(), *(_variable(one) for one in dashboard.variables)]
    model = {
        "uid": f"vcbatch-{dashboard.name}",
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": ["vcbatch"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "links": [
            {"type": "dashboards", "title": "vcbatch", "tags": ["vcbatch"], "asDropdown": True, "includeVars": True,
             "keepTime": True}
        ],
        "annotations": {"list": []},
        "templating": {"list": variables},
        "panels": panels,
    }  # fmt: skip
    return json.dumps(model, indent=2) + "\n"


def _panels(dashboard: Dashboard) -> Iterator[Json]:
    number, y = 0, 0
    for title, panels in dashboard.rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": _at(0, y, 24, 1),
        }
        x, y, height = 0, y + 1, 0
        for panel in panels:
            if x + panel.width > 24:
                x, y, height = 0, y + height, 0
            number += 1
            yield _panel(panel, number, _at(x, y, panel.width, panel.height))
            x, height = x + panel.width, max(height, panel.height)
        y += height


def _at(x: int, y: int, width: int, height: int) -> Json:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel, number: int, place: Json) -> Json:
    custom: Json = {}
    options: Json = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"}
    if panel.kind == "timeseries":
        custom = {"fillOpacity": 20 if panel.stacked else 0, "showPoints": "never"}
        if panel.stacked:
            custom["stacking"] = {"mode": "normal", "group": "A"}
        options = {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": query.expr.replace("{M", "{" + _PROGRAM),
                "legendFormat": query.legend or "__auto",
                "instant": panel.kind == "stat",
                "range": panel.kind != "stat",
            }
            for index, query in enumerate(panel.queries)
        ],
    }


def _data_source() -> Json:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1}


def _variable(variable: Variable) -> Json:
    made: Json = {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "definition": variable.query,
        "refresh": 2,
        "sort": 1,
        "multi": variable.everything,
        "includeAll": variable.everything,
    }
    if variable.everything:
        # Series without the label, as outside of Kubernetes, are chosen as well.
        made |= {"allValue": ".*", "current": {"text": "All", "value": "$__all"}}
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the dashboards of the chart.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where one is out of date")
    check = parser.parse_args().check
    stale = False
    for dashboard in DASHBOARDS:
        path, text = FOLDER / f"vcbatch-{dashboard.name}.json", rendered(dashboard)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale = True
        if check:
            sys.stderr.write(f"error: {path} is out of date\nRun `make dashboards`.\n")
        else:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
