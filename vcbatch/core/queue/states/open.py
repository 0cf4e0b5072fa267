"""Open: accepts new jobs. A queue without a state becomes Open."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.queue import QueueState
from vcbatch.core.queue.states.cells import DRAIN, Row, to

OPEN: Final[Row] = {
    Action.CLOSE_QUEUE: DRAIN,
    Action.SYNC_QUEUE: to(QueueState.OPEN),
}
