"""A bounded search for the placement of a gang when some task found no node although a placement may exist.

The first pass gives each task the best remaining node. It is exact for tasks of one kind that don't depend on each
other. A gang of several kinds, or one whose pods depend on the nodes of others (affinity, ports, claims, volumes), can
fail by it although it fits. The search runs only then, and only if sums don't exclude the gang. Its budget is in steps,
so that the same snapshot gives the same result.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np

from vcbatch.api.messages import search_ended
from vcbatch.scheduler.actions.attempt import Attempt, Sheet
from vcbatch.scheduler.actions.sub_gangs import SubGangAttempt
from vcbatch.scheduler.feasibility.judge import Judge
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.domain import Domain
from vcbatch.scheduler.model.objects import Job, Run, Task
from vcbatch.scheduler.model.resources import EPS, PODS

SEARCH: Final = "gangSearch"
"""The argument of `allocate` that disables the search."""
MOST_ORDERS: Final = 8
"""How many orders of the kinds of tasks of a gang are tried."""
MOST_DOMAINS: Final = 16
"""How many topology domains (zones, hosts) are tried for a gang whose pods have to share one."""


class SearchAttempt(Attempt):
    """Places the gang's tasks in their order first. If one finds no node, it tries in turn:

    1. other orders: the kinds with the fewest slots to spare first, then those that failed before all others;
    2. domains: if pods of the gang have to share a value of a node label, each value, those with most slots first;
    3. other nodes than the best, task by task, depth first.
    """

    def __init__(self, session: Session, job: Job, statement: Statement, *, domain: Domain | None = None) -> None:
        super().__init__(session, job, statement, domain=domain)
        self._only: Rows | None = None
        """The rows of the only nodes that may be used in a part of the search; None without that restriction."""
        self._steps = 0

    def within(self) -> Rows | None:
        return super().within() if self._only is None else self._only

    def work_off(self, sheet: Sheet) -> None:
        """Place runs from the sheet until the gang is ready. Runs left on it are for the next time the gang is
        served."""
        mark, whole = self.statement.mark(), list(sheet)
        super().work_off(sheet)
        first = self.blocker
        if self._holds() or first is None or self.refused or first.reason.hopeless:
            return
        depends = any(self.session.coupled(run.tasks) for run in whole)
        if not depends and len({run.cls.id for run in whole}) < 2:
            return
        runs = list(self._split(whole))
        better = self._better(runs)
        self.statement.take_back(mark)
        places = self.session.placer.places(whole, self._rows(), promising=True)
        if self._ruled_out(whole, places) or self.session.shared(Judge).impossible(self.job) or not self._begin():
            return
        scarce = self._scarce_first(runs, places)
        left = self._in_orders([runs], (better, scarce), mark)
        if left is None:
            left = self._in_domains(scarce, mark)
        if left is None:
            left = self._on_other_nodes(self._afresh(scarce, mark), depends=depends)
        answered = left is not None or self._steps > 0
        self.session.searches.end(self.job, left=self._steps, answered=answered)
        self.blocker = first
        if left is not None:
            self._put_back(left, whole, sheet)
            if self.session.blockers.get(self.job.key) is first:
                del self.session.blockers[self.job.key]
        elif not answered:
            self.blocker = replace(first, text=search_ended(first.text, steps=self.session.searches.full))
            if self.session.blockers.get(self.job.key) is first:
                self.session.blockers[self.job.key] = self.blocker

    def _begin(self) -> bool:
        """Reserve the steps of the search; False if none is to be made now."""
        session, queue = self.session, self.job.queue
        assert queue is not None  # noqa: S101 - eligible gangs have a queue
        # Pods that are added to nodes matter here too, because pods of the gang may require to be near them.
        stamp = (*session.stamp(queue), float(session.nodes.used[PODS].sum()))
        if not session.searches.begin(self.job, stamp):
            return False
        self._steps = session.searches.full
        return True

    def _put_back(self, left: Iterable[Run], whole: Iterable[Run], sheet: Sheet) -> None:
        """Put the runs left back on the sheet, in task order."""
        places = {task.uid: at for at, task in enumerate(task for run in whole for task in run.tasks)}
        sheet.clear()
        sheet.extend(sorted(left, key=lambda run: places[run.tasks[0].uid]))

    def _ruled_out(self, runs: Iterable[Run], places: Mapping[int, tuple[int, float]]) -> bool:
        """Whether sums show that the gang can't get its minimum: the slots for each class, or the requests of all
        classes against the free resources of their nodes."""
        session, job = self.session, self.job
        most = sum(min(count, free) for count, free in places.values())
        if job.ready_count + job.waiting_count + most < job.min_member:
            return True
        if not self._indivisible:
            return False
        allowed = np.zeros(len(session.nodes), dtype=bool)
        classes = {run.cls.id: run.cls for run in runs}
        for cls in classes.values():
            allowed |= session.placer.static(cls).mask
        rows = self._rows()
        free = np.maximum(session.nodes.future()[:, rows[allowed[rows]]], 0.0).sum(axis=1)
        need = sum((cls.request * places[number][0] for number, cls in classes.items()), np.zeros(len(free)))
        return bool((need > free + EPS).any())

    # Orders ----------------------------------------------------------------------------------------------------------

    def _in_orders(self, tried: list[list[Run]], starts: Iterable[list[Run] | None], mark: int) -> Sheet | None:
        """Try each order not yet `tried`, and then repeatedly the order in which the tasks that failed come first."""
        for start in starts:
            order = start
            while order is not None and order not in tried and len(tried) <= MOST_ORDERS and self._steps > 0:
                tried.append(order)
                left = self._in_order(order, mark)
                if left is not None:
                    return left
                order = self._better(order)
        return None

    def _in_order(self, order: Sequence[Run], mark: int) -> Sheet | None:
        left = self._afresh(order, mark)
        self._steps -= len(order)
        super().work_off(left)
        return left if self._holds() else None

    def _scarce_first(self, runs: Sequence[Run], places: Mapping[int, tuple[int, float]]) -> list[Run]:
        """The runs with the fewest slots to spare first, of equals those with the largest requests."""
        total = np.maximum(self.session.total, 1.0)

        def key(run: Run) -> tuple[float, float]:
            count, free = places[run.cls.id]
            return free - count, -float((run.cls.request / total[: len(run.cls.request)]).max())

        return sorted(runs, key=key)

    def _better(self, order: list[Run]) -> list[Run] | None:
        """The order with the kind of the task that just failed first; None if that is the same order."""
        blocker = self.blocker
        if blocker is None or self.refused:
            return None
        failed = next((task for run in order for task in run.tasks if task.name == blocker.task), None)
        if failed is None:
            return None
        kind = self._kind(failed)
        better = sorted(order, key=lambda run: self._kind(run.tasks[0]) != kind)
        return None if better == order else better

    # Domains ---------------------------------------------------------------------------------------------------------

    def _in_domains(self, runs: Sequence[Run], mark: int) -> Sheet | None:
        """Try the topology domains that pods of the gang have to share by required pod affinity, one after the
        other."""
        keys = {term.topology_key for run in runs for term in run.cls.inter_pod.affinity}
        for key in sorted(keys):
            for rows in self._domains(key, runs):
                if self._steps < 1:
                    return None
                self._only = rows
                left = self._in_order(runs, mark)
                self._only = None
                if left is not None:
                    return left
        return None

    def _domains(self, key: str, runs: Sequence[Run]) -> list[Rows]:
        """The rows of the nodes of each value of the label, the values with slots for most of the tasks first."""
        rows = self._rows()
        values = self.session.state.inter_pod.domains(key)[rows]
        classes = {run.cls.id: run.cls for run in runs}
        counts = Counter(run.cls.id for run in runs for _ in run.tasks)
        places: Floats = np.zeros(int(values.max(initial=-1)) + 1)
        for number, cls in classes.items():
            slots = np.minimum(self.session.placer.slots(cls, rows, promising=True), counts[number])
            of_values = np.bincount(values[values >= 0], weights=slots[values >= 0], minlength=len(places))
            places += np.minimum(of_values, counts[number])
        best = np.argsort(-places, kind="stable")[:MOST_DOMAINS]
        return [rows[values == value] for value in best.tolist()]

    # Nodes -----------------------------------------------------------------------------------------------------------

    def _on_other_nodes(self, runs: Sheet, *, depends: bool) -> Sheet | None:
        """Try other nodes: each task may use any node on which the rest still finds one. Returns the runs left, None if
        that fails."""
        tasks = [(run, at) for run in runs for at in range(len(run.tasks))]
        if len(tasks) > self._steps:
            self._steps = 0
            return None
        turn = self.job.searches % len(tasks)
        tasks = [*tasks[turn:], *tasks[:turn]]
        placed = self._deeper(tasks, 0, self._alike(runs, depends=depends))
        if placed is None:
            return None
        return deque(Run(run.cls, run.role, run.sub, [run.tasks[at]]) for run, at in tasks[placed:])

    def _alike(self, runs: Iterable[Run], *, depends: bool) -> Rows:
        """Numbers that are equal for nodes which pass the same filters of the gang, so that with equal quantities they
        take the same tasks; [N]. If pods depend on each other all nodes differ, unless the pods depend on device claims
        only."""
        classes = {run.cls.id: run.cls for run in runs}
        apart = depends and (
            self.session.state.inter_pod.active
            or any(cls.inter_pod.any or cls.ports or not self._claiming(cls) for cls in classes.values())
        )
        if apart:
            return np.arange(len(self.session.nodes), dtype=np.intp)
        masks = np.stack([self.session.placer.static(cls).mask for cls in classes.values()])
        return np.unique(masks, axis=1, return_inverse=True)[1].reshape(-1)

    def _deeper(self, tasks: Sequence[tuple[Run, int]], at: int, alike: Rows) -> int | None:
        """Place the tasks from `at` on. Returns how many tasks are placed once the gang can start or wait; None, with
        none placed from `at` on, if it can't."""
        if self._holds():
            return at
        if at == len(tasks):
            return None
        (run, nth), mark = tasks[at], self.statement.mark()
        rows = self._rows()
        while self._steps > 0 and self.session.room_of(self.job, run.cls.request) >= 1:
            leaning = self.session.leaning(self.job, run.sub, run.cls, self.domain)
            found = self.session.place_for(run.tasks[nth], within=rows, leaning=leaning)
            if found is None or not found[1]:
                return None
            self._steps -= 1
            same = self._same(run.tasks[nth], found[0], rows, alike)
            self.statement.allocate([run.tasks[nth]], [found[0]])
            placed = self._deeper(tasks, at + 1, alike)
            if placed is not None:
                return placed
            self.statement.take_back(mark)
            rows = np.setdiff1d(rows, same)
        return None

    def _same(self, task: Task, row: int, rows: Rows, alike: Rows) -> Rows:
        """The rows of the nodes that are equivalent to this one for the task."""
        same = rows[alike[rows] == alike[row]]
        if self._claiming(task.cls):
            same = same[self.session.state.claimed.alike(task, row)[same]]
        return same[self.session.placer.equal_state(row, same)]

    # -----------------------------------------------------------------------------------------------------------------

    def _afresh(self, order: Iterable[Run], mark: int) -> Sheet:
        """Roll back the placements, and forget failures."""
        self.statement.take_back(mark)
        self.restart()
        return deque(order)

    def _rows(self) -> Rows:
        """The rows of the nodes that may be used."""
        within = self.within()
        return np.arange(len(self.session.nodes), dtype=np.intp) if within is None else within

    def _holds(self) -> bool:
        return self.session.ready(self.job) or self.session.pipelined(self.job)

    def _split(self, runs: Iterable[Run]) -> Iterator[Run]:
        """The runs split into parts of one kind."""
        for run in runs:
            for _, tasks in groupby(run.tasks, key=self._kind):
                yield Run(run.cls, run.role, run.sub, list(tasks))

    def _kind(self, task: Task) -> Hashable:
        return (task.cls.id, self.session.state.claimed.kind_of(task)) if self._claiming(task.cls) else task.cls.id

    def _claiming(self, cls: TaskClass) -> bool:
        return self.session.state.claimed.asked(cls)


def attempt_of(session: Session, job: Job, statement: Statement, *, domain: Domain | None = None) -> Attempt:
    """The attempt for a gang whose members needn't share a network topology domain, or share this one."""
    searching = session.policy.action_arguments.get("allocate", {}).get(SEARCH, True)
    kind = SubGangAttempt if job.rules else SearchAttempt if searching else Attempt
    return kind(session, job, statement, domain=domain)
