"""Whether a gang fits: by sums, which quickly show that it can't, and by placing it on the snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vcbatch.scheduler.actions.bundles import Bundle
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.domain import Domain, Purpose
from vcbatch.scheduler.model.gang_counts import PLACED, members_of_sub
from vcbatch.scheduler.model.objects import Job, Run, TaskStatus
from vcbatch.scheduler.model.resources import EPS, Mask, Matrix, Vector, fits
from vcbatch.scheduler.model.sub_gangs import SubKey
from vcbatch.scheduler.topology.domain_search import domains_for, tasks_by_class


class GangTrial:
    """The pending pods of a gang that pods are to be evicted for, by sub-gang: all of them while it isn't ready; if it
    is, those of the first sub-gang that has any."""

    def __init__(self, session: Session, job: Job) -> None:
        self._session = session
        self._job = job
        self._parts = _pending(session, job)
        if session.ready(job):
            self._parts = dict(list(self._parts.items())[:1])
        self.runs = [run for runs in self._parts.values() for run in runs]
        self.tasks = [task for run in self.runs for task in run.tasks]
        self.need: Vector = sum(
            (len(run.tasks) * run.cls.request for run in self.runs), start=np.zeros(len(session.dims))
        )
        missing = job.min_member - job.ready_count - job.waiting_count - job.pending_best_effort
        self.count = max(missing, 1) if job.rules else len(self.tasks)
        """The least number of these pods that have to be placed."""

    @property
    def resources(self) -> Rows:
        """The resource columns in which any of its pods is compared with a node, ascending."""
        return np.array(sorted({r for run in self.runs for r in run.cls.needed.tolist()}), dtype=np.intp)

    def place(self, statement: Statement, domain: Domain) -> bool:
        """Pipeline all pending pods on nodes of the domain, whether their resources are free or being released. False,
        with nothing placed, if the gang doesn't get its minimum or one of its pods finds no node."""
        session, job = self._session, self._job
        before = statement.mark()
        grown = session.ready(job)
        for key, runs in self._parts.items():
            if self._part(statement, key, runs, domain) and (grown or session.pipelined(job)):
                return True
        statement.take_back(before)
        return False

    def _part(self, statement: Statement, key: SubKey | None, runs: list[Run], domain: Domain) -> bool:
        """Pipeline the pods of a sub-gang in the first of the domains allowed by its own network topology in which all
        of them fit."""
        session, job = self._session, self._job
        domains = [domain]
        if key is not None and job.rules[key[0]].topology is not None:
            groups = domains_for(session, job, Purpose.EVICT, sub=key, within=domain)
            domains = [inner for group in groups for inner in group]
        for inner in domains:
            mark = statement.mark()
            rows = None if len(inner.rows) == len(session.nodes) else inner.rows
            if all(self._run(statement, run, rows) for run in runs) and (
                key is None or _members(job, key) >= job.rules[key[0]].size
            ):
                return True
            statement.take_back(mark)
        return False

    def _run(self, statement: Statement, run: Run, within: Rows | None) -> bool:
        """Pipeline equal pods; whether all of them found a node."""
        placer, tasks, queue = self._session.placer, run.tasks, self._job.queue
        if run.cls.unsupported or queue is None or self._session.room_for(self._job, run.cls.request) < len(tasks):
            return False
        if self._session.coupled(tasks):
            for task in tasks:
                found = self._session.place_for(task, within=within)
                if found is None:
                    return False
                statement.pipeline([task], [found[0]])
            return True
        for task in tasks:
            rows = placer.on_idle(run.cls, 1, within=within) or placer.on_releasing(run.cls, 1, within=within)
            if not rows:
                return False
            statement.pipeline([task], rows)
            # Pipelined tasks don't use free resources, so the same node may be chosen again as far as its future
            # resources suffice.
            placer.returned(rows)
        return True


def _pending(session: Session, job: Job) -> dict[SubKey | None, list[Run]]:
    parts: dict[SubKey | None, list[Run]] = {}
    for run in session.runs(job):
        tasks = [task for task in run.tasks if task.status is TaskStatus.PENDING]
        if tasks:
            parts.setdefault(run.sub, []).append(Run(run.cls, run.role, run.sub, tasks))
    return parts


def _members(job: Job, key: SubKey) -> int:
    return members_of_sub(job, key, (*PLACED, TaskStatus.PIPELINED))


