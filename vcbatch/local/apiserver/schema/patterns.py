"""User-defined patterns, matched by RE2: the language of Go's `regexp`, in time linear in the text.

With a backtracking engine, one pattern of a definition (`(a+)+$`) could block the whole server.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

# Where RE2's C++ messages differ from Go's, which clients of Kubernetes know.
_GO_WORDS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
}


class PatternError(ValueError):
    """An invalid pattern, with Go's message."""


@lru_cache(maxsize=1024)
def regular_expression(pattern: str) -> Any:
    """The compiled pattern, with `search` and `finditer` as of `re.Pattern`. Raises `PatternError`."""
    try:
        return re2.compile(pattern, options=_OPTIONS)
    except re2.error as error:
        raise PatternError(_go_text(error)) from None


def _go_text(error: Exception) -> str:
    given = error.args[0] if error.args else ""
    text = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
    words, separator, rest = text.partition(": ")
    shown = f": `{rest}`" if separator else ""
    return f"error parsing regexp: {_GO_WORDS.get(words, words)}{shown}"
