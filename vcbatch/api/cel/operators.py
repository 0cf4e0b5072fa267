"""Operators, conversions, times and optional values of expressions.

Source: cel-go `common/stdlib`.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# Values of expressions have any type; what has the wrong one raises TypeError, which ends the expression.

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from vcbatch.api.cel.evaluate import Budget, Function
from vcbatch.api.cel.support import INT64, UINT64, has, plain, same, weight, whole
from vcbatch.api.cel.values import (
    NONE,
    CelError,
    Optional,
    TypeName,
    UInt,
    is_number,
    less,
    no_overload,
    shown,
    type_of,
)


def _kind(left: Any, right: Any) -> type:
    """The common type of two numbers. Raises `CelError`."""
    kinds = {UInt if isinstance(value, UInt) else type(value) for value in (left, right)}
    if len(kinds) != 1 or not is_number(left):
        raise no_overload()
    return kinds.pop()


def add(budget: Budget, values: Sequence[Any]) -> Any:
    left, right = values
    if _are_sequences(left, right):
        budget.spend(weight(left) + weight(right))
        return left + right
    if _are_times(left, right):
        return _moment(lambda: left + right)
    return left + right if _kind(left, right) is float else whole(left + right, left)


def _are_sequences(left: Any, right: Any) -> bool:
    return isinstance(left, (str, bytes, list)) and type(left) is type(right)


def _are_times(left: Any, right: Any) -> bool:
    return isinstance(left, (datetime, timedelta)) and isinstance(right, (datetime, timedelta))


def _moment(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except OverflowError:
        raise CelError("timestamp overflow") from None


def _subtract(_budget: Budget, values: Sequence[Any]) -> Any:
    left, right = values
    if _are_times(left, right):
        return _moment(lambda: left - right)
    return left - right if _kind(left, right) is float else whole(left - right, left)


def _multiply(_budget: Budget, values: Sequence[Any]) -> Any:
    left, right = values
    return left * right if _kind(left, right) is float else whole(left * right, left)


def _divide(_budget: Budget, values: Sequence[Any]) -> Any:
    left, right = values
    if _kind(left, right) is float:
        if right:
            return left / right
        return math.nan if not left or left != left else math.copysign(math.inf, left) * math.copysign(1, right)
    if not right:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return whole(quotient if (left < 0) == (right < 0) else -quotient, left)


def _remainder(_budget: Budget, values: Sequence[Any]) -> Any:
    left, right = values
    if _kind(left, right) is float:
        raise no_overload()
    if not right:
        raise CelError("modulus by zero")
    rest = abs(left) % abs(right)
    return whole(-rest if left < 0 else rest, left)


def _negate(_budget: Budget, values: Sequence[Any]) -> Any:
    (value,) = values
    if isinstance(value, UInt) or not is_number(value):
        raise no_overload()
    return -value if isinstance(value, float) else whole(-value, value)


def _not(_budget: Budget, values: Sequence[Any]) -> bool:
    (value,) = values
    if not isinstance(value, bool):
        raise no_overload()
    return not value


def _ordered(decide: Callable[[Any, Any], bool]) -> Function:
    def call(budget: Budget, values: Sequence[Any]) -> bool:
        left, right = values
        if isinstance(left, (str, bytes)) and isinstance(right, (str, bytes)):
            budget.spend(min(weight(left), weight(right)))
        return decide(left, right)

    return call


def _in(budget: Budget, values: Sequence[Any]) -> bool:
    value, items = values
    if isinstance(items, dict):
        return isinstance(value, (str, int, float)) and value in items
    if not isinstance(items, list):
        raise no_overload()
    return has(budget, items, value)


def _int(value: Any) -> int:
    match value:
        case bool():
            raise no_overload()
        case int():
            return whole(int(value), 0)
        case float():
            if not -INT64 < value < INT64:
                raise CelError("integer overflow")
            return int(value)
        case str() if re.fullmatch(r"[+-]?\d{1,19}", value, re.ASCII):
            return whole(int(value), 0)
        case datetime():
            return int(value.timestamp())
        case str():
            raise CelError(f'strconv.ParseInt: parsing "{value[:100]}": invalid syntax')
        case _:
            raise no_overload()


def _uint(value: Any) -> UInt:
    match value:
        case bool():
            raise no_overload()
        case int() | float():
            if not 0 <= value < UINT64:
                raise CelError("unsigned integer overflow")
            return UInt(value)
        case str() if re.fullmatch(r"\d{1,20}", value, re.ASCII) and int(value) < UINT64:
            return UInt(value)
        case str():
            raise CelError(f'strconv.ParseUint: parsing "{value[:100]}": invalid syntax')
        case _:
            raise no_overload()


def double(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value.strip() if value.strip() == value and "_" not in value else "x")
        except ValueError:
            raise CelError(f'strconv.ParseFloat: parsing "{value[:100]}": invalid syntax') from None
    if not is_number(value):
        raise no_overload()
    return float(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in ("1", "t", "T", "true", "TRUE", "True"):
            return True
        if value in ("0", "f", "F", "false", "FALSE", "False"):
            return False
        raise CelError(f'strconv.ParseBool: parsing "{value[:100]}": invalid syntax')
    raise no_overload()


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode(errors="surrogatepass")


_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


def _timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return _moment(lambda: datetime.fromtimestamp(value, UTC))
    if not isinstance(value, str):
        raise no_overload()
    if not _STAMP.fullmatch(value):
        raise CelError(f'parsing time "{value[:100]}" as RFC 3339: cannot parse')
    return datetime.fromisoformat(value)


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9})(h|ms|us|µs|ns|m|s)", re.ASCII)
_DURATION = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)", re.ASCII)


def duration(value: Any) -> timedelta:
    """The duration, parsed as by Go's `time.ParseDuration`. Raises `CelError`."""
    if isinstance(value, timedelta):
        return value
    if len(value) > 100 or not _DURATION.fullmatch(value):
        raise CelError(f'time: invalid duration "{value[:100]}"')
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))
    return timedelta(seconds=-seconds if value.startswith("-") else seconds)


