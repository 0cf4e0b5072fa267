"""The types of the job's state machine: a cell has the action on the pods in one phase, and the rule for the next phase
from the resulting counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vcbatch.api.job import Action, JobPhase
from vcbatch.core.job.budget import Charge
from vcbatch.core.job.counts import Counts
from vcbatch.core.job.ledger import Ledger
from vcbatch.core.job.plan import Plan


class Verb(StrEnum):
    """What is done to the job's pods."""

    SYNC = "SyncJob"
    """Create and delete pods as the spec requires."""
    KILL = "KillJob"
    """Delete the pods, except those that the cell retains, and the PodGroup."""
    TARGET = "KillTarget"
    """Delete only the pods of one task, of one partition, or one pod."""
    DRAIN = "Drain"
    """Continue to delete the parts that are being restarted; create nothing yet."""


class Retain(StrEnum):
    """The pods that a kill keeps, for their logs and results."""

    NOTHING = "none"
    SUCCEEDED = "succeeded"
    FINISHED = "soft"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a rule may read: the job as it is after the cell's verb was executed."""

    phase: JobPhase
    plan: Plan
    counts: Counts
    ledger: Ledger
    drained: bool
    """Whether nothing is left of the parts that are being restarted: neither pods nor (for a whole job) the
    PodGroup."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The next phase. `reaches` lists every phase that `decide` may return besides the present one."""

    text: str
    reaches: tuple[JobPhase, ...]
    decide: Callable[[Outlook], JobPhase]


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of the table."""

    verb: Verb
    then: Rule
    retain: Retain = Retain.NOTHING
    charge: Charge = Charge.NOTHING
    ends_attempt: bool = False
    """Whether the present pods become those of an older version, to which no policy applies."""


Row = Mapping[Action, Cell]
"""The cells of one phase. For an action without a cell of its own, that of SyncJob applies."""


def to(phase: JobPhase) -> Rule:
    """Always this phase."""
    return Rule("", (phase,), lambda _: phase)


STAY: Final = Rule("", (), lambda outlook: outlook.phase)


def leave(phase: JobPhase) -> Cell:
    """End the attempt, keeping finished pods, and wait in `phase` until the others are deleted."""
    return Cell(Verb.KILL, to(phase), retain=Retain.FINISHED, ends_attempt=True)


def restart_all() -> Cell:
    """End the attempt and start over."""
    return Cell(Verb.KILL, to(JobPhase.RESTARTING), charge=Charge.RETRY, ends_attempt=True)


def restart_part() -> Cell:
    """Restart a part of the job."""
    return Cell(Verb.TARGET, to(JobPhase.RESTARTING), charge=Charge.RETRY)


def resume() -> Cell:
    """Restart the indices that hadn't succeeded when the job was suspended."""
    return Cell(Verb.KILL, to(JobPhase.RESTARTING), retain=Retain.SUCCEEDED, charge=Charge.RESUME, ends_attempt=True)


def gone(phase: JobPhase) -> Rule:
    """This phase, as soon as no pod is alive."""
    return Rule(
        f"{phase} when no pod is alive",
        (phase,),
        lambda outlook: phase if outlook.counts.alive == 0 else outlook.phase,
    )


EXHAUSTED: Final = leave(JobPhase.FAILED)
"""The cell for a restart whose budget is used up: the job fails and its last failed pods are kept."""
