"""The shares of queues, and the admission of gangs. The plugins proportion and overcommit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.oracle.gangs import Gangs
from tests.oracle.model import ALLOCATED, EPS, Amounts, Job, Json, Queue, at_most, plus
from tests.oracle.shares import Claimant, deserved


class Queues(Gangs):
    def __init__(self, world: Json, actions: Sequence[str], options: Sequence[tuple[str, Json]]) -> None:
        super().__init__(world, actions, options)
        self._proportion()
        self._overcommit()

    def _proportion(self) -> None:
        if "proportion" not in self.plugins:
            return
        guarantees: Amounts = {}
        for queue in self.queues.values():
            guarantees = plus(guarantees, queue.guarantee)
        names = {*self.total, *guarantees}
        for job in self.jobs.values():
            for task in job.tasks:
                names |= set(task.request)
        requests: dict[str, Amounts] = {}
        for queue in self.queues.values():
            rest = {n: max(self.total.get(n, 0.0) - guarantees.get(n, 0.0), 0.0) for n in names}
            queue.most = plus(rest, queue.guarantee)
            for name, limit in (queue.capability or {}).items():
                if limit > 0 or name not in ("cpu", "memory"):
                    queue.most[name] = min(queue.most.get(name, 0.0), limit)
            mine = [j for j in self.jobs.values() if j.queue is queue]
            request: Amounts = {}
            for job in mine:
                held, least = job.allocated(), job.min_resources or {}
                queue.allocated = plus(queue.allocated, held)
                request = plus(request, held)
                for task in job.tasks:
                    if task.status == "Pending":
                        request = plus(request, task.request)
                queue.elastic = plus(queue.elastic, {n: max(v - least.get(n, 0.0), 0.0) for n, v in held.items()})
                started = job.phase == "Running" and job.count(*ALLOCATED) >= job.minimum
                if job.min_resources is not None and (job.phase == "Inqueue" or started):
                    missing = {n: max(v - held.get(n, 0.0), 0.0) for n, v in least.items()}
                    queue.inqueue = plus(queue.inqueue, missing)
            requests[queue.name] = request
        active = [q for q in self.queues.values() if q.weight > 0 and any(j.queue is q for j in self.jobs.values())]
        total = {n: self.total.get(n, 0.0) for n in sorted(names)}
        claimants = [Claimant(q.weight, requests[q.name], q.most, q.guarantee) for q in active]
        for queue, share in zip(active, deserved(total, claimants), strict=True):
            queue.deserved = dict(share)

    def _overcommit(self) -> None:
        if "overcommit" not in self.plugins:
            return
        factor = self.plugins["overcommit"].get("overcommit-factor", 1.2)
        self._idle = {n: v * (factor if factor >= 1 else 1.2) for n, v in self.total.items()}
        for node in self.nodes:
            self._idle = plus(self._idle, node.used(), -1)
        self._inqueue: Amounts = {}
        for job in self.jobs.values():
            if job.min_resources is None:
                continue
            if job.phase == "Inqueue":
                self._inqueue = plus(self._inqueue, job.min_resources)
            elif job.phase == "Running" and job.count(*ALLOCATED) >= job.minimum:
                held = job.allocated()
                rest = {n: max(v - held.get(n, 0.0), 0.0) for n, v in job.min_resources.items()}
                self._inqueue = plus(self._inqueue, rest)

    def _queue_key(self, queue: Queue) -> tuple[Any, ...]:
        key: list[Any] = []
        if "proportion" in self.plugins:
            shares = [queue.allocated.get(n, 0.0) / v for n, v in queue.deserved.items() if v >= EPS]
            key = [-queue.priority, max(shares, default=0.0)]
        return (*key, queue.creation, queue.uid, queue.name)

    def _may_enqueue(self, job: Job) -> bool:
        asked = job.min_resources
        if not job.queue.open:
            return False
        if asked is None:
            return True
        if "overcommit" in self.plugins:
            wanted = plus(self._inqueue, asked)
            if any(v > 0 and n != "pods" and wanted[n] > self._idle.get(n, 0.0) for n, v in asked.items()):
                return False
        if "proportion" in self.plugins:
            queue = job.queue
            wanted = plus(plus(plus(asked, queue.allocated), queue.inqueue), queue.elastic, -1)
            if any(v > 0 and n != "pods" and wanted[n] > queue.most.get(n, 0.0) for n, v in asked.items()):
                return False
        return True

    def _room_for(self, queue: Queue, asked: Amounts) -> bool:
        """Whether the queue may use that much more."""
        if "proportion" not in self.plugins:
            return True
        held = plus(queue.allocated, asked)
        return queue.open and all(
            held[n] <= queue.deserved.get(n, 0.0) for n, v in asked.items() if v > 0 and n != "pods"
        )

    def _overused(self, queue: Queue) -> bool:
        return "proportion" in self.plugins and all(
            at_most(v, queue.allocated.get(n, 0.0)) for n, v in queue.deserved.items()
        )
