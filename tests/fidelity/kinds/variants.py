"""Systematic variants of an object: each of its fields missing, of a wrong type, empty, out of range, or of an unknown
value. What a server makes of them shows its decoding, its defaults and its validation, field by field."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
OBJECTS = Path(__file__).parent / "objects"

_FIXED = frozenset(["apiVersion", "kind"])
"""Fields at the top of an object that say what it is; they have tests of their own."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An object that a server takes as it stands, and where it is posted (`{ns}` stands for the namespace)."""

    name: str
    path: str
    object: Json


@dataclass(frozen=True, slots=True)
class Variant:
    """One change of a sample: which field, and what became of it."""

    label: str
    object: Json


@cache
def samples(folder: Path = OBJECTS) -> Sequence[Sample]:
    """All samples, in the order of their files."""
    return [
        Sample(entry["name"], entry["path"], entry["object"])
        for file in sorted(folder.glob("*.yaml"))
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))
    ]


def variants(sample: Sample) -> Iterator[Variant]:
    """The sample itself, then every change of every field."""
    yield Variant("as it is", sample.object)
    for path in _paths(sample.object):
        if path[0] in _FIXED:
            continue
        for word, edit in _edits(_at(sample.object, path)):
            yield Variant(f"{dotted(path)} {word}", _edited(sample.object, path, edit))


def dotted(path: tuple[str | int, ...]) -> str:
    """`spec.containers[0].name`"""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _paths(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*at, key)
        yield from _paths(item, (*at, key))


class _Drop:
    """Takes a field away."""


_DROP = _Drop()


def _edits(value: Any) -> Iterator[tuple[str, Any]]:
    yield "missing", _DROP
    match value:
        case bool():
            yield "flipped", not value
            yield "= text", "yes"
        case int():
            for number in (-1, 0, 70000):
                yield f"= {number}", number
            yield "= other", value + 1
            yield "= text", "many"
        case float():
            yield "= text", "many"
        case str():
            yield "empty", ""
            yield "= Not_Valid!", "Not_Valid!"
            yield "= long", "x" * 300
            yield "= number", 7
            yield "= other", f"{value}x"
        case list():
            yield "empty", []
            yield "= text", "text"
            if value:
                yield "repeated", [*value, copy.deepcopy(value[0])]
                yield "= [null]", [None]
        case Mapping():
            yield "empty", {}
            yield "= text", "text"
            yield "with more", {**copy.deepcopy(dict(value)), "moreThanThat": "1"}
        case _:
            pass


def changes(sample: Sample, stored: Json) -> Iterator[Variant]:
    """The stored form of a sample, once with each field of the sample missing and once with another value of its
    type; an empty object where the field isn't stored."""
    for path in _paths(sample.object):
        if path[0] in _FIXED or dotted(path) in ("metadata", "metadata.name", "metadata.generateName"):
            continue
        for word, edit in _edits(_at(sample.object, path)):
            if word in ("missing", "= other", "flipped"):
                changed = _edited(stored, path, edit) if _has(stored, path) else {}
                yield Variant(f"replaced: {dotted(path)} {word}", changed)


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        value = value[part]
    return value


def _has(value: Any, path: tuple[str | int, ...]) -> bool:
    try:
        _at(value, path)
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _edited(obj: Json, path: tuple[str | int, ...], value: Any) -> Json:
    result = copy.deepcopy(obj)
    parent = _at(result, path[:-1])
    if value is _DROP:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return result
