"""Whom queues with quotas lose to others: pods by which a queue holds more than it deserves, down to its guarantee."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.index.victims import Candidates
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.resources import CPU, EPS, MEMORY, PODS, Mask, Vector
from vcbatch.scheduler.queues.usage import Amounts, QueueUsage


class Victims:
    """Picks victims in the order of the candidates, each by the usage without those picked before it."""

    def __init__(self, usage: QueueUsage, *, levels: int, amounts: Callable[[Task], Amounts] | None = None) -> None:
        """`levels`: over how many levels of queues above the victim's must hold more than they deserve as well.
        `amounts`: what a task takes, where that is more than its class says."""
        self._usage = usage
        self._amounts = _by_class if amounts is None else amounts
        self._by_class = amounts is None
        self._levels = levels
        self._immediate: dict[tuple[int, int], bool] = {}

    def for_task(self, own: int, request: Amounts, candidates: Sequence[Task]) -> list[Task]:
        """For a task of the queue `own` that asks for `request`."""
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
                    continue  # neither deserves any of it, and what they have in common is nobody's to take back
            elif not self._exceeds(index, amounts, running):
                continue
            checked = [q for level, q in enumerate(above) if level >= len(ours) or ours[level] != q]
            if all(self._at_once(q, task) or self._exceeds(q, amounts, running) for q in checked):
                self._take((index, *checked), amounts, running)
                victims.append(task)
        return victims

    def possible(self, request: Vector, rows: npt.NDArray[np.int64], candidates: Candidates) -> Mask:
        """Which of the candidates, whose queues have these rows, a task with this request could get at most: those that
        are lent or beyond what their queue deserves now. Guarantees and queues above only rule out more."""
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
        """For a whole gang of another queue."""
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
        """The queues that count above this one, nearest first, the root never among them."""
        tree = self._usage.tree
        chain = tree.chains[index]
        return chain[1 : min(self._levels + 1, len(chain) - 1)]

    def _shared(self, index: int, amounts: Amounts) -> bool:
        """Whether the queue deserves something of what these amounts are of."""
        deserved = self._usage.deserved[index]
        return any(a >= EPS and deserved[r] >= EPS for r, a in enumerate(amounts))

    def _at_once(self, index: int, task: Task) -> bool:
        """Whether the queue deserves nothing of what the task takes, which is therefore lent."""
        if not self._by_class:
            return not self._shared(index, self._amounts(task))
        key = (index, task.cls.id)
        known = self._immediate.get(key)
        if known is None:
            known = self._immediate[key] = not self._shared(index, task.cls.amounts)
        return known

    def _exceeds(self, index: int, amounts: Amounts, running: dict[int, list[float]]) -> bool:
        """Whether the queue holds more than it deserves of a resource that the task takes."""
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
        """Whether the queue has its guarantee without the task."""
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
