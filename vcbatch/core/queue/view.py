"""The snapshot on which a queue is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vcbatch.api.command import Command
from vcbatch.api.queue import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """One queue with its PodGroups, jobs, pods and Commands."""

    queue: Queue
    parent: Queue | None = None
    """The queue that `spec.parent` names; None where there is no such queue."""
    pod_groups: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number of PodGroups that name this queue, by `status.phase` (empty: not scheduled yet)."""
    jobs: int = 0
    """The number of unfinished Jobs that name this queue. A Job has no PodGroup between attempts and while
    suspended."""
    workloads: int = 0
    """The number of Completed PodGroups whose workload continues: its next pod may not exist yet."""
    pods: int = 0
    """The number of pods of this queue on nodes, whether or not their Jobs and PodGroups still exist."""
    commands: Sequence[Command] = ()
    """Commands whose target is a Queue of this name."""
