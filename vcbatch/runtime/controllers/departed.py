"""Children that went and whose end no decision has written down yet."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Departed(Generic[T]):
    """By the owner's UID: each child as it was last, until a decision that saw it is carried out."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, T]] = {}  # by owner and name
        self._seen: dict[str, dict[str, T]] = {}

    def add(self, owner: str, name: str, child: T) -> None:
        """That child is gone."""
        self._held.setdefault(owner, {})[name] = child

    def see(self, owner: str) -> tuple[T, ...]:
        """The children that the next decision about the owner is made on."""
        seen = self._seen[owner] = dict(self._held.get(owner, {}))
        return tuple(seen.values())

    def written_down(self, owner: str) -> None:
        """The decision is carried out. Who went since is kept for the next one."""
        held = self._held.get(owner, {})
        for name, child in self._seen.pop(owner, {}).items():
            if held.get(name) is child:
                del held[name]
        if not held:
            self._held.pop(owner, None)

    def forget(self, owner: str) -> None:
        """The owner is gone."""
        self._held.pop(owner, None)
        self._seen.pop(owner, None)
