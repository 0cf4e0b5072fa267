"""Terminating: a user ended the flow, and its jobs are being terminated."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlowPhase
from vcbatch.core.jobflow.states.cells import Cell, Outlook, Row, Rule, Verb


def _ended(outlook: Outlook) -> JobFlowPhase:
    return JobFlowPhase.TERMINATING if outlook.ending else JobFlowPhase.FAILED


TERMINATING: Final[Row] = {
    Action.SYNC_JOB: Cell(Verb.FOLLOW, Rule("Failed when no job runs", (JobFlowPhase.FAILED,), _ended)),
}
