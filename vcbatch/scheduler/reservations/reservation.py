"""Conservative backfill: resources are reserved for the first gang of a queue that doesn't fit, and other gangs are
placed only where they don't delay its start.

The latest start of that gang follows from the time limits of running gangs (Slurm's backfill scheduler uses the same
rule). Without such limits there is no expected start, and nothing is reserved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from vcbatch.api.messages import behind_first, expected_to_start
from vcbatch.api.timestamps import format_time
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Job, Queue, Run
from vcbatch.scheduler.model.remedies import wait_for
from vcbatch.scheduler.model.resources import EPS, Matrix
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.reservations.run_limits import Release, declared_limit, releases


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Reserved resources of a gang: `amounts`, [R, K], on the nodes of `rows`, [K], from `start` on. `kept` is the part
    that gangs which end after `start` may not use: what gangs that end until then don't release."""

    job: Job
    start: datetime
    rows: Rows
    amounts: Floats
    kept: Floats


class Reservations:
    """The reservations of one cycle, at most one for each queue and `most` in all."""

    def __init__(self, session: Session, *, most: int) -> None:
        self._session = session
        self._most = most
        self._by_queue: dict[str, Reservation] = {}
        self._kept = False
        self._releases: list[Release] | None = None

    def before(self, job: Job, queue: Queue) -> Blocker | None:
        """Called before a gang is tried: take the reserved resources from the free ones unless the gang ends before the
        soonest reservation starts. Returns why the gang isn't tried at all: its queue is a strict FIFO queue and it
        would end after the expected start of the queue's first gang; else None."""
        if not self._by_queue:
            return None
        soonest = min(self._by_queue.values(), key=lambda reservation: reservation.start)
        harmless = self._ends_by(job, soonest.start)
        self._keep(not harmless)
        own = self._by_queue.get(queue.name)
        if queue.fifo and own is not None and not self._ends_by(job, own.start):
            text = behind_first(queue=queue.name, first=own.job.key, expected=own.start)
            return Blocker(reason=WaitReason.RESERVED, text=text, remedies=wait_for(own.job.key))
        return None

    def after(self, job: Job, queue: Queue) -> None:
        """Called after a gang was tried and didn't start. If it is the first of its queue and waits for nodes, reserve
        resources for it; otherwise add the reservations that it waits for to its pending reason."""
        blocker = self._session.blockers.get(job.key)
        if blocker is None or blocker.reason not in (WaitReason.INSUFFICIENT, WaitReason.TOO_MANY_PODS):
            return
        if queue.name not in self._by_queue and len(self._by_queue) < self._most:
            self._keep(False)
            reservation = self._reserve(job)
            if reservation is not None:
                self._by_queue[queue.name] = reservation
                text = f"{blocker.text}; {expected_to_start(reservation.start)}"
                self._session.blockers[job.key] = replace(blocker, text=text, expected_start=reservation.start)
        elif self._kept:
            heads = ", ".join(f"{r.job.key} (expected {_by(r.start)})" for r in self._by_queue.values())
            self._session.blockers[job.key] = self._reserved(job, blocker, f"room is kept for {heads}")

    def _reserved(self, job: Job, blocker: Blocker, kept: str) -> Blocker:
        """The pending reason: reserved resources alone, if the gang would fit without the reservations."""
        self._keep(False)
        fits = self._packed(_needed(self._session, job), np.array(self._session.nodes.future())) is not None
        self._keep(True)
        if not fits:
            return replace(blocker, text=f"{blocker.text}; {kept}")
        then = [remedy for reservation in self._by_queue.values() for remedy in wait_for(reservation.job.key)]
        return Blocker(reason=WaitReason.RESERVED, text=kept, task=blocker.task, placed=0, remedies=then)

    def holds(self, queue: Queue) -> bool:
        """Whether resources are reserved for a gang of this queue."""
        return queue.name in self._by_queue

    def close(self) -> None:
        """End the action: reserved resources count as free again."""
        self._keep(False)

    def _ends_by(self, job: Job, when: datetime) -> bool:
        limit = declared_limit(job)
        return limit is not None and self._session.now + limit <= when

    def _keep(self, kept: bool) -> None:
        """Take the reserved resources from the free ones, or return them."""
        if kept is self._kept:
            return
        self._kept = kept
        self._session.exhausted.clear()  # resources that ran out for one gang may suffice for another
        sign = 1.0 if kept else -1.0
        for reservation in self._by_queue.values():
            self._session.nodes.pipelined[:, reservation.rows] += sign * reservation.kept
            self._session.placer.returned(reservation.rows.tolist())

    def _reserve(self, job: Job) -> Reservation | None:
        """The earliest time by which enough gangs have ended, with the nodes that the gang would use then; None if the
        declared limits give none."""
        if self._releases is None:
            self._releases = list(releases(self._session.state, self._session.now))
        ends = self._releases
        runs = _needed(self._session, job)
        free = np.array(self._session.nodes.future())
        for reservation in self._by_queue.values():
            free[:, reservation.rows] -= reservation.amounts
        if not ends or not runs or self._packed(runs, _freed(free, ends)) is None:
            return None
        low, high = 0, len(ends)  # the first `high` ends are enough, the first `low` aren't known to be
        while low < high:
            middle = (low + high) // 2
            if self._packed(runs, _freed(free, ends[:middle])) is None:
                low = middle + 1
            else:
                high = middle
        packed = self._packed(runs, _freed(free, ends[:high]))
        if packed is None or high == 0:
            return None  # it fits by numbers already: resources aren't the reason why it waits
        rows, amounts = packed
        start = max(ends[high - 1].end, self._session.now)
        left = _freed(np.zeros_like(free), ends[:high])[:, rows]
        kept = np.maximum(amounts - left, 0.0)
        return Reservation(job=job, start=start, rows=rows, amounts=amounts, kept=kept)

    def _packed(self, runs: list[Run], free: Matrix) -> tuple[Rows, Floats] | None:
        """The nodes and quantities that these pods would take of `free`, the nodes with most slots first; None if they
        don't fit."""
        left = free.copy()
        taken = np.zeros_like(free)
        for run in runs:
            cls = run.cls
            need = cls.need
            asked = np.where(need > 0, need, 1.0)
            slots = np.where(need > 0, np.floor((left[cls.needed] + EPS) / asked), np.inf).min(axis=0)
            slots = np.where(self._session.placer.static(cls).mask, np.maximum(slots, 0.0), 0.0)
            order = np.argsort(-slots, kind="stable")
            counts = np.minimum(slots[order], len(run.tasks))
            before = np.cumsum(counts) - counts
            counts = np.clip(len(run.tasks) - before, 0.0, counts)
            if counts.sum() < len(run.tasks):
                return None
            used = counts > 0
            rows = order[used]
            amount = cls.request[:, None] * counts[used]
            left[:, rows] -= amount
            taken[:, rows] += amount
        rows = np.flatnonzero(taken.any(axis=0))
        return rows, taken[:, rows]


def _needed(session: Session, job: Job) -> list[Run]:
    """The pending pods that the gang can't start without: the minimum of each role, then others up to the gang's
    minimum."""
    missing = job.min_member - job.ready_count - job.pending_best_effort
    roles = dict(job.role_minimums)
    out: list[Run] = []
    spare: list[Run] = []
    for run in session.runs(job):
        least = min(max(roles.get(run.role, 0), 0), len(run.tasks))
        roles[run.role] = roles.get(run.role, 0) - least
        if least:
            out.append(Run(run.cls, run.role, run.sub, run.tasks[:least]))
            missing -= least
        if least < len(run.tasks):
            spare.append(run.rest(least))
    for run in spare:
        if missing <= 0:
            break
        out.append(Run(run.cls, run.role, run.sub, run.tasks[:missing]))
        missing -= len(out[-1].tasks)
    return out


def _freed(free: Matrix, ends: list[Release]) -> Matrix:
    """The free resources after these gangs have ended."""
    out = free.copy()
    for release in ends:
        out[:, release.rows] += release.amounts
    return out


def _by(when: datetime) -> str:
    return f"by {format_time(when)}"
