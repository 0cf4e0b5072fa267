"""The snapshot on which a CronJob is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from vcbatch.api.cronjob import AnyCronJob
from vcbatch.core.cronjob.kinds import AnyJob

Zones = Callable[[str], tzinfo | None]
"""The time zone of that IANA name; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronJobView:
    """One CronJob and its jobs."""

    cron_job: AnyCronJob
    jobs: Sequence[AnyJob] = ()
    """All jobs that it controls, by UID, and all others of its namespace whose name is the CronJob's and a number."""
    zones: Zones
    rescheduled_at: datetime | None = None
    """When its schedule or time zone was last seen to change."""
