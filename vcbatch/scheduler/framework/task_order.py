"""The order of a gang's tasks, and the runs of equal ones in it: most gangs are one run, which is found at once."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.model.objects import Job, Run, Task, TaskStatus

_index, _class, _gated, _priority = map(attrgetter, ("index", "cls", "gated", "priority"))


class TaskOrder:
    """The order by the keys of the plugins, the first plugin's first."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._keys = [p.task_key for p in plugins]
        self._likeness = [_priority if type(p).tasks_by_priority else p.task_key for p in plugins]
        """Functions that are equal for two tasks if their keys are; the cheapest ones, because they are called most."""

    def ordered(self, tasks: list[Task]) -> list[Task]:
        """Tasks of a gang in task order: by the plugins, then by index where all have one, creation and UID."""
        if len(tasks) < 2:  # frequent: very many gangs have one task
            return list(tasks)
        indexes = set(map(_index, tasks))
        indexed = None not in indexes
        alike = all(len(set(map(key, tasks))) < 2 for key in self._likeness)
        if alike and indexed and len(indexes) == len(tasks):
            return sorted(tasks, key=_index)

        def key(task: Task) -> tuple[Any, ...]:
            index = task.index if indexed else 0
            return (*[k(task) for k in self._keys], index, task.creation, task.uid)

        return sorted(tasks, key=key)

    def runs(self, job: Job) -> list[Run]:
        """The gang's pending tasks that have requests and aren't gated, in task order, equal ones together."""
        tasks = list(job.tasks.values())
        all_pending = job.counts[TaskStatus.PENDING] == len(tasks)
        if not all_pending or job.pending_best_effort or any(map(_gated, tasks)):
            tasks = [t for t in tasks if t.status is TaskStatus.PENDING and not t.gated and not t.cls.best_effort]
            all_pending = False
        tasks = self.ordered(tasks)
        if all_pending and tasks and not job.rules and len(set(map(_class, tasks))) == 1:
            first = tasks[0]
            if job.roles[first.role][TaskStatus.PENDING] == len(tasks):
                return [Run(first.cls, first.role, None, tasks)]
        return _cut(tasks)


def _cut(tasks: Sequence[Task]) -> list[Run]:
    """Tasks in their order, split into runs of equal ones."""
    runs: list[Run] = []
    cls = role = sub = None
    alike: list[Task] = []
    for task in tasks:
        if task.cls is not cls or task.role != role or task.sub != sub:
            cls, role, sub, alike = task.cls, task.role, task.sub, []
            runs.append(Run(cls, role, sub, alike))
        alike.append(task)
    return runs
