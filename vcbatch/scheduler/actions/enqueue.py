"""Admission: which pending gangs may have their pods created."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from vcbatch.api.messages import NEVER_FITS, NOT_EVICTED_FOR, behind_first
from vcbatch.scheduler.actions.names import EVICTING
from vcbatch.scheduler.actions.precedence import Precedence
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.feasibility.judge import Judge
from vcbatch.scheduler.framework.arguments import NO_ARGUMENTS
from vcbatch.scheduler.framework.plugin import Verdict
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.objects import Job, Phase, Queue
from vcbatch.scheduler.model.remedies import wait_for
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.reasons.blockers import not_open

Kind = tuple[object, ...]
"""The inputs of the verdict on a gang, except its queue."""

_REFUSED = ("not admitted",)
"""The stamp of a gang that waits for admission; different from every stamp of a session."""
_WITH_ROOM_ADMITTED: Final = (WaitReason.CLUSTER_OVERCOMMITTED, WaitReason.QUEUE_LIMIT)
"""Reasons of rejections that depend on allocated resources, so that evictions could change them."""
_MEMORY = "enqueue"
_MOST_KEPT = 64
"""How many blockers of a queue are kept for the next cycle."""
_FRESH = 32
"""In a queue with at most this many pending gangs each gets the numbers of every cycle; in a longer one only changes of
the reason are reported."""


class Enqueue:
    """Admits the gangs that plugins permit, best queue and best gang first. A rejected gang doesn't block smaller ones
    behind it, unless its queue is a strict FIFO queue.

    Admission changes no share, so the order of queues and gangs doesn't change. It only reduces capacity, so one
    rejection applies to all gangs with the same inputs: rejected gangs cost little more than being counted.
    """

    arguments = NO_ARGUMENTS

    def execute(self, cycle: Cycle) -> None:
        session = cycle.session
        waiting = [
            job
            for job in session.state.waiting.values()
            if job.phase is Phase.PENDING and job.group is not None and job.queue is not None
        ]
        pending: dict[str, list[tuple[Job, Kind]]] = {}
        queues: dict[str, Queue] = {}
        for job, kind in zip(waiting, _kinds(session, waiting), strict=True):
            queue = job.queue
            assert queue is not None  # noqa: S101 - it has one
            queues[queue.name] = queue
            pending.setdefault(queue.name, []).append((job, kind))
        precedence = Precedence(session)
        for queue in sorted(queues.values(), key=session.queue_key):
            _Desk(session, queue, pending[queue.name], precedence).serve()


def _kinds(session: Session, jobs: Sequence[Job]) -> list[Kind]:
    """Keys that are equal for gangs on which every plugin returns the same verdict."""
    if not jobs:
        return []
    table = session.state.jobs_table
    rows = np.array([job.row for job in jobs], dtype=np.intp)
    amounts = np.concatenate([table.has_minimum[rows, None], table.minimum[rows], table.gated[rows]], axis=1)
    raw = np.ascontiguousarray(amounts).view(np.dtype((np.void, amounts.itemsize * amounts.shape[1]))).ravel()
    keys = session.admission_keys
    return [(amount, *[key(job) for key in keys]) for job, amount in zip(jobs, raw.tolist(), strict=True)]


class _Desk:
    """The admission of one queue's pending gangs."""

    def __init__(
        self, session: Session, queue: Queue, pending: Sequence[tuple[Job, Kind]], precedence: Precedence
    ) -> None:
        self._session = session
        self._precedence = precedence
        self._evicts = not EVICTING.isdisjoint(session.policy.actions)
        self._queue = queue
        self._pending = pending
        self._has_minimum = session.state.jobs_table.has_minimum
        self._refused: dict[Kind, Blocker] = {}
        self._last: dict[str, Blocker] = session.state.memory.setdefault(_MEMORY, {}).setdefault(queue.name, {})
        self._news: dict[tuple[int, int], bool] = {}

    def serve(self) -> None:
        queue = self._queue
        error = self._session.queue_error(queue)
        if error is not None:
            self._refuse_all(Blocker(reason=WaitReason.QUEUE_INVALID, text=error))
            return
        if not queue.open:
            blocker = not_open(queue)
            for job, _ in self._pending:
                if not job.queue_takes:
                    self._refuse(job, blocker)
            self._pending = [(job, kind) for job, kind in self._pending if job.queue_takes]
        if queue.fifo:
            self._line()
        else:
            self._traverse()

    def _refuse_all(self, blocker: Blocker) -> None:
        for job, _ in self._pending:
            self._refuse(job, blocker)

    def _line(self) -> None:
        """Strict FIFO: admit gangs in order, up to the first that can't be admitted now. A gang that can never be
        admitted doesn't block the others."""
        behind: Blocker | None = None
        for job, _ in self._sorted(self._pending):
            if behind is not None:
                self._refuse(job, behind)
                continue
            blocker = self._consider(job)
            if blocker is not None and not blocker.reason.hopeless:
                blocker = self._settled(job, blocker)
            if blocker is not None:
                self._refuse(job, blocker)
                if not blocker.reason.hopeless:
                    text = behind_first(queue=self._queue.name, first=job.key)
                    behind = Blocker(reason=WaitReason.QUEUE_LIMIT, text=text, remedies=wait_for(job.key))

    def _traverse(self) -> None:
        """Admit gangs in order, skipping those that are rejected. Kinds that are rejected from the start aren't
        sorted."""
        seen: set[Kind] = set()
        for job, kind in self._pending:
            if kind not in seen:
                seen.add(kind)
                blocker = self._asked(job)
                if blocker is not None:
                    self._refused[kind] = blocker
        for job, kind in self._sorted([(j, k) for j, k in self._pending if k not in self._refused]):
            if kind not in self._refused:
                blocker = self._consider(job)
                if blocker is not None:
                    self._refused[kind] = blocker
        for job, kind in self._sorted([(j, k) for j, k in self._pending if self._precedence.concerns(j)]):
            self._settled(job, self._refused[kind])
        for job, kind in self._pending:
            if job.phase is Phase.PENDING:
                self._refuse(job, self._judged(job, self._refused[kind]))

    def _sorted(self, pending: Sequence[tuple[Job, Kind]]) -> list[tuple[Job, Kind]]:
        key = self._session.job_key
        return sorted(pending, key=lambda entry: key(entry[0]))

    def _consider(self, job: Job) -> Blocker | None:
        """Admit the gang, or return why it isn't admitted."""
        blocker = self._asked(job)
        if blocker is None:
            self._session.admit(job)
        return blocker

    def _settled(self, job: Job, blocker: Blocker) -> Blocker | None:
        """The final blocker of a rejected gang; None if it is admitted after all, because only pending gangs of lower
        priority take its capacity."""
        if self._precedence.concerns(job) and self._precedence.admits(job, lambda: self._asked(job) is None):
            self._session.admit(job)
            return None
        return self._judged(job, blocker)

    def _judged(self, job: Job, blocker: Blocker) -> Blocker:
        """The blocker to report: that the gang could never start, if so; else with the note that no pods are evicted
        for it before its admission, if evictions would help."""
        if not blocker.reason.hopeless and job.tasks and self._session.shared(Judge).impossible(job):
            return self._kept(Blocker(reason=WaitReason.IMPOSSIBLE, text=NEVER_FITS))
        if self._evicts and blocker.reason in _WITH_ROOM_ADMITTED:
            return self._kept(replace(blocker, text=f"{blocker.text}; {NOT_EVICTED_FOR}"))
        return blocker

    def _asked(self, job: Job) -> Blocker | None:
        """Why the plugins reject the gang. A gang without minResources is admitted without calling them, unless
        `admission_needed`."""
        asked = self._has_minimum[job.row] or self._session.admission_needed(job)
        refusal = self._session.enqueue_refusal(job) if asked else None
        return None if refusal is None else self._blocker(refusal)

    def _blocker(self, refusal: Verdict) -> Blocker:
        made = Blocker(
            reason=refusal.reason,
            text=refusal.message,
            shortages=refusal.shortages,
            place=refusal.place,
            remedies=refusal.remedies,
            volcano=refusal.volcano,
        )
        return self._kept(made)

    def _kept(self, made: Blocker) -> Blocker:
        """The object of the last cycle if it is equal, so that later comparisons are by identity."""
        if self._last.get(made.text) != made:
            if len(self._last) > _MOST_KEPT:
                self._last.clear()
            self._last[made.text] = made
        return self._last[made.text]

    def _refuse(self, job: Job, blocker: Blocker) -> None:
        """Record why the gang waits; it is reported only if it changed."""
        known = job.blocker if job.parked == _REFUSED else None
        job.parked, job.blocker = _REFUSED, blocker
        if known is blocker:
            return
        if known is None or self._is_news(known, blocker):
            self._session.blockers[job.key] = blocker

    def _is_news(self, known: Blocker, blocker: Blocker) -> bool:
        pair = (id(known), id(blocker))
        if pair not in self._news:
            numbers = len(self._pending) <= _FRESH and known != blocker
            self._news[pair] = numbers or known.kind != blocker.kind
        return self._news[pair]
