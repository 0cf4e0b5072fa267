"""A job as its flow reads it: the few fields of a large object that a decision on the flow needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from vcbatch.api.job import JobPhase
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.resources import JOBFLOWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """`flow` is the UID of the JobFlow that controls the job, empty where none does."""

    name: str
    uid: str
    flow: str
    phase: JobPhase
    deleting: bool
    created: str | None
    entered: str | None
    """When it entered its phase."""
    restarts: int
    duration: str | None
    """The time from creation to end, as a Go duration."""
    log: tuple[tuple[str, str | None], ...]
    """The phases so far, each with its time, from `status.conditions`."""
    tasks: Mapping[str, Mapping[str, int]]
    """The number of pods by task and pod phase."""
    minima: Mapping[str, int]
    """The minimum number of pods by task name."""


def child_of(job: Json) -> Child:
    """Read a stored Job. Fields of an unexpected type count as absent."""
    metadata, spec, status = part(job, "metadata"), part(job, "spec"), part(job, "status")
    state = part(status, "state")
    return Child(
        name=metadata["name"],
        uid=metadata["uid"],
        flow=_flow_of(metadata),
        phase=_phase(state.get("phase")),
        deleting=bool(metadata.get("deletionTimestamp")),
        created=_text(metadata.get("creationTimestamp")),
        entered=_text(state.get("lastTransitionTime")),
        restarts=_number(status.get("retryCount")),
        duration=_text(status.get("runningDuration")),
        log=tuple(
            (entry["status"], _text(entry.get("lastTransitionTime")))
            for entry in _objects(listed(status, "conditions"))
            if _text(entry.get("status"))
        ),
        tasks={
            task: {phase: _number(count) for phase, count in part(cast(Json, counts), "phase").items()}
            for task, counts in part(status, "taskStatusCount").items()
            if isinstance(counts, dict)
        },
        minima={str(task.get("name") or ""): _minimum(task) for task in _objects(listed(spec, "tasks"))},
    )


def _flow_of(metadata: Json) -> str:
    for owner in _objects(listed(metadata, "ownerReferences")):
        if owner.get("controller") and owner.get("kind") == JOBFLOWS.kind:
            return str(owner.get("uid") or "")
    return ""


def _phase(given: Any) -> JobPhase:
    try:
        return JobPhase(given)
    except ValueError:
        return JobPhase.PENDING


def _minimum(task: Json) -> int:
    given = task.get("minAvailable")
    return _number(task.get("replicas") if given is None else given)


def _objects(values: list[Any]) -> list[Json]:
    return [cast(Json, value) for value in values if isinstance(value, dict)]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
