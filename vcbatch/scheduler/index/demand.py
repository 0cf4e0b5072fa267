"""The allocated and requested resources of gangs, summed by queue, for admission and shares."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.objects import Phase
from vcbatch.scheduler.model.resources import Matrix
from vcbatch.scheduler.model.tables import JobTable

_Rows = npt.NDArray[np.intp]
_EXACT = 2.0**53
"""Below this, sums of quantities are exact in whatever order they are added and subtracted."""


@dataclass(frozen=True, slots=True)
class QueueDemand:
    """Sums over the gangs of each queue, [Q, R] by the row of the queue.

    Attributes:
        allocated: the requests of placed tasks.
        pending: the requests of pending tasks.
        inqueue: the part of their minResources that admitted gangs haven't been allocated yet, minus the requests
            behind gates other than the queue's. Gangs that are known not to fit even empty nodes count as zero.
        elastic: what gangs use beyond their minResources.
        begun: the part of their minResources that admitted gangs which don't run yet use already, minus the same.
    """

    allocated: Matrix
    pending: Matrix
    inqueue: Matrix
    elastic: Matrix
    begun: Matrix


_PARTS = len(fields(QueueDemand))


class DemandTracker:
    """Maintains the sums: the part of each gang is stored, and recomputed for the gangs that changed."""

    def __init__(self, table: JobTable) -> None:
        self._table = table
        self._parts: Matrix = np.zeros((0, 0))
        """The parts of each gang; [J, 5R]."""
        self._places: _Rows = np.zeros(0, dtype=np.intp)
        """The position of each gang in `_sums`: the row of its queue plus one, 0 without a queue; [J]."""
        self._sums: Matrix = np.zeros((0, 0))
        """The sums by position; [Q + 1, 5R]."""

    def by_queue(self, queues: int) -> QueueDemand:
        """A copy of the present sums, for this many rows of queues."""
        table = self._table
        changed = table.take_changed()
        r = table.allocated.shape[1]
        shape = (len(table.queue), _PARTS * r)
        places = 1 + max(queues, 1 + int(table.queue[changed].max(initial=-1)))
        if self._parts.shape != shape or len(self._sums) < places:
            self._count_all(places)
        elif len(changed):
            exact = self._sums.max() < _EXACT
            self._count_again(changed)
            if not exact or self._sums.max() >= _EXACT:
                self._count_all(len(self._sums))
        sums = self._sums[1 : queues + 1].copy()
        return QueueDemand(*(sums[:, part * r : (part + 1) * r] for part in range(_PARTS)))

    def _count_all(self, places: int) -> None:
        rows = np.arange(len(self._table.queue))
        places = max(places, 2 + int(self._table.queue.max(initial=-1)))
        self._places, self._parts = self._table.queue + 1, self._parts_of(rows)
        self._sums = _summed(self._places, self._parts, places)

    def _count_again(self, rows: _Rows) -> None:
        places, parts = self._table.queue[rows] + 1, self._parts_of(rows)
        where = np.concatenate([self._places[rows], places])
        self._sums += _summed(where, np.concatenate([-self._parts[rows], parts]), len(self._sums))
        self._places[rows], self._parts[rows] = places, parts

    def _parts_of(self, rows: _Rows) -> Matrix:
        table = self._table
        allocated, minimum = table.allocated[rows], table.minimum[rows]
        phase = table.phase[rows]
        started = (phase == Phase.RUNNING) & (table.allocated_count[rows] >= table.min_member[rows])
        asking = table.has_minimum[rows] & ~table.unstartable[rows]
        counted = asking & ((phase == Phase.INQUEUE) | started)
        gated = table.gated[rows]
        missing = np.maximum(np.maximum(minimum - allocated, 0.0) - gated, 0.0)
        begun = np.maximum(minimum - gated, 0.0) - missing
        begun[~(asking & (phase == Phase.INQUEUE))] = 0.0
        missing[~counted] = 0.0
        elastic = np.maximum(allocated - minimum, 0.0)
        return np.concatenate([allocated, table.pending[rows], missing, elastic, begun], axis=1)


def _summed(places: npt.NDArray[np.int64], amounts: Matrix, count: int) -> Matrix:
    """Sums of quantities by position, for `count` positions."""
    out: Matrix = np.empty((count, amounts.shape[1]))
    for r, column in enumerate(amounts.T):
        out[:, r] = np.bincount(places, weights=column, minlength=count)
    return out
