"""Models of stored objects, parsed once per version of an object."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from vcbatch.interfaces.api import Json

T = TypeVar("T")

_REMEMBERED = 512


class Parsed(Generic[T]):
    """Caches the models of the objects that were requested last. Objects are compared by identity: an object in a cache
    is never changed in place."""

    def __init__(self, read: Callable[[Json], T], *, remembered: int = _REMEMBERED) -> None:
        """`read` returns the model of a stored object, such as its `parse`."""
        self._read = read
        self._remembered = remembered
        self._known: OrderedDict[str, tuple[Json, T]] = OrderedDict()  # by UID

    def of(self, stored: Json) -> T:
        """The model of the stored object. Raises `MalformedObject`."""
        uid: str = stored["metadata"]["uid"]
        known = self._known.get(uid)
        if known is not None and known[0] is stored:
            self._known.move_to_end(uid)
            return known[1]
        model = self._read(stored)
        self._known[uid] = stored, model
        self._known.move_to_end(uid)
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)
        return model
