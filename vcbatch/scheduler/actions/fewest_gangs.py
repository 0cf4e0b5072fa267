"""Chooses among several ways to free resources for a gang the one by which the fewest other gangs fall below their
minimum.

Pod by pod, the last pod in order is evicted, so that three gangs may lose a member each where ending one gang would do.
Here the gangs that may be broken are chosen first; the others lose only pods beyond their minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice
from typing import Final, NamedTuple

import numpy as np

from vcbatch.scheduler.actions.gang_trial import slots_in
from vcbatch.scheduler.framework.gang_order import Gangs
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.topology.domain_search import tasks_by_class

_MOST_TRIES: Final = 32
_MOST_PLACES: Final = 512
"""The most choices of gangs that are tried for one gang, and the most pods that are placed in all tries together. This
covers all choices of up to five gangs for a gang of up to 16 pods; beyond that the gangs that use most are tried."""
_MOST_CHOICES: Final = 128
"""The most choices of a given number of gangs that are checked: most of them need no try."""
_CHOSEN_FROM: Final = 16


def works(session: Session, job: Job) -> bool:
    """Whether the gang has all that it needs to run."""
    return session.ready(job) and session.ready_without_hope(job)


def with_fewest_broken(
    session: Session,
    job: Job,
    found: Statement,
    search: Callable[[frozenset[str]], Statement | None],
    *,
    smallest: bool = False,
) -> Statement:
    """The way to free resources for the gang that breaks the fewest gangs, among these the one with the fewest victims:
    either `found`, or what `search` finds if only gangs with these UIDs may be broken. No gang is broken that is of
    higher priority or of another queue than those broken by `found`. With `smallest`, where broken gangs end as a
    whole, the same number of other gangs is tried as well, if these need fewer pods to run. The result is applied to
    the snapshot."""
    gangs = {task.job.key: task.job for task in found.victims if task.job is not None and task.job is not job}
    broken = [other for other in gangs.values() if not works(session, other)]
    best, fewest = found.recorded(), len(found.victims)
    found.discard()
    broken = [other for other in broken if works(session, other)]
    likely = _likely(session, job, broken) if len(broken) > (0 if smallest else 1) else []
    reach = _Reach(session, job, likely)
    tries, most = 0, max(2, min(_MOST_TRIES, _MOST_PLACES // max(job.counts[TaskStatus.PENDING], 1)))
    for size in range(len(broken) + smallest):
        better = False
        for chosen in islice(combinations(range(len(likely)), size), _MOST_CHOICES):
            if size == len(broken) and sum(likely[at].min_member for at in chosen) >= fewest:
                continue
            if tries >= most or not reach.may_do(chosen):
                continue
            tries += 1
            tried = search(frozenset(likely[at].uid for at in chosen))
            if tried is None:
                continue
            if (size < len(broken) and not better) or len(tried.victims) < fewest:
                better, best, fewest = True, tried.recorded(), len(tried.victims)
            tried.discard()
        if better:
            break
    statement = Statement(session)
    statement.replay(best)
    return statement


class _Reach:
    """Checks by slots whether a gang may fit without some of these others: if it can't, no try is needed."""

    def __init__(self, session: Session, job: Job, others: Sequence[Job]) -> None:
        state, nodes = session.state, session.nodes
        assert state.victims is not None  # noqa: S101 - kept for every policy with an action that evicts
        wanted = tasks_by_class(session.runs(job))
        lacks = job.min_member - job.ready_count - job.waiting_count - job.pending_best_effort
        self._count = max(lacks, 1) if wanted else 0
        resources = np.array(sorted({r for cls, _ in wanted for r in cls.needed.tolist()}), dtype=np.intp)

        def held(rows: Mask) -> Floats:
            return table.candidates(running=False, jobs=rows).amounts(resources, len(nodes))

        table, jobs = state.victims, state.jobs_table
        sparing = (jobs.allocated_count > 0) & (jobs.ready_count != jobs.min_member)
        sparing[job.row] = False
        future = nodes.future()[resources] + held(sparing)
        each = np.zeros((len(others), len(resources), len(nodes)))
        for at, other in enumerate(others):
            one = np.zeros(len(sparing), dtype=bool)
            one[other.row] = True
            each[at] = held(one)
        touched = each.any(axis=(0, 1))
        self._future, self._held = future[:, touched], each[:, :, touched]
        self._wanted: list[_Wanted] = []
        for cls, count in wanted:
            columns, mask = np.searchsorted(resources, cls.needed), session.placer.static(cls).mask
            elsewhere = float(slots_in(future[columns][:, mask & ~touched], cls.need).sum())
            self._wanted.append(_Wanted(count, columns, cls.need, mask[touched], elsewhere))

    def may_do(self, chosen: Sequence[int]) -> bool:
        """Whether the gang may fit without the chosen others, if all remaining gangs also lose what they can run
        without."""
        future = self._future + self._held[list(chosen)].sum(axis=0)
        found = 0.0
        for wanted in self._wanted:
            here = slots_in(future[wanted.columns], wanted.need)[wanted.admitted].sum()
            found += min(wanted.pods, wanted.elsewhere + float(here))
        return found >= self._count


class _Wanted(NamedTuple):
    """The number of pods of one class, the resource columns in which they are compared with nodes and the request in
    these, [K] and [K, 1]; which of the touched nodes admit it, and how many slots the other nodes have for it."""

    pods: int
    columns: Rows
    need: Floats
    admitted: Mask
    elsewhere: float


def _likely(session: Session, job: Job, broken: list[Job]) -> list[Job]:
    """The gangs that may be broken instead of these, those that use most of the needed resources first."""
    queues = {other.queue.name: other.queue for other in broken if other.queue is not None}
    top = max(other.priority for other in broken)
    gangs = Gangs.of(other for queue in queues.values() for other in queue.jobs.values())
    table = session.state.jobs_table
    gangs = gangs.where((table.allocated_count[gangs.rows] > 0) & (table.priority[gangs.rows] <= top))
    worth = _worth(session, job, gangs)
    ranked = sorted(zip(worth, gangs.jobs, strict=True), key=lambda entry: (-entry[0], entry[1].uid))
    return [other for _, other in ranked if other is not job and works(session, other)][:_CHOSEN_FROM]


def _worth(session: Session, job: Job, gangs: Gangs) -> list[float]:
    """How much of the gang's remaining need each of the others uses."""
    pending: list[Task] = [task for run in session.runs(job) for task in run.tasks]
    if not pending:
        return [0.0] * len(gangs.jobs)
    need: Floats = np.sum([task.cls.request for task in pending], axis=0)
    wanted = np.flatnonzero(need > 0)
    held = session.state.jobs_table.allocated[np.ix_(gangs.rows, wanted)]
    return (np.minimum(held, need[wanted]) / need[wanted]).sum(axis=1).tolist()
