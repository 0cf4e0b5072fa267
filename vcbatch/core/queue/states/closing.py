"""Closing: accepts no new jobs and waits until its jobs have ended."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.queue import QueueState
from vcbatch.core.queue.states.cells import DRAIN, Row, to

CLOSING: Final[Row] = {
    Action.OPEN_QUEUE: to(QueueState.OPEN),
    Action.SYNC_QUEUE: DRAIN,
}
