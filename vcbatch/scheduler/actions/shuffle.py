"""Evict pods that plugins want to move to other nodes, with their reasons, independently of pending gangs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.arguments import NO_ARGUMENTS
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import Task, TaskStatus


class Shuffle:
    """Evicts the running pods that the first tier of plugins with any returns, except those that some plugin protects.
    Their controllers recreate the pods, and allocate chooses their nodes."""

    arguments = NO_ARGUMENTS

    def execute(self, cycle: Cycle) -> None:
        session = cycle.session
        statement = Statement(session)
        for task, why in session.unwanted(_Running(session)):
            statement.evict(task, reason="shuffle", message=why)
        if statement:
            session.commit(statement)


class _Running(Sequence[Task]):
    """The running pods of gangs on existing nodes, collected on first use."""

    def __init__(self, session: Session) -> None:
        self._state = session.state
        self._found: list[Task] | None = None

    def _tasks(self) -> list[Task]:
        if self._found is None:
            jobs = (job for job in self._state.jobs.values() if job.counts[TaskStatus.RUNNING])
            self._found = [
                task
                for job in jobs
                for task in job.tasks.values()
                if task.status is TaskStatus.RUNNING and self._state.row_of(task) >= 0
            ]
        return self._found

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        return self._tasks()[index]

    def __len__(self) -> int:
        return len(self._tasks())
