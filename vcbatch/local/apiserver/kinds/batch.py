"""batch/v1 Jobs and CronJobs: stored, checked and printed; no controller of local mode runs them (vcjobs run).

Source: kubernetes `pkg/apis/batch`, `pkg/registry/batch`.
"""

from __future__ import annotations

import copy
from datetime import datetime

from croniter import croniter

from vcbatch.api import faults, selectors
from vcbatch.api.duration import human
from vcbatch.api.podspec.template import template_defaults, template_faults
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.errors import FieldError
from vcbatch.local.apiserver.kinds.define import STATUS
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import (
    AGE,
    NAME,
    NONE,
    UNSET,
    at,
    column,
    containers_of,
    count,
    dig,
    parse_time,
    selector_column,
    since,
)

JOBS = Resource(group="batch", version="v1", plural="jobs", kind="Job")
CRON_JOBS = Resource(group="batch", version="v1", plural="cronjobs", kind="CronJob")

_UID_LABEL = "batch.kubernetes.io/controller-uid"
_NAME_LABEL = "batch.kubernetes.io/job-name"
_LARGEST_BACKOFF = 2**31 - 1


def _job_spec_defaults(spec: Json) -> None:
    """What every job spec gets, a CronJob's template excepted."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    limited = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", _LARGEST_BACKOFF if limited else 6)
    if not spec.get("completionMode"):
        spec["completionMode"] = "NonIndexed"
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    policy = spec.get("podFailurePolicy")
    if spec.get("podReplacementPolicy") is None:
        spec["podReplacementPolicy"] = "Failed" if policy is not None else "TerminatingOrFailed"
    for rule in (policy or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")


def _job_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    metadata = obj.setdefault("metadata", {})
    template = spec.setdefault("template", {})
    template_defaults(template)
    labels = dig(template, "metadata", "labels")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    _job_spec_defaults(spec)


def _job_prepare(obj: Json, old: Json | None, _ctx: RequestContext) -> None:
    """Gives a new job the selector and labels that its uid makes unique."""
    spec, metadata = obj["spec"], obj["metadata"]
    if old is not None or spec.get("manualSelector") or not metadata.get("uid"):
        return
    uid, name = metadata["uid"], metadata.get("name", "")
    template = spec["template"].setdefault("metadata", {})
    template_labels = template["labels"] = dict(template.get("labels") or {})
    template_labels |= {"controller-uid": uid, "job-name": name, _UID_LABEL: uid, _NAME_LABEL: name}
    metadata["labels"] = {**template_labels, **(metadata.get("labels") or {}), **template_labels}
    selector = spec["selector"] = copy.deepcopy(spec.get("selector") or {})
    selector.setdefault("matchLabels", {})[_UID_LABEL] = uid


def _restart_faults(template: Json, path: str) -> list[FieldError]:
    policy = dig(template, "spec", "restartPolicy")
    if policy in ("OnFailure", "Never"):
        return []
    place = f"{path}.spec.restartPolicy"
    if not policy or policy == "Always":
        return [faults.required(place, 'valid values: "OnFailure", "Never"')]
    return [faults.unsupported(place, policy, ["OnFailure", "Never"])]


def _job_spec_faults(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ]:
        found += faults.not_negative(f"{path}.{key}", spec.get(key))
    mode = spec.get("completionMode")
    if mode is not None:
        if mode not in ("NonIndexed", "Indexed"):
            found.append(faults.unsupported(f"{path}.completionMode", mode, ["Indexed", "NonIndexed"]))
        if mode == "Indexed" and spec.get("completions") is None:
            detail = "when completion mode is Indexed"
            found.append(faults.required(f"{path}.completions", detail))
    if spec.get("backoffLimitPerIndex") is not None and mode != "Indexed":
        found.append(
            faults.invalid(
                f"{path}.backoffLimitPerIndex", spec["backoffLimitPerIndex"], "requires indexed completion mode"
            )
        )
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None and replacement not in ("Failed", "TerminatingOrFailed"):
        found.append(faults.unsupported(f"{path}.podReplacementPolicy", replacement, ["Failed", "TerminatingOrFailed"]))
    template = spec.get("template") or {}
    found += template_faults(template, f"{path}.template")
    return found + _restart_faults(template, f"{path}.template")


def _job_faults(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    selector = spec.get("selector")
    if selector is None:
        found.append(faults.required("spec.selector"))
    else:
        found += selectors.selector_faults(selector, "spec.selector")
        labels = dig(spec, "template", "metadata", "labels") or {}
        if not selectors.matches(selector, labels):
            detail = "`selector` does not match template `labels`"
            found.append(faults.invalid("spec.template.metadata.labels", labels or None, detail))
    return _job_spec_faults(spec, "spec") + found if found else _job_spec_faults(spec, "spec")


def _job_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    before, after = dig(old, "spec") or {}, obj.get("spec") or {}
    found: list[FieldError] = []
    for key in ("completions", "selector"):
        if key == "completions" and _elastic(before, after):
            continue
        found += faults.immutable(f"spec.{key}", after.get(key), before.get(key))
    if not _template_free(before, old or {}):
        found += faults.immutable("spec.template", after.get("template"), before.get("template"))
    for key in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        found += faults.immutable(f"spec.{key}", after.get(key), before.get(key))
    return found


def _elastic(before: Json, after: Json) -> bool:
    """An Indexed job may grow and shrink when completions and parallelism stay equal."""
    indexed = before.get("completionMode") == after.get("completionMode") == "Indexed"
    return indexed and after.get("completions") is not None and after.get("completions") == after.get("parallelism")


def _template_free(before: Json, old: Json) -> bool:
    """While a job that never started is suspended, its template's scheduling may be changed."""
    return bool(before.get("suspend")) and not dig(old, "status", "startTime")


