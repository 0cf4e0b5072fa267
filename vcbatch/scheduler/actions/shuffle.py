"""Move pods that had better run elsewhere, whoever waits: plugins name them, and each is told why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.arguments import NO_ARGUMENTS
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import Task, TaskStatus


class Shuffle:
    """Evicts the running pods that the first tier of plugins with an opinion names, but for those that some plugin
    keeps in their place. Who makes pods anew is their controller; where they go then is allocate's choice."""

    arguments = NO_ARGUMENTS

    def execute(self, cycle: Cycle) -> None:
        session = cycle.session
        statement = Statement(session)
        for task, why in session.unwanted(_Running(session)):
            statement.evict(task, reason="shuffle", message=why)
        if statement:
            session.commit(statement)


class _Running(Sequence[Task]):
    """The running pods of gangs on nodes that are there, collected when somebody looks at them."""

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
