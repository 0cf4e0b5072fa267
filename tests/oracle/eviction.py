"""Evictions of single pods for a pending pod: `preempt` in its own queue, `reclaim` in others."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.books import Saved
from tests.oracle.model import Job, Json, Node, Queue, Task, plus
from tests.oracle.victims import Victims

Filter = Callable[[Task], bool]


class Evictions(Victims):
    """A cycle with `preempt` and `reclaim`."""

    def _starved(self) -> list[Job]:
        return [j for j in self._eligible() if self._starving(j)]

    def _waiting(self, job: Job) -> list[Task]:
        return self._task_order([t for t in job.tasks if t.status == "Pending"])

    def _by_queue(self, jobs: list[Job]) -> list[tuple[Queue, list[Job]]]:
        queues = {j.queue.name: j.queue for j in jobs}.values()
        return [(q, [j for j in jobs if j.queue is q]) for q in sorted(queues, key=self._queue_key)]

    # In the same queue ------------------------------------------------------------------------------------------------

    def _preempt(self) -> None:
        for _, jobs in self._by_queue([j for j in self._starved() if not self._near(j)]):
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
        hopeless = False
        while self._starving(job) and tasks:
            task = tasks.pop(0)
            if not self._preempt_task(task, within=False) and self._needs_all(job):
                if not task.best_effort:
                    self._restore(saved)
                    return
                hopeless = hopeless or not self._peaceful(task)
        self._settle(job, saved, hopeless=hopeless, reclaim=False)

    def _settle(self, job: Job, saved: Saved, *, hopeless: bool, reclaim: bool) -> None:
        """Roll back unless the gang can start by these evictions and none of them would be useless."""
        in_vain = hopeless and len(self.evicted) > len(saved.evicted)
        if in_vain or not self._pipelined(job) or self._struck_back(job, saved, reclaim=reclaim):
            self._restore(saved)

    def _struck_back(self, job: Job, saved: Saved, *, reclaim: bool) -> bool:
        """Whether one of the victims could at once have pods of the gang evicted in return, where the configuration
        prevents that."""
        if ("reclaim" if reclaim else "preempt") not in self.prevents_take_back:
            return False
        places = [t for t in job.tasks if t.status == "Pipelined" and self._preemptable(t)]
        for victim in (self.tasks[uid] for uid in self.evicted[len(saved.evicted) :]):
            lost = victim.job
            if lost is None or lost is job or not self._starving(lost):
                continue
            if reclaim and not (self._reclaimable(job.queue) and self._preemptive(lost.queue, victim.request)):
                continue
            lent = [t for t in places if reclaim or t.best_effort or not victim.best_effort]
            if self._victims(victim, lent, reclaim=reclaim):
                return True
        return False

    def _needs_all(self, job: Job) -> bool:
        return "gang" in self.plugins and job.minimum >= len(job.tasks)

    def _preempt_task(self, task: Task, *, within: bool) -> bool:
        if self._peaceful(task):
            return False
        assert task.job is not None
        mine = task.job

        def candidate(victim: Task) -> bool:
            job = victim.job
            if job is None or victim.status not in ("Bound", "Running") or not self._preemptable(victim):
                return False
            if task.best_effort and not victim.best_effort:
                return False
            if within:
                return job is mine
            return job is not mine and job.queue is mine.queue and not self._relieved(job)

        nodes = [n for n in self.nodes if self._curable(n, task)]
        scores = self._scores(nodes, task)
        best = sorted(range(len(nodes)), key=lambda i: (-scores[i], nodes[i].name))
        return any(self._make_room(nodes[i], task, candidate, reclaim=False) for i in best)

    # In other queues -------------------------------------------------------------------------------------------------

    def _reclaim(self) -> None:
        for queue, jobs in self._by_queue([j for j in self._starved() if not self._confined(j)]):
            left = list(jobs)
            while left and not self._overused(queue):
                job = min(left, key=self._job_key)
                left.remove(job)
                self._reclaim_for(job)

    def _reclaim_for(self, job: Job) -> None:
        saved = self._save()
        tasks = self._waiting(job)
        hopeless = False
        while self._starving(job) and tasks:
            task = tasks.pop(0)
            worthy = job.minimum >= len(job.tasks) if task.best_effort else self._preemptive(job.queue, task.request)
            allowed = worthy and not self._peaceful(task)
            if not (allowed and self._reclaim_task(task)) and self._needs_all(job):
                if not task.best_effort:
                    self._restore(saved)
                    return
                hopeless = hopeless or allowed
        self._settle(job, saved, hopeless=hopeless, reclaim=True)

    def _reclaim_task(self, task: Task) -> bool:
        assert task.job is not None
        mine = task.job

        def candidate(victim: Task) -> bool:
            job = victim.job
            if job is None or victim.status != "Running" or not self._preemptable(victim):
                return False
            if task.best_effort and not victim.best_effort:
                return False
            lent = job.queue is not mine.queue and self._reclaimable(job.queue)
            return lent and not self._relieved(job)

        nodes = [n for n in self.nodes if self._curable(n, task)]
        return any(self._make_room(node, task, candidate, reclaim=True) for node in nodes)

    def _reclaimable(self, queue: Queue) -> bool:
        return bool(self.specs[queue.name].get("reclaimable", True))

    # One node --------------------------------------------------------------------------------------------------------

    def _curable(self, node: Node, task: Task) -> bool:
        """Whether the node would pass the filters if it were empty."""
        here, node.tasks = node.tasks, []
        try:
            return self._passes(node, task)
        finally:
            node.tasks = here

    def _passes(self, node: Node, task: Task) -> bool:
        """For filters a victim blocks no other pod; only its resources remain in use."""
        here = node.tasks
        node.tasks = [t for t in here if t.uid not in self.evicted]
        try:
            return super()._passes(node, task)
        finally:
            node.tasks = here

    def _nodeorder(self, node: Node, task: Task, arguments: Json) -> float:
        """These scores ignore victims."""
        here = node.tasks
        node.tasks = [t for t in here if t.uid not in self.evicted]
        try:
            return super()._nodeorder(node, task, arguments)
        finally:
            node.tasks = here

    def _make_room(self, node: Node, task: Task, candidate: Filter, *, reclaim: bool) -> bool:
        assert task.job is not None
        candidates = [t for t in node.tasks if candidate(t)]
        if reclaim and not candidates and not task.best_effort:
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
            # A gang that lost a pod may be ahead of others now.
            victims = self._in_order(victims, task.job.queue)
        self._place(task, node, free=False, cleared=len(self.evicted) > len(saved.evicted))
        return True

    def _settled(self, node: Node, task: Task, *, reclaim: bool) -> bool:
        assert task.job is not None
        allowed = reclaim or self._room_for(task.job.queue, task.request)
        return allowed and self._fits(node.future(), task) and self._passes(node, task)
