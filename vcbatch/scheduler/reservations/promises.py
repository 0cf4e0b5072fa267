"""The places that pods were evicted for: kept for those that they went for, whoever else comes first in order.

Victims take their time to end. Until then, and until its gang has all it needs to start, a pod says which node is kept
for it (`status.nominatedNodeName`): that is the promise, and all that a scheduler which has just come up goes by. It is
held from the beginning of every cycle, so that nobody else is given the room. It ends when the pod takes its place or
is gone, when the gang couldn't start by what is left of it, when the gang is another one than it was made for, and when
the victims should be gone for long. A gang that lost pods has a moment for new ones: its controller is making them.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus
from vcbatch.scheduler.model.promise import Promise
from vcbatch.scheduler.model.result import Held
from vcbatch.scheduler.topology.domain_search import DomainSearch

OVERDUE: Final = timedelta(minutes=5)
"""For how long a place is kept beyond the time in which its victims should have ended."""
RETRY_AFTER: Final = timedelta(seconds=5)
"""For how long places are kept for a gang that has fewer pods than it needs."""
_GRACE: Final = timedelta(seconds=30)
"""The time that a pod has to end where it doesn't say (Kubernetes' default)."""
_WAITING: Final = frozenset({TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED})
"""Statuses of pods that have no node yet, but for what a cycle finds."""
_STARTED: Final = (TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
_NOBODY: Final = nullcontext()


class Promises:
    """The promises of one cycle."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: dict[str, Statement] = {}
        """By gang what is held for it, until it is its turn; empty where nothing can be."""
        self._lowest: dict[str, int] = {}
        """By queue the lowest priority of a gang for which anything was held."""
        self._lacking: set[str] = set()
        """The gangs that have too few pods for now: they can't be placed, and what they are promised is held."""
        self._began = False

    # During the cycle -------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether there are promises that aren't held yet."""
        return not self._began and bool(self._session.state.promised)

    def keep(self, eligible: Sequence[Job]) -> None:
        """Hold what these gangs are promised, the one of highest priority first. The others may not be placed, so that
        nothing is kept for them any longer."""
        self._began = True
        state = self._session.state
        found = [job for job in eligible if job.key in state.promised and self._stands(job)]
        for job in found:
            self._note_pods(job, since=None)
        found += self._short_of_pods({job.key for job in found})
        self._session.promised = {job.key for job in found}
        for job in sorted(found, key=lambda job: (-job.priority, job.key)):
            self._hold(job)

    def _short_of_pods(self, placeable: Collection[str]) -> list[Job]:
        """The others for which places are kept though they have too few pods, as they had enough a moment ago."""
        session, state = self._session, self._session.state
        out: list[Job] = []
        for key in state.promised.keys() - placeable:
            job = state.jobs.get(key)
            if job is None or job.queue is None or job.set_aside or session.invalid(job) is None:
                continue
            if not job.queue.open or session.queue_error(job.queue) is not None or not self._stands(job):
                continue
            promise = state.promised[key]
            since = session.now if promise is None or promise.lacking is None else promise.lacking
            if session.now < since + RETRY_AFTER:
                self._note_pods(job, since=since)
                session.requeue_at(since + RETRY_AFTER)
                self._lacking.add(key)
                out.append(job)
        return out

    def _note_pods(self, job: Job, *, since: datetime | None) -> None:
        promise = self._session.state.promised[job.key]
        if promise is not None and promise.lacking != since:
            self._session.state.promised[job.key] = replace(promise, lacking=since)
        elif promise is None and since is not None:
            self._session.state.promised[job.key] = Promise.to(job, until=since + OVERDUE, lacking=since)

    def _stands(self, job: Job) -> bool:
        promise = self._session.state.promised[job.key]
        if promise is not None and not (promise.is_to(job) and self._session.now < promise.until):
            return False
        return any(task.nominated and task.status is TaskStatus.PENDING for task in job.tasks.values())

    def to(self, job: Job) -> bool:
        """Whether something is promised to the gang that it has not been given yet."""
        return job.key in self._kept

    @property
    def waiting(self) -> list[Job]:
        """The gangs that weren't given what they are promised yet and have their pods, the one of highest priority
        first."""
        return [self._session.state.jobs[key] for key in self._kept if key not in self._lacking]

    def take(self, job: Job) -> Statement:
        """Give the gang what is held for it: its places are in the statement, which is the caller's now."""
        return self._kept.pop(job.key)

    def give_back(self, job: Job, statement: Statement) -> None:
        """The gang can't start by it now. It is held on: others may yet be evicted for what it lacks."""
        self._kept[job.key] = statement

    def aside(self, job: Job) -> AbstractContextManager[None]:
        """For as long as the gang is served: nothing is held for gangs of its queue with lower priority. Afterwards it
        is again, but for what this gang took, which is promised to it from now on."""
        lowest = self._lowest.get(job.queue_name)
        return _NOBODY if lowest is None or job.priority <= lowest else self._aside(job)

    @contextmanager
    def _aside(self, job: Job) -> Generator[None]:
        jobs = self._session.state.jobs
        below = [key for key in self._kept if jobs[key].queue is job.queue and jobs[key].priority < job.priority]
        before: dict[str, int] = {}
        for key in reversed(below):
            before |= self._kept[key].places()
            self._kept.pop(key).discard()
            jobs[key].runs = None
        self._session.exhausted.clear()  # what others ran into, this one needn't
        yield
        for key in below:
            self._hold(jobs[key])
        after = {uid for key in below for uid in self._kept[key].places()}
        lost = {row for uid, row in before.items() if uid not in after}
        for statement in self._session.held:
            if statement.job is job and not lost.isdisjoint(statement.places().values()):
                statement.nominate()
        self._session.exhausted.clear()

    # Holding ----------------------------------------------------------------------------------------------------------

    def _hold(self, job: Job) -> None:
        """Give the gang's pods the nodes that they name: on what is free or, where victims aren't gone yet, on what is
        being released. One whose node doesn't do any more gets none; where it matters in which domain of the network
        the others are, these get none either."""
        session = self._session
        tasks = [t for t in job.tasks.values() if t.status is TaskStatus.PENDING and t.nominated and not t.gated]
        statement = Statement(session)
        kinds: dict[tuple[object, ...], list[Task]] = {}
        for task in session.ordered(tasks) if tasks else ():
            kinds.setdefault((task.cls.id, task.role, task.sub), []).append(task)
        for alike in kinds.values():
            self._place(job, alike, statement)
        if job.bound_to_domains and not (statement.size == len(tasks) and self._together(job)):
            statement.discard()
        self._kept[job.key] = statement
        self._lowest[job.queue_name] = min(self._lowest.get(job.queue_name, job.priority), job.priority)
        job.runs = job.parked = None

    def _together(self, job: Job) -> bool:
        """Whether the places of the gang, and of those inside it, are in domains that its topology allows."""
        search = self._session.shared(DomainSearch)
        if search.misfit(job) is not None or not len(search.allowed(job)):
            return False
        return all(len(search.allowed(job, sub)) for sub in job.subs if search.rows_held(job, sub) is not None)

    def _place(self, job: Job, tasks: Sequence[Task], statement: Statement) -> None:
        session, cls = self._session, tasks[0].cls
        if cls.unsupported:
            return
        there = [(task, row) for task in tasks if (row := session.state.row(task.nominated)) is not None]
        by_row: dict[int, list[Task]] = {}
        for task, row in there[: session.room_of(job, cls.request)] if there else ():
            by_row.setdefault(row, []).append(task)
        if not by_row:
            return
        if session.coupled(tasks):
            for row, here in by_row.items():
                for task in here:
                    found = session.place_for(task, only=row)
                    if found is not None:
                        _put(statement, [task], row, free=found[1])
            return
        placer, rows = session.placer, np.array(sorted(by_row), dtype=np.intp)
        free = placer.slots(cls, rows, promising=False)
        later = placer.slots(cls, rows, promising=True) if placer.releases else free
        for row, now, then in zip(rows.tolist(), free.tolist(), later.tolist(), strict=True):
            here = by_row[row]
            first = int(min(len(here), max(now, 0)))
            _put(statement, here[:first], row, free=True)
            _put(statement, here[first : int(min(len(here), max(then, first)))], row, free=False)
        placer.returned(rows.tolist())

    # When it ends -----------------------------------------------------------------------------------------------------

    def settle(self) -> bool:
        """The cycle is over: what was held for gangs that can start by it, or have started, is held to its end, and
        the rest given up. Whether anything was."""
        session = self._session
        given_up = False
        for job, statement in [(session.state.jobs[key], statement) for key, statement in self._kept.items()]:
            if statement and (job.key in self._lacking or self._of_use(job)):
                session.held.append(statement)
            elif statement:
                statement.discard()
                job.runs = None
                given_up = True
        self._kept.clear()
        return given_up

    def _of_use(self, job: Job) -> bool:
        started = any(job.counts[status] for status in _STARTED)
        return started or self._session.ready(job) or self._session.pipelined(job)

    def remember(self, held: Sequence[Held]) -> dict[str, str]:
        """Of these places those that are promised are what holds in the next cycle, and nothing else does. Returns the
        nodes, by pod, of pods that are to say another one than before; empty where none is kept any more."""
        state = self._session.state
        places = {place.uid: place.node for place in held if place.nominated}
        keys = dict.fromkeys([*state.promised, *(_key(state.tasks[uid]) for uid in places)])
        before, state.promised = state.promised, {}
        news: dict[str, str] = {}
        for job in [state.jobs[key] for key in keys if key in state.jobs]:
            mine = {uid: node for uid, node in places.items() if uid in job.tasks}
            changed = {
                task.uid: mine.get(task.uid, "")
                for task in job.tasks.values()
                if task.status in _WAITING and task.nominated != mine.get(task.uid, "")
            }
            for uid, node in changed.items():
                job.tasks[uid].nominate(node)
            if changed:
                state.touched[job.key] = job
                state.changed = True
                news |= changed
            bound = any(task.nominated and task.status is TaskStatus.BINDING for task in job.tasks.values())
            if mine or bound:  # a bind may be refused yet
                self._renew(job, before.get(job.key), mine, more=any(changed.values()))
        return news

    def _renew(self, job: Job, before: Promise | None, nodes: dict[str, str], *, more: bool) -> None:
        session, state = self._session, self._session.state
        promise = before
        if promise is None or more or not promise.is_to(job):
            until = session.now + OVERDUE + max(map(self._grace, {*nodes.values()}), default=timedelta(0))
            promise = Promise.to(job, until=until)
        state.promised[job.key] = promise
        if nodes:
            session.requeue_at(promise.until)

    def _grace(self, node: str) -> timedelta:
        """How long the pods that are ending on a node may take."""
        info = self._session.state.node(node)
        ending = [] if info is None else [t for t in info.tasks.values() if t.status is TaskStatus.RELEASING]
        return max((_time_to_end(task) for task in ending), default=timedelta(0))


def _put(statement: Statement, tasks: Sequence[Task], row: int, *, free: bool) -> None:
    if tasks and free:
        statement.allocate(tasks, [row] * len(tasks), nominated=True)
    elif tasks:
        statement.pipeline(tasks, [row] * len(tasks), nominated=True)


def _key(task: Task) -> str:
    return "" if task.job is None else task.job.key


def _time_to_end(task: Task) -> timedelta:
    given = task.pod.metadata.deletion_grace_period_seconds
    if given is None:
        given = task.pod.spec.termination_grace_period_seconds
    return _GRACE if given is None else timedelta(seconds=given)
