"""The alerts as they are shipped, and for each when it fires and when it doesn't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
RULES = REPOSITORY / "helm/vcbatch/files/monitoring/alerts.yaml"
RUNBOOKS = REPOSITORY / "docs/runbooks"

Json = dict[str, Any]
Series = Mapping[str, str]
"""Values by series, one a minute, in the notation of promtool."""


def shipped() -> dict[str, Json]:
    """The alerts by name."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


@dataclass(frozen=True, slots=True)
class Case:
    """At `minute` the alert fires with exactly these sets of labels, besides its severity; none where it is quiet."""

    series: Series
    minute: int
    fires: tuple[Mapping[str, str], ...] = field(default=())


SCHEDULER = 'namespace="v",job="vcbatch",instance="s-0"'
OTHER = 'namespace="v",job="vcbatch",instance="s-1"'
WEBHOOKS = 'namespace="v",job="vcbatch",instance="w-0"'
CONTROLLERS = 'namespace="v",job="vcbatch",instance="c-0"'
_INFO = f'vcbatch_build_info{{{SCHEDULER},component="scheduler",version="1"}}'
_OTHER_INFO = f'vcbatch_build_info{{{OTHER},component="scheduler",version="1"}}'
_START = f"process_start_time_seconds{{{SCHEDULER}}}"
_READY = f'vcbatch_ready_check{{{SCHEDULER},check="permissions"}}'
_HELD = f'vcbatch_lease_held{{{SCHEDULER},lease="vcbatch-scheduler"}}'
_OTHER_HELD = f'vcbatch_lease_held{{{OTHER},lease="vcbatch-scheduler"}}'
_TRANSITIONS = f'vcbatch_lease_transitions{{{SCHEDULER},lease="vcbatch-scheduler"}}'
_OTHER_TRANSITIONS = f'vcbatch_lease_transitions{{{OTHER},lease="vcbatch-scheduler"}}'
_DUE = f"vcbatch_cycle_due_timestamp_seconds{{{SCHEDULER}}}"
_REFUSED = f'vcbatch_binds_total{{{SCHEDULER},result="refused"}}'
_POLICY = f"vcbatch_config_last_reload_successful{{{SCHEDULER}}}"
_PLUGIN = f'vcbatch_plugin_failures_total{{{SCHEDULER},plugin="mine"}}'
_EVICTED = f'vcbatch_evictions_total{{{SCHEDULER},action="preempt"}}'
_RECLAIMED = f'vcbatch_evictions_total{{{SCHEDULER},action="reclaim"}}'
_OLDEST = f'vcbatch_oldest_pending_gang_timestamp_seconds{{{SCHEDULER},queue="q"}}'
_FAILED = f'vcbatch_admission_failures_total{{{WEBHOOKS},path="/jobs/validate",reason="error"}}'
_REVIEWED = f'vcbatch_admission_reviews_total{{{WEBHOOKS},path="/jobs/validate",allowed="true"}}'
_TURNED_AWAY = f'vcbatch_admission_throttled_total{{{WEBHOOKS},code="429"}}'
_LEAF = f'vcbatch_certificate_expiration_timestamp_seconds{{{WEBHOOKS},certificate="leaf"}}'
_GOOD_CALLS = f'vcbatch_api_requests_total{{{SCHEDULER},method="GET",code="200"}}'
_BAD_CALLS = f'vcbatch_api_requests_total{{{SCHEDULER},method="WATCH",code="401"}}'
_CONFLICTS = f'vcbatch_api_requests_total{{{SCHEDULER},method="PUT",code="409"}}'
_DONE = f'vcbatch_reconcile_total{{{CONTROLLERS},controller="job-controller",result="done"}}'
_STALE = f'vcbatch_reconcile_total{{{CONTROLLERS},controller="job-controller",result="stale"}}'
_BROKEN = f'vcbatch_reconcile_total{{{CONTROLLERS},controller="job-controller",result="error"}}'


