"""The cluster state that admission rules read, as plain data."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcbatch.api.model import Json
from vcbatch.api.queue import Queue
from vcbatch.api.unfinished import QueueWork


def queue(name: str, *, state: str = "Open", allocated: Mapping[str, str] | None = None, **spec: Any) -> Queue:
    """A queue of this name; `allocated` is what its pods use."""
    status = {"state": state, **({} if allocated is None else {"allocated": allocated})}
    return Queue.parse({"metadata": {"name": name}, "spec": spec, "status": status})


@dataclass(kw_only=True)
class World:
    """A lookup on its fields."""

    known: Sequence[Queue] = (queue("root"), queue("default"))
    namespaces: Mapping[str, dict[str, str]] = field(default_factory=dict)
    priority_classes: frozenset[str] | None = None
    works: Mapping[str, QueueWork] = field(default_factory=dict)
    jobs: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    groups: Mapping[tuple[str, str], Json] = field(default_factory=dict)

    def queue(self, name: str) -> Queue | None:
        return next((each for each in self.known if each.name == name), None)

    def queues(self) -> Sequence[Queue]:
        return self.known

    def work(self, queue: str) -> QueueWork:
        """The work in the queue; for a queue without an entry, the counts in its status, since recordings have only
        queues."""
        if queue in self.works:
            return self.works[queue]
        known = self.queue(queue)
        if known is None:
            return QueueWork()
        status = known.status
        counts = {"Running": status.running, "Inqueue": status.inqueue, "Pending": status.pending,
                  "Unknown": status.unknown}  # fmt: skip
        groups = {phase: count for phase, count in counts.items() if count}
        return QueueWork(groups=groups, placed=int(status.allocated.get("pods", 0)))

    def job(self, namespace: str, name: str) -> Json | None:
        return self.jobs.get((namespace, name))

    def pod_group(self, namespace: str, name: str) -> Json | None:
        return self.groups.get((namespace, name))

    def has_priority_class(self, name: str) -> bool:
        return self.priority_classes is None or name in self.priority_classes

    def has_time_zone(self, name: str) -> bool:
        return name in zoneinfo.available_timezones()

    def namespace_annotations(self, name: str) -> dict[str, str]:
        return self.namespaces.get(name, {})
