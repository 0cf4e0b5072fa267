"""Evicts gangs that stay below their minimum for long, so that they don't block resources (the shuffle action)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar, Final

from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.structures import duration
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus

_MEMORY: Final = "stale-gang"
_REFUSED_MEMORY: Final = "stale-gang/refused"
_GRACE: Final = "gracePeriod"
_REFUSED_BIND: Final = "onRefusedBind"
_HELD = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})


class StaleGang(Plugin):
    """Evicts a gang that has placed pods but, for `gracePeriod` (10m) without interruption, fewer than its minimum.
    With `onRefusedBind` it is evicted at once if the bind of a member failed and the member fits on no other node. Only
    gangs that changed are checked in a cycle."""

    ARGUMENTS = ArgumentSpec(named={_REFUSED_BIND: Argument(default=False)}, structured={_GRACE: duration("10m")})
    ACTS_IN: ClassVar[str] = "shuffle"
    UNWANTED: ClassVar[str] = "its gang has had fewer pods than its minimum for longer than the policy allows"

    def open(self, session: Handle) -> None:
        self._session = session
        state = session.state
        since: dict[str, datetime] | None = state.memory.get(_MEMORY)
        self._since: dict[str, datetime] = {} if since is None else since
        state.memory[_MEMORY] = self._since
        self._refused: set[str] = state.memory.setdefault(_REFUSED_MEMORY, set())
        if self.arguments[_REFUSED_BIND]:
            tasks = [state.tasks[uid] for uid in state.refused if uid in state.tasks]
            self._refused |= {task.job.key for task in tasks if task.job is not None}
        self._note(state.jobs.values() if since is None else state.touched.values())
        for key in [key for key in self._since if key not in state.jobs]:
            del self._since[key]
        for at in self._since.values():
            session.requeue_at(at + self.arguments[_GRACE])

    def close(self, session: Handle) -> None:
        self._note(session.state.touched.values())
        jobs = session.state.jobs
        self._refused -= {key for key in self._refused if key not in jobs or not _torn(jobs[key])}

    def unwanted(self, running: Sequence[Task]) -> Sequence[Task] | None:
        state, grace = self._session.state, self.arguments[_GRACE]
        keys = {key for key, at in self._since.items() if self._session.now >= at + grace} | self._refused
        due = [state.jobs[key] for key in sorted(keys) if key in state.jobs]
        found = [task for job in due if stale(job) for task in job.tasks.values() if task.status in _HELD]
        return [task for task in found if state.row_of(task) >= 0] or None

    def _note(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            if not stale(job):
                self._since.pop(job.key, None)
            elif job.key not in self._since:
                self._since[job.key] = self._session.now


def _torn(job: Job) -> bool:
    """Whether the gang is below its minimum with members that are placed or being bound."""
    return job.allocated_count > 0 and job.group is not None and job.ready_count < job.min_member


def stale(job: Job) -> bool:
    """Whether the gang is below its minimum with members on nodes."""
    held = any(job.counts[status] for status in _HELD)
    return held and job.group is not None and job.ready_count < job.min_member
