"""RE2 patterns (Go's `regexp`), with which HyperNodes select members.

Only google-re2 validates and matches them, so that a pattern means the same for vcbatch as for every other reader of
the object. Where google-re2 isn't installed, as with the bare client, Python's `re` matches the patterns that it can
parse, which takes exponential time for some: no server runs without google-re2.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from vcbatch.api.linear_patterns import NotInstalledError, linear_pattern

_LONGEST_PATTERN: Final = 4096
_LEAST_COST: Final = 100
_TOO_LARGE_COST: Final = 10_000


class Pattern(Protocol):
    def search(self, text: str, /) -> object | None: ...


class MalformedPattern(ValueError):
    """A pattern that RE2 rejects."""


def compile_pattern(pattern: str) -> Pattern:
    """The pattern for `search`, which matches anywhere. Raises `MalformedPattern` with a text such as Go's."""
    if len(pattern) > _LONGEST_PATTERN:
        raise MalformedPattern(f"error parsing regexp: expression too large: {len(pattern)} characters")
    try:
        found = linear_pattern(pattern)
    except NotInstalledError:
        return _backtracking(pattern)
    if isinstance(found, str):
        raise MalformedPattern(f"error parsing regexp: {found}")
    return found


def cost_of(compiled: Pattern | MalformedPattern) -> int:
    """The cost of compiling the pattern, or of rejecting it, in instructions of RE2 (about 1 us each)."""
    if isinstance(compiled, MalformedPattern):
        return _TOO_LARGE_COST if "too large" in str(compiled) else _LEAST_COST
    size: object = getattr(compiled, "programsize", 0)
    return _LEAST_COST + (size if isinstance(size, int) else 0)


def _backtracking(pattern: str) -> Pattern:
    translated = pattern.replace(r"\z", r"\Z")
    try:
        return re.compile(re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", translated), re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise MalformedPattern(f"error parsing regexp: {error}: `{pattern}`") from error
