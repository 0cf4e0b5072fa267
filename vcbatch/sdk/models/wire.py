"""Lossless models: known fields of a manifest are typed, the rest is kept unchanged.

A model declares the path in its manifest of each of its fields. Reading removes from the manifest the values that
fields represent exactly; the rest is `extra`. Writing puts the fields back over `extra`. So an unknown key, an explicit
null, an empty list and even a value of a wrong type are written unchanged, and a changed field changes nothing else.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from itertools import pairwise
from typing import Any, Generic, Self, TypeVar, cast

T = TypeVar("T")
Json = dict[str, Any]
Quantity = str | int | float
"""A quantity as Kubernetes writes it: `500m`, `4Gi`, 8."""


class Unreadable(Exception):
    """A value that the field can't represent: it stays in `extra`."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """Reads a JSON value, or raises `Unreadable`, and writes it."""

    read: Callable[[Any], T]
    write: Callable[[T], Any]
    many: bool = False
    """Whether its values are lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """The path of a field in the manifest. A value equal to `absent` isn't written."""

    path: tuple[str | int, ...]
    codec: Codec[Any]
    absent: Any = None


_KEY = "vcbatch"


def at(*path: str | int, codec: Codec[Any], absent: Any = None) -> dict[str, At]:
    """The metadata of a dataclass field with this path."""
    return {_KEY: At(path=path, codec=codec, absent=absent)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The base of the models. `extra` is the part of the manifest without fields: it is part of the object too, and a
    field with the same path has precedence."""

    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Return the model of a manifest. Any manifest is accepted; values that a field can't represent are kept in
        `extra`."""
        rest = copy.deepcopy(dict(manifest))
        values: dict[str, Any] = {}
        for name, place in _places(cls):
            values[name] = _take(rest, place)
        return cls(extra=rest, **values)

    def to_manifest(self) -> Json:
        """Return the manifest, which shares no object with the model."""
        manifest = copy.deepcopy(dict(self.extra))
        for name, place in _places(type(self)):
            value = getattr(self, name)
            if not _same(value, place.absent):
                _put(manifest, place.path, place.codec.write(value))
        return manifest

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields. Raises `TypeError` for an unknown field."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def _shown(self) -> list[str]:
        """The fields that differ from their defaults."""
        return [
            f"{item.name}={getattr(self, item.name)!r}"
            for item in fields(self)
            if item.repr and not _is_default(item, getattr(self, item.name))
        ]

    def __post_init__(self) -> None:
        for name, place in _places(type(self)):
            value = getattr(self, name)
            if place.codec.many and not isinstance(value, list | tuple):
                # A string would be taken as the list of its characters.
                raise TypeError(f"{type(self).__name__}({name}=...): want a list, got {value!r}")
        # A list that other code may modify has no place in a frozen value.
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, list):
                object.__setattr__(self, item.name, tuple(cast("list[Any]", value)))
            elif isinstance(value, dict):
                object.__setattr__(self, item.name, dict(cast("Json", value)))


def _is_default(item: Field[Any], value: Any) -> bool:
    return value == (item.default if item.default_factory is MISSING else item.default_factory())


@cache
def _places(cls: type[Any]) -> tuple[tuple[str, At], ...]:
    return tuple((item.name, item.metadata[_KEY]) for item in fields(cls) if _KEY in item.metadata)


def _take(manifest: Json, place: At) -> Any:
    """Remove a field's value from the manifest and return it; `absent` where it is missing or can't be represented."""
    parents: list[Any] = [manifest]
    for step in place.path[:-1]:
        parents.append(_step(parents[-1], step))
    last = cast("str", place.path[-1])
    if not isinstance(parents[-1], dict) or last not in parents[-1]:
        return place.absent
    raw = cast("Json", parents[-1])[last]
    try:
        value = place.codec.read(raw)
        exact = _same(place.codec.write(value), raw)
    except Unreadable:
        return place.absent
    if not exact or _same(value, place.absent):
        return place.absent
    # Objects that are empty without it are removed too: writing the field restores them.
    for parent, step in zip(reversed(parents), reversed(place.path), strict=True):
        if isinstance(parent, list) and len(cast("list[Any]", parent)) > 1:
            break  # the indices of the others must not change
        del cast("dict[str | int, Any]", parent)[step]
        if parent:
            break
    return value


def _step(parent: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return cast("Json", parent).get(step) if isinstance(parent, dict) else None
    entries = cast("list[Any]", parent) if isinstance(parent, list) else []
    return entries[step] if step < len(entries) else None


def _put(manifest: Json, path: tuple[str | int, ...], value: Any) -> None:
    parent: Any = manifest
    for step, following in pairwise(path):
        below = _step(parent, step)
        wanted = dict if isinstance(following, str) else list
        if not isinstance(below, wanted):
            below = wanted()
            if isinstance(step, str):
                parent[step] = below
            else:
                parent[step : step + 1] = [below]
        parent = cast("Any", below)
    parent[path[-1]] = value


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON: 1, 1.0 and true are different, at any depth."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        mine, theirs = cast("Mapping[Any, Any]", one), cast("Mapping[Any, Any]", other)
        return mine.keys() == theirs.keys() and all(_same(value, theirs[key]) for key, value in mine.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        left, right = cast("Sequence[Any]", one), cast("Sequence[Any]", other)
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(one, str) and isinstance(other, str):
        return one == other
    return type(one) is type(other) and one == other
