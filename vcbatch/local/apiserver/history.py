"""The recent changes of a collection: the ring that watches read, each at its own pace.

A watcher keeps a position and no queue, so a slow one costs nothing; a position that is no longer in the ring is
answered with 410. Every change is encoded once for all watchers with the same form.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

import msgspec

from vcbatch.local.apiserver.record import Record

HISTORY_LENGTH = 2048
HISTORY_BYTES = 16 * 1024 * 1024


class Change:
    """One write: ADDED, MODIFIED or DELETED, the object after and the object before it."""

    __slots__ = ("_lines", "fields", "old", "record", "type")

    def __init__(self, type_: str, record: Record, old: Record | None) -> None:
        self.type = type_
        self.record = record
        self.old = old
        self.fields: dict[tuple[str, bool], Mapping[str, str]] = {}
        """Values of selectable fields, by version and whether before the change: computed once for all watchers."""
        self._lines: dict[tuple[str, ...], bytes] = {}

    def line(self, form: tuple[str, ...], encoded: Callable[[], bytes]) -> bytes:
        """The watch event in that form, encoded once for all watchers with the same form."""
        found = self._lines.get(form)
        if found is None:
            found = self._lines[form] = encoded()
        return found

    def previous_at_this_version(self) -> bytes:
        """The former object with this change's resourceVersion: the DELETED event of a watcher whose selector no longer
        matches."""
        if self.old is None:
            return self.record.body
        obj = self.old.decode()
        obj["metadata"]["resourceVersion"] = str(self.record.version)
        return msgspec.json.encode(obj)


class History:
    """The ring. `floor`: changes up to this resourceVersion are no longer available."""

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.last = floor
        self.closed = False
        self._first = 0
        self._changes: list[Change] = []
        self._bytes = 0
        self._waiting: set[asyncio.Event] = set()

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self._bytes += len(change.record.body)
        self.last = change.record.version
        if len(self._changes) > 2 * HISTORY_LENGTH or self._bytes > HISTORY_BYTES:
            self._trim()

    def _trim(self) -> None:
        cut = max(1, len(self._changes) // 2)
        self.floor = self._changes[cut - 1].record.version
        del self._changes[:cut]
        self._first += cut
        self._bytes = sum(len(change.record.body) for change in self._changes)

    def wake(self) -> None:
        for event in self._waiting:
            event.set()

    def close(self) -> None:
        """End all watches: the kind is no longer served, or the server stops."""
        self.closed = True
        self.wake()

    def register(self, event: asyncio.Event) -> None:
        self._waiting.add(event)

    def unregister(self, event: asyncio.Event) -> None:
        self._waiting.discard(event)

    def position_after(self, version: int) -> int | None:
        """The start position of a watch from `version`, or None where that is too old."""
        if version < self.floor:
            return None
        return self._first + bisect_right(self._changes, version, key=lambda change: change.record.version)

    @property
    def end(self) -> int:
        """The position after the last change."""
        return self._first + len(self._changes)

    def since(self, position: int, *, size: int) -> Sequence[Change] | None:
        """Changes from a position on: at least one where there are any, and at most `size` bytes together. None where
        the position is no longer in the ring."""
        if position < self._first:
            return None
        start = end = position - self._first
        while end < len(self._changes):
            size -= len(self._changes[end].record.body)
            if size < 0 and end > start:
                break
            end += 1
        return self._changes[start:end]
