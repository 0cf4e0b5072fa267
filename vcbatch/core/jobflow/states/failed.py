"""Failed: a job failed. What runs goes on, and nothing new is made before somebody asks for another try."""

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
