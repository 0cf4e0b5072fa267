"""Counts of a gang's members by status: of the gang, its roles and its sub-gangs."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.scheduler.model.objects import Job, TaskStatus
from vcbatch.scheduler.model.sub_gangs import SubKey

PLACED = (
    TaskStatus.ALLOCATED,
    TaskStatus.BINDING,
    TaskStatus.BOUND,
    TaskStatus.RUNNING,
    TaskStatus.SUCCEEDED,
)
"""Statuses that count for a gang's minimums."""


def whole_subs(job: Job, position: int, statuses: Sequence[TaskStatus]) -> int:
    """How many sub-gangs of the rule at this position have all their members in these statuses; pending best-effort
    members count as placed, as in the gang."""
    size = job.rules[position].size
    return sum(1 for key in job.subs if key[0] == position and members_of_sub(job, key, statuses) >= size)


def members_of_sub(job: Job, key: SubKey, statuses: Sequence[TaskStatus]) -> int:
    """How many members of a sub-gang have these statuses, pending best-effort ones included."""
    counts = job.subs.get(key)
    if counts is None:
        return 0
    members = sum(counts[status] for status in statuses)
    if job.pending_best_effort and TaskStatus.PENDING not in statuses:
        members += sum(
            1
            for task in job.tasks.values()
            if task.sub == key and task.status is TaskStatus.PENDING and task.cls.best_effort
        )
    return members


def enforced_roles(job: Job) -> dict[str, int]:
    """The minimums of roles that are enforced for this gang."""
    minimums = job.role_minimums
    return minimums if minimums and job.min_member >= sum(minimums.values()) else {}


def count(job: Job, role: str, status: TaskStatus) -> int:
    """How many tasks of the role have this status."""
    counts = job.roles.get(role)
    return 0 if counts is None else counts[status]


def placed(job: Job, role: str) -> int:
    """How many tasks of the role count for its minimum."""
    counts = job.roles.get(role)
    return 0 if counts is None else sum(counts[status] for status in PLACED)


def placed_or_best_effort(job: Job, role: str) -> int:
    """The placed tasks of the role and its pending best-effort tasks."""
    found = placed(job, role)
    if job.pending_best_effort:
        found += sum(
            1
            for task in job.tasks.values()
            if task.role == role and task.status is TaskStatus.PENDING and task.cls.best_effort
        )
    return found
