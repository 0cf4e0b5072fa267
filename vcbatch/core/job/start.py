"""Whether a job may start: the jobs that it depends on, and its begin time. By when it has to end: its deadline.

A job that may not start yet has no PodGroup and no pods, so that it takes no position in its queue; it stays Pending.
Once it may start, that is recorded, and nothing holds it any more: neither a change of these annotations, nor a restart
of the job, nor a clock that is set back.

A dependency is a job by its UID from the first reconciliation at which a job of its name exists, and its end is
recorded when it is seen. A job of the same name that is created later is another job. A dependency that was deleted
before its end was seen counts as ended, with an unknown result: it meets `any` only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, cast

from vcbatch.api import messages
from vcbatch.api.job import Job, JobPhase, SeenDependency
from vcbatch.api.loose import Json, listed, part
from vcbatch.api.names import AFTER, BEGIN_TIME
from vcbatch.api.reasons import JobReason
from vcbatch.api.start_conditions import (
    Dependency,
    begin_time,
    dependencies,
    has_start_conditions,
    meets,
    start_condition_errors,
)
from vcbatch.api.timestamps import format_time, parse_time
from vcbatch.core.waiting import phase_of

DELETED: Final = "Deleted"
"""The recorded outcome of a dependency that was deleted before its end was seen."""
_MOST_SEARCHED: Final = 1000
"""The maximum number of jobs in which a cycle is searched."""
_UNSEEN_SECONDS: Final = 30
"""The age of a job from which a dependency named with its UID, and never seen, counts as deleted: the controllers may
see a job before an older one."""


@dataclass(frozen=True, slots=True)
class OtherJob:
    """A job that others depend on. `waits_for` are the names of the jobs that it waits for itself; `hopeless` is
    whether its own dependencies can't be met any more."""

    uid: str
    phase: JobPhase
    waits_for: tuple[str, ...] = ()
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class OtherJobs:
    """The existing jobs that a job depends on, directly or through others, by name, and the last phases of deleted
    ones by UID, as far as they are known."""

    existing: Mapping[str, OtherJob] = field(default_factory=dict[str, OtherJob])
    deleted: Mapping[str, JobPhase] = field(default_factory=dict[str, JobPhase])


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a job may not start yet, and until when, where that is known."""

    reason: JobReason
    message: str
    until: datetime | None = None


def read_other(stored: Json) -> OtherJob:
    """A stored job as one that others depend on. It may have any shape."""
    metadata, status = part(stored, "metadata"), part(stored, "status")
    state, ledger = part(status, "state"), part(status, "ledger")
    phase = phase_of(stored)
    waits: tuple[str, ...] = ()
    if not phase.finished and not ledger.get("released"):
        ended = {str(one.get("name")) for one in listed(ledger, "dependencies") if _has_ended(one)}
        waits = tuple(one.name for one in _dependencies_of(stored) if one.name not in ended)
    hopeless = phase is JobPhase.PENDING and state.get("reason") == JobReason.DEPENDENCY_NEVER_SATISFIED
    return OtherJob(str(metadata.get("uid") or ""), phase, waits, hopeless)


def other_jobs(job: Job, find: Callable[[str], Json | None]) -> Mapping[str, OtherJob]:
    """The existing jobs that this one waits for, directly or through others. `find` returns a stored job of its
    namespace by name."""
    if not waits_for_others(job):
        return {}
    found: dict[str, OtherJob] = {}
    names = [one.name for one in dependencies(job.metadata.annotations)]
    while names and len(found) < _MOST_SEARCHED:
        name = names.pop()
        stored = find(name) if name not in found else None
        if stored is not None:
            found[name] = read_other(stored)
            names += found[name].waits_for
    return found


def waits_for_others(job: Job) -> bool:
    """Whether the ends of other jobs matter to this one: it hasn't ended, and was never allowed to start."""
    released = job.status.ledger.released or job.phase.finished
    return not released and has_start_conditions(job.metadata.annotations)


def awaits(stored: Json, *, name: str, uid: str) -> bool:
    """Whether a stored job waits for the end of the job of this name and UID, and has yet to record it."""
    status = part(stored, "status")
    ledger = part(status, "ledger")
    if ledger.get("released") or phase_of(stored).finished:
        return False
    wanted = next((one for one in _dependencies_of(stored) if one.name == name), None)
    if wanted is None or wanted.uid not in ("", uid):
        return False
    seen = next((one for one in listed(ledger, "dependencies") if _value(one, "name") == name), None)
    return seen is None or (_value(seen, "uid") == uid and not _has_ended(seen))


def see(job: Job, seen: Sequence[SeenDependency], others: OtherJobs, *, now: datetime) -> list[SeenDependency]:
    """The record of the job's dependencies: those whose job exists, or existed at an earlier reconciliation."""
    known = {one.name: one for one in seen}
    surely = now >= _unseen_until(job, now)
    found = (_see(one, known.get(one.name), others, surely=surely) for one in dependencies(job.metadata.annotations))
    return [one for one in found if one is not None]


