"""An undoable list of placements: applied to the picture at once, then committed as a whole or taken back exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vcbatch.scheduler.model import Job, Task, TaskStatus
from vcbatch.scheduler.resources import Vector
from vcbatch.scheduler.result import Bind, Held

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session


class _Placement(NamedTuple):
    tasks: Sequence[Task]
    rows: Sequence[int]
    status: TaskStatus


class Statement:
    """Placements of one gang's tasks. Amounts are integers, so taking them back restores every number."""

    __slots__ = ("_bound", "_done", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._done: list[_Placement] = []
        self._bound: list[_Placement] = []

    def __bool__(self) -> bool:
        return bool(self._done)

    def allocate(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Place alike pending tasks on what is free."""
        self._place(tasks, rows, TaskStatus.ALLOCATED)

    def pipeline(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Promise alike pending tasks what is being released."""
        self._place(tasks, rows, TaskStatus.PIPELINED)

    def _place(self, tasks: Sequence[Task], rows: Sequence[int], status: TaskStatus) -> None:
        self._session.state.shift(tasks, status, rows)
        self._session.placed(tasks, 1)
        self._done.append(_Placement(tasks, rows, status))

    def amount(self, width: int) -> Vector:
        """What it placed takes in all, shape [width]."""
        total = np.zeros(width)
        for placement in self._done:
            total += len(placement.tasks) * placement.tasks[0].cls.request
        return total

    def mark(self) -> int:
        """The point reached, for `take_back`."""
        return len(self._done)

    def take_back(self, mark: int) -> None:
        """Undo what was placed after that point, last first."""
        for tasks, rows, _ in reversed(self._done[mark:]):
            self._session.state.shift(tasks, TaskStatus.PENDING, rows)
            self._session.placed(tasks, -1)
            self._session.placer.returned(rows)
        del self._done[mark:]

    def discard(self) -> None:
        """Take everything back."""
        self.take_back(0)

    @property
    def job(self) -> Job | None:
        """Whose tasks it placed; None while it placed none."""
        return self._done[0].tasks[0].job if self._done else None

    @property
    def size(self) -> int:
        """How many tasks it placed."""
        return sum(len(placement.tasks) for placement in self._done)

    def commit(self) -> list[Bind]:
        """Turn placements on free resources into binds. What was promised besides stays in the statement, for who
        holds it until the cycle ends."""
        binds: list[Bind] = []
        promised: list[_Placement] = []
        for placement in self._done:
            if placement.status is TaskStatus.PIPELINED:
                promised.append(placement)
                continue
            self._session.state.bind(placement.tasks)
            self._bound.append(placement)
            binds += [Bind(t.namespace, t.name, t.uid, t.node) for t in placement.tasks]
        if any(p.tasks[0].cls.profile.claims for p in self._bound):
            binds = self._with_claims()
        self._done = promised
        return binds

    def _with_claims(self) -> list[Bind]:
        """The binds with what has to be bound before them; of the gang as a whole where there is such a claim."""
        volumes = self._session.state.volumes
        tasks = [task for placement in self._bound for task in placement.tasks]
        wanted = [tuple(volumes.bindings(task, task.node)) for task in tasks]
        gang = tasks[0].job.key if tasks[0].job is not None and any(wanted) else ""
        return [Bind(t.namespace, t.name, t.uid, t.node, gang, w) for t, w in zip(tasks, wanted, strict=True)]

    def retract(self) -> set[str]:
        """Take what was committed back, before anybody was told. Returns the UIDs of the pods."""
        for tasks, rows, _ in reversed(self._bound):
            self._session.state.shift(tasks, TaskStatus.PENDING, rows)
            self._session.placed(tasks, -1)
        taken = {task.uid for placement in self._bound for task in placement.tasks}
        self._bound.clear()
        return taken

    def held(self) -> list[Held]:
        """What the statement holds now."""
        return [
            Held(t.namespace, t.name, t.uid, t.node, placement.status is TaskStatus.PIPELINED)
            for placement in self._done
            for t in placement.tasks
        ]
