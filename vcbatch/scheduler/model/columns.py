"""What scores read of nodes: amounts of M nodes, with 0, 1, 2 … more tasks of a class on them.

NumPy's price per call is what a score of a few nodes costs, so what depends on the class alone is computed once
(`Depths`), and amounts of K resources can be asked for in one array, [K, D, M].
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
    """What `count` tasks of a class, after `first` others, add to any node. Holds for one cycle."""

    __slots__ = ("_added", "_offered", "_request", "column", "index", "nonzero_after")

    def __init__(self, nodes: NodeTable, cls: TaskClass, first: int, count: int) -> None:
        steps = np.arange(first, first + count + 1, dtype=np.float64)
        self.column: Floats = steps[:-1, None]
        """How many tasks are there before the one scored, [D, 1]."""
        self.nonzero_after: Floats = cls.nonzero[:, None, None] * steps[1:, None]
        self._offered: list[bool] = [bool(row.all()) for row in nodes.alloc > 0]
        self._request = cls.request
        self._added: dict[Resources, Floats] = {}
        self.index: dict[Resources, npt.NDArray[np.intp] | slice] = {}

    def offered(self, resource: int) -> bool:
        """Whether every node there is has some of the resource."""
        return self._offered[resource]

    def added(self, resources: Resources) -> Floats:
        """What the tasks take at each depth and, at the end, with all of them; [K, D + 1, 1]."""
        known = self._added.get(resources)
        if known is None:
            steps = np.append(self.column[:, 0], self.column[-1, 0] + 1)
            known = self._added[resources] = self._request[list(resources), None, None] * steps[:, None]
        return known

    def of(self, resources: Resources) -> npt.NDArray[np.intp] | slice:
        """An index that picks these resources; a slice where they are neighbours, as it copies nothing."""
        known = self.index.get(resources)
        if known is None:
            first, last = resources[0], resources[-1]
            neighbours = resources == tuple(range(first, last + 1))
            known = slice(first, last + 1) if neighbours else np.array(resources, dtype=np.intp)
            self.index[resources] = known
        return known


class Columns:
    """The nodes as scores read them: M nodes, at D depths (tasks of the class placed there before the one scored).

    Methods with one resource return [M] (`alloc`, `divisor`) or [D, M]; those with several put these first. Answers
    must not be written to.
    """

    __slots__ = ("_alloc", "_cls", "_depths", "_leaving", "_load", "_promising", "_taken", "rows", "shape")

    def __init__(self, nodes: NodeTable, cls: TaskClass, rows: Rows, depths: Depths, *, promising: bool) -> None:
        """`rows` ascend. `promising` where the tasks would be promised what is being released."""
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
        """How many tasks of the class are there before the one that is scored, [D, 1]."""
        return self._depths.column

    @property
    def promising(self) -> bool:
        """Whether the tasks would be promised what is being released."""
        return self._promising

    @property
    def steps(self) -> Floats:
        """How many tasks of the class are there before the one scored, [D, 1]."""
        return self._depths.column

    def offered_by_all(self, resources: Sequence[int]) -> bool:
        """Whether every node has some of each of the resources."""
        return all(self._depths.offered(r) for r in resources)

    # One resource ----------------------------------------------------------------------------------------------------

    def alloc(self, resource: int) -> Floats:
        """What the nodes offer."""
        return self._alloc[resource]

    def divisor(self, resource: int) -> Floats:
        """What the nodes offer, with 1 where they offer nothing."""
        return self.divisors((resource,))[0, 0]

    def used(self, resource: int) -> Floats:
        """What pods take, those that are ending included and promises not."""
        used = self._load[resource]
        if self._promising:
            return np.broadcast_to(used, self.shape)
        return used + self._depths.column * self._cls.request[resource]

    def expected(self, resource: int) -> Floats:
        """What pods take and what is promised to others, without pods that are evicted just now."""
        return self._expected()[resource] + self._depths.column * self._cls.request[resource]

    def nonzero(self, resource: int) -> Floats:
        """`expected` of cpu or memory, with the defaults for containers that ask for none."""
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
        """`used` and the task that is scored; [K, D, M]."""
        used = self._load[self._depths.of(resources)][:, None]
        added = self._depths.added(resources)[:, 1:]
        if self._promising:
            return np.repeat(used + self._cls.request[list(resources), None, None], self.shape[0], axis=1)
        return used + added

    def expected_throughout(self, resources: Resources) -> Floats:
        """`expected` at each depth and, at the end, with the last task; [K, D + 1, M]. The amounts with the task that
        is scored are those of the next depth."""
        return self._expected()[self._depths.of(resources)][:, None] + self._depths.added(resources)

    def nonzero_after(self) -> Floats:
        """`nonzero` of cpu and memory and the task that is scored; [2, D, M]."""
        r = len(self._alloc)
        return self._load[r + CPU : r + MEMORY + 1, None] + self._depths.nonzero_after

    # What is left ----------------------------------------------------------------------------------------------------

    def unpromised(self, resources: Rows) -> Floats:
        """What is neither taken nor promised; [K, M], the caller's own."""
        return self._alloc[resources] - self._charged()[resources]

    def promised(self, resources: Rows) -> Floats:
        """What is promised of what is being released; [K, M]."""
        return self._load[len(self._alloc) + 2 + resources]

    def _expected(self) -> Floats:
        charged = self._charged()
        return charged if self._leaving is None else charged - self._leaving

    def _charged(self) -> Floats:
        if self._taken is None:
            r = len(self._alloc)
            self._taken = self._load[:r] + self._load[r + 2 :]
        return self._taken
