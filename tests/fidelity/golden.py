"""Keeps the answers of the real server, and compares others with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden"
ANY = "~"
"""Stands where two recordings differed: equals everything."""

Answers = Sequence[tuple[str, Any]]
"""What was asked, and the normalised answer, in order."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two answers differ (`body.metadata.labels`), and what is there."""

    path: str
    want: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.path}:\n    want {_short(self.want)}\n    got  {_short(self.got)}"


class _Missing:
    def __repr__(self) -> str:
        return "(nothing)"


MISSING = _Missing()


def _short(value: Any) -> str:
    text = repr(value) if value is MISSING else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) < 1500 else text[:1500] + " …"


def write(path: Path, answers: Answers) -> None:
    """One answer a line, so that a change shows as one."""
    lines = [
        json.dumps({"ask": ask, "answer": answer}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        for ask, answer in answers
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def read(path: Path) -> Answers:
    """What `write` kept. Raises OSError where nothing was recorded yet."""
    return [(item["ask"], item["answer"]) for item in json.loads(path.read_text(encoding="utf-8"))]


def joined(first: Answers, second: Answers) -> Answers:
    """Two recordings of the same requests as one: `ANY` where they differ. Raises ValueError for other requests."""
    if [ask for ask, _ in first] != [ask for ask, _ in second]:
        raise ValueError("the recordings are of different requests")
    return [(ask, _join(left, right)) for (ask, left), (_, right) in zip(first, second, strict=True)]


def _join(left: Any, right: Any) -> Any:
    if isinstance(left, dict) and isinstance(right, dict):
        return {key: _join(left.get(key, MISSING), right.get(key, MISSING)) for key in sorted({*left, *right})}
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [_join(*pair) for pair in zip(left, right, strict=True)]
    return left if left == right and type(left) is type(right) else ANY


def differences(want: Any, got: Any, path: str = "") -> list[Difference]:
    """All the places where `got` isn't as wanted; empty for alike."""
    if want == ANY:
        return []
    if isinstance(want, dict) and isinstance(got, dict):
        found: list[Difference] = []
        for key in sorted({*want, *got}):
            inner = f"{path}.{key}" if path else key
            found += differences(want.get(key, MISSING), got.get(key, MISSING), inner)
        return found
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [
            difference
            for index, pair in enumerate(zip(want, got, strict=True))
            for difference in differences(*pair, f"{path}.{index}")
        ]
    if want == got and type(want) is type(got):
        return []
    return [Difference(path, want, got)]


def unexplained(found: Sequence[Difference], differs: Mapping[str, Sequence[str]]) -> list[str]:
    """What fails a test: differences that `differs` (reason to paths, "" for anywhere) doesn't cover, and paths in it
    under which nothing differs."""
    places = [place for paths in differs.values() for place in paths]
    errors = [str(difference) for difference in found if not any(_below(difference.path, place) for place in places)]
    errors += [
        f"listed as different, but alike: {place or 'the answer'}"
        for place in places
        if not any(_below(difference.path, place) for difference in found)
    ]
    return errors


def _below(path: str, place: str) -> bool:
    return not place or path == place or path.startswith(f"{place}.")
