"""Completing: completed before all pods were; the others are being deleted."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action, JobPhase
from vcbatch.core.job.states.cells import Cell, Retain, Row, Verb, gone

COMPLETING: Final[Row] = {
    Action.SYNC_JOB: Cell(Verb.KILL, gone(JobPhase.COMPLETED), retain=Retain.FINISHED),
}
