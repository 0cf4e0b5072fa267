"""The inputs of scores: quantities of M nodes, with 0, 1, 2 … more tasks of a class on them.

A score of a few nodes costs what NumPy takes per call, so values that depend on the class alone are computed once
(`Depths`), and quantities of K resources are available in one array, [K, D, M].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.resources import CPU, MEMORY
from vcbatch.scheduler.model.tables import NodeTable

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Resources = tuple[int, ...]
"""Columns of resources."""


class Depths:
    """What `count` tasks of a class, after `first` others, add to any node. Valid for one cycle."""

    __slots__ = ("_added", "_offered", "_request", "column", "index", "nonzero_after")

    def __init__(self, nodes: NodeTable, cls: TaskClass, first: int, count: int) -> None:
        steps = np.arange(first, first + count + 1, dtype=np.float64)
        self.column: Floats = steps[:-1, None]
        """How many tasks are there before the scored one, [D, 1]."""
        self.nonzero_after: Floats = cls.nonzero[:, None, None] * steps[1:, None]
        self._offered: list[bool] = [bool(row.all()) for row in nodes.alloc > 0]
        self._request = cls.request
        self._added: dict[Resources, Floats] = {}
        self.index: dict[Resources, npt.NDArray[np.intp] | slice] = {}

    def offered(self, resource: int) -> bool:
        """Whether every node has some of the resource."""
        return self._offered[resource]

    def added(self, resources: Resources) -> Floats:
        """The requests of the tasks before each depth and, at the end, of all of them; [K, D + 1, 1]."""
        known = self._added.get(resources)
        if known is None:
            steps = np.append(self.column[:, 0], self.column[-1, 0] + 1)
            known = self._added[resources] = self._request[list(resources), None, None] * steps[:, None]
        return known

    def of(self, resources: Resources) -> npt.NDArray[np.intp] | slice:
        """An index that selects these resources; a slice if they are adjacent, which copies nothing."""
        known = self.index.get(resources)
        if known is None:
            first, last = resources[0], resources[-1]
            neighbours = resources == tuple(range(first, last + 1))
            known = slice(first, last + 1) if neighbours else np.array(resources, dtype=np.intp)
            self.index[resources] = known
        return known


class Columns:
    """The nodes as scores read them: M nodes, at D depths (tasks of the class placed there before the scored one).

    Methods with one resource return [M] (`alloc`, `divisor`) or [D, M]; those with several put these first. Results
    must not be modified.
    """

    __slots__ = ("_alloc", "_cls", "_depths", "_leaving", "_load", "_promising", "_taken", "rows", "shape")

    def __init__(self, nodes: NodeTable, cls: TaskClass, rows: Rows, depths: Depths, *, promising: bool) -> None:
        """`rows` ascend. `promising` if the tasks would be pipelined on resources being released."""
        all_ = len(rows) == len(nodes)
        self._cls = cls
        self._depths = depths
        self._promising = promising
        self._alloc: Floats = nodes.alloc if all_ else nodes.alloc.take(rows, axis=1)
        self._load: Floats = nodes.load if all_ else nodes.load.take(rows, axis=1)
        self._taken: Floats | None = None
        leaving = nodes.leaving
        self._leaving: Floats | None = None if leaving is None else leaving if all_ else leaving.take(rows, axis=1)
        self.rows = rows
        self.shape: tuple[int, int] = (depths.column.shape[0], len(rows))

    @property
    def before(self) -> Floats:
        """How many tasks of the class are there before the scored one, [D, 1]."""
        return self._depths.column

    @property
    def promising(self) -> bool:
        """Whether the tasks would be pipelined on resources being released."""
        return self._promising

    @property
    def steps(self) -> Floats:
        """How many tasks of the class are there before the scored one, [D, 1]."""
        return self._depths.column

    def offered_by_all(self, resources: Sequence[int]) -> bool:
        """Whether every node has some of each of the resources."""
        return all(self._depths.offered(r) for r in resources)

    # One resource ----------------------------------------------------------------------------------------------------

    def alloc(self, resource: int) -> Floats:
        """The allocatable quantity of the nodes."""
        return self._alloc[resource]

    def divisor(self, resource: int) -> Floats:
        """The allocatable quantity of the nodes, 1 where it is zero."""
        return self.divisors((resource,))[0, 0]

    def used(self, resource: int) -> Floats:
        """The requests of the pods on the nodes, terminating ones included and pipelined ones not."""
        used = self._load[resource]
        if self._promising:
            return np.broadcast_to(used, self.shape)
        return used + self._depths.column * self._cls.request[resource]

    def expected(self, resource: int) -> Floats:
        """The requests of pods on the nodes and of pipelined ones, without pods evicted in this cycle."""
        return self._expected()[resource] + self._depths.column * self._cls.request[resource]

    def nonzero(self, resource: int) -> Floats:
        """`expected` of cpu or memory, with the defaults for containers without requests."""
        return self._load[len(self._alloc) + resource] + self._depths.column * self._cls.nonzero[resource]

    # Several resources -----------------------------------------------------------------------------------------------

    def allocs(self, resources: Resources) -> Floats:
        """`alloc`; [K, 1, M]."""
        return self._alloc[self._depths.of(resources)][:, None]

    def divisors(self, resources: Resources) -> Floats:
        """`divisor`; [K, 1, M]."""
        alloc = self.allocs(resources)
        return alloc if self.offered_by_all(resources) else np.where(alloc > 0, alloc, 1.0)

    def used_after(self, resources: Resources) -> Floats:
        """`used` with the scored task; [K, D, M]."""
        used = self._load[self._depths.of(resources)][:, None]
        added = self._depths.added(resources)[:, 1:]
        if self._promising:
            return np.repeat(used + self._cls.request[list(resources), None, None], self.shape[0], axis=1)
        return used + added

    def expected_throughout(self, resources: Resources) -> Floats:
        """`expected` at each depth and, at the end, with the last task; [K, D + 1, M]. The quantities with the scored
        task are those of the next depth."""
        return self._expected()[self._depths.of(resources)][:, None] + self._depths.added(resources)

    def nonzero_after(self) -> Floats:
        """`nonzero` of cpu and memory with the scored task; [2, D, M]."""
        r = len(self._alloc)
        return self._load[r + CPU : r + MEMORY + 1, None] + self._depths.nonzero_after

    # Free resources --------------------------------------------------------------------------------------------------

    def unpromised(self, resources: Rows) -> Floats:
        """The quantities that are neither used nor pipelined; [K, M], a copy."""
        return self._alloc[resources] - self._charged()[resources]

    def promised(self, resources: Rows) -> Floats:
        """The quantities that pods are pipelined on; [K, M]."""
        return self._load[len(self._alloc) + 2 + resources]

    def _expected(self) -> Floats:
        charged = self._charged()
        return charged if self._leaving is None else charged - self._leaving

    def _charged(self) -> Floats:
        if self._taken is None:
            r = len(self._alloc)
            self._taken = self._load[:r] + self._load[r + 2 :]
        return self._taken
