"""Validation of CronJobs (volcano-sh/volcano `pkg/webhooks/admission/cronjobs/validate`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vcbatch.api import cron
from vcbatch.api.cronjob import CronJob
from vcbatch.api.defaults import default_job
from vcbatch.api.job import Job
from vcbatch.api.name_rules import qualified_name
from vcbatch.api.validate.errors import Cause, ValidationError
from vcbatch.api.validate.job import spec_errors
from vcbatch.api.validate.lookup import Lookup

_LONGEST_LABEL: Final = 63
LONGEST_NAME: Final = _LONGEST_LABEL - 11
"""The name of a job is that of its CronJob, a dash and ten digits."""

_SOME_SLOT: Final = "29000000"
"""An example of the suffix of a CronJob's jobs, minutes since 1970: eight digits until the year 2160."""

_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}", re.ASCII)


def cronjob_errors(cron_job: CronJob, lookup: Lookup) -> list[ValidationError]:
    """Errors of name, schedule and time zone, and of the job that would be created each time."""
    errors = [*_name_errors(cron_job.name), *_schedule_errors(cron_job.spec.schedule)]
    errors += _zone_errors(cron_job.spec.time_zone, lookup)
    # The created jobs pass admission themselves, with defaults; errors that would reject all of them are reported now.
    job = Job.parse(default_job({"spec": cron_job.spec.job_template.spec.dump()}))
    errors += spec_errors(job.spec, some_job_name(cron_job), path="spec.jobTemplate.spec")
    return errors


def some_job_name(cron_job: CronJob) -> str:
    """The name of one of its jobs; all have the same length."""
    return f"{cron_job.name[:LONGEST_NAME]}-{_SOME_SLOT}"


def _name_errors(name: str) -> Iterator[ValidationError]:
    if len(name) > LONGEST_NAME:
        text = f"cronJob name must be no more than {LONGEST_NAME} characters to accommodate job name suffix"
        yield ValidationError("metadata.name", f"{text} (max {_LONGEST_LABEL} total)")
    for complaint in qualified_name(name[:LONGEST_NAME]) if name else ():
        yield ValidationError("metadata.name", f"invalid cronJob name {name}: {complaint}")


def _schedule_errors(schedule: str) -> Iterator[ValidationError]:
    field = "spec.schedule"
    if not schedule:
        yield ValidationError(field, "schedule is required, but got empty", Cause.REQUIRED)
    elif "TZ" in schedule:
        text = "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
        yield ValidationError(field, text)
    else:
        complaint = cron.complaint(schedule)
        if complaint:
            yield ValidationError(field, f"schedule is not a valid cron expression: {complaint}")


def _zone_errors(zone: str | None, lookup: Lookup) -> Iterator[ValidationError]:
    field = "spec.timeZone"
    if zone is None:
        return
    if not zone:
        yield ValidationError(field, "timeZone must be nil or non-empty string, got empty string")
    elif zone.lower() == "local":
        yield ValidationError(field, "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones")
    elif not all(_is_zone_part(part) for part in zone.split("/")) or not lookup.has_time_zone(zone):
        yield ValidationError(field, f"invalid timeZone {zone}: want an IANA name such as Europe/Berlin")


def _is_zone_part(part: str) -> bool:
    return part not in (".", "..") and not part.startswith("-") and _ZONE_PART.fullmatch(part) is not None
