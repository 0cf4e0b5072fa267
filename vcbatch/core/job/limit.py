"""The time limit of a job: the time in phase Running, summed over all attempts.

Time in the queue, suspended or restarting doesn't count, so that an eviction can't use up a job's time. When it is used
up, the job is terminated as by TerminateJob: its pods get SIGTERM and their own grace period.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from vcbatch.api.job import JobPhase
from vcbatch.api.timestamps import parse_time
from vcbatch.core.job.context import JobContext


def out_of_time(context: JobContext) -> bool:
    """Whether the job has used up its time."""
    due = ends_at(context)
    return due is not None and due <= context.now


def ends_at(context: JobContext) -> datetime | None:
    """When a running job's time is used up; None where it has no limit or doesn't run."""
    since = _running_since(context)
    limit = context.plan.max_run_seconds
    if limit is None or since is None:
        return None
    return since + timedelta(seconds=limit - context.ledger.ran_seconds)


def ran_for(context: JobContext) -> timedelta:
    """How long a running job has been running in this attempt; zero for a job that doesn't run."""
    since = _running_since(context)
    return max(context.now - since, timedelta()) if since is not None else timedelta()


def note(context: JobContext, phase: JobPhase) -> None:
    """Record how long the job ran, where it stops running with this reconciliation."""
    if phase is not JobPhase.RUNNING:
        context.ledger.ran_seconds += int(ran_for(context).total_seconds())


def _running_since(context: JobContext) -> datetime | None:
    if context.phase is not JobPhase.RUNNING:
        return None
    try:
        return parse_time(context.view.job.status.state.last_transition_time or "")
    except ValueError:
        return None
