"""Metrics of queues and gangs: of each cycle only the values that changed since the last one.

Quantities are in the units of the snapshot: thousandths of cpu and of scalars, bytes of memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.resources import Dimensions, Matrix, Vector


class Amount(StrEnum):
    """The kinds of quantities of a queue."""

    ALLOCATED = "allocated"
    REQUEST = "request"
    DESERVED = "deserved"
    CAPACITY = "capacity"
    REAL_CAPACITY = "real_capacity"
    INQUEUE = "inqueue"


class QueueAmount(NamedTuple):
    """One kind of quantity of a queue, by resource; a resource without a limit is left out. Empty if it isn't known any
    more."""

    queue: str
    amount: Amount
    resources: Mapping[str, float]


class QueueShare(NamedTuple):
    """The largest ratio of used to deserved of a queue; above 1, others may reclaim from it. None if it isn't known any
    more."""

    queue: str
    share: float | None
    overused: bool = False


class QueueWeight(NamedTuple):
    """The weight of a queue."""

    queue: str
    weight: int


class GangFigures(NamedTuple):
    """The metrics of a gang that was checked. `lacking` pods are missing for its minimum if it is pending; `placed`
    pods have a node, of which `binding` aren't bound yet as far as is known; `tried` if it was tried in this cycle and
    didn't start. `waiting_since` is the time since which it is pending, empty if it isn't: if the gang was scheduled
    before, when it became pending again, else its creation."""

    uid: str
    namespace: str
    name: str
    queue: str
    creation: str
    lacking: int
    placed: int
    binding: int
    ready: bool
    tried: bool
    waiting_since: str = ""


class GangShare(NamedTuple):
    """The dominant share of a gang that was checked, or of any gang if the cluster's capacity changed."""

    uid: str
    namespace: str
    name: str
    share: float


@dataclass(slots=True)
class Figures:
    """The metrics of one cycle."""

    amounts: list[QueueAmount] = field(default_factory=list[QueueAmount])
    shares: list[QueueShare] = field(default_factory=list[QueueShare])
    weights: list[QueueWeight] = field(default_factory=list[QueueWeight])
    queues_gone: list[str] = field(default_factory=list[str])
    gangs: list[GangFigures] = field(default_factory=list[GangFigures])
    gang_shares: list[GangShare] = field(default_factory=list[GangShare])
    gangs_gone: list[str] = field(default_factory=list[str])
    """UIDs of PodGroups."""


@dataclass(slots=True)
class Measured:
    """What plugins and the snapshot record in a cycle; rows are those of `names`, which is the same list as long as no
    queue changes."""

    amounts: dict[Amount, tuple[Sequence[str], Matrix]] = field(
        default_factory=dict[Amount, tuple[Sequence[str], Matrix]]
    )
    shares: tuple[Sequence[str], Vector, npt.NDArray[np.bool_]] | None = None
    gang_shares: Vector | None = None
    """By gang row."""


class FigureTracker:
    """Keeps the last reported metrics."""

    def __init__(self) -> None:
        self._amounts: dict[Amount, tuple[Sequence[str], Matrix]] = {}
        self._shares: tuple[Sequence[str], Matrix] | None = None
        self._weights: dict[str, int] = {}

    def amounts(self, measured: Measured, dims: Dimensions) -> list[QueueAmount]:
        """The quantities that changed, and empty ones for those that aren't recorded any more."""
        out: list[QueueAmount] = []
        for amount, (names, _) in self._amounts.items():
            if amount not in measured.amounts:
                out += [QueueAmount(name, amount, {}) for name in names if name]
        for amount, (names, matrix) in measured.amounts.items():
            rows = _changed(self._amounts.get(amount), names, matrix)
            moved = matrix[rows]
            finite = bool(np.isfinite(moved).all())
            for row, values in zip(rows, moved.tolist(), strict=True):
                shown = dict(zip(dims.names, values, strict=True))
                if not finite:
                    shown = {name: value for name, value in shown.items() if math.isfinite(value)}
                out.append(QueueAmount(names[row], amount, shown))
        self._amounts = dict(measured.amounts)
        return out

    def shares(self, measured: Measured) -> list[QueueShare]:
        """The shares of queues that changed."""
        before, now = self._shares, measured.shares
        if now is None:
            self._shares = None
            return [] if before is None else [QueueShare(name, None) for name in before[0] if name]
        names, shares, overused = now
        matrix = np.stack([shares, overused.astype(np.float64)], axis=1)
        self._shares = (names, matrix)
        rows = _changed(before, names, matrix)
        return [QueueShare(names[row], float(shares[row]), bool(overused[row])) for row in rows]

    def weights(self, weights: Mapping[str, int]) -> tuple[list[QueueWeight], list[str]]:
        """The weights that changed, and the deleted queues. Called when a queue changed."""
        news = [QueueWeight(name, weight) for name, weight in weights.items() if self._weights.get(name) != weight]
        gone = sorted(self._weights.keys() - weights.keys())
        self._weights = dict(weights)
        return news, gone


def _changed(before: tuple[Sequence[str], Matrix] | None, names: Sequence[str], now: Matrix) -> list[int]:
    """The rows with a name whose values changed."""
    if before is None or before[0] is not names or before[1].shape != now.shape:
        return [row for row, name in enumerate(names) if name]
    return [row for row in np.flatnonzero((before[1] != now).any(axis=1)).tolist() if names[row]]
