"""Values of the Common Expression Language as Python values, with their equality and order.

null, bool, int, double, string, bytes, list, map, timestamp and duration are None, bool, int, float, str, bytes, list,
dict, datetime and timedelta; the other types are below. Quantities, IP addresses and the like are Python objects that
compare by `==`.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false
# Values of expressions have any type.

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

NO_OVERLOAD = "no such overload"
_LARGEST_DOUBLE_DIGITS = 21


class CelError(Exception):
    """The error of an expression that can't be evaluated, in the words of cel-go."""


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as a value: the result of `type()`."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing: `items` has one element, or none."""

    items: tuple[Any, ...] = ()

    @classmethod
    def of(cls, value: Any) -> Optional:
        return cls((value,))


NONE = Optional()


def type_of(value: Any) -> str:
    """The name of the value's type."""
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    return type(value).__name__.lower()


_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null_type"), (bool, "bool"), (UInt, "uint"), (int, "int"), (float, "double"), (str, "string"),
    (bytes, "bytes"), (list, "list"), (dict, "map"), (datetime, "google.protobuf.Timestamp"),
    (timedelta, "google.protobuf.Duration"), (Optional, "optional_type"), (TypeName, "type"),
)  # fmt: skip


def no_overload() -> CelError:
    return CelError(NO_OVERLOAD)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Whether two values are equal. Values of different types differ; numbers compare by value."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(key in right and equal(item, right[key]) for key, item in left.items())
    if isinstance(left, Optional) and isinstance(right, Optional):
        return len(left.items) == len(right.items) and all(map(equal, left.items, right.items))
    return bool(left == right)


def less(left: Any, right: Any) -> bool:
    """Whether `left` is less than `right`. Raises `CelError` where they have no order."""
    if (is_number(left) and is_number(right)) or (
        type(left) is type(right) and isinstance(left, (str, bytes, bool, datetime, timedelta))
    ):
        try:
            return bool(left < right)
        except TypeError:  # a time with and one without its zone
            raise no_overload() from None
    raise no_overload()


def contains(items: Iterable[Any], value: Any) -> bool:
    return any(equal(item, value) for item in items)


def shown(value: Any) -> str:
    """The result of `string()` for a scalar. Raises `CelError` for other values."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(int(value))
        case float():
            return _shown_double(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            seconds = Decimal(value // timedelta(microseconds=1)) / 1_000_000
            return f"{seconds.normalize():f}s"
        case TypeName():
            return value.name
        case _:
            if type(value).__str__ is not object.__str__ and not isinstance(value, (list, dict, Optional, type(None))):
                return str(value)
            raise no_overload()


def _shown_double(value: float) -> str:
    """The number as Go's `strconv.FormatFloat(value, 'g', -1, 64)` formats it."""
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        raise no_overload()
    text, minus = "".join(map(str, digits)), "-" if sign else ""
    power = len(text) + exponent - 1
    if -5 < power < _LARGEST_DOUBLE_DIGITS:
        return f"{Decimal(repr(value)).normalize():f}"
    mantissa = text[0] + (f".{text[1:]}" if len(text) > 1 else "")
    return f"{minus}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
