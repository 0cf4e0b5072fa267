"""Failed: a job failed. Running jobs continue, and no job is created before a user requests a retry."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlowPhase
from vcbatch.core.jobflow.states.cells import STAY, TERMINATE, Cell, Row, Verb, to

FAILED: Final[Row] = {
    Action.RESTART_JOB: Cell(Verb.RETRY, to(JobFlowPhase.PENDING)),
    Action.TERMINATE_JOB: TERMINATE,
    Action.SYNC_JOB: Cell(Verb.FOLLOW, STAY),
}
