"""Models of stored objects, read once as long as an object stays as it is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from vcbatch.interfaces.api import Json

T = TypeVar("T")

_REMEMBERED = 512


class Parsed(Generic[T]):
    """Keeps the models of those objects that were asked for last. Told apart are the very objects of a cache, which
    nobody changes in place."""

    def __init__(self, read: Callable[[Json], T], *, remembered: int = _REMEMBERED) -> None:
        """`read` gives the model of a stored object, such as its `parse`."""
        self._read = read
        self._remembered = remembered
        self._known: OrderedDict[str, tuple[Json, T]] = OrderedDict()  # by UID

    def of(self, stored: Json) -> T:
        """Raises `MalformedObject`."""
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
