"""The file and line of an object. They are determined only for a message, since positions take as long as reading."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from vcbatch.api.yaml_reader import YamlError
from vcbatch.cli.base.output import CliError
from vcbatch.cli.files.manifests import Manifest, manifests

_LARGEST = 16 << 20
"""Maximum size in bytes of a file for which lines are determined."""


@dataclass(frozen=True, slots=True)
class Origin:
    """An object of a file; `number` counts objects from 1, with each item of a List as one."""

    path: Path
    number: int

    def __str__(self) -> str:
        return self.place()

    def place(self, field: str = "") -> str:
        """`file:line:column` of the field, such as `spec.tasks[0].name`, or of the object; the number of the object
        where the line can't be determined."""
        if str(self.path) == "-":
            return f"standard input (object {self.number})"
        found = _written(self.path)
        if 0 < self.number <= len(found):
            one = found[self.number - 1]
            return f"{self.path}:{one}" if isinstance(one, int) else one.place(field)
        return f"{self.path} (object {self.number})"


@lru_cache(maxsize=4)
def _written(path: Path) -> list[Manifest] | list[int]:
    """The objects with their lines; for JSON lines, which aren't YAML as a whole, the line numbers alone."""
    try:
        if path.stat().st_size > _LARGEST:
            return []
        return list(manifests(path))
    except YamlError:
        return _lines(path)
    except (CliError, OSError):
        return []


def _lines(path: Path) -> list[int]:
    decoder, text = json.JSONDecoder(), path.read_text(encoding="utf-8", errors="replace")
    found: list[int] = []
    at, line = 0, 1
    while True:
        start = at
        while start < len(text) and text[start].isspace():
            start += 1
        line += text.count("\n", at, start)
        if start == len(text):
            return found
        try:
            _, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return found
        found.append(line)
        line += text.count("\n", start, at)
