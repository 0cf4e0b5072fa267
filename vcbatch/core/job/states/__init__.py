"""The job's machine: phase × action → cell. `docs/states.md` is generated from this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vcbatch.api.job import Action, JobPhase
from vcbatch.core.job.states.aborted import ABORTED
from vcbatch.core.job.states.aborting import ABORTING
from vcbatch.core.job.states.cells import EXHAUSTED, Cell, Outlook, Retain, Row, Rule, Verb
from vcbatch.core.job.states.completing import COMPLETING
from vcbatch.core.job.states.finished import FINISHED
from vcbatch.core.job.states.pending import PENDING
from vcbatch.core.job.states.restarting import RESTARTING
from vcbatch.core.job.states.running import RUNNING
from vcbatch.core.job.states.terminating import TERMINATING

__all__ = ["EXHAUSTED", "LIVE", "TABLE", "Cell", "Outlook", "Retain", "Row", "Rule", "Verb", "cell_of"]

TABLE: Final[Mapping[JobPhase, Row]] = {
    JobPhase.PENDING: PENDING,
    JobPhase.RUNNING: RUNNING,
    JobPhase.RESTARTING: RESTARTING,
    JobPhase.ABORTING: ABORTING,
    JobPhase.ABORTED: ABORTED,
    JobPhase.COMPLETING: COMPLETING,
    JobPhase.TERMINATING: TERMINATING,
    JobPhase.COMPLETED: FINISHED,
    JobPhase.FAILED: FINISHED,
    JobPhase.TERMINATED: FINISHED,
}

LIVE: Final = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})
"""Phases in which policies apply to the job's pods. In all others an action of a policy would change nothing."""


def cell_of(phase: JobPhase, action: Action) -> Cell:
    """The cell for this action; an action without one does what SyncJob does."""
    row = TABLE[phase]
    return row.get(action, row[Action.SYNC_JOB])
