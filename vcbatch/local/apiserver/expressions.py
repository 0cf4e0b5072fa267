"""The Common Expression Language as Kubernetes uses it: compiling, running, and the functions that it promises.

Expressions are parsed and run by the `common-expression-language` package. This module adds what that lacks: optional
selection (`a.?b`, `a[?i]`), Kubernetes' own functions, and the words of Kubernetes for what goes wrong.
Source: k8s.io/apiserver `pkg/cel`, KEP-2876.
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.local.apiserver.schema.patterns import regular_expression


def usable() -> bool:
    """Whether the expression library is installed."""
    try:
        import cel  # noqa: F401
    except ImportError:
        return False
    return True


class Trouble:
    """An expression that couldn't be evaluated."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def explain(self, rule: str) -> str:
        if self.text == NO_OVERLOAD:
            what = "call arguments did not match a supported operator, function or macro signature for rule"
            return f"'{self.text}': {what}: {rule}"
        return f"{self.text} evaluating rule: {rule}"


NO_OVERLOAD = "no such overload"


def fault(expression: str, declared: Collection[str]) -> str:
    """Why an expression over the `declared` variables can't be used, or "" where it can."""
    try:
        program = compiled(expression)
    except ValueError as error:
        return f"compilation failed: {error}"
    unknown = [name for name in program.variables() if not _is_bound(name, expression, declared)]
    if unknown:
        return f"compilation failed: undeclared reference to '{unknown[0]}' (in container '')"
    missing = [name for name in program.functions() if not _is_known_function(name)]
    if missing:
        return f"compilation failed: undeclared reference to '{missing[0]}' (in container '')"
    return ""


def mentions(expression: str, variable: str) -> bool:
    """Whether a compiled expression uses the variable."""
    return variable in compiled(expression).variables()


def run(expression: str, variables: Mapping[str, Any]) -> Any:
    """The value of the expression, or a `Trouble`."""
    import cel

    try:
        context = cel.Context(variables=dict(variables), functions=_used_functions(expression))
        return compiled(expression).execute(context)
    except KeyError as error:
        return Trouble(f"no such key: {error.args[0] if error.args else ''}")
    except ZeroDivisionError:
        return Trouble("division by zero")
    except TypeError:
        return Trouble(NO_OVERLOAD)
    except (ValueError, RuntimeError, IndexError, OverflowError, MalformedQuantity) as error:
        return Trouble(str(error))


@functools.lru_cache(maxsize=1024)
def _used_functions(expression: str) -> dict[str, Callable[..., Any]]:
    """Handing over all of them takes longer than most evaluations."""
    every = _functions()
    return {name: every[name] for name in compiled(expression).functions() if name in every}


@functools.lru_cache(maxsize=1024)
def compiled(expression: str) -> Any:
    """The program. Raises ValueError for what doesn't parse."""
    import cel

    return cel.compile(_with_plain_selects(expression))


# -- optional selection ---------------------------------------------------------------------------------------------

