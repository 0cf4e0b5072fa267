"""Overcommit: how far admission may exceed the cluster's capacity, by a factor."""

from __future__ import annotations

import numpy as np

from vcbatch.api.remedies import CLUSTER, Remedy, RemedyAction
from vcbatch.scheduler.feasibility.judge import Judge
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Plugin, Verdict, Vote
from vcbatch.scheduler.model.objects import Job, Phase
from vcbatch.scheduler.model.remedies import wait_for
from vcbatch.scheduler.model.resources import EPS, Vector, exceeding
from vcbatch.scheduler.model.result import Shortage, WaitReason

_DEFAULT_FACTOR = 1.2
_ONCE = "overcommit-count-placed-once"


class Overcommit(Plugin):
    """Admits a gang while everything admitted stays below `overcommit-factor` times the cluster's capacity minus usage.

    The sum over admitted gangs includes their placed pods, as in Volcano; with `overcommit-count-placed-once` it
    doesn't, because these are part of the usage.
    """

    TELLS_IMPOSSIBLE = True
    ARGUMENTS = ArgumentSpec(
        named={
            "overcommit-factor": Argument(
                default=_DEFAULT_FACTOR, expected=1.0, otherwise=f"which counts as {_DEFAULT_FACTOR:g}"
            ),
            _ONCE: Argument(default=False),
        }
    )

    def open(self, session: Handle) -> None:
        factor = float(self.arguments["overcommit-factor"])
        if factor < 1.0:
            factor = _DEFAULT_FACTOR
        table = session.state.jobs_table
        self._session = session
        self._dims = session.dims
        self._table = table
        used = session.nodes.used.sum(axis=1)
        self._total = session.total
        self._left = session.total - used
        """The free resources, which are reported to gangs because the factor adds no real capacity."""
        self._most = session.total * factor
        self._idle = self._most - used
        demand = session.state.demand.by_queue(session.state.queue_rows)
        self._inqueue = demand.inqueue.sum(axis=0)
        self._admitted: dict[int, Job] | None = None
        """By row, the gangs that are admitted and haven't started; None until first computed."""
        if not self.arguments[_ONCE]:
            self._inqueue += demand.begun.sum(axis=0)

    def enqueueable(self, job: Job) -> Verdict:
        if not self._table.has_minimum[job.row]:
            return Verdict(Vote.PERMIT)
        minimum = self._table.minimum[job.row]
        wanted = self._inqueue + minimum
        over = exceeding(wanted, self._idle, minimum)
        if not over:
            return Verdict(Vote.PERMIT)
        # This is the upper bound of what can be admitted, whichever gangs end.
        never = [] if self._session.shared(Judge).nodes.growing else exceeding(minimum, self._most, minimum)
        columns, room = (never, self._total) if never else (over, np.maximum(self._left - self._inqueue, 0.0))
        short = [self._short(i, float(minimum[i]), float(room[i])) for i in columns]
        ahead = [] if never else self._ahead(minimum)
        free = ahead or [Remedy(RemedyAction.FREE, CLUSTER, s.resource, s.short_by) for s in short]
        overused = f"resource in cluster is overused: {', '.join(f'overused {s.resource}' for s in short)}"
        if never:
            needs = "; ".join(f"{s.resource}: {s.requested} asked, the cluster has {s.available}" for s in short)
            message = f"the gang asks for more than the cluster has ({needs})"
            return Verdict(Vote.REJECT, message, WaitReason.IMPOSSIBLE, short, CLUSTER, free, overused)
        numbers = "; ".join(f"{s.resource}: {s.requested} asked, {s.available} left to admit" for s in short)
        message = f"{overused} ({numbers})"
        return Verdict(Vote.REJECT, message, WaitReason.CLUSTER_OVERCOMMITTED, short, CLUSTER, free)

    def _ahead(self, minimum: Vector) -> list[Remedy]:
        """The remedies if admitted gangs that haven't started are what blocks admission: to wait for the fewest of them
        that would suffice, and to free used resources that the gang requests. Empty if that wouldn't suffice."""
        busy = np.where(minimum > 0, np.maximum(minimum - self._left, 0.0), 0.0)
        over = np.where(minimum > 0, np.maximum(self._inqueue + minimum - self._idle - busy, 0.0), 0.0)
        if not over.any():
            return []
        if self._admitted is None:
            jobs = self._session.state.jobs.values()
            self._admitted = {job.row: job for job in jobs if job.phase is Phase.INQUEUE}
        rows = np.fromiter(self._admitted, dtype=np.intp, count=len(self._admitted))
        promised = np.array([self._table.admission(row) for row in rows.tolist()]).reshape(len(rows), len(over))
        largest = np.argsort(-promised[:, int(over.argmax())], kind="stable")
        enough = (np.cumsum(promised[largest], axis=0) + EPS >= over).all(axis=1)
        if not enough.any():
            return []
        first = largest[: int(enough.argmax()) + 1]
        waits = [remedy for row in rows[first].tolist() for remedy in wait_for(self._admitted[row].key)]
        return waits + [
            Remedy(RemedyAction.FREE, CLUSTER, self._dims.names[i], self._dims.format(i, float(busy[i])))
            for i in map(int, np.flatnonzero(busy > EPS))
        ]

    def _short(self, r: int, asked: float, room: float) -> Shortage:
        dims = self._dims
        return Shortage(dims.names[r], dims.format(r, asked), dims.format(r, room), dims.format(r, asked - room))

    def enqueued(self, job: Job) -> None:
        if self._admitted is not None:
            self._admitted[job.row] = job
        self.count_admission(job, 1)

    def count_admission(self, job: Job, sign: int) -> None:
        self._inqueue += sign * self._table.admission(job.row)

    def admission_key(self, job: Job) -> object:
        return None
