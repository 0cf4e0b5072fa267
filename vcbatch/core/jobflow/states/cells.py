"""The types of the flow's state machine: a cell has the effect of an action, and the rule for the next phase from the
states of the jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlowPhase


class Verb(StrEnum):
    """The change of the ledger, before the jobs are brought to the state that the phase requires."""

    FOLLOW = "Follow"
    """No change."""
    SUSPEND = "Suspend"
    """The flow is suspended."""
    RESUME = "Resume"
    """The flow isn't suspended any more."""
    RETRY = "Retry"
    """The jobs that failed or were terminated are discarded, to be recreated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The numbers of entries by state. `broken`: failed or terminated. `ending`: jobs that are still being
    terminated."""

    phase: JobFlowPhase
    total: int
    running: int
    completed: int
    broken: int
    ending: int


@dataclass(frozen=True, slots=True)
class Rule:
    """The next phase. `reaches` lists every phase that `decide` may return besides the present one."""

    text: str
    reaches: tuple[JobFlowPhase, ...]
    decide: Callable[[Outlook], JobFlowPhase]


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of the table."""

    verb: Verb
    then: Rule


Row = Mapping[Action, Cell]
"""The cells of one phase. Any other action is rejected."""


def to(phase: JobFlowPhase) -> Rule:
    """Always this phase."""
    return Rule(str(phase), (phase,), lambda _: phase)


STAY: Final = Rule("", (), lambda outlook: outlook.phase)
SUSPEND: Final = Cell(Verb.SUSPEND, STAY)
RESUME: Final = Cell(Verb.RESUME, STAY)
TERMINATE: Final = Cell(Verb.FOLLOW, to(JobFlowPhase.TERMINATING))
