"""How long a job is left alone: before a look that only progress asks for, and before its status is written where that
only informs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from vcbatch.core.machine import Decision
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.pacing.pace import Pace

_REST_SECONDS = 0.05
_REST_SECONDS_PER_POD = 0.00025
_LONGEST_REST_SECONDS = 2.0
_COUNTS_SECONDS = 1.0
_LONGEST_COUNTS_SECONDS = 5.0
_CROWD = 50
"""So many jobs that are begun or wait for their turn make each of them a second slower in telling what is no news."""


class JobPace:
    """The pace of each job, by its UID. The more other jobs are at it, the slower each of them."""

    def __init__(self, *, clock: Clock, queued: Callable[[], int]) -> None:
        """`queued`: how many jobs wait for a look."""
        self._clock = clock
        self._queued = queued
        self._checked: dict[str, float] = {}  # when it was last looked at
        self._reconciles: Pace[str] = Pace(first=_REST_SECONDS, limit=_LONGEST_REST_SECONDS)
        self._writes: Pace[str] = Pace(first=_COUNTS_SECONDS, limit=_LONGEST_COUNTS_SECONDS)
        self._unwritten: dict[str, float] = {}  # since when its status says less than there is to say

    def begun(self, uid: str) -> bool:
        """Whether the job was looked at before."""
        return uid in self._checked

    def reconcile(self, uid: str) -> None:
        """The job is looked at now."""
        self._checked[uid] = now = self._clock.monotonic()
        self._reconciles.acted(uid, now=now)

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._checked.pop(uid, None)
        self._unwritten.pop(uid, None)

    def rest(self, uid: str, *, pods: int, progress: bool) -> float:
        """How many seconds a job with so many pods is left alone before a look that only its pods or its status ask
        for; not above 0 where it is due.

        A gang's pods start and end together, each with an event; a look for every one of them would cost the square of
        its size. (The Kubernetes Job controller waits a second, `syncJobBatchPeriod`.) What is mere `progress` waits
        longer, above all in a crowd.
        """
        checked = self._checked.get(uid)
        if checked is None:
            return 0.0
        now = self._clock.monotonic()
        rest = checked + min(_REST_SECONDS + _REST_SECONDS_PER_POD * pods, _LONGEST_REST_SECONDS) - now
        if not progress:
            return rest
        return max(rest, self._reconciles.wait(uid, now=now), min(self._crowd(), _LONGEST_REST_SECONDS))

    def paced(self, uid: str, decision: Decision, *, new: bool, held_up: bool, now: datetime) -> Decision:
        """Leave a status that only informs to a later look: for a moment, since more is often to come that can't wait,
        and for longer where the last one was written just now, or in a crowd. A job that is `held_up` by a refusal
        waits for nothing, and a `new` one is Pending before it has pods, but in a crowd, where its pods may run before
        its turn."""
        crowd = self._crowd()
        ahead_of_pods = new and decision.creates and crowd < 1
        if decision.status is None or not decision.status.may_wait or held_up or ahead_of_pods:
            self._unwritten.pop(uid, None)
            return decision
        at = now.timestamp()
        since = self._unwritten[uid] = min(self._unwritten.get(uid, at), at)
        patience = max(decision.status.may_wait.total_seconds(), min(crowd, _LONGEST_COUNTS_SECONDS))
        wait = max(since + patience - at, self._writes.wait(uid, now=at))
        if wait <= 0:
            del self._unwritten[uid]
            self._writes.acted(uid, now=at)
            return decision
        due = now + timedelta(seconds=wait)
        return replace(decision, status=None, requeue_at=min(due, decision.requeue_at or due))

    def _crowd(self) -> float:
        """How many seconds the other jobs that are at it make each of them slower."""
        return (len(self._unwritten) + self._queued()) / _CROWD
