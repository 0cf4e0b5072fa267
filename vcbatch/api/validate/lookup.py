"""The objects that rules read besides the object that they validate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vcbatch.api.model import Json
from vcbatch.api.queue import Queue
from vcbatch.api.unfinished import QueueWork


class Lookup(Protocol):
    """Reads from caches: a rule never waits."""

    def queue(self, name: str) -> Queue | None:
        """The queue of this name; None where it doesn't exist."""
        ...

    def queues(self) -> Sequence[Queue]:
        """All queues."""
        ...

    def has_priority_class(self, name: str) -> bool:
        """Whether the PriorityClass exists; True also where that is unknown."""
        ...

    def has_time_zone(self, name: str) -> bool:
        """Whether the time zone database has this entry."""
        ...


class WorkLookup(Lookup, Protocol):
    """The same, for rules about queues and PodGroups. A rejection is based on the stored objects, never on the counts
    in a queue's status, which are written later."""

    def work(self, queue: str) -> QueueWork:
        """The unfinished work of a queue."""
        ...

    def job(self, namespace: str, name: str) -> Json | None:
        """The Job of this name."""
        ...

    def pod_group(self, namespace: str, name: str) -> Json | None:
        """The PodGroup of this name; it is needed where a pod is resized."""
        ...

    def namespace_annotations(self, name: str) -> dict[str, str]:
        """The annotations of a namespace; empty where it is unknown."""
        ...
