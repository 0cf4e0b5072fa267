"""Pods that are evicted one at a time for a pod that waits: `preempt` in its own queue, `reclaim` in others."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.oracle import Job, Json, Node, Queue, Task, plus
from tests.oracle.victims import Victims

Filter = Callable[[Task], bool]


class Evictions(Victims):
    """A cycle with `preempt` and `reclaim`."""

    def _starved(self) -> list[Job]:
        return [j for j in self._eligible() if self._starving(j)]

    def _waiting(self, job: Job) -> list[Task]:
        return self._task_order([t for t in job.tasks if t.status == "Pending" and not t.best_effort])

    def _by_queue(self, jobs: list[Job]) -> list[tuple[Queue, list[Job]]]:
        queues = {j.queue.name: j.queue for j in jobs}.values()
        return [(q, [j for j in jobs if j.queue is q]) for q in sorted(queues, key=self._queue_key)]

    # In the own queue ------------------------------------------------------------------------------------------------

    def _preempt(self) -> None:
        for _, jobs in self._by_queue(self._starved()):
            left = list(jobs)
            while left:
                job = min(left, key=self._job_key)
                left.remove(job)
                self._preempt_for(job)
            for job in sorted(jobs, key=self._job_key):
                for task in self._waiting(job):
                    if not self._preempt_task(task, within=True):
                        break

    def _preempt_for(self, job: Job) -> None:
        saved = self._save()
        tasks = self._waiting(job)
        while self._starving(job) and tasks:
            self._preempt_task(tasks.pop(0), within=False)
        if not self._pipelined(job):
            self._restore(saved)

    def _preempt_task(self, task: Task, *, within: bool) -> bool:
        if self._peaceful(task):
            return False
        assert task.job is not None
        mine = task.job

        def candidate(victim: Task) -> bool:
            job = victim.job
            if job is None or victim.status not in ("Bound", "Running") or not self._preemptable(victim):
                return False
            if within:
                return job is mine
            return job is not mine and job.queue is mine.queue and (job.key, mine.key) not in self.pushed

        nodes = [n for n in self.nodes if self._curable(n, task)]
        scores = self._scores(nodes, task)
        best = sorted(range(len(nodes)), key=lambda i: (-scores[i], nodes[i].name))
        return any(self._make_room(nodes[i], task, candidate, reclaim=False) for i in best)

    # In other queues -------------------------------------------------------------------------------------------------

    def _reclaim(self) -> None:
        for queue, jobs in self._by_queue(self._starved()):
            left = list(jobs)
            while left and not self._overused(queue):
                job = min(left, key=self._job_key)
                left.remove(job)
                self._reclaim_for(job)

    def _reclaim_for(self, job: Job) -> None:
        saved = self._save()
        tasks = self._waiting(job)
        while self._starving(job) and tasks:
            task = tasks.pop(0)
            if not self._peaceful(task) and self._preemptive(job.queue, task.request):
                self._reclaim_task(task)
        if not self._pipelined(job):
            self._restore(saved)

    def _reclaim_task(self, task: Task) -> bool:
        assert task.job is not None
        mine = task.job

        def candidate(victim: Task) -> bool:
            job = victim.job
            if job is None or victim.status != "Running" or not self._preemptable(victim):
                return False
            lent = job.queue is not mine.queue and self._reclaimable(job.queue)
            return lent and (job.key, mine.key) not in self.pushed

        nodes = [n for n in self.nodes if self._curable(n, task)]
        return any(self._make_room(node, task, candidate, reclaim=True) for node in nodes)

    def _reclaimable(self, queue: Queue) -> bool:
        return bool(self.specs[queue.name].get("reclaimable", True))

    # One node --------------------------------------------------------------------------------------------------------

    def _curable(self, node: Node, task: Task) -> bool:
        """Whether the node would do if nothing ran there."""
        here, node.tasks = node.tasks, []
        try:
            return self._passes(node, task)
        finally:
            node.tasks = here

    def _passes(self, node: Node, task: Task) -> bool:
        """Who is evicted is in nobody's way but for the resources that it has."""
        here = node.tasks
        node.tasks = [t for t in here if t.uid not in self.evicted]
        try:
            return super()._passes(node, task)
        finally:
            node.tasks = here

    def _nodeorder(self, node: Node, task: Task, arguments: Json) -> float:
        """To these scores who is evicted is gone."""
        here = node.tasks
        node.tasks = [t for t in here if t.uid not in self.evicted]
        try:
            return super()._nodeorder(node, task, arguments)
        finally:
            node.tasks = here

    def _make_room(self, node: Node, task: Task, candidate: Filter, *, reclaim: bool) -> bool:
        assert task.job is not None
        candidates = [t for t in node.tasks if candidate(t)]
        if reclaim and not candidates:
            return False
        victims = self._victims(task, candidates, reclaim=reclaim)
        room = node.future()
        for victim in victims:
            room = plus(room, victim.request)
        if not self._fits(room, task):
            return False
        saved = self._save()
        while not self._settled(node, task, reclaim=reclaim):
            if not victims:
                self._restore(saved)
                return False
            self._evict(victims.pop(0), task.job)
        self._place(task, node, free=False)
        return True

    def _settled(self, node: Node, task: Task, *, reclaim: bool) -> bool:
        assert task.job is not None
        allowed = reclaim or self._allocatable(task.job.queue, task)
        return allowed and self._fits(node.future(), task) and self._passes(node, task)
