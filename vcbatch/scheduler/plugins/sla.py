"""Service level agreement: the longest time that a gang waits before it takes precedence in admission and placement."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from functools import lru_cache

from vcbatch.api import names
from vcbatch.api.duration import MalformedDuration, parse_duration
from vcbatch.api.timestamps import parse_time
from vcbatch.scheduler.framework.arguments import ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import OrderTerm, Plugin, Verdict, Vote
from vcbatch.scheduler.framework.structures import duration
from vcbatch.scheduler.model.objects import Job, Queue

_ARGUMENT = "sla-waiting-time"
_ANNOTATIONS = (names.SLA_WAITING_TIME, names.SLA_WAITING_TIME_BARE)


_reader = duration("", example="1h30m")


def _waiting_time(value: object, where: str) -> timedelta | None:
    return None if value is None else _reader(value, where)


def _positive(text: str) -> timedelta | None:
    try:
        wait = parse_duration(text)
    except MalformedDuration:
        return None
    return wait if wait > timedelta(0) else None


@lru_cache(maxsize=1 << 16)
def _deadline(creation: str, said: str, default: timedelta | None) -> datetime | None:
    """When the wait is over; None if it has no limit. An invalid duration in a PodGroup is ignored."""
    wait = (_positive(said) if said else None) or default
    try:
        return None if wait is None else parse_time(creation) + wait
    except ValueError:
        return None


class Sla(Plugin):
    """Orders gangs with a limit first, by when it is reached. From then on the plugin votes for admission and for
    pipelining; before that it abstains. A PodGroup's annotation takes precedence over the limit of the scheduler
    configuration."""

    JOB_TERM = OrderTerm("its time to wait is over sooner", 0)
    ARGUMENTS = ArgumentSpec(named={}, structured={_ARGUMENT: _waiting_time})

    def open(self, session: Handle) -> None:
        self._default: timedelta | None = self.arguments[_ARGUMENT]
        self._now = session.now
        self._over: dict[str, int] = {}
        for job in session.state.waiting.values():
            at = self._at(job)
            if at is None:
                continue
            session.requeue_at(at)
            if at <= self._now and job.queue is not None:
                self._over[job.queue.name] = self._over.get(job.queue.name, 0) + 1

    def _at(self, job: Job) -> datetime | None:
        if job.group is None:
            return None
        notes = job.group.metadata.annotations or {}
        said = next((notes[key] for key in _ANNOTATIONS if notes.get(key)), "")
        return _deadline(job.creation, said, self._default)

    def _is_over(self, job: Job) -> bool:
        at = self._at(job)
        return at is not None and at <= self._now

    def _vote(self, job: Job) -> Vote:
        return Vote.PERMIT if self._is_over(job) else Vote.ABSTAIN

    def job_key(self, job: Job) -> float:
        at = self._at(job)
        return math.inf if at is None else at.timestamp()

    def enqueueable(self, job: Job) -> Verdict:
        return Verdict(self._vote(job))

    def admission_key(self, job: Job) -> object:
        return self._is_over(job)

    def job_pipelined(self, job: Job) -> Vote:
        return self._vote(job)

    def limit_stamp(self, queue: Queue) -> object:
        """Changes when a gang's time is over, so that it is tried again."""
        return self._over.get(queue.name, 0)
