"""Resource names as columns, and the comparisons that decisions rest on.

Amounts are float64 in the finest unit that matters: milli-cores of cpu; bytes of memory, ephemeral storage and huge
pages; whole pods; thousandths of every other scalar. What comes from objects is an integer in these units, so sums are
exact up to 2**53; only computed amounts (deserved shares, scaled totals) have fractions, and only for those matters
the tolerance of Volcano's comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from vcbatch.api.quantity import MalformedQuantity, binary_text, decimal_text, milli_text, parse_quantity

Vector: TypeAlias = npt.NDArray[np.float64]
"""One amount per resource, shape [R]."""
Matrix: TypeAlias = npt.NDArray[np.float64]
"""Amounts per resource of many things, shape [R, N] for nodes and [J, R] for jobs and queues."""
Mask: TypeAlias = npt.NDArray[np.bool_]

CPU, MEMORY, PODS = 0, 1, 2
"""The columns that every cluster has."""
EPS = 0.1
"""Amounts closer than this are equal where a comparison is tolerant (Volcano's `minResource`)."""

_MOST_CPU, _MOST = 2.0**43, 2.0**52
"""What a pod or gang counts for at most: more than any node has, and so little that sums with it stay exact."""

_BYTES = frozenset({"memory", "ephemeral-storage"})
_NATIVE = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})

_MOST_UNITS = 2**63 - 1
"""Kubernetes caps larger amounts (apimachinery pkg/api/resource/quantity.go)."""


def is_scheduled_resource(name: str) -> bool:
    """Whether this name is something that nodes have: native, huge pages, attachable volumes or an extended resource.
    Quota names (`count/...`, `requests.*`) and anything else are no amounts of a pod."""
    if name in _NATIVE or name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in name and not name.startswith(("count/", "requests.", "limits."))


def is_extended(name: str) -> bool:
    """Whether this name is an extended resource, which a device plugin reports."""
    return "/" in name and is_scheduled_resource(name)


def _in_bytes(name: str) -> bool:
    return name in _BYTES or name.startswith("hugepages-")


class Dimensions:
    """The resource names met so far, each with its column. Names only ever get added. `ignored` names count for
    nothing: some plugin sees to them."""

    __slots__ = ("_amounts", "_column", "ignored", "names")

    def __init__(self) -> None:
        self.ignored: frozenset[str] = frozenset()
        self.names: list[str] = ["cpu", "memory", "pods"]
        self._column = {name: i for i, name in enumerate(self.names)}
        self._amounts: dict[tuple[bool, str | int | float], float] = {}

    def __len__(self) -> int:
        return len(self.names)

    def column(self, name: str) -> int | None:
        return self._column.get(name)

    def learn(self, names: Iterable[str]) -> None:
        """Give every name that nodes can have a column. Vectors made before are shorter afterwards: see `padded`."""
        for name in names:
            if name not in self._column and name not in self.ignored and is_scheduled_resource(name):
                self._column[name] = len(self.names)
                self.names.append(name)

    def amount(self, name: str, quantity: str | float) -> float:
        """A quantity in the unit of its column. What is no quantity counts as nothing: the API server refuses it, and
        an object that slipped through must not stop the others."""
        milli = name == "cpu" or not (name == "pods" or _in_bytes(name))
        key = (milli, quantity)
        known = self._amounts.get(key)
        if known is None:
            try:
                exact = parse_quantity(quantity)
            except MalformedQuantity:
                return 0.0
            known = float(max(-_MOST_UNITS, min(exact.milli() if milli else exact.value(), _MOST_UNITS)))
            if len(self._amounts) < 65536:
                self._amounts[key] = known
        return known

    def vector(self, quantities: Mapping[str, str | int | float] | None) -> Vector:
        """The amounts by column; names that no node has are dropped."""
        if quantities:
            self.learn(quantities)
        out = np.zeros(len(self.names))
        for name, quantity in (quantities or {}).items():
            column = self._column.get(name)
            if column is not None and name not in self.ignored:
                out[column] = self.amount(name, quantity)
        return out

    def bounded(self, vector: Vector) -> Vector:
        """Of amounts that somebody asks for those that can be added up and taken back: none is below zero, and none so
        large that the others are lost beside it."""
        out = np.clip(vector, 0.0, _MOST)
        out[CPU] = min(out[CPU], _MOST_CPU)
        return out

    def padded(self, vector: Vector) -> Vector:
        """The same amounts with zeros for the names learned since."""
        missing = len(self.names) - vector.shape[0]
        return vector if missing == 0 else np.concatenate([vector, np.zeros(missing)])

    def format(self, column: int, amount: float) -> str:
        """The amount as a canonical quantity (`1500m`, `8Gi`, `4`)."""
        name = self.names[column]
        units = round(amount)
        if name == "pods":
            return decimal_text(units)
        if _in_bytes(name):
            return binary_text(units)
        return milli_text(units)

    def quantities(self, vector: Vector) -> dict[str, str]:
        """Non-zero amounts as canonical quantities by name."""
        return {self.names[i]: self.format(i, amount) for i, amount in enumerate(vector.tolist()) if amount}


def fits(left: Vector, right: Vector) -> bool:
    """`left <= right` in every dimension, tolerantly (Volcano's LessEqual; missing means zero)."""
    return bool(((left < right) | (np.abs(left - right) < EPS)).all())


def exceeding(left: Vector, right: Vector, request: Vector) -> list[int]:
    """The columns that `request` asks for, `pods` apart, in which `left > right`, without tolerance (Volcano's
    LessEqualWithDimension)."""
    over = (left > right) & (request > 0)
    over[PODS] = False
    return [int(i) for i in np.flatnonzero(over)]
