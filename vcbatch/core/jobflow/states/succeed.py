"""Succeed: all jobs are completed. It stays so, whatever becomes of them."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action
from vcbatch.core.jobflow.states.cells import STAY, Cell, Row, Verb

SUCCEED: Final[Row] = {Action.SYNC_JOB: Cell(Verb.FOLLOW, STAY)}
