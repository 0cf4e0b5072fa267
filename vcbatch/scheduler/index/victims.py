"""The pods that may be evicted, in arrays: the pods of gangs on nodes, updated by events.

An action that evicts first determines which nodes could help at all, by sums over these arrays; only for those are
plugins called for single pods. Maintained only if the scheduler configuration has an action that evicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import NodeInfo, Task, TaskStatus
from vcbatch.scheduler.model.resources import Mask

Ints = npt.NDArray[np.int64]

VICTIM_STATUSES = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})
"""Statuses of pods that may be evicted (reclaim evicts running ones only)."""
_FIRST_SIZE = 64
_FORGET_ABOVE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """K pods of the table, with the inputs of rules about many pods at once; all [K].

    `nodes` are rows of the node table, `jobs` of the gang table, `classes` of `requests` ([C, R]), the request of a pod
    of the class.
    """

    seats: Rows
    nodes: Rows
    jobs: Rows
    classes: Rows
    priority: Ints
    requests: Floats

    def only(self, mask: Mask) -> Candidates:
        """The candidates for which the mask, [K], is true."""
        return Candidates(
            seats=self.seats[mask],
            nodes=self.nodes[mask],
            jobs=self.jobs[mask],
            classes=self.classes[mask],
            priority=self.priority[mask],
            requests=self.requests,
        )

    def amounts(self, resources: Rows, count: int) -> Floats:
        """The sum of their requests for these resources on each of `count` nodes; [K, N]."""
        out = np.zeros((len(resources), count))
        for i, resource in enumerate(resources):
            out[i] = np.bincount(self.nodes, weights=self.requests[self.classes, resource], minlength=count)
        return out

    def on(self, count: int) -> Mask:
        """Which of `count` nodes have any of them."""
        there = np.zeros(count, dtype=bool)
        there[self.nodes] = True
        return there


class VictimTable:
    """Every pod of a gang that is bound or running has a seat: its row in these arrays.

    Attributes:
        tasks: by seat; None if it is free.
        stamp: grows whenever a pod is added that might be evicted.
    """

    def __init__(self) -> None:
        self.stamp = 0
        self._reset()

    def _reset(self) -> None:
        self.tasks: list[Task | None] = []
        self._free: list[int] = []
        self._live: Mask = np.zeros(0, dtype=bool)
        self._running: Mask = np.zeros(0, dtype=bool)
        self._preemptable: Mask = np.zeros(0, dtype=bool)
        self._priority: Ints = np.zeros(0, dtype=np.int64)
        self._job: Rows = np.zeros(0, dtype=np.intp)
        self._class: Rows = np.zeros(0, dtype=np.intp)
        self._node: Rows = np.zeros(0, dtype=np.intp)
        self._node_ids: dict[str, int] = {}
        self._row_of_id: Rows = np.zeros(0, dtype=np.intp)
        self._class_rows: dict[int, int] = {}
        self._classes: list[TaskClass] = []
        self._requests: Floats = np.zeros((0, 0))
        self._settled: tuple[list[NodeInfo], int] = ([], 0)

    def __len__(self) -> int:
        return int(self._live.sum())

    # Updates ---------------------------------------------------------------------------------------------------------

    def enter(self, task: Task) -> None:
        """Add a pod on a node, with its present status."""
        if task.job is None or task.status not in VICTIM_STATUSES:
            return
        seat = task.seat = self._free.pop() if self._free else self._append()
        self.tasks[seat] = task
        self._live[seat] = True
        self._running[seat] = task.status is TaskStatus.RUNNING
        self._preemptable[seat] = task.preemptable
        self._priority[seat] = task.priority
        self._job[seat] = task.job.row
        self._class[seat] = self._class_row(task.cls)
        self._node[seat] = self._node_id(task.node)
        self.stamp += 1

    def hide(self, task: Task) -> None:
        """Exclude a pod that is evicted on the snapshot."""
        if task.seat >= 0:
            self._live[task.seat] = False

    def show(self, task: Task) -> None:
        """Include a pod again whose eviction was rolled back."""
        if task.seat >= 0:
            self._live[task.seat] = True

    def leave(self, task: Task) -> None:
        """Remove a pod that leaves its node or changes its status."""
        seat = task.seat
        if seat < 0:
            return
        task.seat = -1
        self.tasks[seat] = None
        self._live[seat] = False
        self._free.append(seat)

    def _append(self) -> int:
        seat = len(self.tasks)
        self.tasks.append(None)
        if seat == len(self._live):
            grown = max(_FIRST_SIZE, 2 * seat)
            for name in ("_live", "_running", "_preemptable", "_priority", "_job", "_class", "_node"):
                old: npt.NDArray[Any] = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros(grown - seat, dtype=old.dtype)]))
        return seat

    def _class_row(self, cls: TaskClass) -> int:
        row = self._class_rows.get(cls.id)
        if row is None:
            row = self._class_rows[cls.id] = len(self._classes)
            self._classes.append(cls)
        return row

    def _node_id(self, name: str) -> int:
        known = self._node_ids.get(name)
        if known is None:
            known = self._node_ids[name] = len(self._node_ids)
            self._row_of_id = np.append(self._row_of_id, -1)
        return known

    def fill(self, tasks: Iterable[Task]) -> None:
        """Add the pods that exist."""
        for task in tasks:
            task.seat = -1
            if task.node:
                self.enter(task)

    # Before a cycle --------------------------------------------------------------------------------------------------

    def settle(self, infos: list[NodeInfo], dims: int) -> None:
        """Update the rows of the nodes and the requests of classes, shape [C, R]."""
        if len(self._node_ids) > _FORGET_ABOVE + 2 * len(infos) or len(self._classes) > _FORGET_ABOVE + 2 * len(self):
            self._compact()
        if len(self._requests) != len(self._classes) or self._requests.shape[1] != dims:
            self._requests = np.zeros((len(self._classes), dims))
            for row, cls in enumerate(self._classes):
                self._requests[row] = cls.request
        if self._settled[0] is infos and self._settled[1] == len(self._node_ids):
            return
        self._settled = (infos, len(self._node_ids))
        rows = np.full(len(self._node_ids), -1, dtype=np.intp)
        known = self._node_ids
        for info in infos:
            number = known.get(info.name)
            if number is not None:
                rows[number] = info.row
        self._row_of_id = rows

    def _compact(self) -> None:
        """Remove the nodes and classes that no pod in the table has any more."""
        stamp, tasks = self.stamp, [task for task in self.tasks if task is not None]
        self._reset()
        self.fill(tasks)
        self.stamp = stamp

    # In a cycle ------------------------------------------------------------------------------------------------------

    def candidates(self, *, running: bool, jobs: Mask) -> Candidates:
        """The pods that may be evicted, of the gangs whose rows are true in `jobs`, on existing nodes; with `running`,
        without pods that are merely bound."""
        mask = self._live & self._preemptable
        if running:
            mask &= self._running
        mask &= jobs[self._job]
        seats = np.flatnonzero(mask)
        nodes = self._row_of_id[self._node[seats]]
        if len(nodes) and int(nodes.min()) < 0:
            seats, nodes = seats[nodes >= 0], nodes[nodes >= 0]
        return Candidates(
            seats=seats,
            nodes=nodes,
            jobs=self._job[seats],
            classes=self._class[seats],
            priority=self._priority[seats],
            requests=self._requests,
        )

    def best_effort(self) -> Mask:
        """Which classes of `Candidates.requests` are best-effort; [C]."""
        return np.array([cls.best_effort for cls in self._classes], dtype=bool)
