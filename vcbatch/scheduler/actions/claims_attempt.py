"""Placing a gang whose pods claim devices: pods that others of it leave nothing for are placed before these."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from vcbatch.scheduler.actions.attempt import Attempt, Sheet
from vcbatch.scheduler.actions.sub_gangs import SubGangAttempt
from vcbatch.scheduler.picture.model import Job, Run, Task
from vcbatch.scheduler.statement import Statement
from vcbatch.scheduler.topology.domains import Domain

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

MOST_ORDERS: Final = 8
"""In how many orders the pods of a gang are tried."""
MOST_PLACES: Final = 128
"""How many places are tried for pods of a gang whose orders are through."""


class ClaimsAttempt(Attempt):
    """Tries the gang's tasks in their order first. Where one finds no node, those that claim the same are tried before
    all others, and so on, until the gang is placed, or those fail that came first. Where each order lacks something,
    other nodes than the best are tried too, depth first."""

    def work_off(self, sheet: Sheet) -> None:
        """Place runs from the sheet until the gang is ready. What is left on it is for another turn."""
        mark, whole = self.statement.mark(), list(sheet)
        super().work_off(sheet)
        first = self.blocker
        if self._holds() or first is None or self.refused:
            return
        left = self._in_other_orders(list(self._split(whole)), mark)
        if left is None:
            self.blocker = first
            return
        places = {task.uid: at for at, task in enumerate(task for run in whole for task in run.tasks)}
        sheet.clear()
        sheet.extend(sorted(left, key=lambda run: places[run.tasks[0].uid]))
        if self.session.blockers.get(self.job.key) is first:
            del self.session.blockers[self.job.key]

    def _in_other_orders(self, order: list[Run], mark: int) -> Sheet | None:
        """What is left of the gang's runs once it is placed; None where it isn't."""
        tried: list[list[Run]] = []
        while order not in tried and len(tried) < MOST_ORDERS:
            tried.append(order)
            better = self._better(order)
            if better is None:
                return None
            order = better
            left = self._afresh(order, mark)
            super().work_off(left)
            if self._holds():
                return left
        return self._on_other_nodes(self._afresh(order, mark))

    def _afresh(self, order: Iterable[Run], mark: int) -> Sheet:
        """Take back what was placed, and forget what failed."""
        self.statement.take_back(mark)
        self.restart()
        return deque(order)

    def _on_other_nodes(self, runs: Sheet) -> Sheet | None:
        """The same, where each task may go to any node on which the rest still finds one."""
        tasks = [(run, at) for run in runs for at in range(len(run.tasks))]
        if len(tasks) > MOST_PLACES:
            return None
        self._places_left = MOST_PLACES
        placed = self._deeper(tasks, 0)
        if placed is None:
            return None
        return deque(Run(run.cls, run.role, run.sub, [run.tasks[at]]) for run, at in tasks[placed:])

    def _deeper(self, tasks: Sequence[tuple[Run, int]], at: int) -> int | None:
        """How many of the tasks are placed once the gang holds; None, and none from `at` on, where it can't."""
        if self._holds():
            return at
        if at == len(tasks):
            return None
        (run, nth), mark = tasks[at], self.statement.mark()
        rows = np.arange(len(self.session.nodes)) if self.domain is None else self.domain.rows
        while self._places_left and self.session.room_of(self.job, run.cls.request) >= 1:
            leaning = self.session.leaning(self.job, run.sub, run.cls, self.domain)
            found = self.session.place_for(run.tasks[nth], within=rows, leaning=leaning)
            if found is None or not found[1]:
                return None
            self._places_left -= 1
            # Nodes that are like this one lead no further than it does.
            alike = self.session.state.claimed.alike(run.tasks[nth], found[0])
            states = {row: self.session.placer.state_of(row) for row in np.flatnonzero(alike).tolist()}
            same = [row for row, state in states.items() if state == states[found[0]]]
            self.statement.allocate([run.tasks[nth]], [found[0]])
            placed = self._deeper(tasks, at + 1)
            if placed is not None:
                return placed
            self.statement.take_back(mark)
            rows = np.setdiff1d(rows, same)
        return None

    def _holds(self) -> bool:
        return self.session.ready(self.job) or self.session.pipelined(self.job)

    def _split(self, runs: Iterable[Run]) -> Iterator[Run]:
        """The runs in parts that claim the same."""
        for run in runs:
            for _, tasks in groupby(run.tasks, key=self._kind):
                yield Run(run.cls, run.role, run.sub, list(tasks))

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

    def _kind(self, task: Task) -> Hashable:
        return self.session.state.claimed.kind_of(task)


def attempt_of(session: Session, job: Job, statement: Statement, *, domain: Domain | None = None) -> Attempt:
    """How a gang is placed whose members needn't be in one domain of the network, or in this one."""
    claiming = any(session.state.claimed.asked(run.cls) for run in session.runs(job))
    kind = SubGangAttempt if job.rules else ClaimsAttempt if claiming else Attempt
    return kind(session, job, statement, domain=domain)