_SELECT = "optSelect"
"""The function that stands for `.?name` and `[?index]`, which the parser doesn't know."""

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
  | (?P<text>[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
  | (?P<number>\d[\w.]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<select>\.\?)
  | (?P<index>\[\?)
  | (?P<dot>\.)
  | (?P<open>[(\[{])
  | (?P<close>[)\]}])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def _with_plain_selects(expression: str) -> str:
    """`a.?b.c` and `a[?i]` as calls. What follows an optional value in a chain of selections is optional, too."""
    if ".?" not in expression and "[?" not in expression:
        return expression
    tokens = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(expression)]
    out: list[str] = []
    closing: list[tuple[str, bool]] = []
    optional, operand = False, False
    position = 0
    while position < len(tokens):
        kind, text = tokens[position]
        position += 1
        following = tokens[position] if position < len(tokens) else ("", "")
        called = position + 1 < len(tokens) and tokens[position + 1][1] == "("
        if kind == "space":
            out.append(text)
        elif kind == "select" or (kind == "dot" and optional and following[0] == "name" and not called):
            if following[0] != "name":
                raise ValueError("`.?` must be followed by the name of a field")
            out.append(f'.{_SELECT}("{following[1]}")')
            position += 1
            optional = operand = True
        elif kind == "index" or (text == "[" and optional):
            if not operand:
                raise ValueError("optional elements of lists and maps aren't supported")
            out.append(f".{_SELECT}(")
            closing.append((")", True))
            optional = operand = False
        elif kind == "open":
            out.append(text)
            closing.append(({"(": ")", "[": "]", "{": "}"}[text], False))
            optional = operand = False
        elif kind == "close":
            written, optional = closing.pop() if closing else (text, False)
            out.append(written)
            operand = True
        elif kind == "dot":
            out.append(text)
            optional = False
        else:
            if text == "?" and out and out[-1].strip()[-1:] in ("{", ","):
                raise ValueError("optional elements of lists and maps aren't supported")
            out.append(text)
            operand, optional = kind in ("name", "text", "number"), False
    return "".join(out)


def _opt_select(value: Any, key: Any) -> Any:
    import cel

    if isinstance(value, cel.OptionalValue):
        if not value.has_value():
            return value
        value = value.value()
    if isinstance(value, dict):
        return cel.OptionalValue.of(value[key]) if key in value else cel.OptionalValue.none()
    if isinstance(value, list) and isinstance(key, int):
        return cel.OptionalValue.of(value[key]) if 0 <= key < len(value) else cel.OptionalValue.none()
    raise TypeError(NO_OVERLOAD)


# -- names ----------------------------------------------------------------------------------------------------------


def _is_bound(name: str, expression: str, declared: Collection[str]) -> bool:
    if name in declared or name in _NAMESPACES or name in _TYPE_NAMES:
        return True
    # A variable of a macro such as all(x, …): bound wherever a macro introduces it.
    return re.search(rf"\(\s*(\w+\s*,\s*)?{re.escape(name)}\s*,", expression) is not None


_NAMESPACES = frozenset({"math", "sets", "strings", "base64", "lists", "optional", "format"})
_TYPE_NAMES = frozenset({"int", "uint", "double", "bool", "string", "bytes", "list", "map", "type", "null_type"})


def _is_known_function(name: str) -> bool:
    return not re.fullmatch(r"[A-Za-z][\w.]*", name) or name in _BUILT_IN or name in _functions()


_BUILT_IN_WORDS = (
    "size contains startsWith endsWith matches int uint double string bytes bool duration timestamp type dyn "
    "has all exists exists_one map filter getFullYear getMonth getDate getDayOfMonth getDayOfYear "
    "getDayOfWeek getHours getMinutes getSeconds getMilliseconds max min hasValue value orValue or "
    "optional.of optional.none optional.ofNonZeroValue"
)
_BUILT_IN = frozenset(_BUILT_IN_WORDS.split())

# -- functions ------------------------------------------------------------------------------------------------------


@functools.cache
def _functions() -> Mapping[str, Callable[..., Any]]:
    from cel.stdlib import STDLIB_FUNCTIONS

    own: dict[str, Callable[..., Any]] = {
        _SELECT: _opt_select,
        "isSorted": lambda items: all(a <= b for a, b in itertools.pairwise(items)),
        "sum": lambda items: sum(items[1:], start=items[0]) if items else 0,
        "indexOf": _index_of,
        "lastIndexOf": _last_index_of,
        "find": lambda text, pattern: found[0] if (found := regular_expression(pattern).search(text)) else "",
        "findAll": lambda text, pattern, limit=-1: _find_all(text, pattern, limit),
        "isIP": _is_ip,
        "isCIDR": lambda text: "/" in text and _is_network(text),
        "isURL": lambda text: bool(re.fullmatch(r"([a-zA-Z][a-zA-Z0-9+.-]*://[^\s]*|/[^\s]*)", text)),
        "quantity": _quantity,
        "isQuantity": _is_quantity,
        "isLessThan": lambda one, other: _units(one) < _units(other),
        "isGreaterThan": lambda one, other: _units(one) > _units(other),
        "compareTo": lambda one, other: (_units(one) > _units(other)) - (_units(one) < _units(other)),
        "isInteger": lambda one: _units(one) % 1000 == 0,
        "asInteger": lambda one: _units(one) // 1000,
        "asApproximateFloat": lambda one: _units(one) / 1000,
        "sign": lambda one: (_units(one) > 0) - (_units(one) < 0),
    }
    return {**STDLIB_FUNCTIONS, **own}


def _index_of(value: Any, item: Any, offset: int = 0) -> int:
    if isinstance(value, str):
        return value.find(item, offset)
    return next((index for index, one in enumerate(value) if one == item), -1)


def _last_index_of(value: Any, item: Any) -> int:
    if isinstance(value, str):
        return value.rfind(item)
    return next((index for index in range(len(value) - 1, -1, -1) if value[index] == item), -1)


def _find_all(text: str, pattern: str, limit: int) -> list[str]:
    found = [match[0] for match in regular_expression(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return True


_QUANTITY = "quantity"


def _quantity(text: str) -> dict[str, str]:
    """The library's values can't be objects of ours: a quantity travels as a map and is parsed where it is used."""
    parse_quantity(text)
    return {_QUANTITY: text}


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except MalformedQuantity:
        return False
    return True


def _units(value: dict[str, str]) -> int:
    return parse_quantity(value[_QUANTITY]).milli()
