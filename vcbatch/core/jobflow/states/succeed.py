"""Succeed: all jobs are completed. The phase is final, even if they are deleted."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.core.jobflow.states.cells import STAY, Cell, Row, Verb

SUCCEED: Final[Row] = {Action.SYNC_JOB: Cell(Verb.FOLLOW, STAY)}
