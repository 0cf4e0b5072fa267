"""Placing a gang of which some task found no node although a placement may exist: a bounded search.

The first pass gives each task the best node that is left. It is exact for tasks of one kind that don't depend on each
other. A gang of several kinds, or one whose pods depend on where others are (affinity, ports, claims, volumes), can
fail by it although it fits. The search runs only then, and only if the sums don't rule the gang out. Its budget is in
steps, so that the same snapshot gives the same result.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from vcbatch.api.messages import search_ended
from vcbatch.scheduler.actions.attempt import Attempt, Sheet
from vcbatch.scheduler.actions.sub_gangs import SubGangAttempt
from vcbatch.scheduler.picture.classes import TaskClass
from vcbatch.scheduler.picture.columns import Floats, Rows
from vcbatch.scheduler.picture.model import Job, Run, Task
from vcbatch.scheduler.placing.search_budget import steps_of_search
from vcbatch.scheduler.resources import EPS
from vcbatch.scheduler.statement import Statement
from vcbatch.scheduler.topology.domains import Domain

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

MOST_ORDERS: Final = 8
"""In how many orders the kinds of tasks of a gang are placed."""
MOST_DOMAINS: Final = 16
"""How many domains (zones, hosts) are tried for a gang whose pods have to share one."""


class SearchAttempt(Attempt):
    """Places the gang's tasks in their order first. Where one finds no node, it tries in turn:

    1. other orders: the kinds with the fewest places to spare first, then those that failed before all others;
    2. domains: where pods of the gang have to share a value of a node label, each value, those with most places first;
    3. other nodes than the best, task by task, depth first.
    """

    def work_off(self, sheet: Sheet) -> None:
        """Place runs from the sheet until the gang is ready. What is left on it is for another turn."""
        mark, whole = self.statement.mark(), list(sheet)
        super().work_off(sheet)
        first = self.blocker
        if self._holds() or first is None or self.refused or first.reason.hopeless:
            return
        kinds = {self._kind(task) for run in whole for task in run.tasks}
        depends = any(self.session.coupled(run.tasks) for run in whole)
        if len(kinds) < 2 and not depends:
            return
        self.statement.take_back(mark)
        if self._ruled_out(whole):
            return
        left = self._search(list(self._split(whole)), mark, depends=depends)
        self.blocker = first
        if left is None:
            if self._steps < 1:
                text = search_ended(first.text, steps=steps_of_search(len(self.session.nodes)))
                self.blocker = replace(first, text=text)
                if self.session.blockers.get(self.job.key) is first:
                    self.session.blockers[self.job.key] = self.blocker
                self.session.undecided.add(self.job.key)
            return
        places = {task.uid: at for at, task in enumerate(task for run in whole for task in run.tasks)}
        sheet.clear()
        sheet.extend(sorted(left, key=lambda run: places[run.tasks[0].uid]))
        if self.session.blockers.get(self.job.key) is first:
            del self.session.blockers[self.job.key]

    def _search(self, runs: list[Run], mark: int, *, depends: bool) -> Sheet | None:
        """What is left of the gang's runs once it is placed; None where it isn't."""
        self._steps = min(steps_of_search(len(self.session.nodes)), self.session.search_steps)
        self.session.search_steps -= self._steps
        try:
            scarce = self._scarce_first(runs)
            left = self._in_orders((runs, scarce), mark)
            if left is None:
                left = self._in_domains(scarce, mark)
            if left is None:
                left = self._on_other_nodes(self._afresh(scarce, mark), depends=depends)
            return left
        finally:
            self.session.search_steps += self._steps

    def _ruled_out(self, runs: Sequence[Run]) -> bool:
        """Whether sums show that the gang can't get its minimum: the places for each kind, each counted as if it were
        alone, or what all kinds request of what their nodes have free together."""
        session, job = self.session, self.job
        rows = self._rows()
        wanted = Counter[int]()
        classes: dict[int, TaskClass] = {}
        for run in runs:
            classes[run.cls.id] = run.cls
            wanted[run.cls.id] += len(run.tasks)
        most = 0
        for number, cls in classes.items():
            most += min(float(session.placer.slots(cls, rows, promising=True).sum()), wanted[number])
        if job.ready_count + job.waiting_count + most < job.min_member:
            return True
        if not self._indivisible:
            return False
        allowed = np.zeros(len(session.nodes), dtype=bool)
        for cls in classes.values():
            allowed |= session.placer.static(cls).mask
        within = rows[allowed[rows]]
        free = np.maximum(session.nodes.future()[:, within], 0.0).sum(axis=1)
        need = sum((cls.request * wanted[number] for number, cls in classes.items()), np.zeros(len(free)))
        return bool((need > free + EPS).any())

    # Orders ----------------------------------------------------------------------------------------------------------

    def _in_orders(self, orders: Iterable[list[Run]], mark: int) -> Sheet | None:
        """Try each order, and from it on those in which what failed comes first."""
        tried: list[list[Run]] = []
        for start in orders:
            order: list[Run] | None = start
            while order is not None and order not in tried and len(tried) < MOST_ORDERS:
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

    def _scarce_first(self, runs: Sequence[Run]) -> list[Run]:
        """The runs with the fewest places to spare first, of equals those that request most."""
        rows = self._rows()
        kinds = Counter(run.cls.id for run in runs for _ in run.tasks)
        spare = {
            run.cls.id: float(self.session.placer.slots(run.cls, rows, promising=True).sum()) - kinds[run.cls.id]
            for run in runs
        }
        total = np.maximum(self.session.total, 1.0)
        return sorted(
            runs, key=lambda run: (spare[run.cls.id], -float((run.cls.request / total[: len(run.cls.request)]).max()))
        )

    def _better(self, order: list[Run]) -> list[Run] | None:
        """The order in which those come first of which one just found no node; None where that is no other."""
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
        """Try the domains that pods of the gang have to share by required affinity, one after the other."""
        keys = {term.topology_key for run in runs for term in run.cls.inter_pod.affinity}
        for key in sorted(keys):
            for rows in self._domains(key, runs):
                self.only = rows
                try:
                    left = self._in_order(runs, mark)
                finally:
                    self.only = None
                if left is not None:
                    return left
        return None

    def _domains(self, key: str, runs: Sequence[Run]) -> list[Rows]:
        """The rows of the nodes of each value of the label, those first that have places for most of the tasks."""
        rows = self._rows()
        values = self.session.state.inter_pod.domains_of(key)[0][rows]
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
        """The same, where each task may go to any node on which the rest still finds one."""
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

    def _alike(self, runs: Iterable[Run], *, depends: bool) -> Mapping[int, Hashable]:
        """What nodes are to the filters of the gang, by row: nodes with equal values and equal quantities take the
        same tasks. Where pods depend on each other each node is another one, unless they claim devices only."""
        classes = {run.cls.id: run.cls for run in runs}
        apart = depends and (
            self.session.state.inter_pod.active
            or any(cls.inter_pod.any or cls.ports or not self._claiming(cls) for cls in classes.values())
        )
        if apart:
            return {row: row for row in range(len(self.session.nodes))}
        masks = np.stack([self.session.placer.static(cls).mask for cls in classes.values()])
        return {row: masks[:, row].tobytes() for row in range(masks.shape[1])}

    def _deeper(self, tasks: Sequence[tuple[Run, int]], at: int, alike: Mapping[int, Hashable]) -> int | None:
        """How many of the tasks are placed once the gang holds; None, and none from `at` on, where it can't."""
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

    def _same(self, task: Task, row: int, rows: Rows, alike: Mapping[int, Hashable]) -> list[int]:
        """The rows of the nodes that lead no further than this one does."""
        candidates = rows
        if self._claiming(task.cls):
            candidates = rows[self.session.state.claimed.alike(task, row)[rows]]
        state = self.session.placer.state_of(row)
        return [
            other
            for other in candidates.tolist()
            if alike[other] == alike[row] and self.session.placer.state_of(other) == state
        ]

    # -----------------------------------------------------------------------------------------------------------------

    def _afresh(self, order: Iterable[Run], mark: int) -> Sheet:
        """Take back what was placed, and forget what failed."""
        self.statement.take_back(mark)
        self.restart()
        return deque(order)

    def _rows(self) -> Rows:
        """The rows of the nodes that may be taken."""
        within = self.within()
        return np.arange(len(self.session.nodes), dtype=np.intp) if within is None else within

    def _holds(self) -> bool:
        return self.session.ready(self.job) or self.session.pipelined(self.job)

    def _split(self, runs: Iterable[Run]) -> Iterator[Run]:
        """The runs in parts of one kind."""
        for run in runs:
            for _, tasks in groupby(run.tasks, key=self._kind):
                yield Run(run.cls, run.role, run.sub, list(tasks))

    def _kind(self, task: Task) -> Hashable:
        return (task.cls.id, self.session.state.claimed.kind_of(task)) if self._claiming(task.cls) else task.cls.id

    def _claiming(self, cls: TaskClass) -> bool:
        return self.session.state.claimed.asked(cls)


def attempt_of(session: Session, job: Job, statement: Statement, *, domain: Domain | None = None) -> Attempt:
    """How a gang is placed whose members needn't be in one domain of the network, or in this one."""
    kind = SubGangAttempt if job.rules else SearchAttempt
    return kind(session, job, statement, domain=domain)
