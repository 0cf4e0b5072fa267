"""The queue's machine: state × action → rule (Volcano `pkg/controllers/queue/state`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.queue import QueueState
from vcbatch.core.queue.states.cells import Row, Rule
from vcbatch.core.queue.states.closed import CLOSED
from vcbatch.core.queue.states.closing import CLOSING
from vcbatch.core.queue.states.open import OPEN
from vcbatch.core.queue.states.unknown import UNKNOWN

__all__ = ["TABLE", "Row", "Rule", "rule_of"]

TABLE: Final[Mapping[QueueState, Row]] = {
    QueueState.OPEN: OPEN,
    QueueState.CLOSING: CLOSING,
    QueueState.CLOSED: CLOSED,
    QueueState.UNKNOWN: UNKNOWN,
}


def rule_of(state: str, action: Action) -> Rule:
    """The rule for this action. An empty state means Open, and an unknown one is treated as Unknown."""
    try:
        row = TABLE[QueueState(state)] if state else OPEN
    except ValueError:
        row = UNKNOWN
    return row.get(action, row[Action.SYNC_QUEUE])
