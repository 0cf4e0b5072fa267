"""The flow's status, as Volcano writes it: the jobs by phase, each with its history, and a condition for each.

It is rebuilt from the existing jobs. Only the entries of jobs that finished and were deleted are kept as written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, cast

from vcbatch.api.duration import parse_duration
from vcbatch.api.job import JobPhase
from vcbatch.api.jobflow import JobFlowLedger, JobFlowPhase
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.timestamps import format_time, parse_time
from vcbatch.core.jobflow.child import Child
from vcbatch.core.jobflow.view import JobFlowView

_LISTS: Final = {
    JobPhase.PENDING: "pendingJobs",
    JobPhase.RUNNING: "runningJobs",
    JobPhase.FAILED: "failedJobs",
    JobPhase.COMPLETED: "completedJobs",
    JobPhase.TERMINATED: "terminatedJobs",
}
_OTHERS: Final = "unKnowJobs"
_OURS: Final = frozenset({*_LISTS.values(), _OTHERS, "conditions", "jobStatusList", "state", "ledger"})
_LONGEST_HISTORY: Final = 32
"""The maximum of entries in a job's history; of a job that restarts more often, the latest are kept."""


def status_of(
    stored: Json,
    jobs: Sequence[Child],
    new: Collection[str],
    order: Sequence[str],
    ended: Mapping[str, JobPhase],
    *,
    phase: JobFlowPhase,
    message: str,
    ledger: JobFlowLedger,
    now: datetime,
) -> Json:
    """`jobs` are those that exist and count, `new` the names of those that the status doesn't have yet, and `ended` the
    final phases of jobs that may have been deleted. All are listed in the given `order` of names, and others
    after them."""
    there = {job.name: job for job in jobs}
    reported = {str(entry.get("name", "")): entry for entry in _reported(stored)}
    names = list(dict.fromkeys((*(name for name in order if name in there or name in ended), *there, *ended)))
    phases = {name: there[name].phase if name in there else ended[name] for name in names}
    conditions = {
        name: _condition(there[name])
        if name in there
        else {**part(part(stored, "conditions"), name), "phase": str(phases[name])}
        for name in names
    }
    known = {name: None for name in order if name in there or name in reported}
    histories = [
        _entry(there[name], reported.get(name, {}), now, first=name in new)
        if name in there
        else _last_entry(reported[name], phases.get(name))
        for name in (known | dict.fromkeys((*reported, *there)))
    ]
    wire: Json = {
        **{key: value for key, value in stored.items() if key not in _OURS},
        **{key: names for key, names in _by_list(phases).items() if names},
        "conditions": conditions,
        "jobStatusList": histories,
        "state": {"phase": str(phase), "message": message} if message else {"phase": str(phase)},
        "ledger": ledger.dump(),
    }
    return {key: value for key, value in wire.items() if value not in ([], {})}


def first_seen(view: JobFlowView, job: Child) -> bool:
    """Whether the status lacks this job. In a status that Volcano wrote, jobs of one name are distinguished by their
    time."""
    known = view.flow.status.ledger.jobs.get(job.name)
    if known is not None:
        return known.uid != job.uid
    return all(
        (entry.get("name"), entry.get("startTimestamp")) != (job.name, job.created) for entry in _reported(view.status)
    )


def _reported(status: Json) -> list[Json]:
    return [cast(Json, entry) for entry in listed(status, "jobStatusList") if isinstance(entry, dict)]


def _by_list(phases: Mapping[str, JobPhase]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {key: [] for key in (*_LISTS.values(), _OTHERS)}
    for name, phase in phases.items():
        lists[_LISTS.get(phase, _OTHERS)].append(name)
    return lists


def _condition(job: Child) -> Json:
    counts = {task: {"phase": dict(phases)} for task, phases in job.tasks.items()}
    return _trimmed(
        {
            "phase": str(job.phase),
            "createTime": job.created,
            "runningDuration": job.duration,
            "taskStatusCount": counts,
        }
    )


def _entry(job: Child, before: Json, now: datetime, *, first: bool) -> Json:
    return _trimmed(
        {
            "name": job.name,
            "state": str(job.phase),
            "startTimestamp": job.created,
            "endTimestamp": _end(job),
            "restartCount": job.restarts,
            "runningHistories": _history(job, before, now, first=first),
        }
    )


def _last_entry(entry: Json, phase: JobPhase | None) -> Json:
    """The last entry of a job that is deleted; it is kept as written."""
    return {**entry, "state": str(phase)} if phase is not None else entry


def _history(job: Child, before: Json, now: datetime, *, first: bool) -> list[Json]:
    """The history by phase. Phases that no reconciliation observed come from the job's own log. `first`: the status has
    nothing about this job yet, though maybe about an earlier one of its name."""
    reported = [cast(Json, entry) for entry in listed(before, "runningHistories") if isinstance(entry, dict)]
    for phase, since in _unseen(job, None if first or not reported else str(reported[-1].get("state", ""))):
        start = since or format_time(now)
        if reported and not reported[-1].get("endTimestamp"):
            reported[-1] = {**reported[-1], "endTimestamp": start}
        reported.append({"startTimestamp": start, "state": phase})
    return reported[-_LONGEST_HISTORY:]


def _unseen(job: Child, last: str | None) -> list[tuple[str, str | None]]:
    """The phases after `last`, all of them where it is None; the present one at the end."""
    if last == job.phase:
        return []
    earlier = [(phase, since) for phase, since in job.log if phase != job.phase]
    places = [place for place, (phase, _) in enumerate(earlier) if phase == last]
    known = places[-1] + 1 if places else 0 if last is None else len(earlier)
    return [*earlier[known:], (str(job.phase), job.entered or job.created)]


def _end(job: Child) -> str | None:
    if job.duration is None or job.created is None:
        return None
    try:
        return format_time(parse_time(job.created) + parse_duration(job.duration))
    except (ValueError, OverflowError):
        return None


def _trimmed(wire: Json) -> Json:
    return {key: value for key, value in wire.items() if value not in (None, 0, {}, [])}
