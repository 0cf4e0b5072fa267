"""Aborting: a suspended job's pods are being deleted. Finished ones are kept."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action, JobPhase
from vcbatch.core.job.states.cells import Cell, Retain, Row, Verb, gone, resume

ABORTING: Final[Row] = {
    Action.RESUME_JOB: resume(),
    Action.SYNC_JOB: Cell(Verb.KILL, gone(JobPhase.ABORTED), retain=Retain.FINISHED),
}
