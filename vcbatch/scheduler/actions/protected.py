"""Victims that are protected for now, or whose queue deserves what they use, reported as the reason why a gang
waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import KeptShare
from vcbatch.scheduler.model.objects import Job, Run, Task
from vcbatch.scheduler.model.result import Protected
from vcbatch.scheduler.reasons.reclaim_obstacles import kept_share


def likeness(session: Session, job: Job, runs: Sequence[Run]) -> tuple[object, ...] | None:
    """A key that is equal for gangs of which, as long as nothing is decided, either all or none can be helped by
    evictions; None if the gang isn't comparable."""
    if job.queue is None or job.topology is not None or job.rules or job.allocated_count:
        return None
    if any(session.coupled(run.tasks) for run in runs):
        return None
    return (job.queue.name, job.priority, *((run.cls.id, run.tasks[0].priority, len(run.tasks)) for run in runs))


class ProtectedVictims:
    """Records for gangs without successful evictions whether evicting protected pods would help. Computed once for
    equal gangs, until pods are evicted or placed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[object, ...], Protected | KeptShare | None] = {}
        self._known_at = (0, 0, 0)

    def note(self, job: Job, alike: tuple[object, ...] | None, victims: Callable[[], Sequence[Task]]) -> None:
        """The search for this gang failed while some pods were protected. `victims` repeats it without the protection
        and leaves the snapshot unchanged; it returns no pods if that fails too."""
        self._note(job, alike, lambda: self._found(victims))

    def note_share(self, job: Job, alike: tuple[object, ...] | None, victims: Callable[[], Sequence[Task]]) -> bool:
        """The search for this gang failed, and other gangs may not be evicted whole. Records, as `note` does, the
        victims if the reason is that their queue would have less than its deserved share. Returns whether it is."""
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
