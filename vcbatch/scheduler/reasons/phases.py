"""The phase of a gang, by the statuses of its pods."""

from __future__ import annotations

from vcbatch.api.resources import JOBS
from vcbatch.scheduler.model.objects import Job, Phase, TaskStatus

_TO_RUN = (TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED, TaskStatus.BINDING)


def next_phase(job: Job, *, unschedulable: bool) -> Phase:
    """The phase of a gang by the statuses of its pods (Volcano's phase machine): members that are bound, have run or
    are terminating on their node count as scheduled; a gang that lost its minimum while members run is Unknown. A
    Completed gang stays so while none of its pods is yet to run.

    Unlike in Volcano, a gang with a member that has no node yet isn't Completed (volcano#5871): it is Inqueue if it was
    admitted, else Pending.
    """
    counts = job.counts
    if counts[TaskStatus.RUNNING] and unschedulable:
        return Phase.UNKNOWN
    finished = counts[TaskStatus.SUCCEEDED] + counts[TaskStatus.FAILED]
    scheduled = counts[TaskStatus.RUNNING] + counts[TaskStatus.BOUND] + finished + _ending(job)
    if scheduled >= job.min_member:
        if scheduled != finished:
            return Phase.RUNNING
        if not any(counts[status] for status in _TO_RUN):
            return Phase.COMPLETED
        return Phase.PENDING if job.phase is Phase.PENDING else Phase.INQUEUE
    if job.phase is Phase.COMPLETED and finished == sum(counts) and not _of_a_job(job):
        return Phase.COMPLETED
    return Phase.INQUEUE if job.phase is Phase.INQUEUE else Phase.PENDING


def _of_a_job(job: Job) -> bool:
    """Whether a Job controls the PodGroup: its controller keeps the PodGroup for another attempt, which has to be
    admitted before it has pods."""
    owner = job.group.metadata.controller_owner() if job.group is not None else None
    return owner is not None and (owner.api_version, owner.kind) == (JOBS.api_version, JOBS.kind)


def only_ending(job: Job) -> bool:
    """Whether the gang lacks its minimum only because members are terminating, and has no other members to place."""
    counts = job.counts
    if counts[TaskStatus.PENDING] or counts[TaskStatus.PIPELINED]:
        return False
    ended = counts[TaskStatus.SUCCEEDED] + counts[TaskStatus.FAILED]
    there = counts[TaskStatus.RUNNING] + counts[TaskStatus.BOUND] + ended + _ending(job)
    return there >= job.min_member


def _ending(job: Job) -> int:
    """The number of members that are being deleted and still have their node."""
    if not job.counts[TaskStatus.RELEASING]:
        return 0
    return sum(1 for task in job.tasks.values() if task.status is TaskStatus.RELEASING and task.node)
