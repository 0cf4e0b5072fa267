"""Place gangs: as a whole until they can start, task by task beyond that."""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from vcbatch.scheduler.actions.base import ERROR_CACHE, eligible, place_best_effort
from vcbatch.scheduler.blockers import Blocker, no_node, queue_limit
from vcbatch.scheduler.model import ALLOCATED_STATUSES, Job, Queue, Run, Task, TaskStatus
from vcbatch.scheduler.result import WaitReason
from vcbatch.scheduler.statement import Statement

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

Sheet = deque[Run]
_Ranked = TypeVar("_Ranked")
_Heap = list[tuple[tuple[Any, ...], _Ranked]]


class Allocate:
    """The best queue's best gang gets its minimum or nothing; gangs that started grow by one task a turn, so that
    shares decide whose tail grows. A gang that failed isn't tried again in the cycle.

    Members that ask for nothing count towards the minimum, as in Volcano, and are placed by backfill. Where the
    minimum needs them, they must find a node already here, and the cycle takes the gang back if they don't in the end.

    Only the queue and the gang that were just served change their place in the order, so heaps stay exact.
    """

    arguments = ERROR_CACHE

    def execute(self, session: Session) -> None:
        sheets: dict[str, Sheet] = {}
        jobs: dict[str, _Heap[Job]] = {}
        sleepers = _Sleepers(session)
        for job in eligible(session):
            assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
            if sleepers.sleeps(job, job.queue):
                continue
            runs = session.runs(job)
            if runs:
                sheets[job.key] = deque(runs)
                jobs.setdefault(job.queue.name, []).append((session.job_key(job), job))
        for heap in jobs.values():
            heapq.heapify(heap)
        queues = [(session.queue_key(queue), queue) for queue in map(session.state.queues.__getitem__, jobs)]
        heapq.heapify(queues)
        while queues:
            _, queue = heapq.heappop(queues)
            if self._turn(session, queue, jobs[queue.name], sheets):
                heapq.heappush(queues, (session.queue_key(queue), queue))

    def _turn(self, session: Session, queue: Queue, heap: _Heap[Job], sheets: dict[str, Sheet]) -> bool:
        """Serve the queue's best gang. False where the queue is through."""
        reason = session.overused(queue)
        if reason is not None:
            session.closed_queues[queue.name] = reason
            return False
        if not heap:
            return False
        _, job = heapq.heappop(heap)
        if self._serve(session, job, sheets[job.key]):
            heapq.heappush(heap, (session.job_key(job), job))
        elif queue.fifo and job.key in session.blockers:
            session.closed_queues[queue.name] = f"queue {queue.name} is first in, first out: {job.key} is first"
            return False
        return True

    def _serve(self, session: Session, job: Job, sheet: Sheet) -> bool:
        """One turn of a gang. True where it started and has tasks left."""
        job.parked = None
        session.attempted.append(job)
        statement = Statement(session)
        _Attempt(session, job, statement).work_off(sheet)
        if session.ready(job) and (session.ready_without_hope(job) or self._hope(session, job)):
            session.commit(statement)
            return bool(sheet)
        if statement and session.pipelined(job):
            session.held.append(statement)
            session.blockers[job.key] = Blocker(
                reason=WaitReason.WAITING_FOR_RELEASE,
                text="it fits once pods that are ending are gone; what it found is held for it",
                placed=job.ready_count + job.waiting_count,
            )
        else:
            statement.discard()
        return False

    def _hope(self, session: Session, job: Job) -> bool:
        """Whether the members that ask for nothing, and that the minimum needs, would find a node now."""
        trial = Statement(session)
        place_best_effort(session, job, trial)
        enough = session.ready_without_hope(job)
        trial.discard()
        return enough


