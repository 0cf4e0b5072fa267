"""Regular expressions of CEL: RE2, in time linear in the text."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false
# Values of expressions have any type.

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vcbatch.api.cel.values import CelError

MISSING = "regular expressions need the package google-re2"


@lru_cache(maxsize=512)
def pattern_of(pattern: str) -> Any:
    """The compiled pattern. Raises `CelError`."""
    try:
        import re2
    except ImportError:
        raise CelError(MISSING) from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        given = error.args[0] if error.args else ""
        text = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
        raise CelError(f"error parsing regexp: {text}") from None
