"""Place gangs: as a whole until they can start, task by task beyond that."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

from vcbatch.api.messages import behind_first
from vcbatch.scheduler.actions.attempt import Attempt, Sheet
from vcbatch.scheduler.actions.base import ERROR_CACHE, eligible, place_best_effort
from vcbatch.scheduler.actions.domain_attempt import DomainAttempt
from vcbatch.scheduler.actions.known_places import KnownPlaces
from vcbatch.scheduler.actions.queue_line import QueueLine
from vcbatch.scheduler.actions.search_attempt import SEARCH, attempt_of
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.feasibility.judge import Judge
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.objects import Job, Queue, TaskStatus
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.reservations.reservation import Reservations

_Heap = list[tuple[tuple[Any, ...], Job]]


BACKFILL = "conservativeBackfill"
RESERVATIONS = "backfillReservations"


class Allocate:
    """The best gang of the best queue gets its minimum or nothing; a gang that started gets one more task each time it
    is served, so that shares decide which gang grows. A gang that failed isn't tried again in the cycle.

    Best-effort members count towards the minimum, as in Volcano, and are placed by backfill. If the minimum needs them,
    they must already find a node here, and the cycle rolls the gang back if they aren't placed in the end.

    Only the queue and the gang that were just served change their position in the order, unless a plugin declares
    otherwise (`SHARES_PLACES`); so heaps stay exact.
    """

    arguments = ArgumentSpec(
        named={
            **ERROR_CACHE.named,
            BACKFILL: Argument(default=False),
            RESERVATIONS: Argument(default=10, minimum=1),
            SEARCH: Argument(default=True),
        }
    )

    def execute(self, cycle: Cycle) -> None:
        session = cycle.session
        given = session.policy.action_arguments.get("allocate", {})
        reservations = Reservations(session, most=given[RESERVATIONS]) if given.get(BACKFILL) else None
        turns = _Turns(cycle, reservations)
        line = QueueLine(session, map(session.state.queues.__getitem__, turns.jobs))
        while (queue := line.take()) is not None:
            if turns.serve(queue):
                line.put_back(queue)
        turns.serve_promised()
        if reservations is not None:
            reservations.close()


class _Turns:
    """The gangs that are to be placed, by queue, and the state of serving them."""

    def __init__(self, cycle: Cycle, reservations: Reservations | None) -> None:
        self._cycle = cycle
        self._session = session = cycle.session
        self._reservations = reservations
        self._known = KnownPlaces(session)
        self._sheets: dict[str, Sheet] = {}
        self._tried: set[str] = set()
        self.jobs: dict[str, _Heap] = {}
        self._line_up()

    def _line_up(self) -> None:
        session, promises, gates = self._session, self._cycle.promises, self._cycle.gates
        sleepers = _Sleepers(session, awake=set() if self._reservations is None else _firsts(session))
        for job in eligible(session):
            assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
            if sleepers.sleeps(job, job.queue):
                continue
            runs = session.runs(job)
            if runs or promises.to(job) or (gates is not None and gates.closed(job)):
                self._sheets[job.key] = deque(runs)
                for run in runs:
                    session.placer.expect(run.cls, len(run.tasks))
                self.jobs.setdefault(job.queue.name, []).append((session.job_key(job), job))
        for heap in self.jobs.values():
            heapq.heapify(heap)

    def serve(self, queue: Queue) -> bool:
        """Serve the queue's best gang. False if the queue has no more gangs to serve."""
        if self._closed(queue) or not self._serve_best(queue, self.jobs[queue.name]):
            return False
        if not self.jobs[queue.name]:
            self._closed(queue)  # serving it again would place nothing, and parked gangs get the same reason
            return False
        return True

    def _closed(self, queue: Queue) -> bool:
        reason = self._session.overused(queue)
        if reason is not None:
            self._session.closed_queues[queue.name] = reason
        return reason is not None

    def _serve_best(self, queue: Queue, heap: _Heap) -> bool:
        """False if no other gang of the queue may be served."""
        session, reservations = self._session, self._reservations
        if not heap:
            return False
        job = _best(heap, session)
        refused = None if reservations is None else reservations.before(job, queue)
        if refused is not None:
            session.blockers[job.key] = refused
            return True
        if self._place(job):
            heapq.heappush(heap, (session.job_key(job), job))
            return True
        if reservations is not None:
            reservations.after(job, queue)
            if reservations.holds(queue):
                return True
        blocker = session.blockers.get(job.key)
        if queue.fifo and blocker is not None and not blocker.reason.hopeless:
            session.closed_queues[queue.name] = behind_first(queue=queue.name, first=job.key)
            return False
        return True

    def serve_promised(self) -> None:
        """Serve the gangs with reserved nodes that weren't served with their queues."""
        for job in self._cycle.promises.waiting:
            if job.key not in self._tried:
                self._place(job)

    def _place(self, job: Job) -> bool:
        """Serve a gang once. True if it started and has tasks left."""
        self._tried.add(job.key)
        with self._cycle.promises.aside(job):
            return self._turn(job)

    def _turn(self, job: Job) -> bool:
        session = self._session
        job.parked = None
        session.attempted.append(job)
        if self._cycle.promises.to(job):
            statement = self._cycle.promises.take(job)
            sheet = self._sheets[job.key] = deque(session.runs(job))
        else:
            statement, sheet = Statement(session), self._sheets[job.key]
        if self._known.take(job, sheet):
            return False
        if self._cycle.gates is not None:
            self._cycle.gates.open(job)
        promised = statement.mark()
        if not statement or not session.ready(job):
            _attempt(session, job, statement).work_off(sheet)
        if session.ready(job) and (session.ready_without_hope(job) or _hope(session, job)):
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
            statement.take_back(promised)
            if statement:
                self._cycle.promises.give_back(job, statement)
            session.shared(Judge).note_failure(job)
        return False


