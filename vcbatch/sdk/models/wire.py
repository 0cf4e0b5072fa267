"""Models that lose nothing: what has a field is typed, the rest of a manifest is kept as it came.

A model declares where in its manifest each of its fields is. Reading takes out of the manifest what a field holds
exactly; what is left is `extra`. Writing puts the fields back over `extra`. So an unknown key, an explicit null, an
empty list and even a value of a wrong type come back as they were, and a changed field changes nothing else.
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
"""An amount as Kubernetes writes it: `500m`, `4Gi`, 8."""


class Unreadable(Exception):
    """A value isn't what its field holds: it stays where it is."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """Reads a JSON value, or raises `Unreadable`, and writes it."""

    read: Callable[[Any], T]
    write: Callable[[T], Any]
    many: bool = False
    """Whether it holds a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Where a field is in the manifest. A value equal to `absent` is one that the manifest doesn't have."""

    path: tuple[str | int, ...]
    codec: Codec[Any]
    absent: Any = None


_KEY = "vcbatch"


def at(*path: str | int, codec: Codec[Any], absent: Any = None) -> dict[str, At]:
    """The metadata of a dataclass field that stands at this path."""
    return {_KEY: At(path=path, codec=codec, absent=absent)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The base of the models. `extra` is the part of the manifest that has no field: what it says counts too, and a
    field that says the same wins."""

    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a manifest. Anything is taken; what a field can't hold is kept in `extra`."""
        rest = copy.deepcopy(dict(manifest))
        values: dict[str, Any] = {}
        for name, place in _places(cls):
            values[name] = _take(rest, place)
        return cls(extra=rest, **values)

    def to_manifest(self) -> Json:
        """The manifest, which shares nothing with the model."""
        manifest = copy.deepcopy(dict(self.extra))
        for name, place in _places(type(self)):
            value = getattr(self, name)
            if not _same(value, place.absent):
                _put(manifest, place.path, place.codec.write(value))
        return manifest

    def replace(self, **changes: Any) -> Self:
        """The same with other values of some fields. Raises `TypeError` for a field that there isn't."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def _shown(self) -> list[str]:
        """The fields that aren't what they are by default."""
        return [
            f"{item.name}={getattr(self, item.name)!r}"
            for item in fields(self)
            if item.repr and not _is_default(item, getattr(self, item.name))
        ]

    def __post_init__(self) -> None:
        for name, place in _places(type(self)):
            value = getattr(self, name)
            if place.codec.many and not isinstance(value, list | tuple):
                # A string would pass for the list of its letters.
                raise TypeError(f"{type(self).__name__}({name}=...): want a list, got {value!r}")
        # A list that somebody else goes on changing has no place in a frozen value.
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
    """Take a field's value out of the manifest; `absent` where it isn't there or can't be held."""
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
    # What held nothing else goes too: the field brings it back.
    for parent, step in zip(reversed(parents), reversed(place.path), strict=True):
        if isinstance(parent, list) and len(cast("list[Any]", parent)) > 1:
            break  # the others keep their places
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
