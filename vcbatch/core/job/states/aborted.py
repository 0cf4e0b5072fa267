"""Aborted: suspended, no pod runs. Only a resume leaves this phase."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.core.job.states.cells import STAY, Cell, Retain, Row, Verb, resume

ABORTED: Final[Row] = {
    Action.RESUME_JOB: resume(),
    Action.SYNC_JOB: Cell(Verb.KILL, STAY, retain=Retain.FINISHED),
}
