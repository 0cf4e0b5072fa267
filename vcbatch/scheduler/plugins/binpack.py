"""Fill nodes up: the fuller a node would be with the task, the better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcbatch.scheduler.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.classes import TaskClass
from vcbatch.scheduler.plugins.base import Floats, Plugin
from vcbatch.scheduler.resources import CPU, MEMORY, Mask

if TYPE_CHECKING:
    from vcbatch.scheduler.placement import Columns
    from vcbatch.scheduler.session import Session

_WEIGHT = "binpack.weight"
_RESOURCES = "binpack.resources"
_DEFAULT = 1


class Binpack(Plugin):
    """The weighted mean, over the resources that the task asks for and the policy weighs, of how full the node would
    be. Cpu and memory are always weighed; others where `binpack.resources` (a comma list) names them."""

    ARGUMENTS = ArgumentSpec(
        named={
            _WEIGHT: Argument(default=_DEFAULT),
            "binpack.cpu": Argument(default=_DEFAULT),
            "binpack.memory": Argument(default=_DEFAULT),
            _RESOURCES: Argument(default=""),
        },
        prefixed={f"{_RESOURCES}.": Argument(default=_DEFAULT)},
    )

    def open(self, session: Session) -> None:
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
        asked = [(r, w) for r, w in self._by_column.items() if cls.request[r] > 0]
        weights = sum(w for _, w in asked)
        if not self._weight or not weights:
            return None
        total: Floats = np.zeros(columns.shape)
        fits: Mask | None = None
        for r, weight in asked:
            alloc, filled = columns.divisor(r), columns.used(r) + cls.request[r]
            filling = filled / alloc
            within = filled <= alloc
            if not columns.offered_by_all(r):
                there = columns.alloc(r) > 0
                filling = np.where(there, filling, 0.0)
                within |= ~there
            total += weight * filling
            fits = within if fits is None else fits & within
        points = 100.0 * self._weight * total / weights
        return points if fits is None else np.where(fits, points, 0.0)
