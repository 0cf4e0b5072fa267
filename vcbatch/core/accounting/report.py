"""Selection of records, and sums by user, queue, job, namespace or day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from vcbatch.core.accounting.attempt import Attempt, AttemptState


class Filter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which records are selected: attempts that ended in [since, until), seconds since the epoch, and, with
    `include_open`, those that haven't ended. Empty fields select all."""

    since: float | None = None
    until: float | None = None
    namespace: str = ""
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    include_open: bool = True

    def matches(self, attempt: Attempt) -> bool:
        """Whether the record is selected."""
        if attempt.ended is None:
            if not self.include_open or (self.until is not None and attempt.queued >= self.until):
                return False
        elif (self.since is not None and attempt.ended < self.since) or (
            self.until is not None and attempt.ended >= self.until
        ):
            return False
        return (
            (not self.namespace or attempt.namespace == self.namespace)
            and (not self.users or attempt.user in self.users)
            and (not self.queues or attempt.queue in self.queues)
            and (not self.jobs or attempt.job in self.jobs)
            and (not self.states or attempt.state in self.states)
        )


class Group(StrEnum):
    """What usage is summed by. `DAY` is the day, UTC, at which an attempt ended."""

    USER = "user"
    QUEUE = "queue"
    JOB = "job"
    NAMESPACE = "namespace"
    DAY = "day"


@dataclass(slots=True, kw_only=True)
class Usage:
    """The sums of one group. `failed` counts the attempts that Failed or whose end is Unknown."""

    key: str
    attempts: int = 0
    completed: int = 0
    failed: int = 0
    jobs: set[str] = field(default_factory=set[str])
    """UIDs."""
    cpu_seconds: float = 0.0
    memory_byte_seconds: float = 0.0
    gpu_seconds: float = 0.0
    waited_seconds: float = 0.0

    @property
    def mean_wait(self) -> float:
        """Seconds that an attempt waited on average."""
        return self.waited_seconds / self.attempts if self.attempts else 0.0


def summed(attempts: Iterable[Attempt], by: Group, *, now: float) -> list[Usage]:
    """The usage of each group: the highest first, by GPU time and then CPU time; days in their order."""
    groups: dict[str, Usage] = {}
    for attempt in attempts:
        key = _key(attempt, by)
        usage = groups.setdefault(key, Usage(key=key))
        usage.attempts += 1
        usage.completed += attempt.state == AttemptState.COMPLETED
        usage.failed += attempt.state in (AttemptState.FAILED, AttemptState.UNKNOWN)
        usage.jobs.add(attempt.job_uid)
        usage.cpu_seconds += attempt.cpu_seconds
        usage.memory_byte_seconds += attempt.memory_byte_seconds
        usage.gpu_seconds += attempt.gpu_seconds
        usage.waited_seconds += attempt.waited(now)
    if by is Group.DAY:
        return sorted(groups.values(), key=lambda usage: usage.key)
    return sorted(groups.values(), key=lambda usage: (-usage.gpu_seconds, -usage.cpu_seconds, usage.key))


def _key(attempt: Attempt, by: Group) -> str:
    match by:
        case Group.USER:
            return attempt.user
        case Group.QUEUE:
            return attempt.queue
        case Group.JOB:
            return f"{attempt.namespace}/{attempt.job}"
        case Group.NAMESPACE:
            return attempt.namespace
        case Group.DAY:
            return "" if attempt.ended is None else datetime.fromtimestamp(attempt.ended, UTC).date().isoformat()
