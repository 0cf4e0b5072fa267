"""Unknown: the stored state isn't one of Volcano's; only a Command changes it."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.queue import QueueState
from vcbatch.core.queue.states.cells import DRAIN, Row, to

UNKNOWN: Final[Row] = {
    Action.OPEN_QUEUE: to(QueueState.OPEN),
    Action.CLOSE_QUEUE: DRAIN,
    Action.SYNC_QUEUE: to(QueueState.UNKNOWN),
}