class _Sleepers:
    """Which parked gangs needn't be tried: those whose stamp is the same would fail as before."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stamps: dict[str, tuple[object, ...]] = {}

    def sleeps(self, job: Job, queue: Queue) -> bool:
        """Whether the gang stays parked. The first in a first-in-first-out queue holds the others up, so there every
        gang is asked."""
        if job.parked is None or queue.fifo:
            return False
        stamp = self._stamps.get(queue.name)
        if stamp is None:
            stamp = self._stamps[queue.name] = self._session.stamp(queue)
        return job.parked == stamp


class _Attempt:
    """One walk through a gang's tasks until it is ready, or its tasks are through."""

    def __init__(self, session: Session, job: Job, statement: Statement) -> None:
        self._session = session
        self._job = job
        self._statement = statement
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
                sheet.appendleft(Run(run.cls, run.role, left))
                return
            if failed:
                self._failed_roles.add(run.role)
                if not self._may_continue():
                    return
            elif self._session.ready(self._job):
                return

    def _place(self, run: Run) -> tuple[list[Any], bool]:
        """Place tasks of one run. Returns those left over because the gang became ready, and whether a task found no
        node, in which case the rest of the run wouldn't find one either."""
        session, job = self._session, self._job
        assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
        tasks = run.tasks
        if run.cls.unsupported:
            self._fail(no_node(session, tasks[0], unplaced=len(tasks), placed=job.ready_count))
            return [], True
        coupled = session.coupled(tasks)
        done = 0
        while done < len(tasks):
            room = session.room(job.queue, run.cls.request)
            needed = min(len(tasks) - done, session.tasks_until_ready(job, run.role))
            if room < 1 or (room < needed and self._indivisible):
                self._fail(self._queue_limit(job.queue, tasks[done], needed))
                self._futile = self._indivisible
                return [], False
            want = min(needed, room)
            known = None if coupled else self._known_failure(run, want)
            if known is not None:
                self._fail(known.of(tasks[done], placed=self._placed()))
                return [], True
            before = done
            done += self._some(run, done, 1 if coupled else want, coupled=coupled)
            if done - before < (1 if coupled else want):
                blocker = no_node(session, tasks[done], unplaced=want - done + before, placed=self._placed())
                self._fail(blocker)
                if not coupled and not before and not self._began_before(done):
                    session.exhausted[run.cls.id] = (done, blocker)
                return [], True
            if done < len(tasks) and session.ready(job):
                return tasks[done:], False
        return [], False

    def _some(self, run: Run, start: int, want: int, *, coupled: bool) -> int:
        """Place up to `want` tasks, on free resources first, on those being released then. Returns how many."""
        placer, statement = self._session.placer, self._statement
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

    def _queue_limit(self, queue: Queue, task: Task, unplaced: int) -> Blocker:
        """Why the queue doesn't let the task in."""
        session, placed = self._session, self._placed()
        own = self._statement.amount(len(session.dims))

        def found() -> Blocker:
            return queue_limit(session, queue, task, unplaced=unplaced, placed=placed, own=own)

        if self._statement or session.coupled([task]):
            return found()
        return session.failure((queue.name, task.cls.id, unplaced), found).of(task, placed=placed)

    def _known_failure(self, run: Run, want: int) -> Blocker | None:
        """What another gang of this class ran into in this cycle, where this one would run into it as well: it needs
        more at once than that one found, and would be undone."""
        if self._statement or not self._indivisible:
            return None
        known = self._session.exhausted.get(run.cls.id)
        return known[1] if known is not None and want > known[0] else None

    def _began_before(self, done: int) -> bool:
        """Whether the statement has more in it than the first `done` tasks of this run."""
        return self._statement.size > done

    def _placed(self) -> int:
        return self._job.ready_count + self._job.waiting_count

    def _fail(self, blocker: Blocker) -> None:
        """The first failure of an attempt is what the gang waits for."""
        self._session.blockers.setdefault(self._job.key, blocker)

    def _may_continue(self) -> bool:
        """Whether the gang could still start without what failed (Volcano's NeedContinueAllocating)."""
        job = self._job
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
