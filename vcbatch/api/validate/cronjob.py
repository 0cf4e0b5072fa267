"""Whether a CronJob can work (volcano-sh/volcano `pkg/webhooks/admission/cronjobs/validate`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vcbatch.api import cron
from vcbatch.api.cronjob import CronJob
from vcbatch.api.defaults import default_job
from vcbatch.api.job import Job
from vcbatch.api.name_rules import qualified_name
from vcbatch.api.validate.fault import Cause, Fault
from vcbatch.api.validate.job import spec_faults
from vcbatch.api.validate.lookup import Lookup

_LONGEST_LABEL: Final = 63
LONGEST_NAME: Final = _LONGEST_LABEL - 11
"""A job is called after its CronJob, a dash and ten digits."""

_SOME_SLOT: Final = "29000000"
"""Minutes since 1970, which end the names of a CronJob's jobs: eight digits until the year 2160."""

_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}", re.ASCII)


def cronjob_faults(cron_job: CronJob, lookup: Lookup) -> list[Fault]:
    """Faults of name, schedule and time zone, and of the job that would be made each time."""
    faults = [*_name_faults(cron_job.name), *_schedule_faults(cron_job.spec.schedule)]
    faults += _zone_faults(cron_job.spec.time_zone, lookup)
    # The job goes through admission itself, with its defaults; what can't ever pass is better said now.
    job = Job.parse(default_job({"spec": cron_job.spec.job_template.spec.dump()}))
    faults += spec_faults(job.spec, some_job_name(cron_job), path="spec.jobTemplate.spec")
    return faults


def some_job_name(cron_job: CronJob) -> str:
    """The name of a job that it makes, as long as they all are."""
    return f"{cron_job.name[:LONGEST_NAME]}-{_SOME_SLOT}"


def _name_faults(name: str) -> Iterator[Fault]:
    if len(name) > LONGEST_NAME:
        text = f"cronJob name must be no more than {LONGEST_NAME} characters to accommodate job name suffix"
        yield Fault("metadata.name", f"{text} (max {_LONGEST_LABEL} total)")
    for complaint in qualified_name(name[:LONGEST_NAME]) if name else ():
        yield Fault("metadata.name", f"invalid cronJob name {name}: {complaint}")


def _schedule_faults(schedule: str) -> Iterator[Fault]:
    field = "spec.schedule"
    if not schedule:
        yield Fault(field, "schedule is required, but got empty", Cause.REQUIRED)
    elif "TZ" in schedule:
        text = "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
        yield Fault(field, text)
    else:
        complaint = cron.complaint(schedule)
        if complaint:
            yield Fault(field, f"schedule is not a valid cron expression: {complaint}")


def _zone_faults(zone: str | None, lookup: Lookup) -> Iterator[Fault]:
    field = "spec.timeZone"
    if zone is None:
        return
    if not zone:
        yield Fault(field, "timeZone must be nil or non-empty string, got empty string")
    elif zone.lower() == "local":
        yield Fault(field, "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones")
    elif not all(_is_zone_part(part) for part in zone.split("/")) or not lookup.has_time_zone(zone):
        yield Fault(field, f"invalid timeZone {zone}: want an IANA name such as Europe/Berlin")


def _is_zone_part(part: str) -> bool:
    return part not in (".", "..") and not part.startswith("-") and _ZONE_PART.fullmatch(part) is not None
