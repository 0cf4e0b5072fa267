"""Regular expressions of CEL: RE2, in time linear in the text."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false
# Values of expressions have any type.

from __future__ import annotations

from typing import Any

from vcbatch.api.cel.evaluate import Budget
from vcbatch.api.cel.values import CelError
from vcbatch.api.linear_patterns import NotInstalledError, linear_pattern

COMPILE_COST = 5_000
"""The cost of each pattern that the evaluations for one request use, counted once: that of compiling the most expensive
one."""
MISSING = "regular expressions need the package google-re2"


def pattern_of(budget: Budget, pattern: str) -> Any:
    """The compiled pattern. Raises `CelError`."""
    if pattern not in budget.patterns:
        budget.spend(COMPILE_COST)
        budget.patterns.add(pattern)
    try:
        found = linear_pattern(pattern)
    except NotInstalledError:
        raise CelError(MISSING) from None
    if isinstance(found, str):
        raise CelError(f"error parsing regexp: {found}")
    return found
