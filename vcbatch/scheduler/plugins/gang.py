"""All of a gang or nothing: when a gang is whole enough to start, and that gangs which aren't come first."""

from __future__ import annotations

from vcbatch.scheduler.model import Job, TaskStatus
from vcbatch.scheduler.plugins.base import Plugin, Vote

_PLACED = (
    TaskStatus.ALLOCATED,
    TaskStatus.BINDING,
    TaskStatus.BOUND,
    TaskStatus.RUNNING,
    TaskStatus.SUCCEEDED,
)


class Gang(Plugin):
    """Readiness by minMember and minTaskMember. The minimums of roles count only where they add up to no more than
    minMember."""

    def job_key(self, job: Job) -> float:
        """Gangs that still need members before those that would only grow."""
        return 1 if self.job_ready(job) else 0

    def job_valid(self, job: Job) -> str | None:
        for role, minimum in _roles(job).items():
            have = _placed(job, role) + _count(job, role, TaskStatus.PIPELINED) + _count(job, role, TaskStatus.PENDING)
            if have < minimum:
                return f"role {role!r} has {have} of {minimum} pods"
        if job.valid_count < job.min_member:
            return f"{job.valid_count} of {job.min_member} pods exist"
        return None

    def job_ready(self, job: Job) -> bool:
        if job.ready_count + job.pending_best_effort < job.min_member:
            return False
        roles = _roles(job)
        return not roles or all(_with_best_effort(job, role) >= minimum for role, minimum in roles.items())

    def tasks_until_ready(self, job: Job, role: str) -> int:
        missing = job.min_member - job.ready_count - job.pending_best_effort
        minimum = _roles(job).get(role)
        if minimum is not None:
            missing = max(missing, minimum - _with_best_effort(job, role))
        return max(missing, 1)

    def job_pipelined(self, job: Job) -> Vote:
        if job.waiting_count + job.ready_count + job.pending_best_effort < job.min_member:
            return Vote.REJECT
        for role, minimum in _roles(job).items():
            if _with_best_effort(job, role) + _count(job, role, TaskStatus.PIPELINED) < minimum:
                return Vote.REJECT
        return Vote.PERMIT


def _roles(job: Job) -> dict[str, int]:
    minimums = job.role_minimums
    return minimums if minimums and job.min_member >= sum(minimums.values()) else {}


def _count(job: Job, role: str, status: TaskStatus) -> int:
    counts = job.roles.get(role)
    return 0 if counts is None else counts[status]


def _placed(job: Job, role: str) -> int:
    counts = job.roles.get(role)
    return 0 if counts is None else sum(counts[status] for status in _PLACED)


def _with_best_effort(job: Job, role: str) -> int:
    """Placed tasks of the role, and pending ones that ask for nothing."""
    placed = _placed(job, role)
    if job.pending_best_effort:
        placed += sum(
            1
            for task in job.tasks.values()
            if task.role == role and task.status is TaskStatus.PENDING and task.cls.best_effort
        )
    return placed
