"""`status` of a job, written as a whole: counts, phase, the log of phases and the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vcbatch.api.duration import format_duration
from vcbatch.api.job import Job, JobPhase
from vcbatch.api.timestamps import format_time, parse_time
from vcbatch.core.job.counts import Counts
from vcbatch.core.job.ledger import Ledger
from vcbatch.core.job.plan import Plan
from vcbatch.core.machine import Json

_ENDED = frozenset({JobPhase.ABORTED, JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED})


@dataclass(frozen=True, slots=True)
class Explanation:
    """`state.reason` and `state.message`: why the job is in its phase."""

    reason: str = ""
    message: str = ""

    def __bool__(self) -> bool:
        return bool(self.reason or self.message)


def explanation_of(job: Job) -> Explanation:
    """The stored explanation."""
    return Explanation(job.status.state.reason, job.status.state.message)


def build(
    plan: Plan,
    *,
    phase: JobPhase,
    entered: bool,
    counts: Counts,
    ledger: Ledger,
    explanation: Explanation,
    controlled: Mapping[str, str],
    stored: Mapping[str, Any],
    now: datetime,
) -> Json:
    """The status that replaces the `stored` one. `entered`: the phase begins now; it gets its time and is appended to
    the log, which has each phase once and begins with Pending. Zero values are left out, as in Volcano's; fields of
    other clients are kept."""
    state: Json = {"phase": str(phase)}
    if explanation.reason:
        state["reason"] = explanation.reason
    if explanation.message:
        state["message"] = explanation.message
    conditions: list[Json] = stored.get("conditions") or _begun(plan.job, phase)
    if entered:
        state["lastTransitionTime"] = format_time(now)
        conditions = [condition for condition in conditions if condition.get("status") != phase]
        conditions = [*conditions, {"status": str(phase), "lastTransitionTime": format_time(now)}]
    elif since := _since(plan.job, phase):
        state["lastTransitionTime"] = since
    conditions = conditions or [{"status": str(phase), "lastTransitionTime": state.get("lastTransitionTime")}]
    return {
        **stored,
        "state": state,
        "conditions": conditions,
        **_numbers(plan, counts, ledger),
        "runningDuration": _duration(plan.job, phase, entered=entered, now=now),
        "controlledResources": dict(controlled),
        "ledger": ledger.dump(),
    }


def _begun(job: Job, phase: JobPhase) -> list[Json]:
    """The log of a job that had progressed before its first status was written."""
    began = job.metadata.creation_timestamp
    if job.status.state.phase or phase is JobPhase.PENDING or not began:
        return []
    return [{"status": str(JobPhase.PENDING), "lastTransitionTime": began}]


def _since(job: Job, phase: JobPhase) -> str | None:
    """When the present phase began, from the log, even if another client overwrote the state since."""
    last = job.status.conditions[-1] if job.status.conditions else None
    if last is not None and last.status == phase and last.last_transition_time:
        return last.last_transition_time
    return job.status.state.last_transition_time


def trimmed(status: Json) -> Json:
    """The status without empty fields."""
    return {key: value for key, value in status.items() if value}


def _numbers(plan: Plan, counts: Counts, ledger: Ledger) -> Json:
    return {
        "minAvailable": plan.min_available,
        "taskStatusCount": {
            task: {"phase": {str(phase): number for phase, number in sorted(phases.items())}}
            for task, phases in counts.tasks.items()
        },
        "pending": counts.pending,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "terminating": counts.terminating,
        "unknown": counts.unknown,
        "version": ledger.version,
        "retryCount": ledger.retry_count,
    }


def _duration(job: Job, phase: JobPhase, *, entered: bool, now: datetime) -> str | None:
    """The time from creation to the end of the run; None while the run hasn't ended."""
    if phase not in _ENDED:
        return None
    if not entered:
        return job.status.running_duration
    try:
        created = parse_time(job.metadata.creation_timestamp or "")
    except ValueError:
        return None
    return format_duration(max(now - created, now - now))
