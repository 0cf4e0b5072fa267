"""Dominant resource fairness among the gangs of a queue: the one with the smallest dominant share goes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcbatch.scheduler.classes import TaskClass
from vcbatch.scheduler.model import Job
from vcbatch.scheduler.plugins.base import Plugin
from vcbatch.scheduler.resources import EPS

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session


class DominantResourceFairness(Plugin):
    """A gang's share is the largest part that it holds of any resource of the cluster (Ghodsi et al., NSDI 2011).
    What is promised to it counts as held."""

    def open(self, session: Session) -> None:
        self._named = np.flatnonzero(session.total >= EPS)
        self._total = session.total[self._named]
        self._held = session.state.jobs_table.allocated[:, self._named]
        self._shares = (self._held / self._total).max(axis=1, initial=0.0)

    def job_key(self, job: Job) -> float:
        return float(self._shares[job.row])

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        held = self._held[job.row]
        held += count * cls.request[self._named]
        self._shares[job.row] = (held / self._total).max(initial=0.0)
