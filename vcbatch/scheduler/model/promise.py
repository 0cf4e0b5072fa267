"""A reservation of nodes for a gang: the properties of the gang when it was made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vcbatch.scheduler.model.objects import Job


@dataclass(frozen=True, slots=True)
class Promise:
    """The gang's properties when nodes were reserved for it, until when they are at most, and since when it lacks
    pods."""

    uid: str
    queue: str
    priority: int
    until: datetime
    lacking: datetime | None = None

    @staticmethod
    def to(job: Job, *, until: datetime, lacking: datetime | None = None) -> Promise:
        """A reservation for the gang with its present properties."""
        return Promise(job.uid, job.queue_name, job.priority, until, lacking)

    def is_to(self, job: Job) -> bool:
        """Whether the gang is still the one that the reservation was made for."""
        return (self.uid, self.queue, self.priority) == (job.uid, job.queue_name, job.priority)
