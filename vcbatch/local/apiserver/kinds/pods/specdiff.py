"""The difference between two pod specs as Kubernetes prints it when it refuses an update."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator

from vcbatch.api.field_errors import escape_html
from vcbatch.api.podspec.internal import internal
from vcbatch.local.apiserver.registry import Json

_CONTEXT = 3
_EXACT_LINES = 2000
"""Up to this many lines, specs are compared as a whole, as Kubernetes does. The time grows with the square of the
number."""
_MOST_LINES = 1000
"""Of a larger spec, only the lines between the first and the last difference are compared, if they aren't more than
this."""


def _lines(spec: Json, type_name: str) -> list[str]:
    text = json.dumps(internal(spec, type_name), indent=1, ensure_ascii=False)
    return escape_html(text).split("\n")


def unified_diff(old: list[str], new: list[str]) -> Iterator[str]:
    """Hunks with three lines of context, or one line with the number of lines that are left out."""
    first = 0
    if max(len(old), len(new)) > _EXACT_LINES:
        start = _alike(old, new)
        end = _alike(old[start:][::-1], new[start:][::-1])
        first, rest = max(0, start - _CONTEXT), max(0, end - _CONTEXT)
        old, new = old[first : len(old) - rest], new[first : len(new) - rest]
        if max(len(old), len(new)) > _MOST_LINES:
            yield f"(the difference between {len(old)} and {len(new)} lines is left out)\n"
            return
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        _, from_old, _, from_new, _ = group[0]
        _, _, to_old, _, to_new = group[-1]
        yield f"@@ -{_range(first + from_old, first + to_old)} +{_range(first + from_new, first + to_new)} @@\n"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}\n" for line in old[i1:i2])
            else:
                yield from (f"-{line}\n" for line in old[i1:i2])
                yield from (f"+{line}\n" for line in new[j1:j2])


def _alike(old: list[str], new: list[str]) -> int:
    """The number of equal lines at the beginning of both."""
    return next(
        (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new))
    )


def _range(start: int, stop: int) -> str:
    """The line numbers of a hunk in a unified diff: from 1, and their count where it isn't 1."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def spec_diff(before: Json, after: Json, type_name: str = "PodSpec") -> str:
    """A unified diff of the internal forms with three lines of context, without file names."""
    return "".join(unified_diff(_lines(before, type_name), _lines(after, type_name)))
