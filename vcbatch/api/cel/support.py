"""Helpers of functions of expressions: their costs, comparison with costs, and integers."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# Values of expressions have any type; what has the wrong one raises TypeError, which ends the expression.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vcbatch.api.cel.evaluate import Budget, Function
from vcbatch.api.cel.values import CelError, Optional, UInt

INT64, UINT64 = 2**63, 2**64


def whole(value: int, like: int) -> int:
    """The value as an integer of the type of `like`. Raises `CelError` where it doesn't fit."""
    if isinstance(like, UInt):
        if not 0 <= value < UINT64:
            raise CelError("unsigned integer overflow")
        return UInt(value)
    if not -INT64 <= value < INT64:
        raise CelError("integer overflow")
    return value


def weight(text: str | bytes | list[Any] | dict[Any, Any]) -> int:
    """The cost of traversing a value once: a tenth of a text's length, or the number of elements."""
    return (len(text) + 9) // 10 if isinstance(text, (str, bytes)) else len(text)


def plain(function: Callable[..., Any]) -> Function:
    """A Python function whose cost is a traversal of each of its arguments."""

    def call(budget: Budget, values: Sequence[Any]) -> Any:
        for value in values:
            if isinstance(value, (str, bytes, list, dict)):
                budget.spend(weight(value))
        return function(*values)

    return call


def same(budget: Budget, left: Any, right: Any) -> bool:
    """`values.equal`, with its cost taken from the budget."""
    if isinstance(left, (list, dict)) and type(left) is type(right) and len(left) == len(right):
        budget.spend(len(left))
        if isinstance(left, list):
            return all(same(budget, one, other) for one, other in zip(left, right, strict=True))
        return all(key in right and same(budget, item, right[key]) for key, item in left.items())
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (str, bytes)) and isinstance(right, (str, bytes)):
        budget.spend(min(weight(left), weight(right)))
    if isinstance(left, Optional) and isinstance(right, Optional):
        return len(left.items) == len(right.items) and all(
            same(budget, one, other) for one, other in zip(left.items, right.items, strict=True)
        )
    return bool(left == right)


def has(budget: Budget, items: Sequence[Any], value: Any) -> bool:
    for item in items:
        budget.spend(1)
        if same(budget, item, value):
            return True
    return False