class Room:
    """The capacity of a domain for a gang after bundles are evicted, in sums and in slots: if either is too small,
    placing the gang needn't be tried. `within` has the domain's nodes, [N]; None for all."""

    def __init__(self, session: Session, trial: GangTrial, rows: Rows) -> None:
        self._session = session
        self._trial = trial
        nodes = session.nodes
        self.within: Mask | None = None
        if len(rows) < len(nodes):
            self.within = np.zeros(len(nodes), dtype=bool)
            self.within[rows] = True
        self._rows = rows
        self._resources = trial.resources
        self._need = trial.need[trial.resources]
        ending = nodes.alloc[trial.resources] - nodes.used[trial.resources] + nodes.releasing[trial.resources]
        self._free: Vector = (ending if self.within is None else ending[:, rows]).sum(axis=1)
        self._future: Matrix = ending - nodes.pipelined[trial.resources]
        self._wanted = [(cls, self._columns(cls), count) for cls, count in tasks_by_class(trial.runs)]
        everywhere = np.arange(len(nodes), dtype=np.intp)
        self._slots = [self._slots_of(cls, columns, everywhere) for cls, columns, _ in self._wanted]

    def _columns(self, cls: TaskClass) -> Rows:
        """The indexes of the resources of the class among those of the gang."""
        return np.searchsorted(self._resources, cls.needed)

    def add(self, bundle: Bundle, *, back: bool = False) -> None:
        """Remove the pods of the bundle, or restore them with `back`."""
        sign = -1.0 if back else 1.0
        self._free = self._free + sign * self._freed(bundle)
        rows = [self._session.state.row_of(task) for task in bundle.tasks]
        for task, row in zip(bundle.tasks, rows, strict=True):
            self._future[:, row] += sign * task.cls.request[self._resources]
        changed = np.array(sorted(set(rows)), dtype=np.intp)
        for slots, (cls, columns, _) in zip(self._slots, self._wanted, strict=True):
            slots[changed] = self._slots_of(cls, columns, changed)

    def filling(self, source: Iterator[Bundle], *, least: int) -> list[Bundle]:
        """The next `least` bundles, and further ones until the sum of free resources covers the gang's request."""
        found: list[Bundle] = []
        free = self._free
        for bundle in source:
            found.append(bundle)
            free = free + self._freed(bundle)
            if len(found) >= least and fits(self._need, free):
                break
        return found

    def _freed(self, bundle: Bundle) -> Vector:
        """The requests of the bundle's pods on the domain's nodes; [K]."""
        within = self.within
        if within is None:
            return bundle.amount[self._resources]
        here = [task.cls.request for task in bundle.tasks if within[self._session.state.row_of(task)]]
        return np.sum(here, axis=0)[self._resources] if here else np.zeros(len(self._resources))

    def may_do(self, more: Floats | None = None) -> bool:
        """Whether the gang may fit with `more` free resources, [K, N], in the columns of `GangTrial.resources`: the sum
        covers all its requests, and the nodes have slots for as many pods as it lacks, each class counted alone."""
        if more is None:
            return fits(self._need, self._free) and self._enough(self._slots)
        if not fits(self._need, self._free + more[:, self._rows].sum(axis=1)):
            return False
        everywhere = np.arange(len(self._session.nodes), dtype=np.intp)
        before, self._future = self._future, self._future + more
        slots = [self._slots_of(cls, columns, everywhere) for cls, columns, _ in self._wanted]
        self._future = before
        return self._enough(slots)

    def _enough(self, slots: Sequence[Floats]) -> bool:
        found = sum(min(count, float(of.sum())) for of, (_, _, count) in zip(slots, self._wanted, strict=True))
        return found >= self._trial.count

    def _slots_of(self, cls: TaskClass, columns: Rows, rows: Rows) -> Floats:
        """For how many pods of the class the nodes' resources suffice, if its filters admit them; [len(rows)]."""
        slots = slots_in(self._future[columns[:, None], rows], cls.need)
        admitted = self._session.placer.static(cls).mask[rows]
        if self.within is not None:
            admitted = admitted & self.within[rows]
        return np.where(admitted, slots, 0.0)


def slots_in(free: Floats, need: Floats) -> Floats:
    """For how many pods with the request `need`, [K, 1], the free resources of nodes, [K, M], suffice; [M]."""
    asked = np.where(need > 0, need, 1.0)
    slots = np.where(need > 0, np.floor((free + EPS) / asked), np.where(free > -EPS, np.inf, 0.0)).min(axis=0)
    return np.maximum(slots, 0.0)
