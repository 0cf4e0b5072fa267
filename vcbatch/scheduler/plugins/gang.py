"""Gang scheduling, all or nothing: when a gang is ready to start, and that gangs below their minimum come first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import EvictionKind, GangEviction, OrderTerm, Plugin, Vote
from vcbatch.scheduler.index.victims import Candidates
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.gang_counts import PLACED, count, enforced_roles, placed, placed_or_best_effort, whole_subs
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus
from vcbatch.scheduler.model.resources import Mask

_HELD = (*PLACED, TaskStatus.PIPELINED)
_VALID = (*_HELD, TaskStatus.PENDING)


class Gang(Plugin):
    """Readiness by minMember, minTaskMember and sub-gangs. The minimums of roles count only if their sum is no more
    than minMember."""

    ready_by_number = True
    VICTIMS_BY_STANDING = True
    KEEPS_VICTIMS = True
    JOB_TERM = OrderTerm("below its minimum", 0)

    def open(self, session: Handle) -> None:
        self._table = session.state.jobs_table
        self._counted = session.state.victims is not None

    def job_key(self, job: Job) -> float:
        """Gangs below their minimum come before those that would only grow; by the total number of members, whatever
        their roles."""
        return 0 if job.ready_count + job.pending_best_effort < job.min_member else 1

    def job_keys(self, rows: Rows) -> Floats | None:
        if not self._counted:
            return None
        table = self._table
        enough = table.ready_count[rows] + table.pending_best_effort[rows] >= table.min_member[rows]
        return enough.astype(np.float64)

    def job_valid(self, job: Job) -> str | None:
        for role, minimum in enforced_roles(job).items():
            have = placed(job, role) + count(job, role, TaskStatus.PIPELINED) + count(job, role, TaskStatus.PENDING)
            if have < minimum:
                return f"role {role!r} has {have} of {minimum} pods"
        if job.valid_count < job.min_member:
            return f"{job.valid_count} of {job.min_member} pods exist"
        for position, rule in enumerate(job.rules):
            whole = whole_subs(job, position, _VALID)
            if whole < rule.least:
                return f"sub-group {rule.name!r} has {whole} of {rule.least} whole parts of {rule.size} pods"
        return None

    def job_ready(self, job: Job) -> bool:
        if job.ready_count + job.pending_best_effort < job.min_member:
            return False
        roles = enforced_roles(job)
        if roles and any(placed_or_best_effort(job, role) < minimum for role, minimum in roles.items()):
            return False
        return not job.rules or _enough_subs(job, PLACED)

    def tasks_until_ready(self, job: Job, role: str) -> int:
        missing = job.min_member - job.ready_count - job.pending_best_effort
        minimum = enforced_roles(job).get(role)
        if minimum is not None:
            missing = max(missing, minimum - placed_or_best_effort(job, role))
        return max(missing, 1)

    def job_pipelined(self, job: Job) -> Vote:
        if job.waiting_count + job.ready_count + job.pending_best_effort < job.min_member:
            return Vote.REJECT
        for role, minimum in enforced_roles(job).items():
            if placed_or_best_effort(job, role) + count(job, role, TaskStatus.PIPELINED) < minimum:
                return Vote.REJECT
        if job.rules and not _enough_subs(job, _HELD):
            return Vote.REJECT
        return Vote.PERMIT

    def job_starving(self, job: Job) -> bool:
        """Whether the gang lacks members, pipelined ones counted as present; roles are ignored."""
        return job.waiting_count + job.ready_count < job.min_member

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        """The members that gangs have beyond their minimum."""
        return _surplus(candidates)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        return _surplus(candidates)

    def possible_victims(self, kind: EvictionKind, job: Job, cls: TaskClass, candidates: Candidates) -> Mask:
        spare = self._table.ready_count > self._table.min_member
        return spare[candidates.jobs]

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> Sequence[Task]:
        """All candidates: pods are evicted in bundles, which leave a gang its minimums or end it."""
        return candidates


def _surplus(candidates: Sequence[Task]) -> list[Task]:
    """Of each gang the first candidates, as many as it has members beyond its minimum."""
    left: dict[str, int] = {}
    out: list[Task] = []
    for task in candidates:
        job = task.job
        if job is None or job.group is None:
            continue
        spare = left.get(job.key)
        if spare is None:
            spare = job.ready_count - job.min_member
        if spare > 0:
            out.append(task)
        left[job.key] = spare - 1
    return out


def _enough_subs(job: Job, statuses: Sequence[TaskStatus]) -> bool:
    return all(whole_subs(job, position, statuses) >= rule.least for position, rule in enumerate(job.rules))
