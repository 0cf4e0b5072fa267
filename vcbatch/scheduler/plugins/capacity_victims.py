"""Victims of queues with quotas: pods by which a queue exceeds its deserved share, down to its guarantee."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.index.victims import Candidates
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.resources import CPU, EPS, MEMORY, PODS, Mask, Vector
from vcbatch.scheduler.queues.usage import Amounts, QueueUsage


class Victims:
    """Selects victims in the order of the candidates, each on the usage without those selected before."""

    def __init__(self, usage: QueueUsage, *, levels: int, amounts: Callable[[Task], Amounts] | None = None) -> None:
        """`levels`: the number of ancestor levels that must exceed their deserved share as well. `amounts`: the
        resources of a task, if these are more than the request of its class."""
        self._usage = usage
        self._amounts = _by_class if amounts is None else amounts
        self._by_class = amounts is None
        self._levels = levels
        self._immediate: dict[tuple[int, int], bool] = {}

    def for_task(self, own: int, request: Amounts, candidates: Sequence[Task]) -> list[Task]:
        """The victims for a task of the queue `own` with this request."""
        asked = [r for r, need in enumerate(request) if need > 0 and r != PODS]
        ours = self._above(own)
        without = not self._shared(own, request)
        running: dict[int, list[float]] = {}
        victims: list[Task] = []
        for task in candidates:
            index = self._index(task)
            amounts = self._amounts(task)
            if index is None or not any(amounts[r] > 0 for r in asked) or not self._spares(index, amounts, running):
                continue
            above = self._above(index)
            if self._at_once(index, task):
                if without and set(above) & set(ours):
                    continue  # neither queue deserves any of it, and what their common ancestors use can't be reclaimed
            elif not self._exceeds(index, amounts, running):
                continue
            checked = [q for level, q in enumerate(above) if level >= len(ours) or ours[level] != q]
            if all(self._at_once(q, task) or self._exceeds(q, amounts, running) for q in checked):
                self._take((index, *checked), amounts, running)
                victims.append(task)
        return victims

    def possible(self, request: Vector, rows: npt.NDArray[np.int64], candidates: Candidates) -> Mask:
        """An upper bound of the victims for a task with this request, `rows` being the queues of the candidates: pods
        on borrowed resources, or beyond what their queue deserves now. Guarantees and ancestors only exclude more."""
        usage = self._usage
        held, deserved = np.array(usage.held), np.array(usage.deserved)
        counts = np.array(usage.named)
        counts[:, [CPU, MEMORY]] &= deserved[:, [CPU, MEMORY]] >= EPS
        beyond = counts & (held > deserved)
        beyond[:, PODS] = False
        takes = candidates.requests > 0
        useful = takes[:, (request > 0) & (np.arange(len(request)) != PODS)].any(axis=1)
        lent = ~((deserved >= EPS) @ (candidates.requests >= EPS).T)
        allowed = (lent | (beyond @ takes.T)) & useful
        nobody = np.zeros((1, allowed.shape[1]), dtype=bool)
        return np.concatenate([allowed, nobody])[usage.tree.index[rows], candidates.classes]

    def for_gang(self, candidates: Sequence[Task]) -> list[Task]:
        """The victims for a whole gang of another queue."""
        running: dict[int, list[float]] = {}
        victims: list[Task] = []
        for task in candidates:
            index = self._index(task)
            amounts = self._amounts(task)
            if index is None or not self._spares(index, amounts, running):
                continue
            if self._at_once(index, task) or self._exceeds(index, amounts, running):
                self._take((index,), amounts, running)
                victims.append(task)
        return victims

    def _index(self, task: Task) -> int | None:
        queue = task.job.queue if task.job is not None else None
        return None if queue is None else int(self._usage.tree.index[queue.row])

    def _above(self, index: int) -> tuple[int, ...]:
        """The ancestors of this queue that count, nearest first, without the root."""
        tree = self._usage.tree
        chain = tree.chains[index]
        return chain[1 : min(self._levels + 1, len(chain) - 1)]

    def _shared(self, index: int, amounts: Amounts) -> bool:
        """Whether the queue deserves any of the resources in these quantities."""
        deserved = self._usage.deserved[index]
        return any(a >= EPS and deserved[r] >= EPS for r, a in enumerate(amounts))

    def _at_once(self, index: int, task: Task) -> bool:
        """Whether the queue deserves none of the task's resources, so that all of them are borrowed."""
        if not self._by_class:
            return not self._shared(index, self._amounts(task))
        key = (index, task.cls.id)
        known = self._immediate.get(key)
        if known is None:
            known = self._immediate[key] = not self._shared(index, task.cls.amounts)
        return known

    def _exceeds(self, index: int, amounts: Amounts, running: dict[int, list[float]]) -> bool:
        """Whether the queue uses more than it deserves of a resource that the task requests."""
        usage = self._usage
        held = running.get(index) or usage.held[index]
        deserved, named = usage.deserved[index], usage.named[index]
        return any(
            amount > 0
            and r != PODS
            and (deserved[r] >= EPS if r in (CPU, MEMORY) else named[r])
            and held[r] > deserved[r]
            for r, amount in enumerate(amounts)
        )

    def _spares(self, index: int, amounts: Amounts, running: dict[int, list[float]]) -> bool:
        """Whether the queue keeps its guarantee without the task."""
        held = running.get(index) or self._usage.held[index]
        guarantee = self._usage.guarantee[index]
        return all(g < held[r] - amounts[r] + EPS for r, g in enumerate(guarantee))

    def _take(self, indexes: Sequence[int], amounts: Amounts, running: dict[int, list[float]]) -> None:
        for q in indexes:
            held = running.get(q)
            if held is None:
                held = running[q] = list(self._usage.held[q])
            for r, amount in enumerate(amounts):
                held[r] -= amount


def _by_class(task: Task) -> Amounts:
    return task.cls.amounts
