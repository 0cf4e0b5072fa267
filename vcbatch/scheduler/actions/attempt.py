"""One attempt to place a gang: its pending tasks in order, until it can start."""

from __future__ import annotations

from collections import deque
from typing import Any

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.columns import Rows
from vcbatch.scheduler.model.domain import Domain
from vcbatch.scheduler.model.objects import ALLOCATED_STATUSES, Job, Queue, Run, Task, TaskStatus
from vcbatch.scheduler.reasons.blockers import no_node, queue_limit

Sheet = deque[Run]
"""The runs of a gang that are still to be placed, in order."""


class Attempt:
    """One pass through a gang's tasks until it is ready or all its tasks have been tried."""

    def __init__(self, session: Session, job: Job, statement: Statement, *, domain: Domain | None = None) -> None:
        """With a network topology `domain` only its nodes are used, and a failure is kept in `blocker`, since another
        domain may fit; without one a failure is the gang's pending reason."""
        self.session = session
        self.job = job
        self.statement = statement
        self.domain = domain
        self.blocker: Blocker | None = None
        self.refused = self._unplaced = False
        """Whether the queue, and whether the nodes, had no capacity for some of its tasks."""
        self._began = statement.mark()
        self._failed_roles: set[str] = set()
        self._indivisible = job.min_member >= len(job.tasks) and session.votes_on_holding
        """The gang needs every one of its tasks: once one fails, the others needn't be tried."""
        self._futile = False

    def restart(self) -> None:
        """Forget failures, after placements were rolled back."""
        self.blocker = None
        self.refused = self._unplaced = self._futile = False
        self._failed_roles.clear()

    def work_off(self, sheet: Sheet) -> None:
        """Place runs from the front of the sheet. Runs left on it are for the next time the gang is served."""
        while sheet:
            run = sheet.popleft()
            if run.role and run.role in self._failed_roles:
                continue
            mark = self.statement.mark()
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
            elif self.statement.mark() > mark and self.session.ready(self.job):
                return

    def _place(self, run: Run) -> tuple[list[Any], bool]:
        """Place tasks of one run. Returns those left over because the gang became ready, and whether a task found no
        node, in which case the rest of the run wouldn't find one either."""
        session, job = self.session, self.job
        assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
        tasks = run.tasks
        if run.cls.unsupported:
            self.fail(self.no_node(tasks[0], unplaced=len(tasks)))
            return [], True
        coupled = session.coupled(tasks)
        done = 0
        while done < len(tasks):
            room = session.room_of(job, run.cls.request)
            needed = min(len(tasks) - done, session.tasks_until_ready(job, run.role))
            if room < 1 or (room < needed and self._indivisible):
                self.fail(self.queue_limit(job.queue, tasks[done], needed), by_queue=True)
                self._futile = self._indivisible
                return [], False
            want = min(needed, room)
            known = None if coupled else self._known_failure(run, want)
            if known is not None:
                self.fail(known.of(tasks[done].name, placed=self.placed()))
                return [], True
            before = done
            done += self.some(run, done, 1 if coupled else want, coupled=coupled)
            if done - before < (1 if coupled else want):
                blocker = self.no_node(tasks[done], unplaced=want - done + before)
                self.fail(blocker)
                if self.within() is None and not coupled and not before and not self._began_before(done):
                    session.exhausted[run.cls.id] = (done, blocker)
                return [], True
            if done < len(tasks) and session.ready(job):
                return tasks[done:], False
        return [], False

    def some(self, run: Run, start: int, want: int, *, coupled: bool) -> int:
        """Place up to `want` tasks, first on free resources, then on those being released. Returns the number of placed
        tasks."""
        placer, statement = self.session.placer, self.statement
        within = self.within()
        leaning = self.session.leaning(self.job, run.sub, run.cls, self.domain)
        if coupled:
            task = run.tasks[start]
            found = self.session.place_for(task, within=within, leaning=leaning)
            if found is None:
                return 0
            row, free = found
            (statement.allocate if free else statement.pipeline)([task], [row])
            return 1
        rows = placer.on_idle(run.cls, want, within=within, leaning=leaning)
        if rows:
            statement.allocate(run.tasks[start : start + len(rows)], rows)
        placed = len(rows)
        if placed < want:
            rows = placer.on_releasing(run.cls, want - placed, within=within, leaning=leaning)
            if rows:
                statement.pipeline(run.tasks[start + placed : start + placed + len(rows)], rows)
            placed += len(rows)
        return placed

    def within(self) -> Rows | None:
        """The rows of the nodes that may be used; None for all."""
        if self.domain is None or len(self.domain.rows) == len(self.session.nodes):
            return None
        return self.domain.rows

    def no_node(self, task: Task, *, unplaced: int) -> Blocker:
        """Why no node takes the task; `unplaced` tasks like it are still needed."""
        domain = None if self.within() is None else self.domain
        return no_node(self.session, task, unplaced=unplaced, placed=self.placed(), domain=domain)

    def queue_limit(self, queue: Queue, task: Task, unplaced: int) -> Blocker:
        """Why the queue has no capacity for the task."""
        session, placed = self.session, self.placed()
        own = self.statement.amount(len(session.dims))

        def found() -> Blocker:
            return queue_limit(session, queue, task, unplaced=unplaced, placed=placed, own=own)

        if self.statement or session.coupled([task]):
            return found()
        return session.failure((queue.name, task.cls.id, unplaced), found).of(task.name, placed=placed)

    def _known_failure(self, run: Run, want: int) -> Blocker | None:
        """The failure of another gang of this class in this cycle, if this gang would fail by it as well: it needs more
        nodes at once than that one found, and would be rolled back."""
        if self.statement or not self._indivisible or self.within() is not None:
            return None
        known = self.session.exhausted.get(run.cls.id)
        return known[1] if known is not None and want > known[0] else None

    def _began_before(self, done: int) -> bool:
        """Whether the statement has more placements than the first `done` tasks of this run."""
        return self.statement.size > done

    def placed(self) -> int:
        return self.job.ready_count + self.job.waiting_count

    @property
    def limited(self) -> bool:
        """Whether the queue's capacity is the limit, which is the same in every domain: it had none for one task of a
        gang that needs all its tasks, or for any further task of another gang."""
        return self.refused and (self._indivisible or not (self._unplaced or self.statement.mark() > self._began))

    def fail(self, blocker: Blocker, *, by_queue: bool = False) -> None:
        """Record a failure. The first one is the gang's pending reason; if the gang is tried further without those
        tasks, the first failure that isn't permanent takes precedence."""
        if by_queue:
            self.refused = True
        else:
            self._unplaced = True
        if self.blocker is None or (self.blocker.reason.hopeless and not blocker.reason.hopeless):
            self.blocker = blocker
        if self.domain is None:
            known = self.session.blockers.setdefault(self.job.key, blocker)
            if known.reason.hopeless:
                self.session.blockers[self.job.key] = self.blocker

    def _may_continue(self) -> bool:
        """Whether the gang could still start without the failed tasks (Volcano's NeedContinueAllocating)."""
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
