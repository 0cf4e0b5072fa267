"""Whose eviction would make room for a gang, if they were not protected for now, so that it can be said until when; or
if their queue did not deserve what they use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import KeptShare
from vcbatch.scheduler.model.objects import Job, Run, Task
from vcbatch.scheduler.model.result import Protected
from vcbatch.scheduler.reasons.reclaim_obstacles import kept_share


def likeness(session: Session, job: Job, runs: Sequence[Run]) -> tuple[object, ...] | None:
    """Equal for gangs of which, as long as nothing is decided, nobody can be evicted for one if nobody can for the
    other; None where a gang is like no other."""
    if job.queue is None or job.topology is not None or job.rules or job.allocated_count:
        return None
    if any(session.coupled(run.tasks) for run in runs):
        return None
    return (job.queue.name, job.priority, *((run.cls.id, run.tasks[0].priority, len(run.tasks)) for run in runs))


class ProtectedVictims:
    """Notes for gangs for which nobody was evicted whether protected pods would do. Found once for gangs that are
    alike, until somebody is evicted or placed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[object, ...], Protected | KeptShare | None] = {}
        self._known_at = (0, 0, 0)

    def note(self, job: Job, alike: tuple[object, ...] | None, victims: Callable[[], Sequence[Task]]) -> None:
        """The search for this gang failed, some pods being protected. `victims` searches as if none were, and leaves
        the snapshot as it was; it returns nobody where that fails too."""
        self._note(job, alike, lambda: self._found(victims))

    def note_share(self, job: Job, alike: tuple[object, ...] | None, victims: Callable[[], Sequence[Task]]) -> bool:
        """The search for this gang failed, and other gangs may not be evicted whole. The same where that is as their
        queue would be left with less than it deserves; whether it is."""
        return self._note(job, alike, lambda: self._share(victims))

    def _note(
        self, job: Job, alike: tuple[object, ...] | None, find: Callable[[], Protected | KeptShare | None]
    ) -> bool:
        session = self._session
        at = (len(session.evictions), len(session.binds), len(session.held))
        if at != self._known_at:
            self._known.clear()
            self._known_at = at
        if alike is not None and alike in self._known:
            found = self._known[alike]
        else:
            found = find()
            if alike is not None:
                self._known[alike] = found
        if found is not None:
            session.protected[job.key] = found
        return found is not None

    def _share(self, victims: Callable[[], Sequence[Task]]) -> KeptShare | None:
        session = self._session
        session.beyond_shares = True
        try:
            gone = victims()
        finally:
            session.beyond_shares = False
        return kept_share(session, gone)

    def _found(self, victims: Callable[[], Sequence[Task]]) -> Protected | None:
        session = self._session
        session.lenient = True
        try:
            gone = victims()
        finally:
            session.lenient = False
        limit = session.protection(gone) if gone else None
        if limit is None:
            return None
        gangs = sorted({task.job.key if task.job is not None else f"{task.namespace}/{task.name}" for task in gone})
        return Protected(len(gone), tuple(gangs), *limit)