def _hope(session: Session, job: Job) -> bool:
    """Whether the best-effort members that the minimum needs would find a node now."""
    trial = Statement(session)
    place_best_effort(session, job, trial)
    enough = session.ready_without_hope(job)
    trial.discard()
    return enough


def _attempt(session: Session, job: Job, statement: Statement) -> Attempt | DomainAttempt:
    if job.bound_to_domains:
        return DomainAttempt(session, job, statement)
    return attempt_of(session, job, statement)


def _best(heap: _Heap, session: Session) -> Job:
    """Take the best gang off the heap. If serving one gang moves others back as well, the position of each is
    recomputed when it comes to the top; because no gang moves forward, the first that is still the best is the best of
    all."""
    _, first = heapq.heappop(heap)
    while session.gangs_share_places and heap:
        now = session.job_key(first)
        if now <= heap[0][0]:
            break
        _, first = heapq.heapreplace(heap, (now, first))
    return first


def _firsts(session: Session) -> set[str]:
    """The first gang of every queue, for which resources may be reserved."""
    best: dict[str, tuple[tuple[Any, ...], str]] = {}
    for job in eligible(session):
        assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
        if job.counts[TaskStatus.PENDING] and not session.ready(job):
            mine = (session.job_key(job), job.key)
            best[job.queue.name] = min(best.get(job.queue.name, mine), mine)
    return {key for _, key in best.values()}


class _Sleepers:
    """Decides which parked gangs needn't be tried: those whose stamp hasn't changed would fail again."""

    def __init__(self, session: Session, *, awake: set[str]) -> None:
        """`awake` has the keys of gangs that are tried in any case."""
        self._session = session
        self._awake = awake
        self._stamps: dict[str, tuple[object, ...]] = {}

    def sleeps(self, job: Job, queue: Queue) -> bool:
        """Whether the gang stays parked. In a FIFO queue, where the first gang blocks the others, every gang is
        tried."""
        if job.parked is None or queue.fifo or job.key in self._awake:
            return False
        stamp = self._stamps.get(queue.name)
        if stamp is None:
            stamp = self._stamps[queue.name] = self._session.stamp(queue)
        return job.parked == stamp
