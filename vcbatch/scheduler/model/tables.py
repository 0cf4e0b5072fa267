"""The arrays of the snapshot: one column per node, one row per gang. Updated in place, never copied by a cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.objects import NodeInfo
from vcbatch.scheduler.model.resources import Dimensions, Matrix, Vector


def _grown(matrix: Matrix, axis: int, size: int) -> Matrix:
    """The matrix with zeros appended along `axis` up to `size`."""
    missing = size - matrix.shape[axis]
    if missing <= 0:
        return matrix
    shape = list(matrix.shape)
    shape[axis] = missing
    return np.concatenate([matrix, np.zeros(shape)], axis=axis)


def _picked(matrix: Matrix, columns: npt.NDArray[np.intp]) -> Matrix:
    """These columns of the matrix, -1 being a column of zeros."""
    padded = np.concatenate([matrix, np.zeros((matrix.shape[0], 1))], axis=1)
    return np.ascontiguousarray(padded[:, columns])


class _Charge(NamedTuple):
    """Tasks of a class that were added to or removed from nodes, and aren't in the sums yet; see `NodeTable.charge`."""

    rows: Sequence[int]
    cls: TaskClass
    promised: bool
    times: int


class NodeTable:
    """Nodes in the order of their names, so that "the first of equals" doesn't depend on the order in which they were
    observed.

    Matrices are [R, N], resource by resource, since every kernel processes all nodes for a few resources (row-major [N,
    R] takes ten times as long there).

    Attributes:
        alloc: the allocatable resources of the node.
        used: the requests of the pods on it, terminating ones included.
        releasing: the part of `used` that is being released.
        pipelined: the requests of tasks that are pipelined on the releasing part.
        nonzero: cpu and memory of the pods on it, pipelined ones included, with the defaults of the least-allocated
            score; [2, N].
        load: `used`, `nonzero` and `pipelined` in one matrix, [2R + 2, N]; the three are views of it, so that the
            quantities of some nodes are read, and a placement written, in one operation.
        leaving: the part of `releasing` that was evicted in this cycle, which rules that count pods ignore; None if
            there is none.
        infos: the nodes, by row.
    """

    __slots__ = ("_due", "_load", "alloc", "infos", "leaving", "releasing")

    def __init__(self, dims: Dimensions) -> None:
        self.infos: list[NodeInfo] = []
        self.alloc: Matrix = np.zeros((len(dims), 0))
        self.releasing: Matrix = np.zeros((len(dims), 0))
        self.leaving: Matrix | None = None
        self._lay(np.zeros((2 * len(dims) + 2, 0)))

    def _lay(self, load: Matrix) -> None:
        self._load: Matrix = load
        self._due: list[_Charge] = []

    @property
    def load(self) -> Matrix:
        if self._due:
            self._write_due()
        return self._load

    @property
    def used(self) -> Matrix:
        return self.load[: len(self.alloc)]

    @property
    def nonzero(self) -> Matrix:
        r = len(self.alloc)
        return self.load[r : r + 2]

    @property
    def pipelined(self) -> Matrix:
        return self.load[len(self.alloc) + 2 :]

    def charge(self, rows: Sequence[int], cls: TaskClass, *, promised: bool, times: int) -> None:
        """Add tasks of the class to these nodes (`times` 1) or remove them (-1), one for each row. Applied on the next
        read, so that the changes of many gangs of a class are one sum."""
        self._due.append(_Charge(rows, cls, promised, times))

    def _write_due(self) -> None:
        due, self._due = self._due, []
        r = len(self.alloc)
        sums: dict[tuple[TaskClass, bool, int], Counter[int]] = {}
        for rows, cls, promised, times in due:
            sums.setdefault((cls, promised, times), Counter()).update(rows)
        for (cls, promised, times), counts in sums.items():
            amount, part = (cls.promised, slice(r, None)) if promised else (cls.placed, slice(r + 2))
            per_node = np.fromiter(counts.values(), dtype=np.float64, count=len(counts))
            self._load[part, list(counts)] += amount * (times * per_node)

    def __len__(self) -> int:
        return len(self.infos)

    def pad(self, dims: int) -> None:
        """Extend the matrices for the resource names that were added since."""
        used, nonzero, pipelined = self.used, self.nonzero, self.pipelined
        self.alloc = _grown(self.alloc, 0, dims)
        self.releasing = _grown(self.releasing, 0, dims)
        self._lay(np.concatenate([_grown(used, 0, dims), nonzero, _grown(pipelined, 0, dims)]))

    def relay(self, infos: Sequence[NodeInfo]) -> list[NodeInfo]:
        """Rearrange the columns for these nodes, keeping the quantities of existing ones. Returns the new nodes, whose
        columns are zero. Sets the row of every node, -1 for removed ones."""
        for info in self.infos:
            if not info.present:
                info.row = -1
        source = np.array([info.row for info in infos], dtype=np.intp)
        new = [info for info in infos if info.row < 0]
        self.alloc = _picked(self.alloc, source)
        self.releasing = _picked(self.releasing, source)
        self._lay(_picked(self.load, source))
        self.infos = list(infos)
        for row, info in enumerate(infos):
            info.row = row
        return new

    def future(self) -> Matrix:
        """The resources that are free once releasing pods have ended and pipelined tasks are placed."""
        return self.alloc - self.used + self.releasing - self.pipelined

    def future_of(self, row: int) -> Vector:
        """`future` of one node, shape [R]."""
        return self.alloc[:, row] - self.used[:, row] + self.releasing[:, row] - self.pipelined[:, row]


