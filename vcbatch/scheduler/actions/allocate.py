"""Place gangs: as a whole until they can start, task by task beyond that."""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from vcbatch.scheduler.actions.attempt import Attempt, Sheet
from vcbatch.scheduler.actions.base import ERROR_CACHE, eligible, place_best_effort
from vcbatch.scheduler.actions.sub_gangs import SubGangAttempt
from vcbatch.scheduler.blockers import Blocker
from vcbatch.scheduler.model import Job, Queue
from vcbatch.scheduler.result import WaitReason
from vcbatch.scheduler.statement import Statement

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

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
        (SubGangAttempt if job.rules else Attempt)(session, job, statement).work_off(sheet)
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
