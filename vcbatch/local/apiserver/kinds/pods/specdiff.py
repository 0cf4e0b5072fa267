"""The difference between two pod specs as Kubernetes prints it when it refuses an update."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator

from vcbatch.api.faults import escape_html
from vcbatch.api.podspec.internal import internal
from vcbatch.local.apiserver.registry import Json


def _lines(spec: Json, type_name: str) -> list[str]:
    text = json.dumps(internal(spec, type_name), indent=1, ensure_ascii=False)
    return escape_html(text).split("\n")


_MOST_LINES = 1000
"""Of a spec whose difference is looked for: that takes time with the square of them."""


def _hunks(before: Json, after: Json, type_name: str) -> Iterator[str]:
    old, new = _lines(before, type_name), _lines(after, type_name)
    if max(len(old), len(new)) > _MOST_LINES:
        yield f"(the difference between specs of {len(old)} and {len(new)} lines is left out)\n"
        return
    for line in difflib.unified_diff(old, new, lineterm="", n=3):
        if not line.startswith(("--- ", "+++ ")):
            yield line + "\n"


def spec_diff(before: Json, after: Json, type_name: str = "PodSpec") -> str:
    """A unified diff of the internal forms with three lines of context, without file names."""
    return "".join(_hunks(before, after, type_name))
