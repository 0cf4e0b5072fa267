"""The nodes on which unplaced pods would fit with the least release of resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vcbatch.scheduler.feasibility.judge import Judge
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus
from vcbatch.scheduler.model.resources import EPS, Mask, Vector


class Place(NamedTuple):
    """A node, by its row, that would take pods if more resources were released. `wanted` is the request of all pods
    assumed there, `free` the resources left for them; both [R]."""

    row: int
    wanted: Vector
    free: Vector

    @property
    def short(self) -> Vector:
        """The resources that must be released, [R]."""
        return np.maximum(self.wanted - self.free, 0.0)


def still_needed(job: Job | None, task: Task, unplaced: int) -> list[tuple[TaskClass, int]]:
    """The pending pods that the gang can't start without, by class: `unplaced` like `task`, then the others."""
    needed = [(task.cls, unplaced)]
    if job is None:
        return needed
    left = job.min_member - job.ready_count - job.waiting_count - job.pending_best_effort - unplaced
    counts: dict[int, tuple[TaskClass, int]] = {}
    for run in job.runs or ():
        if left <= 0:
            break
        if run.cls is not task.cls and not run.cls.unsupported:
            pending = min(sum(t.status is TaskStatus.PENDING for t in run.tasks), left)
            counts[run.cls.id] = (run.cls, counts.get(run.cls.id, (run.cls, 0))[1] + pending)
            left -= pending
    return needed + [(cls, count) for cls, count in counts.values() if count]


def nearest_places(
    session: Session,
    job: Job | None,
    needed: Sequence[tuple[TaskClass, int]],
    admitted: Mask,
    free: Floats,
    *,
    lasting: bool = False,
) -> list[Place]:
    """The places where resources must be released so that all these pods fit on `admitted` nodes; empty if they fit.
    With `lasting`, nodes that reject them for a temporary state count as well.

    Pods are placed class by class, on the nodes with most slots first; the rest is assumed on the nodes where the least
    is missing, preferring nodes that are large enough.
    """
    left = free.copy()
    held = _held(session, job)
    own = held.copy()
    found: dict[int, None] = {}
    for cls, count in needed:
        static = session.placer.static(cls)
        rows = np.flatnonzero(admitted & (static.lasting if lasting else static.mask))
        if not len(rows):
            continue
        slots = _slots(cls, left[:, rows])
        order = np.argsort(-slots, kind="stable")
        taken = _first(slots[order], count)
        left[:, rows[order]] -= cls.request[:, None] * taken
        own[:, rows[order]] += cls.request[:, None] * taken
        missing = count - int(taken.sum())
        if missing:
            for row, more in _cheapest(session, cls, rows, left, own, missing):
                found[row] = None
                left[:, row] -= more * cls.request
                own[:, row] += more * cls.request
    new = own - held
    return [Place(row, new[:, row], left[:, row] + new[:, row]) for row in found]


def most_room(cls: TaskClass, among: Mask, free: Floats, count: int) -> tuple[dict[int, int], int]:
    """The nodes `among` these with most slots that together take `count` pods: the number of pods by row, and the
    number of pods without a slot."""
    rows = np.flatnonzero(among)
    slots = _slots(cls, free[:, rows])
    order = np.argsort(-slots, kind="stable")
    taken = _first(slots[order], count)
    found = {int(rows[at]): int(pods) for at, pods in zip(order, taken, strict=True) if pods}
    return found, count - int(taken.sum())


def could_hold(session: Session, task: Task, among: Mask, count: int) -> bool:
    """Whether nodes `among` these, if only the gang's own pods were on them, have resources for `count` more pods like
    the task."""
    held = _held(session, task.job)
    return float(_slots(task.cls, (session.shared(Judge).nodes.capacity - held)[:, among]).sum()) >= count


def _slots(cls: TaskClass, free: Floats) -> Floats:
    """For how many pods of the class the resources suffice; [M]."""
    need = cls.need
    asked = np.where(need > 0, need, 1.0)
    return np.maximum(np.where(need > 0, np.floor((free[cls.needed] + EPS) / asked), np.inf).min(axis=0), 0.0)


def _first(room: Floats, count: int) -> Floats:
    """The distribution of `count` pods over nodes with this many slots, filling them from the first on; [M]."""
    before = np.cumsum(np.minimum(room, count)) - np.minimum(room, count)
    return np.clip(count - before, 0.0, np.minimum(room, count))


def _held(session: Session, job: Job | None) -> Floats:
    """The requests of the gang's own pods on each node, [R, N]: no remedy releases them."""
    held = np.zeros_like(session.nodes.alloc)
    for task in () if job is None else job.tasks.values():
        if task.node:
            held[:, session.state.row_of(task)] += task.cls.request
    return held


def _cheapest(
    session: Session, cls: TaskClass, rows: Rows, left: Floats, own: Floats, missing: int
) -> list[tuple[int, int]]:
    """The rows that take the `missing` pods, with the number of pods on each: those first where the smallest part of a
    pod's request is missing. `own` are the requests of the gang's own pods."""
    asked = cls.request > 0
    lacking = np.maximum(cls.request[:, None] - left[:, rows], 0.0)[asked]
    price = (lacking / cls.request[asked, None]).max(axis=0, initial=0.0)
    spare = _slots(cls, session.nodes.alloc[:, rows] - own[:, rows])
    order = np.lexsort((price, spare < 1))
    taken = _first(spare[order], missing)
    rest = missing - int(taken.sum())
    if rest:  # no more nodes are large enough: the nearest would have to be larger
        order = np.argsort(price, kind="stable")
        taken = _first(spare[order], missing)
        taken += rest // len(rows)
        taken[: rest % len(rows)] += 1
    return [(int(rows[at]), int(count)) for at, count in zip(order, taken, strict=True) if count]
