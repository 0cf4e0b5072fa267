"""Shared by preempt and reclaim: evictions task by task, kept only if the gang gets its minimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.scheduler.actions.fewest_gangs import with_fewest_broken
from vcbatch.scheduler.actions.protected import ProtectedVictims, likeness
from vcbatch.scheduler.actions.relief import Relief
from vcbatch.scheduler.actions.retaliation import Retaliation
from vcbatch.scheduler.actions.starving import note_promise, waiting_tasks
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.arguments import Argument
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import Job, Task

MINIMIZE: Final = "minimizeVictims"
PREVENT: Final = "preventTakeBack"
SPARING = {MINIMIZE: Argument(default=False), PREVENT: Argument(default=False)}
"""Arguments of both actions that reduce evictions, beyond Volcano's."""


@dataclass(frozen=True, slots=True)
class GangRelief:
    """Evicts for one gang after another. `may_have` says whether pods may be evicted for a task now."""

    cycle: Cycle
    relief: Relief
    retaliation: Retaliation
    may_have: Callable[[Task], bool]
    protected: ProtectedVictims

    def serve(self, job: Job) -> bool:
        """Evict for the gang until it has its minimum, pipelined tasks included. Returns whether pods are evicted. If
        the gang needs all its tasks and one of them can't be placed, nothing is evicted; that holds for best-effort
        tasks as well."""
        session = self.cycle.session
        with self.cycle.promises.aside(job):
            before = session.withheld
            statement = self._search(job)
            if statement is not None:
                if self.relief.terms.minimize:
                    statement = with_fewest_broken(
                        session, job, statement, lambda breakable: self._search(job, breakable)
                    )
                self.retaliation.remember(statement, job)
                note_promise(session, job, statement)
                session.commit(statement)
                return True
            if session.withheld > before:
                self._note_protected(job)
        return False

    def _note_protected(self, job: Job) -> None:
        alike = likeness(self.cycle.session, job, self.cycle.session.runs(job))
        if alike is not None:
            alike = (*alike, self.retaliation.untouchable(job))
        self.protected.note(job, alike, lambda: self._victims(job))

    def _victims(self, job: Job) -> Sequence[Task]:
        statement = self._search(job)
        if statement is None:
            return ()
        victims = statement.victims
        statement.discard()
        return victims

    def _search(self, job: Job, breakable: frozenset[str] | None = None) -> Statement | None:
        """Search the evictions that give the gang its minimum. Returns the statement with them, applied to the
        snapshot; None, with the snapshot unchanged, if there are none. If `breakable` is given, only gangs with these
        UIDs may fall below their minimum; other gangs lose no more than the pods that they can run without."""
        session = self.cycle.session
        self.relief.begin(self.retaliation.untouchable(job), breakable)
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
                return None
            hopeless = hopeless or (indivisible and allowed)
        if hopeless and statement.victims:
            statement.discard()
            return None
        if statement and session.pipelined(job) and self.retaliation.permits(statement, job):
            return statement
        statement.discard()
        return None
