"""The places that pods were evicted for: a gang takes them before it looks anywhere else.

Where a gang was helped is remembered by sub-gang, since its victims take their time to end. Either all its pending
pods get the places that were found for them, or it is free to look for others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from vcbatch.scheduler.actions.attempt import Sheet
from vcbatch.scheduler.model import Job, Run, Task
from vcbatch.scheduler.statement import Statement
from vcbatch.scheduler.sub_gangs import SubKey

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

_MEMORY: Final = "nominated"


@dataclass(frozen=True, slots=True)
class Nomination:
    """Where a gang, or one gang inside it, is to be: the domain's name, and the node of each pod by UID."""

    domain: str
    nodes: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Nominated:
    """What is remembered of one PodGroup."""

    uid: str
    parts: dict[SubKey | None, Nomination]
    lenders: frozenset[str]


def nominate(
    session: Session, job: Job, domains: dict[SubKey | None, str], tasks: list[Task], lenders: frozenset[str]
) -> None:
    """Remember the places that these tasks of the gang were promised, by sub-gang the domain that they are in, and the
    names of the queues that lost pods for it."""
    known: dict[str, _Nominated] = session.state.memory.setdefault(_MEMORY, {})
    for key in [key for key in known if key not in session.state.jobs]:
        del known[key]
    parts: dict[SubKey | None, Nomination] = {}
    for task in tasks:
        part = parts.setdefault(task.sub, Nomination(domains.get(task.sub, ""), {}))
        part.nodes[task.uid] = task.node
    known[job.key] = _Nominated(job.uid, parts, lenders)


class Promises:
    """Keeps those at whose cost a gang was given places from taking them back before it came: a gang of a queue that
    lost pods for another one waits until that one was served, unless it goes before it in the same queue by priority.
    """

    def __init__(self, session: Session) -> None:
        known: dict[str, _Nominated] = session.state.memory.get(_MEMORY, {})
        jobs = [(session.state.jobs.get(key), nominated) for key, nominated in known.items()]
        self._open = [(job, nominated) for job, nominated in jobs if job is not None and job.uid == nominated.uid]
        self._open.sort(key=lambda entry: (-entry[0].priority, entry[0].key))

    def before(self, job: Job) -> list[Job]:
        """The gangs that are to be served before this one; each is named once."""
        if not self._open or job.queue is None:
            return []
        queue = job.queue
        first = [
            other
            for other, nominated in self._open
            if queue.name in nominated.lenders and not (other.queue is queue and other.priority <= job.priority)
        ]
        if first:
            self._open = [entry for entry in self._open if entry[0] not in first]
        return first


def is_nominated(session: Session, job: Job) -> bool:
    """Whether places are remembered for pods of the gang."""
    return _of(session, job) is not None


def take_nominated(session: Session, job: Job, sheet: Sheet, statement: Statement) -> None:
    """Give the gang's pending pods the places that were found for them, on what is free or, where victims aren't gone
    yet, on what is being released, and take them off the sheet. A part of the gang of which one pod has no such place
    any more gets none of them, and its nomination is forgotten."""
    known = _of(session, job)
    if known is None:
        return
    parts: dict[SubKey | None, list[Run]] = {}
    for run in sheet:
        parts.setdefault(run.sub, []).append(run)
    sheet.clear()
    for key, runs in parts.items():
        mark = statement.mark()
        part = known.parts.get(key)
        if part is None or not all(_place(session, job, part, tasks, statement) for tasks in _by_kind(runs)):
            statement.take_back(mark)
            known.parts.pop(key, None)
            sheet.extend(runs)
    if not known.parts:
        del session.state.memory[_MEMORY][job.key]


def _of(session: Session, job: Job) -> _Nominated | None:
    known: _Nominated | None = session.state.memory.get(_MEMORY, {}).get(job.key)
    return known if known is not None and known.uid == job.uid else None


def _by_kind(runs: list[Run]) -> list[list[Task]]:
    """The tasks of one class and role together."""
    kinds: dict[tuple[int, str], list[Task]] = {}
    for run in runs:
        kinds.setdefault((run.cls.id, run.role), []).extend(run.tasks)
    return list(kinds.values())


def _place(session: Session, job: Job, part: Nomination, tasks: list[Task], statement: Statement) -> bool:
    """Give alike pods their places; False, with some of them placed maybe, where one can't have its own."""
    if job.queue is None or session.room(job.queue, tasks[0].cls.request) < len(tasks):
        return False
    by_node: dict[int, list[Task]] = {}
    for task in tasks:
        row = session.state.row_of_node(part.nodes.get(task.uid, ""))
        if row < 0:
            return False
        by_node.setdefault(row, []).append(task)
    if not _inside(session, job, part, by_node):
        return False
    if session.coupled(tasks):
        return all(_one(session, task, row, statement) for row, alike in by_node.items() for task in alike)
    return _alike(session, by_node, statement)


def _inside(session: Session, job: Job, part: Nomination, rows: Iterable[int]) -> bool:
    """Whether the nodes are still in the domain that they were found in, where the gang's topology asks for one."""
    if job.topology is None and all(rule.topology is None for rule in job.rules):
        return True
    tree = session.domain_search.tree
    index = tree.index.get(part.domain)
    return tree.fault is None and index is not None and bool(np.isin(list(rows), tree.rows[index]).all())


def _one(session: Session, task: Task, row: int, statement: Statement) -> bool:
    found = session.place_for(task, only=row)
    if found is None:
        return False
    if found[1]:
        statement.allocate([task], [row])
    else:
        statement.pipeline([task], [row], nominated=True)
    return True


def _alike(session: Session, by_node: dict[int, list[Task]], statement: Statement) -> bool:
    """Place alike tasks on their nodes, as many as may be on what is free."""
    placer, rows = session.placer, np.fromiter(by_node, dtype=np.intp, count=len(by_node))
    cls = next(iter(by_node.values()))[0].cls
    free = placer.slots(cls, rows, promising=False)
    later = placer.slots(cls, rows, promising=True) if placer.releases else free
    bound: list[tuple[Task, int]] = []
    promised: list[tuple[Task, int]] = []
    for (row, tasks), now, then in zip(by_node.items(), free.tolist(), later.tolist(), strict=True):
        if len(tasks) > max(now, then):
            return False
        count = int(min(len(tasks), max(now, 0)))
        bound += [(task, row) for task in tasks[:count]]
        promised += [(task, row) for task in tasks[count:]]
    if bound:
        statement.allocate([task for task, _ in bound], [row for _, row in bound])
    if promised:
        statement.pipeline([task for task, _ in promised], [row for _, row in promised], nominated=True)
    placer.returned([*by_node])
    return True
