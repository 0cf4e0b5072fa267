"""The sums by queue that shares and admission go by, as gangs come, change and go."""

from __future__ import annotations

import numpy as np
import pytest

from vcbatch.scheduler.index.demand import DemandTracker, QueueDemand
from vcbatch.scheduler.model.objects import Phase
from vcbatch.scheduler.model.resources import MEMORY, Dimensions
from vcbatch.scheduler.model.tables import JobTable


@pytest.fixture
def table() -> JobTable:
    return JobTable(Dimensions())


def gang(table: JobTable, *, queue: int, holds: float = 0.0, waits: float = 0.0, asks: float | None = None) -> int:
    """One that is admitted, with memory of pods that are placed and that wait, and of its minResources."""
    row = table.take_row()
    table.queue[row], table.phase[row] = queue, Phase.INQUEUE
    table.allocated[row, MEMORY], table.pending[row, MEMORY] = holds, waits
    table.set_minimum(row, None if asks is None else np.array([0.0, asks, 0.0]))
    table.changed.add(row)
    return row


def memory(demand: QueueDemand) -> list[list[float]]:
    parts = (demand.allocated, demand.pending, demand.inqueue, demand.elastic)
    return [part[:, MEMORY].tolist() for part in parts]


def test_each_queue_has_what_its_gangs_hold_and_ask_for(table: JobTable) -> None:
    tracker = DemandTracker(table)
    gang(table, queue=0, holds=5, waits=2, asks=4)
    gang(table, queue=2, holds=1, asks=4)
    gang(table, queue=-1, holds=100, waits=100, asks=100)
    assert memory(tracker.by_queue(3)) == [[5, 0, 1], [2, 0, 0], [0, 0, 3], [1, 0, 0]]


def test_what_changed_is_counted_anew(table: JobTable) -> None:
    tracker = DemandTracker(table)
    moved, gone = gang(table, queue=0, holds=5), gang(table, queue=0, holds=7)
    assert memory(tracker.by_queue(2))[0] == [12, 0]
    table.queue[moved] = 1
    table.changed.add(moved)
    table.give_row(gone)
    assert memory(tracker.by_queue(2))[0] == [0, 5]
    gang(table, queue=4, holds=3)
    assert memory(tracker.by_queue(5))[0] == [0, 5, 0, 0, 3]
    assert memory(tracker.by_queue(1))[0] == [0]


def test_what_is_handed_out_is_the_callers_own(table: JobTable) -> None:
    tracker = DemandTracker(table)
    gang(table, queue=0, holds=5)
    tracker.by_queue(1).allocated[:] += 1
    assert memory(tracker.by_queue(1))[0] == [5]


def test_an_amount_too_large_to_be_exact_leaves_no_trace(table: JobTable) -> None:
    """Beyond 2**53 a sum loses units, which taking the amount away again doesn't bring back."""
    tracker = DemandTracker(table)
    gang(table, queue=0, holds=3)
    tracker.by_queue(1)
    absurd = gang(table, queue=0, holds=2.0**60)
    tracker.by_queue(1)
    table.give_row(absurd)
    assert memory(tracker.by_queue(1))[0] == [3]


def test_gangs_are_counted_when_the_table_grows(table: JobTable) -> None:
    tracker = DemandTracker(table)
    for _ in range(70):
        gang(table, queue=0, holds=1)
        tracker.by_queue(1)
    table.pad(5)
    assert tracker.by_queue(1).allocated.tolist() == [[0, 70, 0, 0, 0]]
