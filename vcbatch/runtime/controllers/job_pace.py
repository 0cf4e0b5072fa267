"""How long a job's reconcile is delayed if only progress causes it, and how long a status write is delayed if it only
informs."""

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
"""This many jobs that are being reconciled or wait in the queue delay an informational update of each by one more
second."""


class JobPace:
    """The pace of each job, by its UID. The more jobs are active, the lower the rate of each."""

    def __init__(self, *, clock: Clock, queued: Callable[[], int]) -> None:
        """`queued` returns how many jobs wait for a reconcile."""
        self._clock = clock
        self._queued = queued
        self._checked: dict[str, float] = {}  # time of its last reconcile
        self._reconciles: Pace[str] = Pace(first=_REST_SECONDS, limit=_LONGEST_REST_SECONDS)
        self._writes: Pace[str] = Pace(first=_COUNTS_SECONDS, limit=_LONGEST_COUNTS_SECONDS)
        self._unwritten: dict[str, float] = {}  # since when its status is incomplete

    def begun(self, uid: str) -> bool:
        """Whether the job was reconciled before."""
        return uid in self._checked

    def reconcile(self, uid: str) -> None:
        """Record that the job is reconciled now."""
        self._checked[uid] = now = self._clock.monotonic()
        self._reconciles.acted(uid, now=now)

    def forget(self, uid: str) -> None:
        """Drop what is kept for a deleted job."""
        self._checked.pop(uid, None)
        self._unwritten.pop(uid, None)

    def rest(self, uid: str, *, pods: int, progress: bool) -> float:
        """Seconds until a reconcile of a job with so many pods that only events of its pods or its status cause; not
        above 0 where it is due.

        A gang's pods start and end together, each with an event; a reconcile for each of them would cost the square of
        the gang's size. (The Kubernetes Job controller waits a second, `syncJobBatchPeriod`.) Mere `progress` waits
        longer, in particular while many jobs are active.
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
        """The decision, without its status write if that only informs and can wait: for a moment, since an urgent
        change often follows, and for longer where the last one was written recently or many jobs are active. A job that
        is `held_up` by a refusal never waits. A `new` job is written as Pending before it has pods, unless so many jobs
        are active that its pods may run before the write."""
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
        """Seconds by which the other active jobs delay each of them."""
        return (len(self._unwritten) + self._queued()) / _CROWD
