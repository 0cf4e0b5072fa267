"""What queues hold, as it is written to `status.allocated`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import numpy as np

from vcbatch.scheduler.model import Queue
from vcbatch.scheduler.resources import CPU, MEMORY, Vector
from vcbatch.scheduler.result import QueueStatusUpdate
from vcbatch.scheduler.state import ClusterState

AMOUNTS_EVERY = timedelta(seconds=1)
"""How often a queue's amounts are written at most."""
ROOT_QUEUE = "root"


class QueueAmounts:
    """Remembers when each queue was written."""

    def __init__(self) -> None:
        self._written_at: dict[str, datetime] = {}

    def updates(self, state: ClusterState, now: datetime) -> tuple[list[QueueStatusUpdate], datetime | None]:
        """The queues whose amounts differ from what was last seen or sent, and when the first of those is due that
        were written a moment ago."""
        out: list[QueueStatusUpdate] = []
        soonest: datetime | None = None
        nothing = {state.dims.names[r]: state.dims.format(r, 0.0) for r in (CPU, MEMORY)}
        for name, total in sorted(_totals(state).items()):
            queue = state.queues[name]
            amounts = {**nothing, **state.dims.quantities(total)}
            if amounts == (queue.reported or nothing):
                continue
            due = self._due(name, now)
            if due is not None:
                soonest = due if soonest is None else min(soonest, due)
                continue
            gone = {key: None for key in queue.reported or {} if key not in amounts}
            queue.reported = amounts
            meta = queue.view.metadata
            out.append(
                QueueStatusUpdate(
                    name=name,
                    uid=meta.uid,
                    resource_version=meta.resource_version,
                    allocated={**amounts, **gone},
                )
            )
        return out, soonest

    def _due(self, name: str, now: datetime) -> datetime | None:
        """None where the queue may be written now, else when it may."""
        last = self._written_at.get(name)
        if last is None or now - last >= AMOUNTS_EVERY or now < last:
            self._written_at[name] = now
            return None
        return last + AMOUNTS_EVERY


def _totals(state: ClusterState) -> dict[str, Vector]:
    """What gangs of each queue hold, children counted in every ancestor; [R] each."""
    rows = 1 + max((q.row for q in state.queues.values()), default=-1)
    own = np.zeros((rows, len(state.dims)))
    known = state.jobs_table.queue >= 0
    np.add.at(own, state.jobs_table.queue[known], state.jobs_table.allocated[known])
    totals: dict[str, Vector] = {name: own[q.row].copy() for name, q in state.queues.items()}
    for queue in state.queues.values():
        for name in _ancestors(queue, state.queues):
            totals[name] += own[queue.row]
    return totals


def _ancestors(queue: Queue, queues: dict[str, Queue]) -> Iterable[str]:
    """The queues above this one, nearest first; a loop ends where it closes."""
    seen = {queue.name}
    name = queue.view.spec.parent or ROOT_QUEUE
    while name in queues and name not in seen:
        seen.add(name)
        yield name
        name = queues[name].view.spec.parent or ROOT_QUEUE
