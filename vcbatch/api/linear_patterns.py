"""Regular expressions of RE2, matched in time linear in the text: a thin layer over google-re2."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# The package has no types.

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

_MEMORY: Final = 512 * 1024
"""Bytes of a compiled pattern, and thereby a bound for the time of compiling it."""


class NotInstalledError(Exception):
    """google-re2 isn't there: only the client of vcbatch works without it."""


@lru_cache(maxsize=512)
def linear_pattern(pattern: str) -> Any:
    """The compiled pattern, or a text that says why it can't be compiled. Both are kept for the next call.

    Raises `NotInstalledError`.
    """
    try:
        import re2
    except ImportError:
        raise NotInstalledError from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        given = error.args[0] if error.args else ""
        return given.decode(errors="replace") if isinstance(given, bytes) else str(given)
