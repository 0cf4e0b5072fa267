"""The allocated resources that are written to `status.allocated` of queues; a queue's value includes its
descendants'."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np

from vcbatch.scheduler.index.dra.charges import known, shown
from vcbatch.scheduler.index.dra.queue_devices import QueueDevices
from vcbatch.scheduler.model.figures import Amount, Measured
from vcbatch.scheduler.model.objects import Queue
from vcbatch.scheduler.model.resources import CPU, MEMORY, Matrix, Vector
from vcbatch.scheduler.model.result import QueueStatusUpdate
from vcbatch.scheduler.queues.tree import QueueTree
from vcbatch.scheduler.snapshot.snapshot import Snapshot

AMOUNTS_EVERY = timedelta(seconds=1)
"""The shortest interval between two writes of one queue's `status.allocated`."""


class QueueAmounts:
    """Computes the status updates of queues. Keeps when each queue was last written and which values agreed with the
    stored ones, so that an unchanged queue costs one comparison."""

    def __init__(self) -> None:
        self._written_at: dict[str, datetime] = {}
        self._stamp = (-1, 0)
        self._devices: tuple[QueueDevices | None, int] = (None, 0)
        self._tree = QueueTree({})
        self._names: list[str] = []
        self._totals: Matrix = np.zeros((0, 0))
        self._agreed: dict[str, dict[str, str] | None] = {}
        self._amounts: dict[str, dict[str, str]] = {}
        """Formatted values of queues that were checked before with the same totals: formatting is most of the cost of a
        check."""

    def updates(self, state: Snapshot, now: datetime) -> tuple[list[QueueStatusUpdate], datetime | None]:
        """The updates of queues whose allocated resources differ from what was last observed or sent, and when the
        first update is due among those that were postponed because their queue was written within `AMOUNTS_EVERY`; None
        without any."""
        out: list[QueueStatusUpdate] = []
        soonest: datetime | None = None
        nothing = {state.dims.names[r]: state.dims.format(r, 0.0) for r in (CPU, MEMORY)}
        for queue, total in self._moved(state):
            amounts = self._amounts.get(queue.name)
            if amounts is None:
                amounts = self._amounts[queue.name] = {
                    **nothing,
                    **state.dims.quantities(total),
                    **_devices(state, queue),
                }
            if amounts == (queue.reported or nothing):
                self._agreed[queue.name] = queue.reported
                continue
            due = self._due(queue.name, now)
            if due is not None:
                soonest = due if soonest is None else min(soonest, due)
                continue
            gone = {key: None for key in queue.reported or {} if key not in amounts}
            queue.reported = self._agreed[queue.name] = amounts
            meta = queue.view.metadata
            out.append(
                QueueStatusUpdate(
                    name=queue.name,
                    uid=meta.uid,
                    resource_version=meta.resource_version,
                    allocated={**amounts, **gone},
                )
            )
        return out, soonest

    def measure(self, state: Snapshot, measured: Measured) -> None:
        """Record allocated and requested resources per queue, from the totals that `updates` computed last."""
        tree = self._tree
        pending = tree.upwards(tree.by_index(state.demand.by_queue(tree.rows).pending))
        measured.amounts[Amount.ALLOCATED] = (self._names, self._totals)
        measured.amounts[Amount.REQUEST] = (self._names, self._totals + pending)

    def _moved(self, state: Snapshot) -> list[tuple[Queue, Vector]]:
        """The queues, by name, whose allocated resources changed since they last agreed, or whose reported value was
        changed."""
        stamp = (state.queues_stamp, len(state.dims))
        if stamp != self._stamp:
            self._stamp = stamp
            self._tree = QueueTree(state.queues)
            self._names = shown_names(self._tree)
            self._totals = np.full((len(self._tree), len(state.dims)), np.nan)
            self._agreed = {}
            self._amounts = {}
        tree = self._tree
        totals = tree.upwards(tree.by_index(state.demand.by_queue(tree.rows).allocated))
        moved = (totals != self._totals).any(axis=1)
        self._totals = totals
        usage = state.queue_devices
        devices = (usage, 0 if usage is None else usage.stamp)
        devices_moved = devices != self._devices
        self._devices = devices
        out: list[tuple[Queue, Vector]] = []
        for i, queue in enumerate(tree.queues):
            if queue is None:
                continue
            if moved[i] or devices_moved:
                self._agreed.pop(queue.name, None)
                self._amounts.pop(queue.name, None)
            if queue.name not in self._agreed or self._agreed[queue.name] is not queue.reported:
                out.append((queue, totals[i]))
        return out

    def _due(self, name: str, now: datetime) -> datetime | None:
        """None if the queue may be written now, else the time from which it may."""
        last = self._written_at.get(name)
        if last is None or now - last >= AMOUNTS_EVERY or now < last:
            self._written_at[name] = now
            return None
        return last + AMOUNTS_EVERY


def shown_names(tree: QueueTree) -> list[str]:
    """The names of the queues by index; empty for a root that exists as no object."""
    return ["" if queue is None else queue.name for queue in tree.queues]


def _devices(state: Snapshot, queue: Queue) -> dict[str, str]:
    """The devices that the queue's pods have allocated by ResourceClaim, each claim counted once."""
    held = state.queue_devices.whole.get(queue.name) if state.queue_devices is not None else None
    return {} if held is None else {key: shown(known(amount)) for key, amount in sorted(held.amounts.items())}
