"""The order of gangs, and when a gang is ready. The plugins priority, gang and drf."""

from __future__ import annotations

from typing import Any

from tests.oracle.model import ALLOCATED, EPS, READY, Amounts, Job, Task, plus
from tests.oracle.snapshot import JobContext


class Gangs(JobContext):
    def _job_key(self, job: Job) -> tuple[Any, ...]:
        key: list[Any] = []
        for plugin in self.plugins:
            if plugin == "priority":
                key.append(-job.priority)
            elif plugin == "gang":
                key.append(1 if job.count(*READY) + self._hoped(job) >= job.minimum else 0)
            elif plugin == "drf":
                held: Amounts = {}
                for task in job.tasks:
                    if task.status in (*ALLOCATED, "Pipelined"):
                        held = plus(held, task.request)
                key.append(max((held.get(n, 0.0) / v for n, v in self.total.items() if v >= EPS), default=0.0))
        return (*key, job.creation, job.uid, job.key)

    def _task_order(self, tasks: list[Task]) -> list[Task]:
        indexed = all(t.index is not None for t in tasks)

        def key(task: Task) -> tuple[Any, ...]:
            first = [-task.priority] if "priority" in self.plugins else []
            return (*first, task.index if indexed else 0, task.creation, task.uid)

        return sorted(tasks, key=key)

    def _roles(self, job: Job) -> dict[str, int]:
        return job.role_minimums if job.minimum >= sum(job.role_minimums.values()) else {}

    def _hoped(self, job: Job, role: str | None = None) -> int:
        return sum(1 for t in job.tasks if t.status == "Pending" and t.best_effort and (role is None or t.role == role))

    def _suffices(self, job: Job, *statuses: str, hope: bool = True) -> bool:
        """Whether the tasks in these states satisfy the minimum of the gang, of its roles and of its subgroups. Pending
        best-effort pods are counted too; without `hope` they don't count for the minimum of the whole gang."""
        if "gang" not in self.plugins:
            return True
        known = "Pending" in statuses
        has = job.count(*statuses) + (self._hoped(job) if hope and not known else 0)
        roles = all(
            job.count(*statuses, role=r) + (0 if known else self._hoped(job, r)) >= m
            for r, m in self._roles(job).items()
        )
        return has >= job.minimum and roles and job.enough_parts(*statuses)

    def _ready(self, job: Job, *, hope: bool = True) -> bool:
        return self._suffices(job, *READY, hope=hope)

    def _pipelined(self, job: Job) -> bool:
        return self._suffices(job, *READY, "Pipelined")

    def _valid(self, job: Job) -> bool:
        return self._suffices(job, *READY, "Pipelined", "Pending")
