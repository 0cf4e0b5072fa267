"""Regular expressions of Go (`regexp/syntax`), matched in time linear in the text: a thin layer over google-re2.

google-re2 and Go read the same language but for what `_beyond_go` finds. Names of Unicode classes that only Go 1.25 and
later know, such as `\\p{Letter}`, are refused, and so are patterns whose program takes more than half a megabyte.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# The package has no types.

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

_MEMORY: Final = 512 * 1024
"""Bytes of a compiled pattern, and thereby a bound for the time of compiling it."""
_DEEPEST: Final = 240
"""Groups in each other. Go takes a tree of 1,000 nodes in each other, of which a group brings four at most: itself,
alternatives, what follows each other, and a repetition."""
_GO_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}
"""Go's words for those of google-re2."""
_TOKEN: Final = re.compile(
    r"""
    \\Q (?P<literal> .*? ) (?: \\E | $ )
    | (?P<byte> \\C )
    | \\p \{ [^}]* \} | \\P \{ [^}]* \} | \\x \{ [^}]* \}
    | \\ .
    | \[ \^? \]? (?: \[: [^\]]*? :\] | \\ . | [^\]\\] )* \]
    | \( \? P? < (?P<name> [^>]* ) >
    | [()]
    """,
    re.DOTALL | re.VERBOSE,
)


class NotInstalledError(Exception):
    """google-re2 isn't there: only the client of vcbatch works without it."""


@lru_cache(maxsize=512)
def linear_pattern(pattern: str) -> Any:
    """The compiled pattern, or a text that says why it can't be compiled, as Go does. Both are kept for the next call.

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
        compiled = re2.compile(pattern, options=options)
    except UnicodeEncodeError:
        return "invalid UTF-8"
    except re2.error as error:
        given = error.args[0] if error.args else ""
        words, colon, what = (given.decode(errors="replace") if isinstance(given, bytes) else str(given)).partition(
            ": "
        )
        return f"{_GO_WORDS.get(words, words)}{f': `{what}`' if colon else ''}"
    return next(_beyond_go(pattern), compiled)


def _beyond_go(pattern: str) -> Iterator[str]:
    """What Go refuses in a pattern that google-re2 takes."""
    depth = 0
    for token in _TOKEN.finditer(pattern):
        if token["byte"]:
            yield f"invalid escape sequence: `{token[0]}`"
        elif token["name"] is not None and not token["name"].isascii():
            yield f"invalid named capture: `{token[0]}`"
        if token[0].startswith("("):
            depth += 1
            if depth > _DEEPEST:
                yield f"expression nests too deeply: more than {_DEEPEST} groups"
        elif token[0] == ")":
            depth -= 1
