"""Precedence of gangs of higher priority over other pending gangs, in admission and in evictions.

An admitted gang uses admission capacity until it starts. A gang of higher priority that has idle nodes for its pods
isn't kept out by such capacity of gangs of lower priority, and none of these has pods evicted while it waits for
admission.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Job, Phase
from vcbatch.scheduler.model.result import WaitReason


def has_idle_nodes(session: Session, job: Job) -> bool:
    """Whether nodes have enough free slots for the gang's pods, each class counted as if there were no others."""
    runs = session.runs(job)
    if not runs or session.invalid(job) is not None:
        return False
    rows = np.arange(len(session.nodes), dtype=np.intp)
    found = session.placer.places(runs, rows, promising=False).values()
    tasks = sum(count for count, _ in found)
    return sum(min(count, free) for count, free in found) >= min(session.tasks_until_ready(job, ""), tasks)


class Precedence:
    """The admitted gangs without placed pods, whose admission capacity may be lent to gangs of higher priority."""

    def __init__(self, session: Session) -> None:
        self._session = session
        table = session.state.jobs_table
        self._waiting = [
            job
            for job in session.state.waiting.values()
            if job.phase is Phase.INQUEUE and not job.allocated_count and table.has_minimum[job.row]
        ]
        self._lowest = min((job.priority for job in self._waiting), default=None)

    def concerns(self, job: Job) -> bool:
        """Whether a pending gang has a higher priority than some gang that was admitted before the cycle and isn't
        placed."""
        return self._lowest is not None and job.priority > self._lowest and job.phase is Phase.PENDING

    def admits(self, job: Job, asked: Callable[[], bool]) -> bool:
        """Whether there are idle nodes for the gang, and only gangs of lower priority keep it from being admitted:
        `asked` returns whether plugins admit it."""
        session = self._session
        if not has_idle_nodes(session, job):
            return False
        behind = [other for other in self._waiting if other.priority < job.priority]
        session.count_admission(behind, -1)
        admitted = asked()
        session.count_admission(behind, 1)
        return admitted


class Ahead:
    """The gangs of a priority above `lowest` that wait for admission and have idle nodes. No gang of lower priority may
    have pods evicted before them: in the same queue or, if the whole cluster lacks admission capacity, in any queue."""

    def __init__(self, session: Session, *, lowest: int) -> None:
        self._anywhere: int | None = None
        self._by_queue: dict[str, int] = {}
        admitting = "enqueue" in session.policy.actions
        for job in session.state.waiting.values() if admitting else ():
            if job.priority <= lowest or job.phase is not Phase.PENDING or job.queue is None:
                continue
            if not job.tasks or job.blocker is None:
                continue
            if job.blocker.reason not in (WaitReason.CLUSTER_OVERCOMMITTED, WaitReason.QUEUE_LIMIT):
                continue
            if not has_idle_nodes(session, job):
                continue
            if job.blocker.reason is WaitReason.CLUSTER_OVERCOMMITTED:
                self._anywhere = job.priority if self._anywhere is None else max(self._anywhere, job.priority)
            known = self._by_queue.get(job.queue.name, job.priority)
            self._by_queue[job.queue.name] = max(known, job.priority)

    def of(self, job: Job) -> bool:
        """Whether one of them precedes this gang."""
        most = self._by_queue.get(job.queue_name, job.priority)
        return max(most, job.priority if self._anywhere is None else self._anywhere) > job.priority
