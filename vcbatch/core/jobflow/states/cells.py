"""The parts that the flow's machine is written with: a cell says what an action changes, and which phase follows from
how the jobs stand then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlowPhase


class Verb(StrEnum):
    """What is noted before the jobs are made what the phase asks for."""

    FOLLOW = "Follow"
    """Nothing."""
    SUSPEND = "Suspend"
    """The flow is suspended."""
    RESUME = "Resume"
    """It isn't any more."""
    RETRY = "Retry"
    """The jobs that failed or were terminated are discarded, to be made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How the entries stand, in numbers. `broken`: failed or terminated. `ending`: jobs that are still being
    terminated."""

    phase: JobFlowPhase
    total: int
    running: int
    completed: int
    broken: int
    ending: int


@dataclass(frozen=True, slots=True)
class Rule:
    """Which phase follows. `reaches` lists every phase that `decide` may give beside the present one."""

    text: str
    reaches: tuple[JobFlowPhase, ...]
    decide: Callable[[Outlook], JobFlowPhase]


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of the table."""

    verb: Verb
    then: Rule


Row = Mapping[Action, Cell]
"""The cells of one phase. Any other action is refused."""


def to(phase: JobFlowPhase) -> Rule:
    """Always this phase."""
    return Rule(str(phase), (phase,), lambda _: phase)


STAY: Final = Rule("", (), lambda outlook: outlook.phase)
SUSPEND: Final = Cell(Verb.SUSPEND, STAY)
RESUME: Final = Cell(Verb.RESUME, STAY)
TERMINATE: Final = Cell(Verb.FOLLOW, to(JobFlowPhase.TERMINATING))
