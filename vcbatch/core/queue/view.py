"""The picture on which a queue is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vcbatch.api.command import Command
from vcbatch.api.queue import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """One queue with what is in it."""

    queue: Queue
    parent: Queue | None = None
    """The queue that `spec.parent` names; None where there is no such queue."""
    pod_groups: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many PodGroups name this queue now, by `status.phase` (empty: the scheduler hasn't looked yet)."""
    jobs: int = 0
    """How many unfinished Jobs name this queue. Between two attempts, and while suspended, one has no PodGroup."""
    workloads: int = 0
    """How many of the Completed PodGroups are of a workload that goes on: its next pod may not exist yet."""
    pods: int = 0
    """How many pods of this queue hold nodes, whatever has become of their Jobs and PodGroups."""
    commands: Sequence[Command] = ()
    """Commands whose target is a Queue of this name."""
