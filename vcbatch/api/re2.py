"""RE2 patterns (Go's `regexp`), by which HyperNodes select.

What RE2 lacks is refused, so that a pattern means the same for us as for every other reader of the object. Matching is
done by google-re2, in time linear in the text. Where that isn't installed, as with the bare client, Python's `re`
matches, which takes exponential time for some patterns: no server runs without google-re2.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from vcbatch.api.linear_patterns import NotInstalledError, linear_pattern

_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_LOOKAROUND = re.compile(r"\(\?(=|!|<=|<!|>|\(|#|P=|P>)")
_POSSESSIVE = re.compile(r"[*+?}]\+")
_LONGEST_PATTERN = 4096
_LARGEST_REPEAT = 1000


class Pattern(Protocol):
    def search(self, text: str, /) -> object | None: ...


class MalformedPattern(ValueError):
    """A pattern that RE2 refuses."""


def compile_pattern(pattern: str) -> Pattern:
    """The pattern for `search`, which matches anywhere. Raises `MalformedPattern` with a text such as Go's."""
    if len(pattern) > _LONGEST_PATTERN:
        raise MalformedPattern(f"error parsing regexp: expression too large: {len(pattern)} characters")
    _check_balance(pattern)
    bare = _without_literals(pattern)
    for refused in (_LOOKAROUND, _POSSESSIVE):
        found = refused.search(bare)
        if found:
            raise MalformedPattern(f"error parsing regexp: invalid or unsupported Perl syntax: `{found[0]}`")
    for repeat in re.finditer(r"\{(\d+)(?:,(\d*))?\}", bare):
        if any(number and int(number) > _LARGEST_REPEAT for number in repeat.groups()):
            raise MalformedPattern(f"error parsing regexp: invalid repeat count: `{repeat[0]}`")
    try:
        backtracking = re.compile(_translated(pattern), re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise MalformedPattern(f"error parsing regexp: {error}: `{pattern}`") from error
    try:
        found = linear_pattern(pattern)
    except NotInstalledError:
        return backtracking
    if isinstance(found, str):
        raise MalformedPattern(f"error parsing regexp: {found}: `{pattern}`")
    return found


def _without_literals(pattern: str) -> str:
    """The pattern with escapes and classes blanked out, so that only operators are left to look at."""
    return re.sub(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]", "x", pattern, flags=re.DOTALL)


def _check_balance(pattern: str) -> None:
    bare = _without_literals(pattern)
    if "[" in bare:
        raise MalformedPattern(f"error parsing regexp: missing closing ]: `{pattern[pattern.index('[') :]}`")
    depth = 0
    for char in bare:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            raise MalformedPattern(f"error parsing regexp: unexpected ): `{pattern}`")
    if depth:
        raise MalformedPattern(f"error parsing regexp: missing closing ): `{pattern}`")


def _translated(pattern: str) -> str:
    def escape(found: re.Match[str]) -> str:
        what = found[0]
        if what == r"\z":
            return r"\Z"
        if what[1].isdigit() and what[1] != "0":
            raise MalformedPattern(f"error parsing regexp: invalid escape sequence: `{what}`")
        if what in (r"\Z", r"\C", r"\p", r"\P", r"\Q", r"\E"):
            raise MalformedPattern(f"error parsing regexp: unsupported escape sequence: `{what}`")
        return what

    pattern = re.sub(r"\\.", escape, pattern, flags=re.DOTALL)
    pattern = re.sub(r"\[:(\w+):\]", lambda found: _CLASSES.get(found[1], found[0]), pattern)
    return re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern)