def _size(value: Any) -> int:
    if not isinstance(value, (str, bytes, list, dict)):
        raise no_overload()
    return len(value)


def _at(moment: datetime, zone: str | None) -> datetime:
    if zone is None or zone == "UTC":
        return moment.astimezone(UTC)
    if match := re.fullmatch(r"([+-]?)(\d\d):(\d\d)", zone):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return moment.astimezone(UTC) + (-offset if match[1] == "-" else offset)
    try:
        if len(zone) > 64:
            raise ValueError(zone)
        return moment.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {zone[:64]}") from None


def _part(of_moment: Callable[[datetime], int], of_duration: Callable[[float], int] | None = None) -> Function:
    def get(value: Any, zone: str | None = None) -> int:
        if isinstance(value, timedelta):
            if of_duration is None:
                raise no_overload()
            return of_duration(value.total_seconds())
        return of_moment(_at(value, zone))

    return plain(get)


def _or_value(value: Optional, other: Any) -> Any:
    return value.items[0] if value.items else other


def _value(value: Optional) -> Any:
    if not value.items:
        raise CelError("optional.none() dereference")
    return value.items[0]


def _zero(value: Any) -> bool:
    return value is None or (isinstance(value, (bool, int, float, str, bytes, list, dict)) and not value)


STANDARD: Mapping[str, Function] = {
    "_+_": add,
    "_-_": _subtract,
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": _remainder,
    "-_": _negate,
    "!_": _not,
    "==": lambda budget, values: same(budget, values[0], values[1]),
    "!=": lambda budget, values: not same(budget, values[0], values[1]),
    "<": _ordered(less),
    "<=": _ordered(lambda left, right: not less(right, left)),
    ">": _ordered(lambda left, right: less(right, left)),
    ">=": _ordered(lambda left, right: not less(left, right)),
    "in": _in,
    "int": plain(_int),
    "uint": plain(_uint),
    "double": plain(double),
    "string": plain(shown),
    "bool": plain(_bool),
    "bytes": plain(_bytes),
    "timestamp": plain(_timestamp),
    "duration": plain(duration),
    "type": lambda _budget, values: TypeName(type_of(*values)),
    "dyn": lambda _budget, values: values[0],
    "size": lambda _budget, values: _size(*values),
    "getFullYear": _part(lambda moment: moment.year),
    "getMonth": _part(lambda moment: moment.month - 1),
    "getDate": _part(lambda moment: moment.day),
    "getDayOfMonth": _part(lambda moment: moment.day - 1),
    "getDayOfWeek": _part(lambda moment: moment.isoweekday() % 7),
    "getDayOfYear": _part(lambda moment: moment.timetuple().tm_yday - 1),
    "getHours": _part(lambda moment: moment.hour, lambda seconds: int(seconds / 3600)),
    "getMinutes": _part(lambda moment: moment.minute, lambda seconds: int(seconds / 60)),
    "getSeconds": _part(lambda moment: moment.second, int),
    "getMilliseconds": _part(lambda moment: moment.microsecond // 1000, lambda seconds: int(seconds * 1000) % 1000),
    "optional.of": lambda _budget, values: Optional.of(*values),
    "optional.none": lambda _budget, _values: NONE,
    "optional.ofNonZeroValue": lambda _budget, values: NONE if _zero(values[0]) else Optional.of(values[0]),
    "hasValue": lambda _budget, values: bool(values[0].items),
    "value": lambda _budget, values: _value(values[0]),
    "orValue": lambda _budget, values: _or_value(values[0], values[1]),
    "or": lambda _budget, values: values[0] if values[0].items else values[1],
}
