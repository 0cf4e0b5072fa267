"""The flow's machine: phase × action → cell. `docs/states.md` has this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlowPhase
from vcbatch.core.jobflow.states.cells import Cell, Outlook, Row, Rule, Verb
from vcbatch.core.jobflow.states.failed import FAILED
from vcbatch.core.jobflow.states.pending import PENDING
from vcbatch.core.jobflow.states.running import RUNNING
from vcbatch.core.jobflow.states.succeed import SUCCEED
from vcbatch.core.jobflow.states.terminating import TERMINATING

__all__ = ["TABLE", "Cell", "Outlook", "Row", "Rule", "Verb", "cell_of"]

TABLE: Final[Mapping[JobFlowPhase, Row]] = {
    JobFlowPhase.PENDING: PENDING,
    JobFlowPhase.RUNNING: RUNNING,
    JobFlowPhase.FAILED: FAILED,
    JobFlowPhase.TERMINATING: TERMINATING,
    JobFlowPhase.SUCCEED: SUCCEED,
}


def cell_of(phase: JobFlowPhase, action: Action) -> Cell | None:
    """The cell of the action in that phase; None where the action isn't allowed."""
    return TABLE[phase].get(action)
