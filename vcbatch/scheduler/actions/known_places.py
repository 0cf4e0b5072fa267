"""Gangs whose nodes are known already.

As long as no other class changes nodes, the next nodes of a class are found many at a time, whichever gangs they are
for (`View`). For a gang of such pods that needs all of them, only the capacity of its queue remains to be checked.
"""

from __future__ import annotations

from vcbatch.scheduler.actions.attempt import Sheet
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Job, Run


class KnownPlaces:
    """Binds whole gangs to known nodes in one step for all pods, with the same result as `Attempt`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._usable = session.plain

    def take(self, job: Job, sheet: Sheet) -> bool:
        """Whether the gang was bound. If it wasn't, nothing is changed, and it has to be tried by an `Attempt`."""
        session = self._session
        if not self._usable or len(sheet) != 1 or not self._needs_all_of(sheet[0], job):
            return False
        tasks, cls = sheet[0].tasks, sheet[0].cls
        if cls.id in session.exhausted or cls.claiming or session.coupled(tasks):
            return False
        if session.room_of(job, cls.request) < len(tasks):
            return False
        rows = session.placer.known(cls, len(tasks))
        if rows is None:
            return False
        session.bind(tasks, rows)
        sheet.clear()
        return True

    @staticmethod
    def _needs_all_of(run: Run, job: Job) -> bool:
        """Whether the gang, of which nothing is placed, starts once exactly these pods are placed."""
        return len(run.tasks) == len(job.tasks) == job.min_member and not job.rules and not job.bound_to_domains
