"""Arguments of plugins and actions: declared by their readers, validated when the scheduler configuration is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Number = TypeVar("Number", int, float)

ArgumentValue: TypeAlias = bool | int | float | str
Arguments: TypeAlias = Mapping[str, Any]
"""Values by name: of an argument's own type, or what the reader of a structured argument returns."""
Structure: TypeAlias = Callable[[object, str], object]
"""Reads a list or a mapping: receives the given value (None where it isn't given, for the default) and its path,
returns the value that the plugin works with; raises `PolicyError`."""

_MOST = 2**31 - 1
"""Numbers of a larger absolute value have no meaning here, and array arithmetic fails with some of them."""
_LONGEST = 80
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def shown(value: object) -> str:
    """The given value for an error message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class PolicyErrorDetail(NamedTuple):
    """One error of a scheduler configuration: its path, a colon, the given value and the allowed ones.

    `line` and `column` count from 1, and are 0 if the position isn't known; `key` is the path of the key to point at,
    if the key is what is wrong.
    """

    text: str
    key: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.text}" if self.line else self.text


class PolicyError(ValueError):
    """The scheduler configuration can't be used: `errors` has all errors in it."""

    def __init__(self, *errors: PolicyErrorDetail | str) -> None:
        self.errors = tuple(PolicyErrorDetail(error) if isinstance(error, str) else error for error in errors)
        super().__init__("\n".join(map(str, self.errors)))


class Errors:
    """Collects errors, so that one reading reports all of them."""

    def __init__(self) -> None:
        self._found: list[PolicyErrorDetail] = []

    def add(self, text: str, *, key: str = "") -> None:
        """Add an error; see `PolicyErrorDetail`."""
        self._found.append(PolicyErrorDetail(text, key=key))

    def of(self, read: Callable[[], T], default: T) -> T:
        """What `read` returns; `default` if it raises `PolicyError`, whose errors are collected."""
        try:
            return read()
        except PolicyError as error:
            self._found += error.errors
            return default

    @property
    def found(self) -> tuple[PolicyErrorDetail, ...]:
        """The errors collected so far."""
        return tuple(self._found)

    def check(self) -> None:
        """Raises `PolicyError` if there are any errors."""
        if self._found:
            raise PolicyError(*self._found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument: its default, whose type is the argument's type, and the smallest valid value.

    `expected` is the smallest value with the obvious effect; a smaller one is accepted, as in Volcano, and `otherwise`
    says what it does.
    """

    default: ArgumentValue
    minimum: float | None = None
    expected: float | None = None
    otherwise: str = ""

    def read(self, value: object, where: str) -> ArgumentValue:
        """`value` as this argument's type, by Volcano's rules: a float may be written as an integer, a boolean as a
        string that parses as one; a float isn't accepted as an integer.

        Raises:
            PolicyError: the type is another, or the value is below the minimum or too large.
        """
        match self.default:
            case bool():
                return _boolean(value, where)
            case int():
                number = _integer(value, where)
            case float():
                number = _float(value, where)
            case str():
                if not isinstance(value, str):
                    raise PolicyError(f"{where}: must be a string, got {shown(value)}")
                return value
        if self.minimum is not None and number < self.minimum:
            raise PolicyError(f"{where}: must be at least {self.minimum:g}, got {shown(value)}")
        return number


def _boolean(value: object, where: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUE | _FALSE:
        return value in _TRUE
    raise PolicyError(f"{where}: must be true or false, got {shown(value)}")


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PolicyError(f"{where}: must be an integer, got {shown(value)}")
    return _bounded(value, where)


def _float(value: object, where: str) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not (isinstance(value, int) or isfinite(value))
    ):
        raise PolicyError(f"{where}: must be a number, got {shown(value)}")
    return float(_bounded(value, where))


def _bounded(value: Number, where: str) -> Number:
    if abs(value) > _MOST:
        raise PolicyError(f"{where}: must be a number between -{_MOST} and {_MOST}, got {shown(value)}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentSpec:
    """All arguments of a plugin or action: by name, and by prefix where the rest of the key is a name of the user's."""

    named: Mapping[str, Argument]
    prefixed: Mapping[str, Argument] = field(default_factory=dict[str, Argument])
    structured: Mapping[str, Structure] = field(default_factory=dict[str, Structure])
    """Arguments that are lists or mappings, each with its reader."""
    check: Callable[[Mapping[str, Any], str], None] | None = None
    """Raises `PolicyError` for invalid combinations of values; receives all values and their path."""

    def read(self, given: Mapping[Any, Any], where: str) -> dict[str, Any]:
        """Every named and structured argument with its value or default, and the prefixed ones that were given.

        Raises:
            PolicyError: an unknown argument, or a value of the wrong type.
        """
        errors = Errors()
        values: dict[str, Any] = {name: spec.default for name, spec in self.named.items()}
        for name, structure in self.structured.items():
            values[name] = errors.of(lambda name=name, read=structure: read(given.get(name), f"{where}.{name}"), None)
        for key, value in given.items():
            name = str(key)
            if name in self.structured:
                continue
            spec = self.named.get(name) or self._by_prefix(name)
            if spec is None:
                text = f"{where}: unknown argument {shown(name)}; allowed: {self._allowed()}"
                errors.add(text, key=f"{where}.{name}")
                continue
            values[name] = errors.of(
                lambda name=name, spec=spec, value=value: spec.read(value, f"{where}.{name}"), spec.default
            )
        errors.check()
        if self.check is not None:
            self.check(values, where)
        return values

    def doubts(self, values: Mapping[str, Any], where: str) -> list[str]:
        """Warnings about values that are accepted and have another effect than expected."""
        found: list[str] = []
        for name, value in values.items():
            spec = self.named.get(name) or self._by_prefix(name)
            if spec is not None and spec.expected is not None and value < spec.expected:
                found.append(f"{where}.{name}: should be at least {spec.expected:g}, got {value!r}, {spec.otherwise}")
        return found

    def _allowed(self) -> str:
        named = sorted([*self.named, *self.structured])
        return ", ".join([*named, *(f"{prefix}NAME" for prefix in sorted(self.prefixed))]) or "none"

    def _by_prefix(self, name: str) -> Argument | None:
        for prefix, spec in self.prefixed.items():
            if name.startswith(prefix) and len(name) > len(prefix):
                return spec
        return None


NO_ARGUMENTS = ArgumentSpec(named={})
