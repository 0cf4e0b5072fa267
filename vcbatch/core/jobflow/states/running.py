"""Running: jobs run or ran, and none of them failed."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlowPhase
from vcbatch.core.jobflow.states.cells import RESUME, SUSPEND, TERMINATE, Cell, Outlook, Row, Rule, Verb


def _outcome(outlook: Outlook) -> JobFlowPhase:
    if outlook.broken:
        return JobFlowPhase.FAILED
    return JobFlowPhase.SUCCEED if outlook.completed == outlook.total else JobFlowPhase.RUNNING


RUNNING: Final[Row] = {
    Action.ABORT_JOB: SUSPEND,
    Action.RESUME_JOB: RESUME,
    Action.TERMINATE_JOB: TERMINATE,
    Action.SYNC_JOB: Cell(
        Verb.FOLLOW,
        Rule(
            "Failed when a job failed or was terminated, Succeed when all are completed",
            (JobFlowPhase.FAILED, JobFlowPhase.SUCCEED),
            _outcome,
        ),
    ),
}
