"""Dominant resource fairness among the gangs of a queue: the one with the smallest dominant share is first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import EvictionKind, OrderTerm, Plugin
from vcbatch.scheduler.index.victims import Candidates
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Job, Queue, Task
from vcbatch.scheduler.model.resources import EPS, Mask, Vector
from vcbatch.scheduler.plugins.drf_hierarchy import SharesTree, place_of

_TOLERANCE = 1e-6
"""Shares closer than this are equal."""


class DominantResourceFairness(Plugin):
    """A gang's share is the largest ratio of its allocated resources to the cluster's (Ghodsi et al., NSDI 2011).
    Pipelined tasks count as allocated."""

    VICTIMS_BY_STANDING = True
    KEEPS_VICTIMS = True
    HIERARCHICAL = True
    JOB_TERM = OrderTerm("share of the cluster")

    @classmethod
    def of_mode(cls, *, hierarchical: bool) -> type[Plugin]:
        return HierarchicalFairness if hierarchical else cls

    def open(self, session: Handle) -> None:
        named = np.flatnonzero(session.total >= EPS)
        total = session.total[named]
        self._held = session.state.jobs_table.allocated[:, named]
        self._opened: Vector = (self._held / total).max(axis=1, initial=0.0)
        self._shares: dict[int, float] = {}
        """By row, the shares of the gangs whose allocation changed since."""
        self._named: list[int] = named.tolist()
        self._total: list[float] = total.tolist()
        self._now: dict[int, list[float]] = {}

    def close(self, session: Handle) -> None:
        """Record the shares of gangs."""
        session.measured.gang_shares = self._all_shares()

    def job_key(self, job: Job) -> float:
        share = self._shares.get(job.row)
        return self._opened.item(job.row) if share is None else share

    def job_keys(self, rows: Rows) -> Floats:
        return self._all_shares()[rows]

    def _all_shares(self) -> Vector:
        if not self._shares:
            return self._opened
        shares = self._opened.copy()
        shares[list(self._shares)] = list(self._shares.values())
        return shares

    def _holding(self, job: Job) -> list[float]:
        held = self._now.get(job.row)
        return self._held[job.row].tolist() if held is None else held

    def _with(self, held: list[float], cls: TaskClass, count: int) -> list[float]:
        """The quantities `held` after `count` tasks of the class were added; a negative count removes them."""
        request = cls.amounts
        return [h + count * request[r] for h, r in zip(held, self._named, strict=True)]

    def _share(self, held: list[float]) -> float:
        return max(0.0, *(h / t for h, t in zip(held, self._total, strict=True)))

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Pods of gangs whose share, without the pod and those before it, is still no smaller than the preemptor's with
        its task."""
        if preemptor.job is None:
            return []
        least = self._share(self._with(self._holding(preemptor.job), preemptor.cls, 1))
        left: dict[int, list[float]] = {}
        out: list[Task] = []
        for task in candidates:
            if task.job is None:
                continue
            row = task.job.row
            held = left[row] = self._with(left.get(row) or self._holding(task.job), task.cls, -1)
            if self._share(held) >= least - _TOLERANCE:
                out.append(task)
        return out

    def possible_victims(self, kind: EvictionKind, job: Job, cls: TaskClass, candidates: Candidates) -> Mask | None:
        if kind is EvictionKind.RECLAIM or not self._named:
            return None
        least = self._share(self._with(self._holding(job), cls, 1))
        held = self._held.copy()
        for row, now in self._now.items():
            held[row] = now
        left = held[candidates.jobs] - candidates.requests[candidates.classes][:, self._named]
        return (left / np.array(self._total)).max(axis=1, initial=0.0) >= least - _TOLERANCE

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        # Called once per placement: the same as `_with` and `_share`, without the calls.
        held = self._now.get(job.row)
        if held is None:
            held = self._held[job.row].tolist()
        request = cls.amounts
        held = self._now[job.row] = [h + count * request[r] for h, r in zip(held, self._named, strict=True)]
        self._shares[job.row] = max(0.0, *(h / t for h, t in zip(held, self._total, strict=True)))


class HierarchicalFairness(DominantResourceFairness):
    """Hierarchical DRF (`enableHierarchy`), with shares of queues and of groups of queues: queues are ordered by them,
    and a pod may be reclaimed by a queue that precedes its own even after the eviction."""

    SHARES_PLACES = True

    def open(self, session: Handle) -> None:
        super().open(session)
        state = session.state
        request = (state.jobs_table.allocated + state.jobs_table.pending)[:, self._named]
        total = np.array(self._total)
        self._tree = SharesTree(total=total, held=self._held.copy(), request=request, queues=state.queues.values())
        self._verdicts: dict[tuple[int, int, int, int], bool] = {}

    def queue_error(self, queue: Queue) -> str | None:
        return self._tree.errors.get(queue.name)

    def queue_key(self, queue: Queue) -> tuple[float, ...]:
        return self._tree.standing(queue.name)

    def queue_terms(self, queue: Queue) -> Sequence[OrderTerm]:
        terms: list[OrderTerm] = []
        for part in place_of(queue).parts:
            of = "" if part == queue.name else part
            terms += [OrderTerm("more is wanted there", 0, of), OrderTerm("share by weight", of=of)]
        return terms

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        super().placed(job, cls, count)
        self._tree.move(job, count * cls.request[self._named])
        self._verdicts.clear()

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        """Each candidate is checked alone: with the reclaimer placed and the candidate evicted, the reclaimer's queue
        must still precede the candidate's."""
        own = reclaimer.job
        if own is None or own.queue is None:
            return []
        victims: list[Task] = []
        self._tree.move(own, reclaimer.cls.request[self._named])
        for task in candidates:
            job = task.job
            if job is None or job.queue is None:
                continue
            key = (own.row, reclaimer.cls.id, job.row, task.cls.id)
            if key not in self._verdicts:
                amounts = task.cls.request[self._named]
                self._tree.move(job, -amounts)
                self._verdicts[key] = self._tree.before(own.queue.name, job.queue.name)
                self._tree.move(job, amounts)
            if self._verdicts[key]:
                victims.append(task)
        self._tree.move(own, -reclaimer.cls.request[self._named])
        return victims
