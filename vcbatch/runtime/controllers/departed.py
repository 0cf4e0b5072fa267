"""Deleted children whose end is not yet recorded by a decision."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Departed(Generic[T]):
    """By the owner's UID: the last known state of each deleted child, until a decision that includes it is applied."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, T]] = {}  # by owner and name
        self._seen: dict[str, dict[str, T]] = {}

    def add(self, owner: str, name: str, child: T) -> None:
        """Record that the child was deleted."""
        self._held.setdefault(owner, {})[name] = child

    def see(self, owner: str) -> tuple[T, ...]:
        """The deleted children that the next decision about the owner has to include."""
        seen = self._seen[owner] = dict(self._held.get(owner, {}))
        return tuple(seen.values())

    def written_down(self, owner: str) -> None:
        """The decision is applied: drop the children that it included. Those deleted since are kept for the next
        decision."""
        held = self._held.get(owner, {})
        for name, child in self._seen.pop(owner, {}).items():
            if held.get(name) is child:
                del held[name]
        if not held:
            self._held.pop(owner, None)

    def forget(self, owner: str) -> None:
        """Drop everything about a deleted owner."""
        self._held.pop(owner, None)
        self._seen.pop(owner, None)
