"""Closed: empty, and accepts no jobs until it is opened."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.queue import QueueState
from vcbatch.core.queue.states.cells import Row, to

CLOSED: Final[Row] = {
    Action.OPEN_QUEUE: to(QueueState.OPEN),
    Action.SYNC_QUEUE: to(QueueState.CLOSED),
}
