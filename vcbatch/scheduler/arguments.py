"""Arguments of plugins and actions: declared by who reads them, checked when the policy is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

ArgumentValue: TypeAlias = bool | int | float | str
Arguments = Mapping[str, ArgumentValue]

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class PolicyError(ValueError):
    """The policy can't be used: says where, what was given and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument: its default, whose type is the argument's type, and the smallest value that makes sense."""

    default: ArgumentValue
    minimum: float | None = None

    def read(self, value: object, where: str) -> ArgumentValue:
        """`value` as this argument's type, by Volcano's rules: a float may be written as an integer, a boolean as a
        string that reads as one; an integer is never a float.

        Raises:
            PolicyError: the type is another, or the value is below the minimum.
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
                    raise PolicyError(f"{where}: must be a string, got {value!r}")
                return value
        if self.minimum is not None and number < self.minimum:
            raise PolicyError(f"{where}: must be at least {self.minimum:g}, got {value!r}")
        return number


def _boolean(value: object, where: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUE | _FALSE:
        return value in _TRUE
    raise PolicyError(f"{where}: must be true or false, got {value!r}")


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PolicyError(f"{where}: must be an integer, got {value!r}")
    return value


def _float(value: object, where: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise PolicyError(f"{where}: must be a number, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentSpec:
    """All arguments somebody reads: by name, and by prefix where the rest of the key is a name of the user's."""

    named: Mapping[str, Argument]
    prefixed: Mapping[str, Argument]

    def read(self, given: Mapping[Any, Any], where: str) -> dict[str, ArgumentValue]:
        """Every named argument with its value or default, and the prefixed ones that were given.

        Raises:
            PolicyError: an argument that nobody reads, or a value of the wrong type.
        """
        values: dict[str, ArgumentValue] = {name: spec.default for name, spec in self.named.items()}
        for key, value in given.items():
            name = str(key)
            spec = self.named.get(name) or self._by_prefix(name)
            if spec is None:
                allowed = ", ".join([*sorted(self.named), *(f"{p}NAME" for p in sorted(self.prefixed))]) or "none"
                raise PolicyError(f"{where}: unknown argument {name!r}; allowed: {allowed}")
            values[name] = spec.read(value, f"{where}.{name}")
        return values

    def _by_prefix(self, name: str) -> Argument | None:
        for prefix, spec in self.prefixed.items():
            if name.startswith(prefix) and len(name) > len(prefix):
                return spec
        return None


NO_ARGUMENTS = ArgumentSpec(named={}, prefixed={})
