"""The gangs that pods may be evicted for, and their tasks."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from vcbatch.scheduler.actions.base import eligible
from vcbatch.scheduler.actions.precedence import Ahead
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus
from vcbatch.scheduler.model.result import WaitReason

NEVER = "Never"
"""The preemption policy of pods for which no pods are evicted."""


def starving(session: Session, admits: Callable[[Job], bool]) -> dict[str, list[Job]]:
    """By queue name, the gangs that pods may be evicted for now, unordered. Gangs are left out that are preceded by a
    gang of higher priority which waits for admission and has idle nodes."""
    found = [j for j in eligible(session) if j.queue is not None and admits(j) and session.starving(j)]
    if not found:
        return {}
    out: dict[str, list[Job]] = {}
    ahead = Ahead(session, lowest=min(job.priority for job in found))
    for job in found:
        if not ahead.of(job):
            out.setdefault(job.queue_name, []).append(job)
    return out


def in_order(session: Session, jobs: list[Job]) -> Iterator[Job]:
    """The gangs in order, recomputed as evictions change it: a gang that fell back in the meantime comes later."""
    heap: list[tuple[tuple[Any, ...], Job]] = [(session.job_key(job), job) for job in jobs]
    heapq.heapify(heap)
    while heap:
        key, job = heapq.heappop(heap)
        now = session.job_key(job)
        if heap and now > key and now > heap[0][0]:
            heapq.heappush(heap, (now, job))
            continue
        yield job


def waiting_tasks(session: Session, job: Job) -> list[Task]:
    """The gang's pending tasks that aren't gated, in task order, best-effort tasks included."""
    if not job.pending_best_effort:
        return [task for run in session.runs(job) for task in run.tasks if task.status is TaskStatus.PENDING]
    return session.ordered([t for t in job.tasks.values() if t.status is TaskStatus.PENDING and not t.gated])


def may_preempt(task: Task) -> bool:
    """Whether pods may be evicted for the pod, by its preemption policy, which the API server copies from its
    PriorityClass."""
    return task.pod.spec.preemption_policy != NEVER


def has_topology(job: Job) -> bool:
    """Whether the gang, or a sub-gang, requests a network topology, hard or soft."""
    if job.group is None:
        return False
    spec = job.group.spec
    return bool(spec.network_topology) or any(policy.get("networkTopology") for policy in spec.sub_group_policy or ())


def note_promise(session: Session, job: Job, statement: Statement) -> None:
    """Record the pending reason of the gang once its pods are pipelined."""
    count = len(statement.victims)
    once = f"{count} pods that are evicted for it are gone" if count else "pods that are ending are gone"
    session.blockers[job.key] = Blocker(
        reason=WaitReason.WAITING_FOR_RELEASE,
        text=f"it fits once {once}; their places are kept for it",
        placed=job.ready_count + job.waiting_count,
    )
