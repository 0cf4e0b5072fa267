"""Nominations: nodes that are reserved for the pods for which others were evicted, whichever gangs come first in order.

Victims take time to end. Until they have, and until the gang has all that it needs to start, each of its pods names the
node that is reserved for it (`status.nominatedNodeName`). That field is the reservation, and it is all that a restarted
scheduler has. Every cycle takes the resources from its beginning, so that no other pod is placed on them. A reservation
ends when the pod is placed or deleted, when the gang couldn't start on the nodes that are left of it, when the gang
isn't the one that it was created for, and when the victims should have ended long ago. A gang that lost pods keeps it
for a moment, because its controller is recreating them.
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
"""How long a node stays reserved beyond the time by which its victims should have ended."""
RETRY_AFTER: Final = timedelta(seconds=5)
"""How long nodes stay reserved for a gang that has fewer pods than it needs."""
_GRACE: Final = timedelta(seconds=30)
"""The grace period of a pod that declares none (Kubernetes' default)."""
_WAITING: Final = frozenset({TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED})
"""Statuses of pods that have no node yet, except one that this cycle chose."""
_STARTED: Final = (TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
_NOBODY: Final = nullcontext()


class Promises:
    """The nominations of one cycle."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: dict[str, Statement] = {}
        """By gang, the statement with the nodes that are reserved for it until it is served; empty if none fits."""
        self._lowest: dict[str, int] = {}
        """By queue, the lowest priority of a gang with reserved nodes."""
        self._lacking: set[str] = set()
        """The gangs that have too few pods for now: they can't be placed, and their nodes stay reserved."""
        self._began = False

    # During the cycle -------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether there are nominations whose resources this cycle hasn't taken yet."""
        return not self._began and bool(self._session.state.promised)

    def keep(self, eligible: Sequence[Job]) -> None:
        """Take the nodes that these gangs' pods are nominated to, the gang of highest priority first. Other gangs may
        not be placed, so their nominations end."""
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
        """The other gangs whose nominations are kept although they have too few pods, for `ANEW` after they had
        enough."""
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
        """Whether nodes are reserved for the gang that it hasn't been given yet."""
        return job.key in self._kept

    @property
    def waiting(self) -> list[Job]:
        """The gangs that have their pods and haven't been given their reserved nodes yet, the one of highest priority
        first."""
        return [self._session.state.jobs[key] for key in self._kept if key not in self._lacking]

    def take(self, job: Job) -> Statement:
        """Hand over the statement with the gang's reserved nodes; the caller owns it from now on."""
        return self._kept.pop(job.key)

    def give_back(self, job: Job, statement: Statement) -> None:
        """Keep the statement: the gang can't start with it now, but pods may yet be evicted for what it lacks."""
        self._kept[job.key] = statement

    def aside(self, job: Job) -> AbstractContextManager[None]:
        """A context in which the nodes of gangs of the same queue and lower priority aren't reserved, while this gang
        is served. On leaving it they are reserved again, except those that this gang took: it is nominated to these."""
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
        self._session.exhausted.clear()  # resources that ran out for others may suffice for this gang
        yield
        for key in below:
            self._hold(jobs[key])
        after = {uid for key in below for uid in self._kept[key].places()}
        lost = {row for uid, row in before.items() if uid not in after}
        for statement in self._session.held:
            if statement.job is job and not lost.isdisjoint(statement.places().values()):
                statement.nominate()
        self._session.exhausted.clear()

    # Placing nominated pods -------------------------------------------------------------------------------------------

    def _hold(self, job: Job) -> None:
        """Place the gang's pods on their nominated nodes: on free resources or, where victims haven't ended yet, on
        those being released. A pod whose node doesn't fit any more isn't placed; if the gang is bound to a network
        topology domain, none of its pods is then."""
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
        """Whether the nodes of the gang and of its sub-gangs are in domains that its network topology allows."""
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

    # End of a cycle ---------------------------------------------------------------------------------------------------

    def settle(self) -> bool:
        """End the cycle: keep the statements of gangs that can start by them or have started, and discard the others.
        Returns whether any was discarded."""
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
        """Replace the nominations by those of `held`, for the next cycle. Returns, by pod UID, the nominated node of
        pods whose `nominatedNodeName` has to change; an empty name removes it."""
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
        """The longest remaining grace period of the pods that are ending on a node."""
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
