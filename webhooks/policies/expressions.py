"""Pieces of the Common Expression Language that several policies are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """`holds` is an expression that is true of what is fine; `message` what is said of the rest."""

    holds: str
    message: str


def text(value: str) -> str:
    """A string literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def listed(values: Iterable[str]) -> str:
    """A list literal of strings."""
    return f"[{', '.join(text(value) for value in values)}]"


LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
QUALIFIED: Final = "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
DURATION: Final = r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
FLOAT: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def matches(value: str, pattern: str, *, longest: int = 0) -> str:
    """`value` looks like the pattern, and has at most so many characters."""
    matched = f"{value}.matches({text(pattern)})"
    return f"({value}.size() <= {longest} && {matched})" if longest else matched


def annotation(name: str, of: str = "object") -> str:
    """The annotation as an optional value."""
    return f"{of}.metadata.?annotations[?{text(name)}]"


UNCHANGED: Final = "(oldObject != null && object.?spec == oldObject.?spec)"
"""What was stored under other rules may have its labels changed."""