_VECTORS = ("_allocated", "_pending", "gated", "minimum")


class JobTable:
    """Gangs by row; rows are reused. Vectors are [J, R].

    Attributes:
        allocated: the requests of the gang's placed tasks.
        pending: the requests of its pending tasks.
        gated: the part of `pending` behind scheduling gates other than that of the queue.
        minimum: minResources; zero if absent.
        has_minimum: whether minResources is given; [J].
        unstartable: whether the gang is known not to fit even empty nodes, so that its admission uses no capacity; [J].
        queue: row of the queue in the current cycle, -1 for none; [J].
        phase, min_member, allocated_count, priority: as in Job; [J].
        ready_count, pending_best_effort: as in Job, maintained only while victims are; [J].
        changed: the rows that changed since `take_changed`.
    """

    __slots__ = (
        "_allocated",
        "_due",
        "_free",
        "_pending",
        "allocated_count",
        "changed",
        "gated",
        "has_minimum",
        "min_member",
        "minimum",
        "pending_best_effort",
        "phase",
        "priority",
        "queue",
        "ready_count",
        "size",
        "unstartable",
    )

    def __init__(self, dims: Dimensions) -> None:
        r = len(dims)
        self.size = 0
        self.changed: set[int] = set()
        self._free: list[int] = []
        self._allocated: Matrix = np.zeros((0, r))
        self._pending: Matrix = np.zeros((0, r))
        self._due: dict[TaskClass, list[tuple[int, int, int]]] = {}
        self.gated: Matrix = np.zeros((0, r))
        self.minimum: Matrix = np.zeros((0, r))
        self.has_minimum: npt.NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self.unstartable: npt.NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self.queue: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.phase: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.min_member: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.allocated_count: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.priority: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.ready_count: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.pending_best_effort: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @property
    def allocated(self) -> Matrix:
        if self._due:
            self._write_due()
        return self._allocated

    @property
    def pending(self) -> Matrix:
        if self._due:
            self._write_due()
        return self._pending

    def shift(self, row: int, cls: TaskClass, *, allocated: int, pending: int) -> None:
        """Add tasks of the class to the placed and to the pending ones of the gang in this row; negative counts remove
        them. Applied on the next read, as by `NodeTable.charge`."""
        self._due.setdefault(cls, []).append((row, allocated, pending))

    def _write_due(self) -> None:
        due, self._due = self._due, {}
        for cls, moves in due.items():
            rows, allocated, pending = np.array(moves, dtype=np.intp).T
            np.add.at(self._allocated, rows, allocated[:, None] * cls.request)
            np.add.at(self._pending, rows, pending[:, None] * cls.request)

    def take_changed(self) -> npt.NDArray[np.intp]:
        """Return and clear the rows that changed."""
        rows = np.array(sorted(self.changed), dtype=np.intp)
        self.changed.clear()
        return rows

    def take_row(self) -> int:
        """A row of zeros for a new gang."""
        if self._free:
            return self._free.pop()
        if self.size == self.queue.shape[0]:
            self._grow(max(64, 2 * self.size))
        self.size += 1
        return self.size - 1

    def give_row(self, row: int) -> None:
        """Release the row of a deleted gang: it is cleared and can be reused."""
        self._write_due()
        self.changed.add(row)
        for table in (self._allocated, self._pending, self.gated, self.minimum):
            table[row] = 0.0
        self.has_minimum[row] = self.unstartable[row] = False
        self.queue[row] = -1
        self.phase[row] = self.min_member[row] = self.allocated_count[row] = 0
        self.priority[row] = self.ready_count[row] = self.pending_best_effort[row] = 0
        self._free.append(row)

    def pad(self, dims: int) -> None:
        """Extend the vectors for the resource names that were added since."""
        self._write_due()
        for name in _VECTORS:
            setattr(self, name, _grown(getattr(self, name), 1, dims))

    def _grow(self, rows: int) -> None:
        for name in _VECTORS:
            setattr(self, name, _grown(getattr(self, name), 0, rows))
        old = self.queue.shape[0]
        for name in ("has_minimum", "unstartable"):
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros(rows - old, dtype=bool)]))
        self.queue = np.concatenate([self.queue, np.full(rows - old, -1, dtype=np.int64)])
        for name in ("phase", "min_member", "allocated_count", "priority", "ready_count", "pending_best_effort"):
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros(rows - old, dtype=np.int64)]))

    def set_unstartable(self, row: int, *, unstartable: bool) -> None:
        """Set whether the gang is known not to fit even empty nodes."""
        self.changed.add(row)
        self.unstartable[row] = unstartable

    def admission(self, row: int) -> Vector:
        """The admission capacity that the gang uses once it is admitted, as long as none of it is placed, [R]: its
        minResources minus the requests behind gates; zero if it can't start."""
        if self.unstartable[row]:
            return np.zeros_like(self.minimum[row])
        return np.maximum(self.minimum[row] - self.gated[row], 0.0)

    def set_minimum(self, row: int, minimum: Vector | None) -> None:
        """Set the gang's minResources, [R]; None if its PodGroup has none."""
        self.changed.add(row)
        self.has_minimum[row] = minimum is not None
        self.minimum[row] = 0.0 if minimum is None else minimum
