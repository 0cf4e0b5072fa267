"""Of several ways to make room for a gang, the one by which the fewest other gangs fall below their minimum.

Pod by pod the one goes that comes last in order, so that three gangs may lose a member each where the end of one would
do. Here gangs are chosen that may be broken; the others lose only what they can spare.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, islice
from typing import TYPE_CHECKING, Final

import numpy as np

from vcbatch.scheduler.gang_order import Gangs
from vcbatch.scheduler.picture.columns import Floats
from vcbatch.scheduler.picture.model import Job, Task
from vcbatch.scheduler.statement import Statement

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

MOST_TRIES: Final = 32
"""Choices of gangs that are tried for one: all that there are of up to five, and of more those that hold most."""
_CHOSEN_FROM: Final = 16


def works(session: Session, job: Job) -> bool:
    """Whether the gang has all that it needs to run."""
    return session.ready(job) and session.ready_without_hope(job)


def with_fewest_broken(
    session: Session, job: Job, found: Statement, search: Callable[[frozenset[str]], Statement | None]
) -> Statement:
    """What makes room for the gang at the price of the fewest gangs, and of these ways the one with the fewest pods:
    `found`, or what `search` finds where only gangs with these UIDs may be broken. No gang is broken that is of higher
    priority, or of another queue, than those that would be otherwise. It is done on the picture in the end."""
    gangs = {task.job.key: task.job for task in found.victims if task.job is not None and task.job is not job}
    broken = [other for other in gangs.values() if not works(session, other)]
    best, fewest = found.recorded(), len(found.victims)
    found.discard()
    broken = [other for other in broken if works(session, other)]
    likely = _likely(session, job, broken) if len(broken) > 1 else []
    for size in range(len(broken)):
        better = False
        for chosen in islice(combinations(likely, size), MOST_TRIES):
            tried = search(frozenset(other.uid for other in chosen))
            if tried is None:
                continue
            if not better or len(tried.victims) < fewest:
                better, best, fewest = True, tried.recorded(), len(tried.victims)
            tried.discard()
        if better:
            break
    statement = Statement(session)
    statement.replay(best)
    return statement


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
