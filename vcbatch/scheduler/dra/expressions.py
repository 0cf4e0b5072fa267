"""Expressions by which devices are chosen (CEL), where the library for them is installed.

The expression sees `device` with `driver`, `allowMultipleAllocations`, and by domain and name `attributes` and
`capacity`. Quantities are whole thousandths and versions are marked texts in it, since the library knows no types but
its own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from vcbatch.api.quantity import MalformedQuantity, parse_quantity

MISSING = "choosing devices by expression needs the package common-expression-language"
_VERSION = "\x00semver:"
_BOUND = re.compile(r"\.(?:all|exists|exists_one|filter|map)\s*\(\s*([A-Za-z_]\w*)\s*,")
"""The names that macros give to the values of a list."""


def fault(expression: str) -> str:
    """Why an expression can't be used; empty where it can."""
    try:
        program = _compiled(expression)
    except ImportError:
        return MISSING
    except ValueError as error:
        return f"the expression {expression!r} can't be read: {str(error).splitlines()[0]}"
    known = {"device", *_BOUND.findall(expression)}
    unknown = [name for name in program.variables() if name not in known]
    return f"the expression {expression!r} names {unknown[0]!r}; it may name only device" if unknown else ""


def holds(expression: str, device: Mapping[str, Any]) -> bool:
    """Whether the device is chosen. One that lacks what the expression looks at isn't."""
    import cel

    try:
        context = cel.Context(variables={"device": dict(device)}, functions=_FUNCTIONS)
        return _compiled(expression).execute(context) is True
    except (KeyError, TypeError, ValueError, RuntimeError, IndexError, OverflowError, ZeroDivisionError):
        return False


@functools.lru_cache(maxsize=4096)
def _compiled(expression: str) -> Any:
    import cel

    return cel.compile(expression)


def quantity(text: str | float) -> int:
    """In thousandths. Raises ValueError for what is none."""
    try:
        return parse_quantity(text).milli()
    except MalformedQuantity as error:
        raise ValueError(str(error)) from error


def version(text: str) -> str:
    """A semantic version, as the expression sees it."""
    return _VERSION + text


def _order(left: Any, right: Any) -> int:
    if isinstance(left, str) and isinstance(right, str) and left.startswith(_VERSION):
        a, b = _parts(left), _parts(right)
        return (a > b) - (a < b)
    if isinstance(left, int) and isinstance(right, int):
        return (left > right) - (left < right)
    raise TypeError("no such overload")


def _parts(text: str) -> tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]:
    """A key that orders versions: a pre-release comes before its release, numbers before words in it."""
    core, dash, pre = text.removeprefix(_VERSION).partition("+")[0].partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    words = tuple((not w.isdecimal(), int(w) if w.isdecimal() else 0, w) for w in pre.split(".")) if dash else ()
    return numbers, not dash, words


def _is(parse: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def check(text: Any) -> bool:
        try:
            parse(text)
        except (ValueError, TypeError):
            return False
        return True

    return check


def _semver(text: str) -> str:
    _parts(text)
    return _VERSION + text


def _above(left: Any, right: Any) -> bool:
    return _order(left, right) > 0


def _below(left: Any, right: Any) -> bool:
    return _order(left, right) < 0


def values_of(attribute: Any) -> Sequence[Any]:
    """The values of an attribute, of which a list has several; none without one."""
    if isinstance(attribute, list):
        return cast("list[Any]", attribute)
    return () if attribute is None else (attribute,)


def _includes(values: Any, value: Any) -> bool:
    """Whether an attribute has the value, be it a list or not."""
    return any(type(one) is type(value) and one == value for one in values_of(values))


def _as_integer(amount: int) -> int:
    return amount // 1000


def _is_integer(amount: int) -> bool:
    return amount % 1000 == 0


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": quantity,
    "isQuantity": _is(quantity),
    "semver": _semver,
    "isSemver": _is(_parts),
    "compareTo": _order,
    "isGreaterThan": _above,
    "isLessThan": _below,
    "includes": _includes,
    "asInteger": _as_integer,
    "isInteger": _is_integer,
}
