"""Priority: higher priority first, among gangs and within a gang."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import EvictionKind, GangEviction, OrderTerm, Plugin
from vcbatch.scheduler.index.victims import Candidates
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Job, Task
from vcbatch.scheduler.model.resources import Mask


class Priority(Plugin):
    tasks_by_priority = True
    VICTIMS_BY_STANDING = True
    JOB_TERM = OrderTerm("priority", -1)

    def open(self, session: Handle) -> None:
        self._table = session.state.jobs_table

    def job_key(self, job: Job) -> float:
        return -job.priority

    def job_keys(self, rows: Rows) -> Floats:
        return -self._table.priority[rows].astype(np.float64)

    def task_key(self, task: Task) -> float:
        return -task.priority

    def job_starving(self, job: Job) -> bool:
        """Whether some member is neither placed nor pipelined."""
        return job.ready_count + job.waiting_count < len(job.tasks)

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Pods of gangs with lower priority; within the preemptor's gang, pods with lower priority."""
        own = preemptor.job
        most = 0 if own is None else own.priority
        return [
            task
            for task in candidates
            if task.job is not None
            and (task.priority < preemptor.priority if task.job is own else task.job.priority < most)
        ]

    def possible_victims(self, kind: EvictionKind, job: Job, cls: TaskClass, candidates: Candidates) -> Mask | None:
        if kind is EvictionKind.RECLAIM:
            return None
        return self._table.priority[candidates.jobs] < job.priority

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> Sequence[Task]:
        """In the preemptor's own queue the pods of gangs with lower priority; between queues all candidates."""
        if eviction.kind is EvictionKind.RECLAIM:
            return candidates
        most = eviction.job.priority
        return [task for task in candidates if task.job is not None and task.job.priority < most]
