"""Expressions by which devices are chosen (CEL), where the library for them is installed.

The expression sees `device` with `driver`, `allowMultipleAllocations`, and by domain and name `attributes` and
`capacity`. Quantities are whole thousandths and versions are marked texts in it, since the library knows no types but
its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from vcbatch.api.quantity import MalformedQuantity, parse_quantity

MISSING = "choosing devices by expression needs the package common-expression-language"
_VERSION = "\x00semver:"


def fault(expression: str) -> str:
    """Why an expression can't be used; empty where it can."""
    try:
        program = _compiled(expression)
    except ImportError:
        return MISSING
    except ValueError as error:
        return f"the expression {expression!r} can't be read: {str(error).splitlines()[0]}"
    unknown = [name for name in program.variables() if name != "device"]
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
    "asInteger": _as_integer,
    "isInteger": _is_integer,
}
