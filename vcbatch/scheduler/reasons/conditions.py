"""The status of a PodGroup as written: its phase, the counts of its pods, and one condition of each type."""

from __future__ import annotations

from typing import Any

from vcbatch.api.reasons import PodGroupConditionType, PodGroupReason
from vcbatch.scheduler.model.objects import Job, Phase, TaskStatus

Status = dict[str, Any]
"""The JSON of the status."""


class ConditionWriter:
    """Writes the conditions of one cycle: those that change in it carry its UID and time."""

    def __init__(self, *, transition: str, time: str) -> None:
        self._transition = transition
        self._time = time

    def status(self, job: Job, phase: Phase, *, waits: str, reason: str, ready: bool) -> Status:
        """The whole status. `waits` is the message of a pending gang, and `reason` its reason; empty if it isn't
        pending."""
        counts = job.counts
        status: Status = {"phase": phase.wire}
        conditions = self._conditions(job, waits=waits, reason=reason, ready=ready)
        if conditions:
            status["conditions"] = conditions
        for key, count in (
            ("running", counts[TaskStatus.RUNNING]),
            ("succeeded", counts[TaskStatus.SUCCEEDED]),
            ("failed", counts[TaskStatus.FAILED]),
        ):
            if count:
                status[key] = count
        return status

    def _conditions(self, job: Job, *, waits: str, reason: str, ready: bool) -> list[Status]:
        """One condition of each type. A type that was never true isn't written as false."""
        kept: list[Status] = list(job.written.get("conditions") or ())
        scheduled, unschedulable = PodGroupConditionType.SCHEDULED, PodGroupConditionType.UNSCHEDULABLE
        if waits:
            kept = self._set(kept, unschedulable, "True", reason, waits)
            return self._set(kept, scheduled, "False", PodGroupReason.NOT_ENOUGH_RESOURCES)
        if ready and job.tasks:
            kept = self._set(kept, scheduled, "True", PodGroupReason.READY)
            return self._set(kept, unschedulable, "False", PodGroupReason.READY)
        return kept

    def _set(self, conditions: list[Status], kind: str, value: str, reason: str, message: str = "") -> list[Status]:
        before = None
        for condition in conditions:
            if condition.get("type") == kind:
                before = condition
                break
        if before is None and value == "False":
            return conditions
        same = before is not None and before.get("status") == value
        if before is not None and same and before.get("reason") == reason and before.get("message", "") == message:
            return conditions
        kept = before if before is not None and same else {}
        made: Status = {
            "type": kind,
            "status": value,
            "transitionID": kept.get("transitionID", self._transition),
            "lastTransitionTime": kept.get("lastTransitionTime", self._time),
            "reason": str(reason),
        }
        if message:
            made["message"] = message
        if before is None:
            return [*conditions, made]
        return [made if c is before else c for c in conditions]


def waiting_since(status: Status) -> str:
    """When a gang that was scheduled before became pending again; empty if it never was, or isn't pending."""
    found = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    waits = found.get(PodGroupConditionType.UNSCHEDULABLE)
    if PodGroupConditionType.SCHEDULED not in found or waits is None or waits.get("status") != "True":
        return ""
    return str(waits.get("lastTransitionTime") or "")


def same_headlines(one: Status, other: Status) -> bool:
    """Whether both have the same conditions, messages aside."""
    ours, theirs = one.get("conditions"), other.get("conditions")
    return ours == theirs or _headlines(ours) == _headlines(theirs)


def _headlines(conditions: list[Status] | None) -> list[tuple[object, ...]]:
    return [(c.get("type"), c.get("status"), c.get("reason")) for c in conditions or ()]


def counts(status: Status) -> tuple[object, ...]:
    """The numbers of running, succeeded and failed pods."""
    return status.get("running", 0), status.get("succeeded", 0), status.get("failed", 0)
