"""Evaluates parsed templates as client-go `util/jsonpath/jsonpath.go` does with `AllowMissingKeys(true)`.

A missing field gives no value. An index outside of a list, a comparison of different types or a filter on anything but
a list is a `PathError`. Entries of objects are in the order of their keys, which is random in Go.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from vcbatch.api.jsonpath.nodes import (
    Field,
    Filter,
    Identifier,
    Literal,
    Node,
    Part,
    PathError,
    Recursive,
    Slice,
    Text,
    Union,
    Wildcard,
)

_DEEPEST: Final = 64
_ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_NOTHING: Final = object()
"""The value on which a range without results is evaluated, to find its end."""


class BudgetExceeded(PathError):
    """The evaluation was aborted."""


class Budget:
    """The number of values an evaluation may visit. Without it a path of n `..` needs (size of the object)^n steps."""

    __slots__ = ("_left", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise BudgetExceeded(f"the path visits more than {self._limit} values")


class Evaluation:
    """One evaluation of a template on one value."""

    def __init__(self, parts: Sequence[Part], budget: Budget) -> None:
        self._parts = parts
        self._budget = budget
        self._begun = self._inside = self._ended = 0
        self._last_end = -1

    def run(self, value: Any) -> list[list[Any]]:
        """The values that each part finds, a list for each; parts within a range once for each of its values.

        Raises `PathError`.
        """
        return self._block(0, value)

    def _block(self, start: int, value: Any) -> list[list[Any]]:
        found: list[list[Any]] = []
        at = start
        while at < len(self._parts):
            results = self._part([value], self._parts[at])
            if self._ended and self._ended <= self._inside:
                self._ended -= 1
                self._last_end = at
                break
            if not self._begun:
                found.append(results)
                at += 1
                continue
            self._begun -= 1
            self._inside += 1
            if self._inside > _DEEPEST:
                raise PathError(f"ranges are nested deeper than {_DEEPEST}")
            for one in results or [_NOTHING]:
                inner = self._block(at + 1, one)
                if results:
                    found += inner
            self._inside -= 1
            at = max(at, self._last_end) + 1
        return found

    def _part(self, values: list[Any], part: Part) -> list[Any]:
        self._budget.spend(1)
        return [part.text] if isinstance(part, Text) else self._nodes(values, part.nodes)

    def _nodes(self, values: list[Any], nodes: Sequence[Node]) -> list[Any]:
        for node in nodes:
            values = self._node(values, node)
            self._budget.spend(1 + len(values))
        return values

    def _node(self, values: list[Any], node: Node) -> list[Any]:
        match node:
            case Text(text):
                return [text]
            case Literal(value):
                return [value] * len(values)
            case Field(name):
                return [_object(one)[name] for one in values if isinstance(one, dict) and name in one]
            case Wildcard():
                return [child for one in values for child in self._children(one)]
            case Recursive():
                return self._recursive(values)
            case Union(members):
                return [one for member in members for one in self._nodes(values, member)]
            case Slice():
                return _sliced(values, node)
            case Filter():
                return self._filtered(values, node)
            case Identifier(name):
                return self._identifier(values, name)

    def _identifier(self, values: list[Any], name: str) -> list[Any]:
        if name == "range":
            self._begun += 1
            return values
        if name == "end":
            if not self._inside:
                raise PathError("not in range, nothing to end")
            self._ended += 1
            return []
        raise PathError(f"unrecognized identifier {name}")

    def _children(self, value: Any) -> list[Any]:
        """The elements of a value; for a text its bytes, as in Go."""
        match value:
            case dict():
                fields = _object(cast("object", value))
                children = [fields[key] for key in sorted(fields)]
            case list():
                children = cast("list[Any]", value)
            case str():
                self._budget.spend(len(value))
                children = list[Any](value.encode(errors="replace"))
            case _:
                return []
        self._budget.spend(len(children))
        return children

    def _recursive(self, values: list[Any]) -> list[Any]:
        """All values that have contents, each before its contents."""
        found: list[Any] = []
        waiting = values[::-1]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                if one:
                    self._budget.spend(1)
                    found.append(one)
            elif children := self._children(one):
                found.append(one)
                waiting.extend(reversed(children))
        return found

    def _filtered(self, values: list[Any], node: Filter) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if not isinstance(value, list):
                raise PathError(f"{_type(value)} is not array or slice and cannot be filtered")
            found += [item for item in cast("list[Any]", value) if self._passes(item, node)]
        return found

    def _passes(self, item: Any, node: Filter) -> bool:
        if not node.operator:
            return self._exists(item, node.left)
        sides: list[Any] = []
        for nodes in (node.left, node.right):
            found = self._nodes([item], nodes)
            if not found:
                return False
            if len(found) > 1:
                raise PathError("can only compare one element at a time")
            sides += found
        return _holds(sides[0], node.operator, sides[1])

    def _exists(self, item: Any, nodes: Sequence[Node]) -> bool:
        """Whether there is any value at the path. Where a step doesn't apply, Go uses the value that the step was
        applied to."""
        values = [item]
        for node in nodes:
            try:
                found = self._node(values, node)
            except BudgetExceeded:
                raise
            except PathError:
                return bool(values) and node != Identifier("end")
            values = found
            self._budget.spend(1 + len(values))
        return bool(values)


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value)


def _sliced(values: list[Any], node: Slice) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value is None:
            continue
        if not isinstance(value, list):
            raise PathError(f"{_type(value)} is not array or slice")
        items = cast("list[Any]", value)
        size = len(items)
        first = 0 if node.first is None else node.first
        last = size if node.last is None else node.last
        if first < 0:
            first += size
        if last < 0 or (last == 0 and node.derived):
            last += size
        if first == last:
            return found
        if not 0 <= first < size:
            raise PathError(f"array index out of bounds: index {first}, length {size}")
        if not 0 <= last <= size:
            raise PathError(f"array index out of bounds: index {last - 1}, length {size}")
        if first > last:
            raise PathError(f"starting index {first} is greater than ending index {last}")
        if node.step is not None and node.step <= 0:
            raise PathError("step must be > 0")
        found += items[first : last : node.step or 1]
    return found


def _holds(left: Any, comparison: str, right: Any) -> bool:
    kind = _type(left)
    if comparison not in ("==", "!=") and comparison not in _ORDERED:
        raise PathError(f"unrecognized filter operator {comparison}")
    for one in (left, right):
        if _type(one) not in _COMPARABLE:
            raise PathError("invalid type for comparison")
    if kind != _type(right):
        raise PathError("incompatible types for comparison")
    if comparison in _ORDERED:
        if kind == "bool":
            raise PathError("invalid type for comparison")
        return _ORDERED[comparison](left, right)
    return (left == right) is (comparison == "==")


_COMPARABLE: Final = frozenset({"bool", "int64", "float64", "string"})


def _type(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case _:
            return "<nil>"
