"""Bundles: the units in which whole gangs lose pods, which either leave a gang working or end it.

The pods beyond a gang's minimum, its roles' and its sub-gangs' make its safe bundle; the others are evicted together or
not at all, on all nodes, since the gang can't run with a part of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vcbatch.scheduler.model.gang_counts import PLACED, enforced_roles, members_of_sub, whole_subs
from vcbatch.scheduler.model.objects import Job, Task
from vcbatch.scheduler.model.resources import Vector
from vcbatch.scheduler.model.sub_gangs import SubKey


@dataclass(frozen=True, slots=True)
class Bundle:
    """Pods of one gang that are evicted together. `safe` if the gang keeps its minimums without them; `amount` is the
    sum of their requests, [R]; `worth` is the useful part of it: infinite if the gang loses nothing by the eviction."""

    job: Job
    tasks: Sequence[Task]
    safe: bool
    amount: Vector
    worth: float

    def of(self, tasks: Sequence[Task]) -> Bundle:
        """A safe bundle with fewer pods."""
        return Bundle(self.job, tasks, safe=self.safe, amount=amount_of(tasks), worth=self.worth)

    @property
    def single(self) -> list[Bundle]:
        """The smallest bundles with the same effect on the gang: one per pod of a safe bundle."""
        return [self.of([task]) for task in self.tasks] if self.safe else [self]

    @property
    def tie(self) -> tuple[str, str, int]:
        """A key that orders bundles which are equal otherwise."""
        return (self.job.uid, self.tasks[0].uid, len(self.tasks))


def sparing(job: Job, tasks: Sequence[Task]) -> Bundle:
    """A bundle of pods that the gang can run without."""
    return Bundle(job, tasks, safe=True, amount=amount_of(tasks), worth=float("inf"))


def ending(job: Job, tasks: Sequence[Task], *, here: Sequence[Task], need: Vector) -> Bundle:
    """The bundle of the rest of a gang, which ends without it. `need` is the preemptor's request, [R]; `here` are those
    of the pods on the nodes where the preemptor may be placed."""
    useful = worth(amount_of(here), amount_of(job.tasks.values()), need)
    return Bundle(job, tasks, safe=False, amount=amount_of(tasks), worth=useful)


def remains(job: Job, tasks: Sequence[Task]) -> Bundle:
    """All pods of a gang that is below its minimum, which has no use of them."""
    return Bundle(job, tasks, safe=False, amount=amount_of(tasks), worth=float("inf"))


def below_minimum(job: Job) -> bool:
    """Whether the gang has fewer pods than its minimum."""
    return job.ready_count < job.min_member


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """The pods of a gang, the least important first."""
    return sorted(tasks, key=lambda task: (task.priority, task.uid))


def spared(job: Job, candidates: Iterable[Task]) -> tuple[list[Task], list[Task]]:
    """The candidates that a gang above its minimum can run without, the least important first, and the other
    candidates."""
    ordered = in_order(candidates)
    surplus = _Surplus(job)
    if surplus.gang <= 0:
        return [], ordered
    safe: list[Task] = []
    rest: list[Task] = []
    for task in ordered:
        (safe if surplus.take(task) else rest).append(task)
    return safe, rest


def worth(local: Vector, total: Vector, need: Vector) -> float:
    """The part of the need that a bundle covers, in relation to what its gang loses; all [R]."""
    wanted = need > 0
    lost = float((total[wanted] / need[wanted]).sum())
    if not lost:
        return float("inf")
    return float((np.minimum(local, need)[wanted] / need[wanted]).sum()) / lost


def amount_of(tasks: Collection[Task]) -> Vector:
    """The sum of the tasks' requests, [R]; there must be at least one task."""
    times: dict[int, int] = {}
    classes = {task.cls.id: task.cls for task in tasks}
    if len(classes) == 1:
        return next(iter(classes.values())).request * len(tasks)
    for task in tasks:
        times[task.cls.id] = times.get(task.cls.id, 0) + 1
    return np.sum([times[number] * cls.request for number, cls in classes.items()], axis=0)


class _Surplus:
    """The pods of a gang beyond its minimums, as its pods are taken one by one."""

    def __init__(self, job: Job) -> None:
        self.gang = job.ready_count - job.min_member
        self._roles = {role: _ready(job, role) - minimum for role, minimum in enforced_roles(job).items()}
        self._rules = [whole_subs(job, position, PLACED) - rule.least for position, rule in enumerate(job.rules)]
        self._broken: set[SubKey] = {
            key for key in job.subs if members_of_sub(job, key, PLACED) < job.rules[key[0]].size
        }

    def take(self, task: Task) -> bool:
        """Take the task if the gang can run without it. Returns whether it was taken."""
        role, sub = self._roles.get(task.role), task.sub
        breaks = sub is not None and sub not in self._broken
        if self.gang <= 0 or (role is not None and role <= 0):
            return False
        if sub is not None and breaks:
            if self._rules[sub[0]] <= 0:
                return False
            self._rules[sub[0]] -= 1
            self._broken.add(sub)
        self.gang -= 1
        if role is not None:
            self._roles[task.role] = role - 1
        return True


def _ready(job: Job, role: str) -> int:
    counts = job.roles.get(role)
    return 0 if counts is None else sum(counts[status] for status in PLACED)