def hold_of(job: Job, seen: Sequence[SeenDependency], others: OtherJobs, *, now: datetime) -> Hold | None:
    """Why the job may not start, from the record of its dependencies; None where it may. Of several reasons, that which
    lasts longest."""
    annotations = job.metadata.annotations
    for name, error in start_condition_errors(annotations):  # stored without admission
        if name == BEGIN_TIME:
            return Hold(JobReason.BEGIN_TIME, messages.shorten(error))
        if name == AFTER:
            return Hold(JobReason.DEPENDENCY_NEVER_SATISFIED, messages.shorten(error))
    known = {one.name: one for one in seen}
    why: dict[JobReason, list[str]] = {}
    for wanted in dependencies(annotations):
        unmet = _unmet(job, wanted, known.get(wanted.name), others)
        if unmet is not None:
            why.setdefault(unmet[0], []).append(unmet[1])
    begin = begin_time(annotations)
    until = begin if begin is not None and now < begin else None
    for reason in (
        JobReason.DEPENDENCY_NEVER_SATISFIED,
        JobReason.DEPENDENCY_NOT_FOUND,
        JobReason.DEPENDENCY_NOT_MET,
    ):
        if reason in why:
            unseen = _unseen_until(job, now)
            recheck = [moment for moment in (until, unseen) if moment is not None and now < moment]
            return Hold(reason, messages.shorten("; ".join(why[reason])), min(recheck, default=None))
    if until is not None:
        return Hold(JobReason.BEGIN_TIME, messages.begins_at(format_time(until)), until)
    return None


def _unseen_until(job: Job, now: datetime) -> datetime:
    try:
        created = parse_time(job.metadata.creation_timestamp or "")
    except ValueError:
        return now
    return min(created, now) + timedelta(seconds=_UNSEEN_SECONDS)


def _see(
    wanted: Dependency, before: SeenDependency | None, others: OtherJobs, *, surely: bool
) -> SeenDependency | None:
    """The record of one dependency. `surely`: a job that was never seen doesn't exist."""
    if before is not None and wanted.uid and before.uid != wanted.uid:
        before = None  # the annotation was changed
    if before is not None and before.outcome:
        return before
    existing = others.existing.get(wanted.name)
    uid = wanted.uid or (before.uid if before is not None else "") or (existing.uid if existing is not None else "")
    if not uid or (before is None and existing is None and not surely):
        return None
    phase = existing.phase if existing is not None and existing.uid == uid else others.deleted.get(uid)
    if phase is not None and phase.finished:
        outcome = str(phase)
    else:
        outcome = "" if existing is not None and existing.uid == uid else DELETED
    return SeenDependency.parse(
        {key: value for key, value in (("name", wanted.name), ("uid", uid), ("outcome", outcome)) if value}
    )


def _unmet(
    job: Job, wanted: Dependency, seen: SeenDependency | None, others: OtherJobs
) -> tuple[JobReason, str] | None:
    """Why the dependency is not met; None where it is."""
    if seen is None:
        return JobReason.DEPENDENCY_NOT_FOUND, messages.dependency_not_found(name=wanted.name)
    if seen.outcome:
        if meets(wanted.outcome, seen.outcome):
            return None
        what = messages.dependency_missed(name=wanted.name, outcome=wanted.outcome, ended=seen.outcome)
        return JobReason.DEPENDENCY_NEVER_SATISFIED, what
    if seen.uid == job.uid or _leads_to(job.name, wanted.name, others.existing):
        what = messages.dependency_cycle(name=wanted.name, itself=seen.uid == job.uid)
        return JobReason.DEPENDENCY_NEVER_SATISFIED, what
    other = others.existing.get(wanted.name)
    phase = str(other.phase) if other is not None else str(JobPhase.PENDING)
    if other is not None and other.hopeless:
        phase = f"{phase}, {JobReason.DEPENDENCY_NEVER_SATISFIED}"
    return JobReason.DEPENDENCY_NOT_MET, messages.waits_for_job(name=wanted.name, phase=phase, outcome=wanted.outcome)


def _leads_to(name: str, start: str, existing: Mapping[str, OtherJob]) -> bool:
    """Whether the job `start` waits for the job `name`, directly or through others."""
    visited: set[str] = set()
    queue = [start]
    while queue:
        at = queue.pop()
        if at in visited or at not in existing:
            continue
        visited.add(at)
        if name in existing[at].waits_for:
            return True
        queue += existing[at].waits_for
    return False


def _dependencies_of(stored: Json) -> tuple[Dependency, ...]:
    annotations = part(part(stored, "metadata"), "annotations")
    return dependencies({key: value for key, value in annotations.items() if isinstance(value, str)})


def _has_ended(seen: Any) -> bool:
    return bool(_value(seen, "outcome"))


def _value(seen: Any, key: str) -> Any:
    return cast(Json, seen).get(key) if isinstance(seen, dict) else None
