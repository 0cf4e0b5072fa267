"""What watchers have to see: every change of a collection, kept by the only one who writes it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An event as a watcher sees it."""

    type: str
    key: Key
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write. The colours are the label that watchers select by; None where the object wasn't, or isn't, there."""

    key: Key
    version: int
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a watcher has asked for."""

    namespace: str = ""
    colour: str = ""
    name: str = ""

    def includes(self, key: Key, colour: str | None) -> bool:
        return (
            colour is not None
            and self.namespace in ("", key[0])
            and self.colour in ("", colour)
            and self.name in ("", key[1])
        )

    def event(self, change: Change) -> Seen | None:
        """How the change looks; None where it doesn't concern the watcher."""
        before = self.includes(change.key, change.before)
        after = self.includes(change.key, change.after)
        if not before and not after:
            return None
        kind = "DELETED" if not after else "MODIFIED" if before else "ADDED"
        return Seen(kind, change.key, change.version)


@dataclass(kw_only=True)
class Ledger:
    """All changes, by resourceVersion."""

    changes: list[Change] = field(default_factory=list)

    def note(self, key: Key, version: int, colour: str | None) -> None:
        """A write that the server has acknowledged."""
        before = next((each.after for each in reversed(self.changes) if each.key == key), None)
        self.changes.append(Change(key=key, version=version, before=before, after=colour))

    @property
    def version(self) -> int:
        return self.changes[-1].version if self.changes else 0

    def position(self, version: int) -> int:
        """How many changes there are up to that version."""
        return bisect_right(self.changes, version, key=lambda change: change.version)

    def after(self, position: int, selection: Selection) -> Iterator[Seen]:
        for change in self.changes[position:]:
            if (event := selection.event(change)) is not None:
                yield event

    def state(self, position: int, selection: Selection) -> Sequence[Seen]:
        """The initial events of a watch that begins there."""
        objects: Mapping[Key, Change] = {change.key: change for change in self.changes[:position]}
        return [
            Seen("ADDED", key, objects[key].version)
            for key in sorted(objects)
            if selection.includes(key, objects[key].after)
        ]

    def error(self, events: Sequence[Seen], selection: Selection, *, first: int, last: int, initial: bool) -> str:
        """What is wrong with the events of a watch that began at a position from `first` to `last`; "" where they are
        those that happened, each once and in order. The end may be missing: a watch ends before the changes do."""
        best = 0
        for start in range(first, last + 1):
            wanted = [*(self.state(start, selection) if initial else ()), *self.after(start, selection)]
            same = next((at for at, (one, other) in enumerate(zip(events, wanted, strict=False)) if one != other), None)
            if same is None and len(events) <= len(wanted):
                return ""
            best = max(best, len(wanted) if same is None else same)
        got = events[best] if best < len(events) else None
        return f"event {best} of {len(events)} is {got}, which isn't what happened (began within {first}..{last})"
