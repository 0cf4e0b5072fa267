"""Resource names as columns, and the comparisons that decisions use.

Quantities are float64 in the finest relevant unit: milli-cores of cpu; bytes of memory, ephemeral storage and huge
pages; whole pods; thousandths of every other scalar. Quantities of objects are integers in these units, so sums are
exact up to 2**53; only computed quantities (deserved shares, scaled totals) have fractions, and the tolerance of
Volcano's comparisons matters only for those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from vcbatch.api.quantity import MalformedQuantity, binary_text, decimal_text, milli_text, parse_quantity

Vector: TypeAlias = npt.NDArray[np.float64]
"""One quantity per resource, shape [R]."""
Matrix: TypeAlias = npt.NDArray[np.float64]
"""Quantities per resource of several objects, shape [R, N] for nodes and [J, R] for jobs and queues."""
Mask: TypeAlias = npt.NDArray[np.bool_]

CPU, MEMORY, PODS = 0, 1, 2
"""The columns that every cluster has."""
EPS = 0.1
"""Quantities closer than this are equal in comparisons with tolerance (Volcano's `minResource`)."""

_MOST_CPU, _MOST = 2.0**43, 2.0**52
"""The most that the request of a pod or gang counts as: more than any node has, and low enough that sums with it stay
exact."""

_BYTES = frozenset({"memory", "ephemeral-storage"})
_NATIVE = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})

_MOST_UNITS = 2**63 - 1
"""Kubernetes caps larger quantities (apimachinery pkg/api/resource/quantity.go)."""


def is_scheduled_resource(name: str) -> bool:
    """Whether nodes can have a resource of this name: native, huge pages, attachable volumes or an extended resource.
    Quota names (`count/...`, `requests.*`) and anything else aren't resources of a pod."""
    if name in _NATIVE or name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in name and not name.startswith(("count/", "requests.", "limits."))


def is_extended(name: str) -> bool:
    """Whether this name is an extended resource, which a device plugin reports."""
    return "/" in name and is_scheduled_resource(name)


def _in_bytes(name: str) -> bool:
    return name in _BYTES or name.startswith("hugepages-")


class Dimensions:
    """The resource names known so far, each with its column. Names are never removed. `ignored` names don't count: some
    plugin accounts for them itself."""

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
        """Add a column for every name that nodes can have. Existing vectors are shorter afterwards: see `padded`."""
        for name in names:
            if name not in self._column and name not in self.ignored and is_scheduled_resource(name):
                self._column[name] = len(self.names)
                self.names.append(name)

    def amount(self, name: str, quantity: str | float) -> float:
        """A quantity in the unit of its column. An invalid quantity counts as zero: the API server rejects it, and an
        object with one must not block the others."""
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
        """The quantities by column; names that no node can have are dropped."""
        if quantities:
            self.learn(quantities)
        out = np.zeros(len(self.names))
        for name, quantity in (quantities or {}).items():
            column = self._column.get(name)
            if column is not None and name not in self.ignored:
                out[column] = self.amount(name, quantity)
        return out

    def bounded(self, vector: Vector) -> Vector:
        """The requests clipped to quantities that can be added and subtracted exactly: none below zero, and none so
        large that smaller ones would be lost by rounding."""
        out = np.clip(vector, 0.0, _MOST)
        out[CPU] = min(out[CPU], _MOST_CPU)
        return out

    def padded(self, vector: Vector) -> Vector:
        """The vector extended by zeros for the names added since."""
        missing = len(self.names) - vector.shape[0]
        return vector if missing == 0 else np.concatenate([vector, np.zeros(missing)])

    def format(self, column: int, amount: float) -> str:
        """The quantity in canonical form (`1500m`, `8Gi`, `4`)."""
        name = self.names[column]
        units = round(amount)
        if name == "pods":
            return decimal_text(units)
        if _in_bytes(name):
            return binary_text(units)
        return milli_text(units)

    def quantities(self, vector: Vector) -> dict[str, str]:
        """Non-zero quantities in canonical form by name."""
        return {self.names[i]: self.format(i, amount) for i, amount in enumerate(vector.tolist()) if amount}


def fits(left: Vector, right: Vector) -> bool:
    """Whether `left <= right` in every dimension, with tolerance (Volcano's LessEqual; missing means zero)."""
    return bool(((left < right) | (np.abs(left - right) < EPS)).all())


def exceeding(left: Vector, right: Vector, request: Vector) -> list[int]:
    """The columns that `request` names, `pods` aside, in which `left > right`, without tolerance (Volcano's
    LessEqualWithDimension)."""
    over = (left > right) & (request > 0)
    over[PODS] = False
    return [int(i) for i in np.flatnonzero(over)]
