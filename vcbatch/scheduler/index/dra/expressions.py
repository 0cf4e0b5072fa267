"""CEL expressions that select devices.

The expression has the variable `device` with `driver`, `allowMultipleAllocations`, and by domain and name `attributes`
and `capacity`. Quantities are integers in thousandths and versions are marked strings in it. The cost of an evaluation
is bounded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from vcbatch.api import cel
from vcbatch.api.cel.evaluate import Function
from vcbatch.api.cel.functions import EVERYTHING
from vcbatch.api.cel.support import plain
from vcbatch.api.quantity import MalformedQuantity, parse_quantity

_LONGEST = 10 * 1024
_MOST_COST = 1_000_000
"""Of one evaluation. Source of both: k8s.io/api `resource/v1`, CELSelectorExpressionMaxLength and MaxCost."""
_VERSION = "\x00semver:"


def error(expression: str) -> str:
    """Why an expression can't be used; empty if it can."""
    if len(expression) > _LONGEST:
        return f"the expression has {len(expression)} characters; it may have {_LONGEST}"
    try:
        program = _compiled(expression)
    except cel.CelSyntaxError as error:
        return f"the expression {expression!r} can't be read: {error}"
    unknown = sorted(program.variables - {"device"})
    if unknown:
        return f"the expression {expression!r} names {unknown[0]!r}; it may name only device"
    if program.unknown_functions:
        return f"the expression {expression!r} calls {program.unknown_functions[0]!r}, which is no function of it"
    return ""


def holds(expression: str, device: Mapping[str, Any]) -> bool:
    """Whether the expression selects the device. A device without a field that the expression reads isn't selected, nor
    one for which the evaluation exceeds its cost."""
    try:
        return _compiled(expression).run({"device": device}, cel.Budget(_MOST_COST)) is True
    except (cel.CelError, cel.CelSyntaxError):
        return False


@functools.lru_cache(maxsize=4096)
def _compiled(expression: str) -> cel.Program:
    return cel.Program(expression, _FUNCTIONS)


def quantity(text: str | float) -> int:
    """The quantity in thousandths. Raises ValueError if it is invalid."""
    try:
        return parse_quantity(text).milli()
    except MalformedQuantity as error:
        raise ValueError(str(error)) from error


def version(text: str) -> str:
    """A semantic version, in the form that expressions use."""
    return _VERSION + text


def _order(left: Any, right: Any) -> int:
    if isinstance(left, str) and isinstance(right, str) and left.startswith(_VERSION):
        a, b = _parts(left), _parts(right)
        return (a > b) - (a < b)
    if isinstance(left, int) and isinstance(right, int):
        return (left > right) - (left < right)
    raise TypeError("no such overload")


def _parts(text: str) -> tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]:
    """A key that orders versions: a pre-release precedes its release, and numbers precede words in it."""
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
    """The values of an attribute, of which a list has several; empty without one."""
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


_FUNCTIONS: Mapping[str, Function] = {
    **EVERYTHING,
    "quantity": plain(quantity),
    "isQuantity": plain(_is(quantity)),
    "semver": plain(_semver),
    "isSemver": plain(_is(_parts)),
    "compareTo": plain(_order),
    "isGreaterThan": plain(_above),
    "isLessThan": plain(_below),
    "includes": plain(_includes),
    "asInteger": plain(_as_integer),
    "isInteger": plain(_is_integer),
}
