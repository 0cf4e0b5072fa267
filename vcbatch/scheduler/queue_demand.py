"""What gangs hold and ask for, summed by queue: what admission and shares go by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcbatch.scheduler.model import Phase
from vcbatch.scheduler.queue_tree import QueueTree
from vcbatch.scheduler.resources import Matrix
from vcbatch.scheduler.tables import JobTable


@dataclass(frozen=True, slots=True)
class QueueDemand:
    """Sums over each queue and those below it, [Q, R] by the index of the tree.

    Attributes:
        allocated: what placed tasks take.
        inqueue: what admitted gangs are still to get of their minResources, less what waits behind gates.
        elastic: what gangs hold beyond their minResources.
    """

    allocated: Matrix
    inqueue: Matrix
    elastic: Matrix


def queue_demand(tree: QueueTree, table: JobTable) -> QueueDemand:
    """Of all gangs that have a queue."""
    known = np.flatnonzero(table.queue >= 0)
    rows = table.queue[known]
    allocated, minimum = table.allocated[known], table.minimum[known]
    phase = table.phase[known]
    started = (phase == Phase.RUNNING) & (table.allocated_count[known] >= table.min_member[known])
    counted = table.has_minimum[known] & ((phase == Phase.INQUEUE) | started)
    missing = np.maximum(np.maximum(minimum - allocated, 0.0) - table.gated[known], 0.0)
    missing[~counted] = 0.0
    elastic = np.maximum(allocated - minimum, 0.0)
    own = np.concatenate([allocated, missing, elastic], axis=1)
    sums = tree.upwards(tree.by_queue(rows, own))
    return QueueDemand(*np.split(sums, 3, axis=1))
