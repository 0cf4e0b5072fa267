"""The status of jobs and queues. Read-only; a missing value or one of another type reads as empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from vcbatch.api.loose import listed, part
from vcbatch.api.messages import cause_of, origin_of
from vcbatch.api.phases import JobPhase, QueueState
from vcbatch.api.timestamps import parse_time
from vcbatch.sdk.models.wire import Quantity

Json = dict[str, Any]


def text_at(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""


def count_at(value: Mapping[str, Any], key: str) -> int:
    count = value.get(key)
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def time_at(value: Mapping[str, Any], key: str) -> datetime | None:
    try:
        return parse_time(text_at(value, key)) if value.get(key) else None
    except ValueError:
        return None


def objects_at(value: Mapping[str, Any], key: str) -> list[Json]:
    """The entries of a list that are objects."""
    return [cast("Json", entry) for entry in listed(value, key) if isinstance(entry, dict)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLoss:
    """One pod that failed or was lost, as the job's status records it after the pod is deleted.

    `cause` is one of `vcbatch.LossCause`; `attempt` is the number of earlier restarts of the job.
    """

    pod: str
    cause: str
    exit_code: int | None
    signal: int | None
    reason: str
    node: str
    message: str
    attempt: int
    time: datetime | None

    @classmethod
    def read(cls, loss: Mapping[str, Any]) -> PodLoss:
        """Read an entry of the ledger's losses."""
        return cls(
            pod=text_at(loss, "pod"),
            cause=text_at(loss, "cause"),
            exit_code=loss.get("exitCode") if isinstance(loss.get("exitCode"), int) else None,
            signal=loss.get("signal") if isinstance(loss.get("signal"), int) else None,
            reason=text_at(loss, "reason"),
            node=text_at(loss, "node"),
            message=text_at(loss, "message"),
            attempt=count_at(loss, "version"),
            time=time_at(loss, "time"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The state of a job: its phase with reason and time, and its pods by phase."""

    phase: JobPhase = JobPhase.PENDING
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    retries: int = 0
    tasks: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    """The pods of each task by phase."""
    losses: tuple[PodLoss, ...] = ()
    """Pods that failed or were lost, of the latest attempts."""

    @property
    def why(self) -> str:
        """The reason for the phase, as far as it is known: the cause in `message`, else `reason`."""
        return cause_of(origin_of(self.message or self.reason))

    @classmethod
    def read(cls, status: Mapping[str, Any]) -> JobStatus:
        """Read `status` of a job."""
        state = part(status, "state")
        phase = text_at(state, "phase")
        return cls(
            phase=next((known for known in JobPhase if known == phase), JobPhase.PENDING),
            reason=text_at(state, "reason"),
            message=text_at(state, "message"),
            since=time_at(state, "lastTransitionTime"),
            pending=count_at(status, "pending"),
            running=count_at(status, "running"),
            succeeded=count_at(status, "succeeded"),
            failed=count_at(status, "failed"),
            terminating=count_at(status, "terminating"),
            retries=count_at(status, "retryCount"),
            tasks={
                name: {phase: count_at(part(entry, "phase"), phase) for phase in part(entry, "phase")}
                for name, entry in part(status, "taskStatusCount").items()
                if isinstance(entry, dict)
            },
            losses=tuple(PodLoss.read(loss) for loss in objects_at(part(status, "ledger"), "losses")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """The state of a queue, its gangs by phase, and the usage of their pods."""

    state: QueueState = QueueState.UNKNOWN
    pending: int = 0
    inqueue: int = 0
    running: int = 0
    completed: int = 0
    unknown: int = 0
    allocated: Mapping[str, Quantity] = field(default_factory=dict[str, Quantity])

    @classmethod
    def read(cls, status: Mapping[str, Any]) -> QueueStatus:
        """Read `status` of a queue."""
        state = text_at(status, "state")
        return cls(
            state=next((known for known in QueueState if known == state), QueueState.UNKNOWN),
            pending=count_at(status, "pending"),
            inqueue=count_at(status, "inqueue"),
            running=count_at(status, "running"),
            completed=count_at(status, "completed"),
            unknown=count_at(status, "unknown"),
            allocated={
                name: amount
                for name, amount in part(status, "allocated").items()
                if isinstance(amount, str | int | float) and not isinstance(amount, bool)
            },
        )
