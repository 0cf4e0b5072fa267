"""Objects that only some plugins or actions read, stored by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


class Facts:
    """The objects of every kind that isn't part of the snapshot proper, by `namespace/name`.

    Values derived from them can be cached as long as `stamp` of the kind is the same.
    """

    def __init__(self) -> None:
        self._objects: dict[type[msgspec.Struct], dict[str, msgspec.Struct]] = {}
        self._stamps: dict[type[msgspec.Struct], int] = {}

    def of(self, kind: type[T]) -> Mapping[str, T]:
        """All objects of the kind."""
        return cast("Mapping[str, T]", self._objects.get(kind, {}))

    def stamp(self, kind: type[msgspec.Struct]) -> int:
        """A number that grows whenever an object of the kind is added, changed or deleted."""
        return self._stamps.get(kind, 0)

    def put(self, obj: msgspec.Struct) -> bool:
        """Add or update the object; returns whether it changed."""
        known = self._objects.setdefault(type(obj), {})
        key = _key(obj)
        before = known.get(key)
        known[key] = obj
        if before is not None and msgspec.structs.replace(
            _meta(before), resource_version=""
        ) == msgspec.structs.replace(_meta(obj), resource_version=""):
            fields = [f for f in obj.__struct_fields__ if f != "metadata"]
            if all(getattr(before, f) == getattr(obj, f) for f in fields):
                return False
        self._stamps[type(obj)] = self.stamp(type(obj)) + 1
        return True

    def drop(self, obj: msgspec.Struct) -> bool:
        """Remove a deleted object, unless the one known by its name has another UID; returns whether it was removed."""
        known = self._objects.get(type(obj), {})
        before = known.get(_key(obj))
        if before is None or _meta(before).uid != _meta(obj).uid:
            return False
        del known[_key(obj)]
        self._stamps[type(obj)] = self.stamp(type(obj)) + 1
        return True


def _meta(obj: msgspec.Struct) -> Any:
    return cast("Any", obj).metadata


def _key(obj: msgspec.Struct) -> str:
    return _meta(obj).key
