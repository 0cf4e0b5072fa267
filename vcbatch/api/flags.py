"""Arguments of job plugins: flags in the grammar of Go's `flag` package, which Volcano's manifests use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api.names import Plugin

Value = bool | int | str

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LONGEST_SHOWN: Final = 40

PLUGIN_FLAGS: Final[dict[str, Mapping[str, Value]]] = {
    Plugin.ENV: {},
    Plugin.SVC: {"publish-not-ready-addresses": False, "disable-network-policy": False, "inject-hosts-env": True},
    Plugin.SSH: {
        "ssh-key-file-path": "/root/.ssh",
        "ssh-private-key": "",
        "ssh-public-key": "",
        "ssh-port": 22,
    },
    Plugin.PYTORCH: {
        "master": "master",
        "worker": "worker",
        "port": 23456,
        "wait-master-enabled": False,
        "wait-master-timeout": 300,
        "wait-master-image": "busybox:1.36.1",
    },
    Plugin.TENSORFLOW: {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator", "port": 2222},
    Plugin.MPI: {"master": "master", "worker": "worker", "port": 22},
    Plugin.RAY: {
        "head": "head",
        "headContainer": "head",
        "worker": "worker",
        "workerContainer": "worker",
        "port": 6379,
        "dashboardPort": 8265,
        "clientPort": 10001,
    },
    Plugin.HCCLRANK: {"master": "master", "worker": "worker"},
}
"""Every plugin's flags with their defaults; users' plugins are added when the program starts."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The values, or defaults of flags that weren't given, and the first error. As in Go, parsing ends at an error or
    at the first argument that is no flag; flags before it count. `given` are the flags that were set, `ignored` the
    arguments that weren't parsed: the one at which parsing ended, and all after it."""

    values: Mapping[str, Value]
    error: str | None = None
    given: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        return str(self.values[name])

    def number(self, name: str) -> int:
        return int(self.values[name])

    def is_set(self, name: str) -> bool:
        return bool(self.values[name])


def parse_flags(arguments: Sequence[str], defaults: Mapping[str, Value]) -> Flags:
    """Parse `-name=value`, `--name=value`, `--name value` and, for booleans, a bare `--name`."""
    values = dict(defaults)
    given: set[str] = set()
    position = start = 0

    def flags(error: str | None = None) -> Flags:
        return Flags(values, error, frozenset(given), tuple(arguments[start:]))

    while position < len(arguments):
        start = position
        argument = arguments[position]
        position += 1
        if argument == "--":
            start = position
            return flags()
        if len(argument) < 2 or argument[0] != "-":
            return flags()
        body = argument[2:] if argument.startswith("--") else argument[1:]
        name, has_value, text = body.partition("=")
        if not name or name[0] == "-":
            return flags(f"bad flag syntax: {argument[:_LONGEST_SHOWN]}")
        default = defaults.get(name)
        if default is None:
            known = ", ".join(sorted(defaults)) or "none"
            return flags(f"flag {name[:_LONGEST_SHOWN]} isn't known, want one of {known}")
        if not has_value:
            if isinstance(default, bool):
                values[name] = True
                given.add(name)
                continue
            if position == len(arguments):
                return flags(f"flag {name} needs a value")
            text = arguments[position]
            position += 1
        value = _value(text, default)
        if value is None:
            kind = "a boolean" if isinstance(default, bool) else "an integer"
            return flags(f"flag {name} is {text[:_LONGEST_SHOWN]!r}, want {kind}")
        values[name] = value
        given.add(name)
    start = position
    return flags()


def parse_bool(text: str) -> bool | None:
    """The values that Go's `strconv.ParseBool` accepts; None for all others."""
    return True if text in _TRUE else False if text in _FALSE else None


def _value(text: str, default: Value) -> Value | None:
    if isinstance(default, bool):
        return parse_bool(text)
    if isinstance(default, int):
        return _integer(text)
    return text


def _integer(text: str) -> int | None:
    """Base 10, or by prefix 0x, 0o, 0b or 0, as in Go's `strconv.ParseInt(s, 0, 64)`."""
    sign = -1 if text.startswith("-") else 1
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not digits[0].isdigit() or len(digits) > 64 or not digits.isascii():
        return None
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        digits = "0o" + digits[1:]
    try:
        number = sign * int(digits, 0)
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**63 else None
