"""The latest end of running gangs, by the time limits that they declare."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from vcbatch.api.time_limit import time_limit
from vcbatch.api.timestamps import parse_time
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import HOLDING, Job, Task
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_MEMORY = "run-limits"


class Release(NamedTuple):
    """The resources that a gang releases when it ends: `amounts`, [R, K], on the nodes of `rows`, [K]."""

    end: datetime
    job: Job
    rows: Rows
    amounts: Floats


class _Known(NamedTuple):
    stamp: tuple[object, ...]
    release: Release | None


def declared_limit(job: Job) -> timedelta | None:
    """The gang's time limit: the annotation of its PodGroup, else the longest `activeDeadlineSeconds` if all its pods
    have one; None without a limit."""
    group = job.group
    seconds = time_limit(group.metadata.annotations or {}) if group is not None else None
    if seconds is None:
        deadlines = [task.pod.spec.active_deadline_seconds for task in job.tasks.values()]
        known = [deadline for deadline in deadlines if deadline]
        seconds = max(known) if known and len(known) == len(deadlines) else None
    return None if seconds is None else timedelta(seconds=seconds)


def releases(state: Snapshot, now: datetime) -> Sequence[Release]:
    """The releases of the gangs with a time limit, in order of their ends. Recomputed only for gangs whose pods
    changed."""
    known: dict[str, _Known] = state.memory.setdefault(_MEMORY, {})
    width = len(state.dims)
    layout = (state.static_stamp, width)
    found: list[Release] = []
    for key, job in state.jobs.items():
        if not job.allocated_count or job.group is None:
            known.pop(key, None)
            continue
        stamp = (job.uid, tuple(job.counts), job.group.metadata.resource_version, layout)
        entry = known.get(key)
        if entry is None or entry.stamp != stamp:
            entry = known[key] = _Known(stamp, _release(state, job, now))
        if entry.release is not None:
            found.append(entry.release)
    for key in known.keys() - state.jobs.keys():
        del known[key]
    return sorted(found, key=lambda release: (release.end, release.job.key))


def _release(state: Snapshot, job: Job, now: datetime) -> Release | None:
    limit = declared_limit(job)
    if limit is None:
        return None
    held = [task for task in job.tasks.values() if task.status in HOLDING and state.row_of(task) >= 0]
    if not held:
        return None
    rows = sorted({state.row_of(task) for task in held})
    place = {row: i for i, row in enumerate(rows)}
    amounts = np.zeros((len(state.dims), len(rows)))
    for task in held:
        amounts[:, place[state.row_of(task)]] += task.cls.request
    started = max(_started(task, now) for task in held)
    return Release(started + limit, job, np.array(rows, dtype=np.intp), amounts)


def _started(task: Task, now: datetime) -> datetime:
    """The start time of a pod; `now` if it isn't known yet."""
    text = task.pod.status.start_time
    try:
        return parse_time(text) if text else now
    except ValueError:
        return now
