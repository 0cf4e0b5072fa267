"""Functions of expressions on lists, sets and numbers.

Source: cel-go `ext/lists.go`, `ext/sets.go`, `ext/math.go`; k8s.io/apiserver `pkg/cel/library/lists.go`.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# Values of expressions have any type; what has the wrong one raises TypeError, which ends the expression.

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any

from vcbatch.api.cel.evaluate import Budget, Function, smallest
from vcbatch.api.cel.operators import add
from vcbatch.api.cel.support import INT64, UINT64, has, plain, weight, whole
from vcbatch.api.cel.values import NONE, CelError, Optional, UInt, less, no_overload


def _sorted(budget: Budget, values: Sequence[Any]) -> list[Any]:
    (items,) = values
    budget.spend(len(items) * max(1, len(items).bit_length()))
    for item in items:
        if isinstance(item, (str, bytes)):
            budget.spend(weight(item))
    return sorted(items, key=cmp_to_key(lambda one, other: less(other, one) - less(one, other)))


def _is_sorted(budget: Budget, values: Sequence[Any]) -> bool:
    (items,) = values
    budget.spend(len(items) + sum(weight(item) for item in items if isinstance(item, (str, bytes))))
    return not any(less(after, before) for before, after in itertools.pairwise(items))


def _sum(budget: Budget, values: Sequence[Any]) -> Any:
    (items,) = values
    if not items:
        return 0
    total = items[0]
    for item in items[1:]:
        budget.spend(1)
        total = add(budget, (total, item)) if not isinstance(total, (str, bytes, list)) else _refuse_sum()
    return total


def _refuse_sum() -> Any:
    raise no_overload()


def _distinct(budget: Budget, values: Sequence[Any]) -> list[Any]:
    made: list[Any] = []
    for item in values[0]:
        if not has(budget, made, item):
            made.append(item)
    return made


def _flatten(budget: Budget, values: Sequence[Any]) -> list[Any]:
    items, *depth = values
    made: list[Any] = []
    for item in items:
        budget.spend(1)
        if isinstance(item, list) and (not depth or depth[0] > 0):
            made += (
                _flatten(budget, (item, depth[0] - 1 if depth else 0))
                if depth and depth[0] > 1
                else _walked(budget, item)
            )
        else:
            made.append(item)
    return made


def _walked(budget: Budget, items: list[Any]) -> list[Any]:
    budget.spend(len(items))
    return items


def _range(budget: Budget, values: Sequence[Any]) -> list[int]:
    (count,) = values
    budget.spend(max(0, count))
    return list(range(count))


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise CelError("index out of bounds")
    return items[start:end]


def _first(items: list[Any]) -> Optional:
    return Optional.of(items[0]) if items else NONE


def _last(items: list[Any]) -> Optional:
    return Optional.of(items[-1]) if items else NONE


def _sets(decide: Callable[[Budget, list[Any], list[Any]], bool]) -> Function:
    return lambda budget, values: decide(budget, values[0], values[1])


def _covers(budget: Budget, items: list[Any], part: list[Any]) -> bool:
    return all(has(budget, items, item) for item in part)


def _extreme(*, largest: bool) -> Function:
    def call(budget: Budget, values: Sequence[Any]) -> Any:
        items = values[0] if len(values) == 1 and isinstance(values[0], list) else list(values)
        return smallest(budget, items, largest=largest)

    return call


def _shift(left: bool) -> Callable[[int, int], int]:
    def call(value: int, by: int) -> int:
        if by < 0:
            raise CelError(f"math.bitShift{'Left' if left else 'Right'}() negative offset: {by}")
        bits = (value % UINT64) << by if left and by < 64 else 0 if by >= 64 else (value % UINT64) >> by
        bits %= UINT64
        return UInt(bits) if isinstance(value, UInt) else bits - UINT64 if bits >= INT64 else bits

    return call


def _bits(decide: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda left, right: whole(decide(left, right), left)


def _abs(value: Any) -> Any:
    return abs(value) if isinstance(value, float) else whole(abs(value), value)


def _rounded(decide: Callable[[float], float]) -> Function:
    return plain(lambda value: value if math.isinf(value) or math.isnan(value) else float(decide(value)))


LISTS: Mapping[str, Function] = {
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": _extreme(largest=False),
    "max": _extreme(largest=True),
    "sort": _sorted,
    "distinct": _distinct,
    "flatten": _flatten,
    "slice": plain(_slice),
    "first": plain(_first),
    "last": plain(_last),
    "lists.range": _range,
    "sets.contains": _sets(_covers),
    "sets.equivalent": _sets(lambda budget, one, other: _covers(budget, one, other) and _covers(budget, other, one)),
    "sets.intersects": _sets(lambda budget, one, other: any(has(budget, one, item) for item in other)),
}

NUMBERS: Mapping[str, Function] = {
    "math.greatest": _extreme(largest=True),
    "math.least": _extreme(largest=False),
    "math.abs": plain(_abs),
    "math.sign": plain(lambda value: type(value)((value > 0) - (value < 0))),
    "math.ceil": _rounded(math.ceil),
    "math.floor": _rounded(math.floor),
    "math.round": _rounded(lambda value: math.copysign(math.floor(abs(value) + 0.5), value)),
    "math.trunc": _rounded(math.trunc),
    "math.sqrt": plain(lambda value: math.sqrt(value) if value >= 0 else math.nan),
    "math.isNaN": plain(math.isnan),
    "math.isInf": plain(math.isinf),
    "math.isFinite": plain(math.isfinite),
    "math.bitAnd": plain(_bits(lambda left, right: left & right)),
    "math.bitOr": plain(_bits(lambda left, right: left | right)),
    "math.bitXor": plain(_bits(lambda left, right: left ^ right)),
    "math.bitNot": plain(lambda value: UInt(value ^ (UINT64 - 1)) if isinstance(value, UInt) else ~value),
    "math.bitShiftLeft": plain(_shift(left=True)),
    "math.bitShiftRight": plain(_shift(left=False)),
}
