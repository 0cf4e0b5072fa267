"""A second implementation of the scheduler's decisions: one task after the other, plain numbers, no arrays, no caches.

It is written from the rules and not from the scheduler's code, so that a bug has to occur in both to stay undetected.
It reads the same objects. Its classes build on each other: `snapshot`, `gangs`, `queues` and `places` with the plugins
of the default policy, and the actions, here; topology constraints (`near`); and other plugins (`plugins`) or evictions
(`books` to `shuffle`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from tests.oracle.model import ALLOCATED, READY, Amounts, Job, Node, Part, Task, kind, plus
from tests.oracle.places import Places


class Oracle(Places):
    """One cycle on a cluster state."""

    def _known_actions(self) -> dict[str, Callable[[], None]]:
        return {"enqueue": self._enqueue, "allocate": self._allocate, "backfill": self._backfill}

    def run(self) -> Self:
        known = self._known_actions()
        self.binds: dict[str, str] = {}
        self.held: dict[str, str] = {}
        self._hopeful: list[tuple[Job, list[Task]]] = []
        for action in self.actions:
            known[action]()
        for job, tasks in self._hopeful:
            if not self._ready(job, hope=False):
                for task in tasks:
                    self._undo(task)
        for job in self.jobs.values():
            for task in job.tasks:
                if task.status == "Binding" and task.name not in self.binds:
                    self.binds[task.name] = task.node
                if task.status in ("Allocated", "Pipelined"):
                    self.held[task.name] = task.node
        return self

    def _enqueue(self) -> None:
        for queue in sorted(self.queues.values(), key=self._queue_key):
            pending = [j for j in self.jobs.values() if j.queue is queue and j.phase == "Pending"]
            for job in sorted(pending, key=self._job_key):
                if self._may_enqueue(job):
                    job.phase = "Inqueue"
                    if job.min_resources is not None:
                        queue.inqueue = plus(queue.inqueue, job.min_resources)
                        if "overcommit" in self.plugins:
                            self._inqueue = plus(self._inqueue, job.min_resources)

    def _eligible(self) -> list[Job]:
        if "enqueue" not in self.actions:
            for job in self.jobs.values():
                if job.phase == "Pending":
                    job.phase = "Inqueue"
        return [j for j in self.jobs.values() if j.phase != "Pending" and self._valid(j)]

    def _allocate(self) -> None:
        sheets = {
            j.key: self._task_order([t for t in j.tasks if t.status == "Pending" and not t.best_effort])
            for j in self._eligible()
        }
        waiting = {k: v for k, v in sheets.items() if v}
        dropped: set[str] = set()
        while True:
            jobs = [self.jobs[k] for k in waiting if self.jobs[k].queue.name not in dropped]
            if not jobs:
                return
            queue = min({j.queue.name: j.queue for j in jobs}.values(), key=self._queue_key)
            if self._overused(queue):
                dropped.add(queue.name)
                continue
            job = min((j for j in jobs if j.queue is queue), key=self._job_key)
            placed = self._serve(job, waiting[job.key])
            if self._ready(job) and (self._ready(job, hope=False) or self._hope(job)):
                bound = [t for t in placed if t.status == "Allocated"]
                for task in bound:
                    task.status = "Binding"
                if not self._ready(job, hope=False):
                    self._hopeful.append((job, bound))
                if not waiting[job.key]:
                    del waiting[job.key]
                continue
            if not (placed and self._pipelined(job)):
                for task in placed:
                    self._undo(task)
            del waiting[job.key]

    def _serve(self, job: Job, sheet: list[Task]) -> list[Task]:
        """One turn of a gang; returns the placed tasks. Tasks that stay on the sheet are for another turn."""
        return (self._attempt_parts if job.rules else self._attempt)(job, sheet)

    def _hope(self, job: Job) -> bool:
        placed = self._fill_in(job)
        enough = self._ready(job, hope=False)
        for task in placed:
            self._undo(task)
        return enough

    def _attempt(self, job: Job, sheet: list[Task]) -> list[Task]:
        placed: list[Task] = []
        failed: set[str] = set()
        while sheet:
            task = sheet.pop(0)
            if not self._room_for(job.queue, task.request) or (task.role and task.role in failed):
                continue
            found = self._choose(task)
            if found is None:
                failed.add(task.role)
                if not self._may_continue(job, failed):
                    return placed
                continue
            self._place(task, *found)
            placed.append(task)
            if self._ready(job):
                return placed
        return placed

    def _attempt_parts(self, job: Job, sheet: list[Task]) -> list[Task]:
        """Subgroup by subgroup: required ones first, each with the tasks that it lacks or with none; then, one task a
        turn, those with tasks left while the gang isn't ready."""
        parts = list(dict.fromkeys(map(job.part_of, sheet)))
        missing = [r["minSubGroups"] - job.whole_parts(i, *READY) for i, r in enumerate(job.rules)]
        needed: list[Part | None] = []
        for part in parts:
            if part is None:
                needed.append(part)
            elif missing[part[0]] > 0 and job.in_part(part, *READY) < job.rules[part[0]]["subGroupSize"]:
                missing[part[0]] -= 1
                needed.append(part)
        placed: list[Task] = []
        turns = [*needed, *(p for p in parts if p not in needed)]
        while turns:
            part = turns.pop(0)
            mine = [t for t in sheet if job.part_of(t) == part]
            if part is None:
                before = list(mine)
                placed += self._attempt(job, mine)
                done = [t for t in before if t not in mine]
            else:
                done, got = self._whole_part(job, part, mine)
                placed += got
            sheet[:] = [t for t in sheet if t not in done]
            if part is not None and any(job.part_of(t) == part for t in sheet):
                turns.append(part)
            if self._ready(job):
                break
        # The tasks for another turn stay sorted by subgroup.
        sheet[:] = [t for part in parts for t in sheet if job.part_of(t) == part]
        return placed

    def _whole_part(self, job: Job, part: Part, mine: list[Task]) -> tuple[list[Task], list[Task]]:
        """The tasks that are done with, and those that were placed."""
        short = max(job.rules[part[0]]["subGroupSize"] - job.in_part(part, *READY), 1)
        got: list[Task] = []
        skipped: list[Task] = []
        while mine and len(got) < short:
            alike = [mine[0]]
            for task in mine[1:]:
                if kind(task) != kind(mine[0]):
                    break
                alike.append(task)
            want = min(short - len(got), len(alike))
            placed = self._some_of(job, alike[:want])
            got += placed
            if len(placed) < want:
                skipped += [t for t in alike if t not in placed]
            mine = [t for t in mine if t not in placed and t not in skipped]
        if len(got) < short:
            for task in reversed(got):
                self._undo(task)
            return [*got, *skipped, *mine], []
        return [*got, *skipped], got

    def _some_of(self, job: Job, tasks: list[Task]) -> list[Task]:
        """As many of these equal tasks as find a node, where the queue's quota suffices for all of them."""
        asked: Amounts = {}
        for task in tasks:
            asked = plus(asked, task.request)
        if not self._room_for(job.queue, asked):
            return []
        placed: list[Task] = []
        for task in tasks:
            found = self._choose(task)
            if found is None:
                break
            self._place(task, *found)
            placed.append(task)
        return placed

    def _may_continue(self, job: Job, failed: set[str]) -> bool:
        if job.minimum >= len(job.tasks):
            return False
        if job.minimum < sum(job.role_minimums.values()):
            rest = sum(1 for t in job.tasks if t.status == "Pending" and t.role not in failed)
            return job.count(*READY) + rest >= job.minimum
        return all(job.count(*ALLOCATED, role=r) >= job.role_minimums[r] for r in failed if r in job.role_minimums)

    def _place(self, task: Task, node: Node, free: bool, *, cleared: bool = False) -> None:
        self.claims.give(self.claims.volumes(task, node.name, self._users()) or {})
        task.status = "Allocated" if free else "Pipelined"
        task.node, task.cleared = node.name, cleared
        node.tasks.append(task)
        assert task.job is not None
        task.job.queue.allocated = plus(task.job.queue.allocated, task.request)

    def _undo(self, task: Task) -> None:
        node = next(n for n in self.nodes if n.name == task.node)
        node.tasks.remove(task)
        task.status, task.node = "Pending", ""
        self.claims.take_back(task, self._users())
        assert task.job is not None
        task.job.queue.allocated = plus(task.job.queue.allocated, task.request, -1)

    def _fill_in(self, job: Job) -> list[Task]:
        placed: list[Task] = []
        for task in self._task_order([t for t in job.tasks if t.status == "Pending" and t.best_effort]):
            found = self._choose(task)
            if found is not None:
                self._place(task, *found)
                placed.append(task)
        return placed

    def _backfill(self) -> None:
        for job in self.jobs.values():
            for task in job.tasks:
                if task.status == "Pipelined" and task.best_effort and not task.cleared:
                    self._undo(task)
        eligible = [j for j in self._eligible() if self._hoped(j)]
        for queue in sorted(self.queues.values(), key=self._queue_key):
            for job in sorted((j for j in eligible if j.queue is queue), key=self._job_key):
                placed = self._fill_in(job)
                if placed and self._ready(job) and self._ready(job, hope=False):
                    for task in placed:
                        task.status = "Binding"
