"""Of several ways to make room for a gang, the one by which the fewest other gangs fall below their minimum.

Pod by pod the one goes that comes last in order, so that three gangs may lose a member each where the end of one would
do. Here gangs are chosen that may be broken; the others lose only what they can spare.
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
"""Choices of gangs that are tried for one, and places that are searched in all tries together: all that there are of
up to five gangs for one of up to 16 pods, else those that hold most."""
_MOST_RECONCILES: Final = 128
"""Choices of so many gangs each that are looked at: most of them need no try."""
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
    """What makes room for the gang at the price of the fewest gangs, and of these ways the one with the fewest pods:
    `found`, or what `search` finds where only gangs with these UIDs may be broken. No gang is broken that is of higher
    priority, or of another queue, than those that would be otherwise. With `smallest`, where gangs that are broken end,
    others are tried in their stead though they are as many, if they need fewer pods to run. It is done on the snapshot
    in the end."""
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
        for chosen in islice(combinations(range(len(likely)), size), _MOST_RECONCILES):
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
    """Whether a gang may fit once some of these others are gone, in slots: where it can't, nothing need be tried."""

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
        """Whether it may fit without those of the others that stand there, all taking what they can from the rest."""
        future = self._future + self._held[list(chosen)].sum(axis=0)
        found = 0.0
        for wanted in self._wanted:
            here = slots_in(future[wanted.columns], wanted.need)[wanted.admitted].sum()
            found += min(wanted.pods, wanted.elsewhere + float(here))
        return found >= self._count


class _Wanted(NamedTuple):
    """So many pods of one class, the columns in which they are compared with nodes and what each needs there, [K] and
    [K, 1]; which of the nodes looked at admit it, and for how many of them there is room on the others."""

    pods: int
    columns: Rows
    need: Floats
    admitted: Mask
    elsewhere: float


def _likely(session: Session, job: Job, broken: list[Job]) -> list[Job]:
    """The gangs that may be broken instead of these, those first that hold most of what is needed."""
    queues = {other.queue.name: other.queue for other in broken if other.queue is not None}
    top = max(other.priority for other in broken)
    gangs = Gangs.of(other for queue in queues.values() for other in queue.jobs.values())
    table = session.state.jobs_table
    gangs = gangs.where((table.allocated_count[gangs.rows] > 0) & (table.priority[gangs.rows] <= top))
    worth = _worth(session, job, gangs)
    ranked = sorted(zip(worth, gangs.jobs, strict=True), key=lambda entry: (-entry[0], entry[1].uid))
    return [other for _, other in ranked if other is not job and works(session, other)][:_CHOSEN_FROM]


def _worth(session: Session, job: Job, gangs: Gangs) -> list[float]:
    """How much of what the gang still needs each of the others holds."""
    pending: list[Task] = [task for run in session.runs(job) for task in run.tasks]
    if not pending:
        return [0.0] * len(gangs.jobs)
    need: Floats = np.sum([task.cls.request for task in pending], axis=0)
    wanted = np.flatnonzero(need > 0)
    held = session.state.jobs_table.allocated[np.ix_(gangs.rows, wanted)]
    return (np.minimum(held, need[wanted]) / need[wanted]).sum(axis=1).tolist()
