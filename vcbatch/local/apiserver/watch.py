"""A watch: the changes of a collection for one watcher, at its own pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.history import Change
from vcbatch.local.apiserver.list_options import ListOptions, selectable
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import Served

_BOOKMARK_SECONDS = 60.0
_WATCH_SECONDS = 1800.0
GROUP_BYTES = 64 * 1024
"""The largest size of a group of events, except for a single larger event: the amount that is encoded ahead of a slow
watcher."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An event for one watcher. `change` is None for the initial state (`record` then) and for bookmarks."""

    type: str
    change: Change | None = None
    record: Record | None = None
    version: int = 0
    initial_end: bool = False
    before: bool = False
    """Whether the watcher gets the object as it was before the change."""


class Watch:
    """One watcher: iterate over it for groups of events. Ends by timeout, when the kind is no longer served, or with
    `closed`."""

    def __init__(
        self,
        engine: Engine,
        entry: Served,
        options: ListOptions,
        initial: Sequence[Record],
    ) -> None:
        self._engine = engine
        self._entry = entry
        self._options = options
        self._initial = initial
        self._history = engine.store.collection(entry.stored_as).history
        self._wake = asyncio.Event()
        self._version = engine.store.version
        start = options.version
        begin = self._version if initial or start in ("", "0") else int(start)
        if options.initial_events:
            begin = self._version
        self._position = self._history.position_after(begin)
        self._begin = begin

    async def __aiter__(self) -> AsyncIterator[list[Seen]]:
        options = self._options
        for group in _groups(self._initial):
            yield group
        self._initial = ()
        if options.initial_events and options.bookmarks:
            yield [Seen("BOOKMARK", version=self._version, initial_end=True)]
        if self._position is None:
            raise expired(self._begin, self._history.floor)
        clock = self._engine.clock
        spread = 1.0 + self._engine.random.random()
        ends = clock.monotonic() + (options.timeout or _WATCH_SECONDS * spread)
        bookmark = clock.monotonic() + _BOOKMARK_SECONDS
        timer = asyncio.create_task(self._tick(ends))
        self._history.register(self._wake)
        try:
            while True:
                self._wake.clear()
                before = self._position
                events = self._collect()
                if events:
                    yield events
                now = clock.monotonic()
                if now >= ends:
                    return
                if self._position != before:
                    if self._position != self._history.end:
                        await asyncio.sleep(0)  # a watcher with many pending events must not delay others
                    continue
                if self._history.closed:
                    return
                if options.bookmarks and now >= bookmark:
                    bookmark = now + _BOOKMARK_SECONDS
                    yield [Seen("BOOKMARK", version=self._engine.store.version)]
                    continue
                await self._wake.wait()
        finally:
            self._history.unregister(self._wake)
            timer.cancel()

    async def _tick(self, ends: float) -> None:
        """Wake the watcher for bookmarks and for its end; one timer for the whole watch. It stops at the end, which a
        watcher that doesn't read notices late."""
        clock = self._engine.clock
        while (rest := ends - clock.monotonic()) > 0:
            await clock.sleep(min(_BOOKMARK_SECONDS, rest))
            self._wake.set()
        self._wake.set()

    def _collect(self) -> list[Seen]:
        assert self._position is not None  # noqa: S101
        changes = self._history.since(self._position, size=GROUP_BYTES)
        if changes is None:
            raise expired(self._begin, self._history.floor)
        self._position += len(changes)
        selection = self._options.selection
        if selection.labels is None and selection.fields is None:
            if selection.namespace is None or not self._entry.resource.namespaced:
                return [Seen(change.type, change, change.record, change.record.version) for change in changes]
            return [
                Seen(change.type, change, change.record, change.record.version)
                for change in changes
                if change.record.namespace == selection.namespace
            ]
        seen = (self._seen(change) for change in changes)
        return [event for event in seen if event]

    def _seen(self, change: Change) -> Seen | None:
        """The event for a watcher with selectors: an object that starts to match is ADDED, one that stops matching
        DELETED."""
        record = change.record
        namespace = self._options.selection.namespace
        if namespace is not None and self._entry.resource.namespaced and record.namespace != namespace:
            return None
        before = change.old is not None and self._matches(change, change.old, before=True)
        if change.type == "DELETED":
            return Seen("DELETED", change, record, record.version) if before else None
        after = self._matches(change, record, before=False)
        if after:
            return Seen("MODIFIED" if before else "ADDED", change, record, record.version)
        return Seen("DELETED", change, record, record.version, before=True) if before else None

    def _matches(self, change: Change, record: Record, *, before: bool) -> bool:
        selection = self._options.selection
        if selection.fields is None:
            return selection.matches(self._entry, record)
        key = (self._entry.resource.api_version, before)
        known = change.fields.get(key)
        if known is None:
            known = change.fields[key] = selectable(self._entry, record)
        return selection.matches(self._entry, record, known)


def _groups(records: Sequence[Record]) -> Iterator[list[Seen]]:
    """The initial state in groups of at most `GROUP_BYTES`, except for a single larger object."""
    group: list[Seen] = []
    size = 0
    for record in records:
        if group and size + len(record.body) > GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(Seen("ADDED", record=record, version=record.version))
        size += len(record.body)
    if group:
        yield group


def expired(wanted: int, floor: int) -> StatusError:
    return StatusError(410, "Expired", f"too old resource version: {wanted} ({floor + 1})")
