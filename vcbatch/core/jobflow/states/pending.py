"""Pending: no job runs yet. A flow without a phase is Pending."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlowPhase
from vcbatch.core.jobflow.states.cells import RESUME, SUSPEND, TERMINATE, Cell, Outlook, Row, Rule, Verb


def _begun(outlook: Outlook) -> JobFlowPhase:
    if outlook.broken:
        return JobFlowPhase.FAILED
    return JobFlowPhase.RUNNING if outlook.running or outlook.completed else JobFlowPhase.PENDING


PENDING: Final[Row] = {
    Action.ABORT_JOB: SUSPEND,
    Action.RESUME_JOB: RESUME,
    Action.TERMINATE_JOB: TERMINATE,
    Action.SYNC_JOB: Cell(
        Verb.FOLLOW,
        Rule(
            "Failed when a job failed or was terminated, Running when one runs or is completed",
            (JobFlowPhase.FAILED, JobFlowPhase.RUNNING),
            _begun,
        ),
    ),
}
