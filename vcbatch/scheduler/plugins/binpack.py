"""Bin packing: the higher a node's utilization with the task, the higher its score."""

from __future__ import annotations

import numpy as np

from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Floats, Plugin
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Columns
from vcbatch.scheduler.model.resources import CPU, MEMORY

_WEIGHT = "binpack.weight"
_RESOURCES = "binpack.resources"
_DEFAULT = 1
_RESOURCE = Argument(default=_DEFAULT, expected=0, otherwise=f"which counts as {_DEFAULT}")


class Binpack(Plugin):
    """The score is the weighted mean of the node's utilization with the task, over the resources that the task requests
    and the scheduler configuration weighs. Cpu and memory always have weights; others if `binpack.resources` (a
    comma-separated list) names them."""

    BY_AMOUNTS = True
    ARGUMENTS = ArgumentSpec(
        named={
            _WEIGHT: Argument(default=_DEFAULT, expected=0, otherwise="by which the emptiest nodes are the best"),
            "binpack.cpu": _RESOURCE,
            "binpack.memory": _RESOURCE,
            _RESOURCES: Argument(default=""),
        },
        prefixed={f"{_RESOURCES}.": _RESOURCE},
    )

    def open(self, session: Handle) -> None:
        self._weight = int(self.arguments[_WEIGHT])
        self._by_column: dict[int, int] = {CPU: self._read("binpack.cpu"), MEMORY: self._read("binpack.memory")}
        for name in str(self.arguments[_RESOURCES]).split(","):
            column = session.dims.column(name.strip())
            if column is not None:
                self._by_column[column] = self._read(f"{_RESOURCES}.{name.strip()}")

    def _read(self, argument: str) -> int:
        given = int(self.arguments.get(argument, _DEFAULT))
        return given if given >= 0 else _DEFAULT

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        asked = [(r, w) for r, w in self._by_column.items() if w and cls.request[r] > 0]
        weights = sum(w for _, w in asked)
        if not self._weight or not weights:
            return None
        resources = tuple(r for r, _ in asked)
        alloc, filled = columns.divisors(resources), columns.used_after(resources)
        filling = filled / alloc
        within = filled <= alloc
        if not columns.offered_by_all(resources):
            there = columns.allocs(resources) > 0
            filling = np.where(there, filling, 0.0)
            within |= ~there
        if any(w != 1 for _, w in asked):
            filling *= np.array([w for _, w in asked], dtype=np.float64)[:, None, None]
        points = 100.0 * self._weight * filling.sum(axis=0)
        points /= weights
        points *= within.all(axis=0)
        return points
