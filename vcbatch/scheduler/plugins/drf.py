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
        named = np.flatnonzero(session.total >= EPS)
        total = session.total[named]
        self._held = session.state.jobs_table.allocated[:, named]
        self._shares: list[float] = (self._held / total).max(axis=1, initial=0.0).tolist()
        self._named: list[int] = named.tolist()
        self._total: list[float] = total.tolist()
        self._now: dict[int, list[float]] = {}

    def job_key(self, job: Job) -> float:
        return self._shares[job.row]

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        held = self._now.get(job.row)
        if held is None:
            held = self._held[job.row].tolist()
        request = cls.amounts
        held = self._now[job.row] = [h + count * request[r] for h, r in zip(held, self._named, strict=True)]
        self._shares[job.row] = max(0.0, *(h / t for h, t in zip(held, self._total, strict=True)))
