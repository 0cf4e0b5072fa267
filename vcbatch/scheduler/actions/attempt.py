"""One try to place a gang: its pending tasks in order, until it can start."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from vcbatch.scheduler.blockers import Blocker, no_node, queue_limit
from vcbatch.scheduler.model import ALLOCATED_STATUSES, Job, Queue, Run, Task, TaskStatus
from vcbatch.scheduler.statement import Statement

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

Sheet = deque[Run]
"""The runs of a gang that are still to be placed, first things first."""


class Attempt:
    """One walk through a gang's tasks until it is ready, or its tasks are through."""

    def __init__(self, session: Session, job: Job, statement: Statement) -> None:
        self.session = session
        self.job = job
        self.statement = statement
        self._failed_roles: set[str] = set()
        self._indivisible = job.min_member >= len(job.tasks) and session.votes_on_holding
        """It needs every one of its tasks: what one can't get, the others needn't try for."""
        self._futile = False

    def work_off(self, sheet: Sheet) -> None:
        """Place runs from the front of the sheet. What is left on it is for another turn."""
        while sheet:
            run = sheet.popleft()
            if run.role and run.role in self._failed_roles:
                continue
            left, failed = self._place(run)
            if self._futile:
                return
            if left:
                sheet.appendleft(run.rest(len(run.tasks) - len(left)))
                return
            if failed:
                self._failed_roles.add(run.role)
                if not self._may_continue():
                    return
            elif self.session.ready(self.job):
                return

    def _place(self, run: Run) -> tuple[list[Any], bool]:
        """Place tasks of one run. Returns those left over because the gang became ready, and whether a task found no
        node, in which case the rest of the run wouldn't find one either."""
        session, job = self.session, self.job
        assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
        tasks = run.tasks
        if run.cls.unsupported:
            self.fail(no_node(session, tasks[0], unplaced=len(tasks), placed=job.ready_count))
            return [], True
        coupled = session.coupled(tasks)
        done = 0
        while done < len(tasks):
            room = session.room(job.queue, run.cls.request)
            needed = min(len(tasks) - done, session.tasks_until_ready(job, run.role))
            if room < 1 or (room < needed and self._indivisible):
                self.fail(self.queue_limit(job.queue, tasks[done], needed))
                self._futile = self._indivisible
                return [], False
            want = min(needed, room)
            known = None if coupled else self._known_failure(run, want)
            if known is not None:
                self.fail(known.of(tasks[done], placed=self.placed()))
                return [], True
            before = done
            done += self.some(run, done, 1 if coupled else want, coupled=coupled)
            if done - before < (1 if coupled else want):
                blocker = no_node(session, tasks[done], unplaced=want - done + before, placed=self.placed())
                self.fail(blocker)
                if not coupled and not before and not self._began_before(done):
                    session.exhausted[run.cls.id] = (done, blocker)
                return [], True
            if done < len(tasks) and session.ready(job):
                return tasks[done:], False
        return [], False

    def some(self, run: Run, start: int, want: int, *, coupled: bool) -> int:
        """Place up to `want` tasks, on free resources first, on those being released then. Returns how many."""
        placer, statement = self.session.placer, self.statement
        if coupled:
            task = run.tasks[start]
            found = placer.one(task)
            if found is None:
                return 0
            row, free = found
            (statement.allocate if free else statement.pipeline)([task], [row])
            return 1
        rows = placer.on_idle(run.cls, want)
        if rows:
            statement.allocate(run.tasks[start : start + len(rows)], rows)
        placed = len(rows)
        if placed < want:
            rows = placer.on_releasing(run.cls, want - placed)
            if rows:
                statement.pipeline(run.tasks[start + placed : start + placed + len(rows)], rows)
            placed += len(rows)
        return placed

    def queue_limit(self, queue: Queue, task: Task, unplaced: int) -> Blocker:
        """Why the queue doesn't let the task in."""
        session, placed = self.session, self.placed()
        own = self.statement.amount(len(session.dims))

        def found() -> Blocker:
            return queue_limit(session, queue, task, unplaced=unplaced, placed=placed, own=own)

        if self.statement or session.coupled([task]):
            return found()
        return session.failure((queue.name, task.cls.id, unplaced), found).of(task, placed=placed)

    def _known_failure(self, run: Run, want: int) -> Blocker | None:
        """What another gang of this class ran into in this cycle, where this one would run into it as well: it needs
        more at once than that one found, and would be undone."""
        if self.statement or not self._indivisible:
            return None
        known = self.session.exhausted.get(run.cls.id)
        return known[1] if known is not None and want > known[0] else None

    def _began_before(self, done: int) -> bool:
        """Whether the statement has more in it than the first `done` tasks of this run."""
        return self.statement.size > done

    def placed(self) -> int:
        return self.job.ready_count + self.job.waiting_count

    def fail(self, blocker: Blocker) -> None:
        """The first failure of an attempt is what the gang waits for."""
        self.session.blockers.setdefault(self.job.key, blocker)

    def _may_continue(self) -> bool:
        """Whether the gang could still start without what failed (Volcano's NeedContinueAllocating)."""
        job = self.job
        if job.min_member >= len(job.tasks):
            return False
        minimums = job.role_minimums
        if job.min_member < sum(minimums.values()):
            rest = sum(
                counts[TaskStatus.PENDING] for role, counts in job.roles.items() if role not in self._failed_roles
            )
            return job.ready_count + rest >= job.min_member
        return all(_allocated(job, role) >= minimums[role] for role in self._failed_roles if role in minimums)


def _allocated(job: Job, role: str) -> int:
    return sum(job.roles[role][status] for status in ALLOCATED_STATUSES)
