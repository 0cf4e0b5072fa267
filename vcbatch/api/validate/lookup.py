"""What rules have to know of the world around the object that they judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vcbatch.api.queue import Queue


class Lookup(Protocol):
    """Answered from caches: a rule never waits."""

    def queue(self, name: str) -> Queue | None:
        """The queue of this name."""
        ...

    def queues(self) -> Sequence[Queue]:
        """All queues."""
        ...

    def has_priority_class(self, name: str) -> bool:
        """Whether the PriorityClass exists; also True where that can't be known."""
        ...

    def has_time_zone(self, name: str) -> bool:
        """Whether the time zone database has this entry."""
        ...
