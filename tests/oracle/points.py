"""Scores of a node, each from 0 to 100, by its capacity, its usage and the requests of a pod."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tests.oracle.model import Amounts

CPU_AND_MEMORY = ("cpu", "memory")
GPU = "nvidia.com/gpu"


def least(alloc: Amounts, asked: Amounts) -> float:
    """LeastAllocated: the emptier the better. `asked` is the sum of all pods there, with default requests."""
    return _mean(alloc, lambda name: max(alloc[name] - asked[name], 0.0))


def most(alloc: Amounts, asked: Amounts) -> float:
    """MostAllocated: the fuller the better."""
    return _mean(alloc, lambda name: min(asked[name], alloc[name]))


def _mean(alloc: Amounts, amount: Callable[[str], float]) -> float:
    points = [math.floor(amount(n) * 100.0 / alloc[n]) for n in CPU_AND_MEMORY if alloc.get(n, 0.0) > 0]
    return sum(points) // len(points) if points else 0


def balanced(alloc: Amounts, used: Amounts, request: Amounts) -> float:
    """How much more balanced the usage of resources is with the pod."""
    if not any(request.get(n, 0.0) > 0 for n in (*CPU_AND_MEMORY, GPU)):
        return 0
    counted = (*CPU_AND_MEMORY, GPU) if request.get(GPU, 0.0) > 0 else CPU_AND_MEMORY
    names = [n for n in counted if alloc.get(n, 0.0) > 0]
    before = _evenness([min(used.get(n, 0.0) / alloc[n], 1.0) for n in names])
    after = _evenness([min((used.get(n, 0.0) + request.get(n, 0.0)) / alloc[n], 1.0) for n in names])
    return 50 + math.floor((50 + after - before) / 2)


def _evenness(fractions: Sequence[float]) -> float:
    if len(fractions) < 2:
        return 100.0
    if len(fractions) == 2:
        return math.floor((1.0 - abs(fractions[0] - fractions[1]) / 2.0) * 100.0)
    mean = sum(fractions) / len(fractions)
    variance = sum((f - mean) ** 2 for f in fractions) / len(fractions)
    return math.floor((1.0 - math.sqrt(variance)) * 100.0)


def packed(alloc: Amounts, used: Amounts, request: Amounts, weights: Mapping[str, float], *, weight: float) -> float:
    """binpack: the fuller the better, for the requested resources."""
    return fit(alloc, used, request, {n: ("MostAllocated", w) for n, w in weights.items()}, weight=weight)


def fit(
    alloc: Amounts, used: Amounts, request: Amounts, strategies: Mapping[str, tuple[str, float]], *, weight: float
) -> float:
    """resource-strategy-fit: for each requested resource, the fuller or the emptier the better."""
    asked = {name: rule for name, rule in strategies.items() if request.get(name, 0.0) > 0 and rule[1] > 0}
    if not asked:
        return 0.0
    total = 0.0
    for name, (strategy, counts) in asked.items():
        there, filled = alloc.get(name, 0.0), used.get(name, 0.0) + request[name]
        if there > 0 and filled > there:
            return 0.0
        if there > 0:
            total += counts * ((filled if strategy == "MostAllocated" else there - filled) / there)
    return 100.0 * weight * total / sum(counts for _, counts in asked.values())


def fewest(raw: Sequence[float]) -> list[float]:
    """100 points for a count of zero, 0 for the highest count."""
    highest = max(raw)
    return [100.0 - math.floor(100.0 * count / highest) if highest else 100.0 for count in raw]
