"""The types of the queue's state machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.queue import QueueState


@dataclass(frozen=True, slots=True)
class Rule:
    """The next state, given whether the queue is empty. `reaches` lists all that `decide` may return."""

    text: str
    reaches: tuple[QueueState, ...]
    decide: Callable[[bool], QueueState]


Row = Mapping[Action, Rule]
"""The rules of one state. For an action without a rule, that of SyncQueue applies."""


def to(state: QueueState) -> Rule:
    """Always this state."""
    return Rule(str(state), (state,), lambda _: state)


DRAIN: Final = Rule(
    "Closed when no unfinished Job or PodGroup and no pod on a node is left, else Closing",
    (QueueState.CLOSED, QueueState.CLOSING),
    lambda empty: QueueState.CLOSED if empty else QueueState.CLOSING,
)
