"""batch/v1 Jobs and CronJobs: defaults, validation and printing.

Source: kubernetes `pkg/apis/batch`, `pkg/registry/batch`.
"""

from __future__ import annotations

import copy
import re
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from vcbatch.api import cron, field_errors
from vcbatch.api.duration import human
from vcbatch.api.loose import part
from vcbatch.api.podspec.template import template_defaults
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.define import STATUS
from vcbatch.local.apiserver.kinds.job_errors import (
    UID_LABEL,
    change_errors,
    job_errors,
    spec_errors,
    wanted_labels,
)
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

_LARGEST_BACKOFF = 2**31 - 1


def _job_spec_defaults(spec: Json) -> None:
    """The defaults of a Job's spec, which don't apply to a CronJob's template."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    limited = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", _LARGEST_BACKOFF if limited else 6)
    if spec.get("completionMode") is None:
        spec["completionMode"] = "NonIndexed"
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    policy = spec.get("podFailurePolicy")
    if spec.get("podReplacementPolicy") is None:
        spec["podReplacementPolicy"] = "Failed" if policy is not None else "TerminatingOrFailed"
    for rule in (policy or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


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
    """Set the selector and labels of a new Job, which its UID makes unique."""
    spec, metadata = obj["spec"], obj["metadata"]
    if old is not None or spec.get("manualSelector") or not metadata.get("uid"):
        return
    uid, name = metadata["uid"], metadata.get("name", "")
    template = spec["template"].setdefault("metadata", {})
    template_labels = template["labels"] = dict(template.get("labels") or {})
    for key, value in wanted_labels(uid, name).items():
        template_labels.setdefault(key, value)
    metadata["labels"] = {**template_labels, **(metadata.get("labels") or {}), **template_labels}
    selector = spec["selector"] = copy.deepcopy(spec.get("selector") or {})
    selector.setdefault("matchLabels", {})[UID_LABEL] = uid


def _job_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return job_errors(obj)


def _job_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return change_errors(part(obj, "spec"), part(old or {}, "spec"), old or {})


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


def _cron_errors(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    schedule = spec.get("schedule", "")
    if not schedule:
        found.append(field_errors.required("spec.schedule"))
    else:
        found += _schedule_errors(schedule, dig(old, "spec", "schedule") or "", spec.get("timeZone"))
    found += field_errors.not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if old is None or dig(old, "spec", "timeZone") != spec.get("timeZone"):
        found += _zone_errors(spec.get("timeZone"))
    policy = spec.get("concurrencyPolicy", "")
    if not policy:
        found.append(field_errors.required("spec.concurrencyPolicy"))
    elif policy not in ("Allow", "Forbid", "Replace"):
        found.append(field_errors.unsupported("spec.concurrencyPolicy", policy, ["Allow", "Forbid", "Replace"]))
    job = dig(spec, "jobTemplate", "spec") or {}
    found += spec_errors(job, "spec.jobTemplate.spec")
    if job.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        found.append(field_errors.invalid("spec.jobTemplate.spec.selector", job["selector"], detail))
    if job.get("manualSelector"):
        found.append(field_errors.unsupported("spec.jobTemplate.spec.manualSelector", True, ["nil", "false"]))
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        found += field_errors.not_negative(f"spec.{key}", spec.get(key))
    if old is None and len(dig(obj, "metadata", "name") or "") > 52:
        found.append(
            field_errors.invalid("metadata.name", dig(obj, "metadata", "name"), "must be no more than 52 characters")
        )
    return found


_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def _schedule_errors(schedule: str, before: str, zone: str | None) -> list[FieldError]:
    """The errors of a time zone in the schedule: an existing one is kept, a new one is refused."""
    path = "spec.schedule"
    trouble = _unreadable(schedule)
    found = [field_errors.invalid(path, schedule, trouble)] if trouble else []
    if "TZ" in schedule:
        if "TZ" not in before:
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            found.append(field_errors.invalid(path, schedule, detail))
        elif zone is not None:
            detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            found.append(field_errors.invalid(path, schedule, detail))
    return found


def _unreadable(schedule: str) -> str:
    """Why the schedule is invalid, with Kubernetes' message where only its form is wrong."""
    complaint = cron.complaint(schedule)
    if not complaint:
        return ""
    if schedule.startswith("@"):
        return f"unrecognized descriptor: {schedule}"
    words = schedule.split()
    if len(words) != len(cron.FIELDS):
        return f"expected exactly 5 fields, found {len(words)}: [{' '.join(words)}]"
    return complaint


_MOST_ZONE_PARTS = 4
"""More than any name in the time zone database has; each part is a directory to search."""


def _zone_errors(zone: str | None) -> list[FieldError]:
    path = "spec.timeZone"
    if zone is None:
        return []
    if not zone:
        return [field_errors.invalid(path, zone, "timeZone must be nil or non-empty string")]
    parts = zone.split("/")
    if len(parts) > _MOST_ZONE_PARTS or any(
        each in (".", "..") or each.startswith("-") or not _ZONE_PART.fullmatch(each) for each in parts
    ):
        return [field_errors.invalid(path, zone, f"unknown time zone {zone}")]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [field_errors.invalid(path, zone, detail)]
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # no such file, an invalid file name, a directory
        return [field_errors.invalid(path, zone, f"unknown time zone {zone}")]
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
                check=_job_errors,
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
                check=_cron_errors,
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
