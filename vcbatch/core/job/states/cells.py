"""The parts that the job's machine is written with: a cell says what an action does to the pods in one phase, and
which phase follows from the counts that result."""

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
    """Make the pods what the spec asks for."""
    KILL = "KillJob"
    """Delete the pods, but for those that the cell retains, and the PodGroup."""
    TARGET = "KillTarget"
    """Delete the pods of one task, of one partition, or one pod, and nothing else."""
    DRAIN = "Drain"
    """Go on deleting what is being restarted; create nothing yet."""


class Retain(StrEnum):
    """Which pods a kill leaves: their logs and results are still wanted."""

    NOTHING = "none"
    SUCCEEDED = "succeeded"
    FINISHED = "soft"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a rule may look at: the job as it is once the cell's verb is carried out."""

    phase: JobPhase
    plan: Plan
    counts: Counts
    ledger: Ledger
    drained: bool
    """Nothing is left of what is being restarted: neither pods, nor (for a whole job) the PodGroup."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which phase follows. `reaches` lists every phase that `decide` may give beside the present one."""

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
    """The pods of now become those of an older version, which concern no policy."""


Row = Mapping[Action, Cell]
"""The cells of one phase. An action without a cell of its own does what SyncJob does."""


def to(phase: JobPhase) -> Rule:
    """Always this phase."""
    return Rule("", (phase,), lambda _: phase)


STAY: Final = Rule("", (), lambda outlook: outlook.phase)


def leave(phase: JobPhase) -> Cell:
    """End the attempt, keeping finished pods, and wait in `phase` until the others are gone."""
    return Cell(Verb.KILL, to(phase), retain=Retain.FINISHED, ends_attempt=True)


def restart_all() -> Cell:
    """End the attempt and start over."""
    return Cell(Verb.KILL, to(JobPhase.RESTARTING), charge=Charge.RETRY, ends_attempt=True)


def restart_part() -> Cell:
    """Replace a part of the job."""
    return Cell(Verb.TARGET, to(JobPhase.RESTARTING), charge=Charge.RETRY)


def resume() -> Cell:
    """Start over with what hadn't succeeded when the job was suspended."""
    return Cell(Verb.KILL, to(JobPhase.RESTARTING), retain=Retain.SUCCEEDED, charge=Charge.RESUME, ends_attempt=True)


def gone(phase: JobPhase) -> Rule:
    """This phase, as soon as no pod is alive."""
    return Rule(
        f"{phase} when no pod is alive",
        (phase,),
        lambda outlook: phase if outlook.counts.alive == 0 else outlook.phase,
    )


EXHAUSTED: Final = leave(JobPhase.FAILED)
"""What a restart turns into when its budget is used up: the job fails and its last failed pods remain."""
