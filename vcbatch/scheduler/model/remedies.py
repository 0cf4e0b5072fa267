"""Remedies that refer to gangs."""

from __future__ import annotations

from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.model.objects import Job


def gang(job: Job) -> str:
    """The PodGroup in the form `podgroup/KEY` that remedies use."""
    return f"podgroup/{job.key}"


def wait_for(key: str) -> list[Remedy]:
    """The remedy to wait until this gang, by `namespace/name`, has finished."""
    return [Remedy(RemedyAction.WAIT, f"podgroup/{key}")]