def _cron_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job = spec.setdefault("jobTemplate", {})
    job.setdefault("metadata", {})
    template_defaults(job.setdefault("spec", {}).setdefault("template", {}))


def _cron_faults(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    schedule = spec.get("schedule", "")
    if not schedule:
        found.append(faults.required("spec.schedule"))
    else:
        found += _schedule_faults(schedule)
    found += faults.not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    policy = spec.get("concurrencyPolicy", "")
    if not policy:
        found.append(faults.required("spec.concurrencyPolicy"))
    elif policy not in ("Allow", "Forbid", "Replace"):
        found.append(faults.unsupported("spec.concurrencyPolicy", policy, ["Allow", "Forbid", "Replace"]))
    job = dig(spec, "jobTemplate", "spec") or {}
    found += _job_spec_faults(job, "spec.jobTemplate.spec")
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        found += faults.not_negative(f"spec.{key}", spec.get(key))
    if len(dig(obj, "metadata", "name") or "") > 52:
        found.append(
            faults.invalid("metadata.name", dig(obj, "metadata", "name"), "must be no more than 52 characters")
        )
    return found


_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def _schedule_faults(schedule: str) -> list[FieldError]:
    path = "spec.schedule"
    if "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [faults.invalid(path, schedule, detail)]
    if schedule.startswith("@"):
        if schedule in _DESCRIPTORS or schedule.startswith("@every "):
            return []
        return [faults.invalid(path, schedule, f"unrecognized descriptor: {schedule}")]
    words = schedule.split()
    if len(words) != 5:
        detail = f"expected exactly 5 fields, found {len(words)}: [{' '.join(words)}]"
        return [faults.invalid(path, schedule, detail)]
    if not croniter.is_valid(schedule):
        return [faults.invalid(path, schedule, "failed to parse schedule")]
    return []


def _has(obj: Json, condition: str) -> bool:
    conditions = dig(obj, "status", "conditions") or ()
    return any(item.get("type") == condition and item.get("status") == "True" for item in conditions)


def _job_state(obj: Json, _now: datetime) -> str:
    for condition, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if _has(obj, condition):
            return shown
    if dig(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if _has(obj, condition):
            return condition
    return "Running"


def _completions(obj: Json, _now: datetime) -> str:
    done, wanted = dig(obj, "status", "succeeded") or 0, dig(obj, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = dig(obj, "spec", "parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(obj: Json, now: datetime) -> str:
    start = parse_time(dig(obj, "status", "startTime"))
    if start is None:
        return ""
    return human((parse_time(dig(obj, "status", "completionTime")) or now) - start)


def _last_schedule(obj: Json, now: datetime) -> str:
    moment = dig(obj, "status", "lastScheduleTime")
    return since(moment, now) if moment else NONE


def _suspended(obj: Json, _now: datetime) -> str:
    value = dig(obj, "spec", "suspend")
    return UNSET if value is None else str(value)


_JOB_TEMPLATE = ("spec", "template", "spec", "containers")
_CRON_TEMPLATE = ("spec", "jobTemplate", "spec", "template", "spec", "containers")


def served() -> list[Served]:
    return [
        Served(
            resource=JOBS,
            singular="job",
            categories=("all",),
            strategy=BuiltIn(
                type_name="Job",
                defaults=_job_defaults,
                prepare=_job_prepare,
                check=_job_faults,
                check_update=_job_change,
                update_first=False,
                has_status=True,
                generation=True,
            ),
            columns=(
                NAME,
                column("Status", _job_state),
                column("Completions", _completions),
                column("Duration", _duration),
                AGE,
                *containers_of(*_JOB_TEMPLATE),
                selector_column("spec", "selector"),
            ),
            subresources=STATUS,
            selectable_fields=("status.successful",),
            field_values=lambda obj: {"status.successful": str(dig(obj, "status", "succeeded") or 0)},
            default_propagation="Orphan",
        ),
        Served(
            resource=CRON_JOBS,
            singular="cronjob",
            short_names=("cj",),
            categories=("all",),
            strategy=BuiltIn(
                type_name="CronJob",
                defaults=_cron_defaults,
                check=_cron_faults,
                has_status=True,
                generation=True,
            ),
            columns=(
                NAME,
                column("Schedule", at("spec", "schedule")),
                column("Timezone", at("spec", "timeZone", default=NONE)),
                column("Suspend", _suspended),
                column("Active", count("status", "active")),
                column("Last Schedule", _last_schedule),
                AGE,
                *containers_of(*_CRON_TEMPLATE),
                selector_column("spec", "jobTemplate", "spec", "selector"),
            ),
            subresources=STATUS,
        ),
    ]
