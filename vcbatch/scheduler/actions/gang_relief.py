"""Evicting task by task until a gang has its minimum, or nobody: what preempt and reclaim have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vcbatch.scheduler.actions.relief import Relief
from vcbatch.scheduler.actions.retaliation import Retaliation
from vcbatch.scheduler.actions.starving import note_promise, waiting_tasks
from vcbatch.scheduler.arguments import Argument
from vcbatch.scheduler.model import Job, Task
from vcbatch.scheduler.statement import Statement

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

MINIMIZE: Final = "minimizeVictims"
PREVENT: Final = "preventTakeBack"
SPARING = {MINIMIZE: Argument(default=False), PREVENT: Argument(default=False)}
"""Arguments of both that spare victims, beyond what Volcano does."""


@dataclass(frozen=True, slots=True)
class GangRelief:
    """Relieves one gang after the other. `may_have` says whether others may be evicted for a task now."""

    session: Session
    relief: Relief
    retaliation: Retaliation
    may_have: Callable[[Task], bool]

    def serve(self, job: Job) -> bool:
        """Evict for the gang until it has its minimum, promised places counted; whether anybody goes. Where one task of
        a gang that needs them all gets no place nobody does: one that asks for nothing would count all the same."""
        with self.session.promises.aside(job):
            return self._serve(job)

    def _serve(self, job: Job) -> bool:
        session = self.session
        self.relief.begin(self.retaliation.untouchable(job))
        statement = Statement(session)
        indivisible = session.votes_on_holding and job.min_member >= len(job.tasks)
        hopeless = False
        for task in waiting_tasks(session, job):
            if not session.starving(job):
                break
            allowed = self.may_have(task)
            if allowed and self.relief.find(statement, task):
                continue
            if indivisible and not task.cls.best_effort:
                statement.discard()
                return False
            hopeless = hopeless or (indivisible and allowed)
        if hopeless and statement.victims:
            statement.discard()
            return False
        if statement and session.pipelined(job) and self.retaliation.permits(statement, job):
            note_promise(session, job, statement)
            session.commit(statement)
            return True
        statement.discard()
        return False
