"""Remedies that are about gangs."""

from __future__ import annotations

from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.model.objects import Job


def gang(job: Job) -> str:
    """The PodGroup, as remedies name objects."""
    return f"podgroup/{job.key}"


def wait_for(key: str) -> list[Remedy]:
    """Until this gang, by `namespace/name`, is through."""
    return [Remedy(RemedyAction.WAIT, f"podgroup/{key}")]