def _queue(allocated: int, deserved: int, request: int, unit: str = "milli_cpu", more: str = "") -> Series:
    amounts = {"allocated": allocated, "deserved": deserved, "request": request}
    labels = f'{SCHEDULER},queue_name="q"{more}'
    return {f"volcano_queue_{amount}_{unit}{{{labels}}}": f"{value}x60" for amount, value in amounts.items()}


def _reviews(quick: str, all_of_them: str) -> Series:
    labels = f'{WEBHOOKS},path="/jobs/validate"'
    return {
        f'vcbatch_admission_duration_seconds_bucket{{{labels},le="0.1"}}': quick,
        f'vcbatch_admission_duration_seconds_bucket{{{labels},le="2.5"}}': all_of_them,
        f'vcbatch_admission_duration_seconds_bucket{{{labels},le="+Inf"}}': all_of_them,
    }


_Q = {"namespace": "v", "job": "vcbatch", "instance": "s-0", "queue_name": "q"}
_S = {"namespace": "v", "job": "vcbatch", "instance": "s-0"}
_LEASE = {"namespace": "v", "lease": "vcbatch-scheduler"}

CASES: dict[str, list[Case]] = {
    "VcbatchProgramDown": [
        Case({_INFO: "1x5 stale"}, 12, ({"namespace": "v", "component": "scheduler"},)),
        Case({_INFO: "1x5 stale"}, 7),
        Case({_INFO: "1x5 stale", _OTHER_INFO: "1x30"}, 20),
    ],
    "VcbatchProgramRestarts": [
        Case({_START: "0+100x6 600x60", _INFO: "1x60"}, 10, ({"namespace": "v", "component": "scheduler"},)),
        Case({_START: "0+100x2 200x60", _INFO: "1x60"}, 10),
        Case({f'process_start_time_seconds{{{SCHEDULER},other="program"}}': "0+100x60"}, 10),
    ],
    "VcbatchNotReady": [
        Case({_READY: "0x30", _INFO: "1x30"}, 6, ({**_S, "check": "permissions", "component": "scheduler"},)),
        Case({_READY: "0x30", _INFO: "1x30"}, 3),
        Case({_READY: "0x3 1x30", _INFO: "1x30"}, 10),
    ],
    "VcbatchApiErrors": [
        Case(
            {_GOOD_CALLS: "0+60x60", _BAD_CALLS: "0+6x60"}, 20, ({"namespace": "v", "job": "vcbatch", "code": "401"},)
        ),
        Case({_GOOD_CALLS: "0+600x60", _BAD_CALLS: "0+6x60"}, 20),
        Case({_GOOD_CALLS: "0+60x60", _CONFLICTS: "0+60x60"}, 20),
    ],
    "VcbatchNoLeader": [
        Case({_HELD: "1x5 0x30", _OTHER_HELD: "0x40"}, 8, (_LEASE,)),
        Case({_HELD: "1x5 stale", _OTHER_HELD: "0x5 stale"}, 8, (_LEASE,)),
        Case({_HELD: "1x5 stale", _OTHER_HELD: "0x5 1x30"}, 20),
        Case({_HELD: "1x40", _OTHER_HELD: "0x40"}, 20),
    ],
    "VcbatchLeaseLost": [
        Case({_TRANSITIONS: "0x5 1 2 3x30", _OTHER_TRANSITIONS: "0x5 1 2 3x30"}, 10, (_LEASE,)),
        Case({_TRANSITIONS: "7x5 8 9x30"}, 10),
        Case({_TRANSITIONS: "0x5 1 2 3x60"}, 50),
    ],
    "VcbatchSchedulerNotScheduling": [
        Case({_DUE: "0x4 300x30"}, 10, (_S,)),
        Case({_DUE: "0x30"}, 20),
        Case({_DUE: "0+60x30"}, 20),
    ],
    "VcbatchBindsRefused": [
        Case({_REFUSED: "0x5 0+3x30"}, 25, ({"namespace": "v"},)),
        Case({_REFUSED: "0x5 3x30"}, 25),
    ],
    "VcbatchPolicyRefused": [
        Case({_POLICY: "1x5 0x30"}, 8, (_S,)),
        Case({_POLICY: "1x5 0 1x30"}, 8),
        Case({_POLICY: "_x30"}, 8),
    ],
    "VcbatchPluginFailing": [
        Case({_PLUGIN: "0x5 0+1x30"}, 15, ({"namespace": "v", "plugin": "mine"},)),
        Case({_PLUGIN: "4x30"}, 15),
    ],
    "VcbatchEvictionStorm": [
        Case({_EVICTED: "0+40x60", _RECLAIMED: "0+2x60"}, 30, ({"namespace": "v", "action": "preempt"},)),
        Case({_EVICTED: "0+15x60", _RECLAIMED: "0+15x60"}, 30),
        Case({_EVICTED: "0x10 150x60"}, 30),
    ],
    "VcbatchGangWaitsTooLong": [
        Case({_OLDEST: "60x120"}, 65, ({"namespace": "v", "queue": "q"},)),
        Case({_OLDEST: "60x120"}, 55),
        Case({_OLDEST: "60x50 2940x120"}, 100),
    ],
    "VcbatchQueueBelowDeserved": [
        Case(_queue(1000, 4000, 8000), 20, ({**_Q, "resource": "cpu"},)),
        Case(_queue(1, 4, 8, "memory_bytes"), 20, ({**_Q, "resource": "memory"},)),
        Case(
            _queue(1000, 4000, 8000, "scalar_resources", ',resource="nvidia.com/gpu"'),
            20,
            ({**_Q, "resource": "nvidia.com/gpu"},),
        ),
        Case(_queue(1000, 4000, 8000), 10),
        Case(_queue(1000, 4000, 1000), 30),
        Case(_queue(4000, 4000, 8000), 30),
    ],
    "VcbatchAdmissionFailing": [
        Case({_FAILED: "0+6x60", _REVIEWED: "0+60x60", _TURNED_AWAY: "0x60"}, 10, ({"namespace": "v"},)),
        Case({_REVIEWED: "0+60x60", _TURNED_AWAY: "0+6x60"}, 10, ({"namespace": "v"},)),
        Case({_FAILED: "3x60", _REVIEWED: "0+60x60", _TURNED_AWAY: "0x60"}, 20),
        Case({_FAILED: "0+1x60", _REVIEWED: "0+600x60", _TURNED_AWAY: "0x60"}, 20),
    ],
    "VcbatchAdmissionSlow": [
        Case(_reviews("0+90x60", "0+100x60"), 20, ({"namespace": "v"},)),
        Case(_reviews("0+1000x60", "0+1001x60"), 20),
    ],
    "VcbatchCertificateNearEnd": [
        Case({_LEAF: "863000x30"}, 8, ({"namespace": "v", "certificate": "leaf"},)),
        Case({_LEAF: "864600x60"}, 20, ({"namespace": "v", "certificate": "leaf"},)),
        Case({_LEAF: "870000x30"}, 8),
        Case({_LEAF: "863000x3 7776000x30"}, 8),
    ],
    "VcbatchReconcileFailing": [
        Case({_DONE: "0+60x60", _BROKEN: "0+10x60"}, 30, ({"namespace": "v", "controller": "job-controller"},)),
        Case({_DONE: "0+60x60", _BROKEN: "0+1x60"}, 30),
        Case({_DONE: "0+60x60", _STALE: "0+60x60"}, 30),
    ],
}


def promtool_tests(rules: Path) -> Json:
    """All cases, as promtool takes them."""
    tests = [_test(name, case) for name, cases in CASES.items() for case in cases]
    return {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}


def _test(name: str, case: Case) -> Json:
    severity = shipped()[name]["labels"]["severity"]
    expected = [{"alertname": name, "alertstate": "firing", "severity": severity, **labels} for labels in case.fires]
    samples = [
        {"labels": "ALERTS{" + ",".join(f'{key}="{value}"' for key, value in one.items()) + "}", "value": 1}
        for one in expected
    ]
    query = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
    return {
        "name": f"{name} at minute {case.minute}: {dict(case.series)}",
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": f"{case.minute}m", "exp_samples": samples}],
    }
