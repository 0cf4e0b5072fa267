"""Regular expressions of Go (`regexp/syntax`), matched in time linear in the text: a thin layer over google-re2.

google-re2 and Go accept the same language except for what `_beyond_go` finds. Names of Unicode classes that only Go
1.25 and later know, such as `\\p{Letter}`, are rejected, and so are patterns whose program takes more than half a
megabyte.
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
"""The maximum size in bytes of a compiled pattern, which also bounds the time of compiling it."""
_DEEPEST: Final = 240
"""The maximum nesting of groups. Go accepts a tree of 1,000 nested nodes, of which a group has four at most: itself,
alternatives, a sequence, and a repetition."""
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
"""Go's messages for those of google-re2."""
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
    """google-re2 isn't installed: only the client of vcbatch works without it."""


@lru_cache(maxsize=512)
def linear_pattern(pattern: str) -> Any:
    """The compiled pattern, or Go's text of the reason why it can't be compiled. Both are cached.

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
    """The errors that Go reports for a pattern that google-re2 accepts."""
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
