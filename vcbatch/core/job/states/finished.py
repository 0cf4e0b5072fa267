"""Completed, Failed, Terminated: final. No action and no count leaves the phase; pods that are alive are deleted."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.core.job.states.cells import STAY, Cell, Retain, Row, Verb

FINISHED: Final[Row] = {
    Action.SYNC_JOB: Cell(Verb.KILL, STAY, retain=Retain.FINISHED),
}
