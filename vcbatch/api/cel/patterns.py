"""Regular expressions of CEL: RE2, in time linear in the text."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false
# Values of expressions have any type.

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vcbatch.api.cel.evaluate import Budget
from vcbatch.api.cel.values import CelError

COMPILE_COST = 5_000
"""Of each pattern that an evaluation uses, once: about what compiling the most expensive one takes."""
_MEMORY = 512 * 1024
"""Bytes of a compiled pattern, and thereby a bound for the time of compiling it."""
MISSING = "regular expressions need the package google-re2"


def pattern_of(budget: Budget, pattern: str) -> Any:
    """The compiled pattern. Raises `CelError`."""
    if pattern not in budget.patterns:
        budget.spend(COMPILE_COST)
        budget.patterns.add(pattern)
    found = _compiled(pattern)
    if isinstance(found, str):
        raise CelError(found)
    return found


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    """The compiled pattern, or why it can't be compiled: that is kept as well."""
    try:
        import re2
    except ImportError:
        return MISSING
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        given = error.args[0] if error.args else ""
        text = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
        return f"error parsing regexp: {text}"
