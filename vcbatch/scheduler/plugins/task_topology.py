"""Task topology: tasks of a gang with affinity are sorted into buckets, each of which is best placed on one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from vcbatch.api import names
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Plugin, Rejection
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import OFF_NODE, Job, Task, TaskStatus
from vcbatch.scheduler.model.resources import EPS, Dimensions, Vector

_WEIGHT = "task-topology.weight"
_MIB = 1024.0 * 1024.0
_BYTES = ("memory", "ephemeral-storage", "hugepages-")


class Relation(IntEnum):
    """The relation of a role to others or to itself; the larger takes precedence."""

    APART = 1
    ALIKE_TOGETHER = 2
    TOGETHER = 3
    ALIKE_APART = 4


@dataclass(frozen=True, slots=True)
class TaskTopology:
    """The annotations of a PodGroup: pairs of roles, a role with itself among them, and the user's order."""

    together: frozenset[tuple[str, str]]
    apart: frozenset[tuple[str, str]]
    relations: Mapping[str, Relation]
    """The most important relation of each role that has any."""
    order: Mapping[str, int]
    """The larger is placed first; 0 for roles that aren't named."""

    @staticmethod
    def read(annotations: Mapping[str, str], roles: Iterable[str]) -> TaskTopology | None:
        """The topology; None if the annotations request none, or name a role that the gang doesn't have or one twice: a
        partial topology may do harm."""
        near = _groups(annotations.get(names.TASK_TOPOLOGY_AFFINITY, ""))
        far = _groups(annotations.get(names.TASK_TOPOLOGY_ANTI_AFFINITY, ""))
        (order, *_) = _groups(annotations.get(names.TASK_TOPOLOGY_TASK_ORDER, "")) or [()]
        if not near and not far:
            return None
        known = set(roles)
        for group in (*near, *far, order):
            if len(set(group)) < len(group) or not known.issuperset(group):
                return None
        relations: dict[str, Relation] = {}
        for groups, alike, others in (
            (near, Relation.ALIKE_TOGETHER, Relation.TOGETHER),
            (far, Relation.ALIKE_APART, Relation.APART),
        ):
            for group in groups:
                relation = alike if len(group) == 1 else others
                for role in group:
                    relations[role] = max(relations.get(role, relation), relation)
        return TaskTopology(
            together=_pairs(near),
            apart=_pairs(far),
            relations=relations,
            order={role: len(order) - place for place, role in enumerate(order)},
        )

    def rank(self, role: str) -> tuple[int, int]:
        """The sort key of tasks of the role; the smaller first."""
        return -self.order.get(role, 0), -self.relations.get(role, 0)


def _groups(text: str) -> list[tuple[str, ...]]:
    """`a,b;c` as groups of names."""
    groups = (tuple(name.strip() for name in group.split(",") if name.strip()) for group in text.split(";"))
    return [group for group in groups if group]


def _pairs(groups: Iterable[Sequence[str]]) -> frozenset[tuple[str, str]]:
    """The pairs of roles in each group, both ways; a group of one means the role with itself."""
    return frozenset(
        (one, other) for group in groups for one in group for other in group if one != other or len(group) == 1
    )


class _Bucket:
    """Tasks that are best placed on one node: those that were pending when the cycle began, in placement order, the
    UIDs of those that still are, and the number of tasks on each row."""

    __slots__ = ("index", "on", "pending", "size", "waiting", "weight")

    def __init__(self, index: int) -> None:
        self.index = index
        self.pending: list[Task] = []
        self.waiting: set[str] = set()
        self.on: dict[int, int] = {}
        self.size = 0
        """The number of all tasks when the cycle began."""
        self.weight = 0.0
        """The requests of its pending tasks, as one number."""


class _Manager:
    """One gang: its buckets, and the nodes of its tasks."""

    def __init__(self, job: Job, topology: TaskTopology, session: Handle) -> None:
        self._session = session
        self.topology = topology
        self.buckets: list[_Bucket] = []
        self.bucket_of: dict[str, _Bucket] = {}
        self.placed: dict[str, Floats] = {}
        """By role, how many tasks are on each node, [N]."""
        self._roles = {role: i for i, role in enumerate(sorted(topology.relations))}
        self._counts = np.zeros((8, len(self._roles)))
        self._relation = np.array([[self._sum(a, b) for b in self._roles] for a in self._roles], dtype=np.float64)
        self._scale = _scale(session.dims)
        self._build(job)
        self.largest = max((bucket.size for bucket in self.buckets), default=0)
        self.ranks = self._ranked(job)

    def _sum(self, a: str, b: str) -> int:
        return ((a, b) in self.topology.together) - ((a, b) in self.topology.apart)

    def _build(self, job: Job) -> None:
        state = self._session.state
        related = [task for task in job.tasks.values() if task.role in self._roles]
        placed = [task for task in related if task.node and task.status not in OFF_NODE]
        by_node: dict[int, _Bucket] = {}
        for task in sorted(placed, key=lambda t: (t.node, t.name)):
            row = state.row_of(task)
            if row < 0:
                continue
            bucket = by_node.get(row)
            if bucket is None:
                bucket = by_node[row] = self._new()
            self._add(bucket, task)
            self._shift(bucket, task, row, 1)
        pending = [task for task in related if task.status is TaskStatus.PENDING]
        for task in sorted(pending, key=lambda t: (*self.topology.rank(t.role), t.name)):
            bucket = self._best(task) or self._new()
            self._add(bucket, task)
            bucket.pending.append(task)
            bucket.waiting.add(task.uid)
            bucket.weight += float(task.cls.request @ self._scale)

    def _new(self) -> _Bucket:
        bucket = _Bucket(len(self.buckets))
        self.buckets.append(bucket)
        if bucket.index == len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        return bucket

    def _add(self, bucket: _Bucket, task: Task) -> None:
        self._counts[bucket.index, self._roles[task.role]] += 1
        self.bucket_of[task.uid] = bucket
        bucket.size += 1

    def _best(self, task: Task) -> _Bucket | None:
        """The bucket with the highest sum of affinities minus anti-affinities to the task; among equals the lightest
        one. None if every sum is negative."""
        if not self.buckets:
            return None
        drawn = self._counts[: len(self.buckets)] @ self._relation[self._roles[task.role]]
        most = drawn.max()
        if most < 0:
            return None
        return min((self.buckets[i] for i in np.flatnonzero(drawn == most)), key=lambda b: (b.weight, b.index))

    def _ranked(self, job: Job) -> dict[str, int]:
        """A number for each task; tasks with the same number are unordered. Those in no bucket come last."""

        def key(task: Task) -> tuple[int, ...]:
            bucket = self.bucket_of.get(task.uid)
            if bucket is None:
                return (1,)
            return (0, -len(bucket.waiting), bucket.index, *self.topology.rank(task.role))

        keys = {task.uid: key(task) for task in job.tasks.values()}
        numbers = {k: i for i, k in enumerate(sorted(set(keys.values())))}
        return {uid: numbers[k] for uid, k in keys.items()}

    # Moves -----------------------------------------------------------------------------------------------------------

    def moved(self, task: Task, row: int, step: int) -> None:
        bucket = self.bucket_of.get(task.uid)
        if bucket is None:
            return
        self._shift(bucket, task, row, step)
        if step > 0:
            bucket.waiting.discard(task.uid)
        elif task.status is TaskStatus.PENDING:
            bucket.waiting.add(task.uid)

    def _shift(self, bucket: _Bucket, task: Task, row: int, step: int) -> None:
        bucket.on[row] = bucket.on.get(row, 0) + step
        counts = self.placed.get(task.role)
        if counts is None:
            counts = self.placed[task.role] = np.zeros(len(self._session.nodes))
        counts[row] += step

    # Scores ---------------------------------------------------------------------------------------------------------

    def points(self, task: Task, rows: Rows) -> Floats | None:
        """For each row how many tasks of the task's bucket are there or fit there with it, minus the tasks there with
        anti-affinity to it; 0 where the task itself doesn't fit."""
        bucket = self.bucket_of.get(task.uid)
        if bucket is None:
            return None
        nodes, request = self._session.nodes, task.cls.request
        room: Floats = nodes.alloc[:, rows] - nodes.used[:, rows] + nodes.releasing[:, rows]
        points = np.zeros(len(nodes))
        for row, count in bucket.on.items():
            points[row] += count
        for role, counts in self.placed.items():
            if (task.role, role) in self.topology.apart:
                points -= counts
        asked = np.flatnonzero(request > 0)
        fits = (room[asked] + EPS >= request[asked, None]).all(axis=0)
        return np.where(fits, points[rows] + self._fitting(bucket, task, room), 0.0)

    @staticmethod
    def _fitting(bucket: _Bucket, task: Task, room: Floats) -> Floats:
        """How many of the bucket's pending tasks fit together, this task included and the last ones left out first;
        [M]."""
        others = [t.cls.request for t in bucket.pending if t is not task and t.uid in bucket.waiting]
        together: Floats = np.cumsum(np.array([task.cls.request, *others]), axis=0)
        fitting: list[Floats] = [
            np.asarray(together[:, r].searchsorted(room[r] + EPS, side="right"), dtype=np.float64)
            for r in np.flatnonzero(together[-1] > 0)
        ]
        return np.maximum(np.array(fitting).min(axis=0), 1.0)


def _scale(dims: Dimensions) -> Vector:
    """The factors that add milli-cores, MiB and thousandths of devices to one number, [R] (Volcano's `reqScore`)."""
    return np.array([1 / _MIB if name.startswith(_BYTES) else 1.0 for name in dims.names])


class TaskTopologyPlugin(Plugin):
    """Reads the PodGroup's annotations `volcano.sh/task-topology-affinity`, `-anti-affinity` (`a,b;c`: groups of roles,
    a role alone meaning its own tasks) and `-task-order` (`a,b`). Tasks of other gangs aren't affected."""

    ARGUMENTS = ArgumentSpec(named={_WEIGHT: Argument(default=1)})

    def open(self, session: Handle) -> None:
        self._session = session
        self._weight = int(self.arguments[_WEIGHT])
        self._managers: dict[str, _Manager | None] = {}

    def _manager(self, job: Job | None) -> _Manager | None:
        if job is None or job.group is None:
            return None
        annotations = job.group.metadata.annotations
        if not annotations or (
            names.TASK_TOPOLOGY_AFFINITY not in annotations and names.TASK_TOPOLOGY_ANTI_AFFINITY not in annotations
        ):
            return None
        if job.key not in self._managers:
            topology = TaskTopology.read(annotations, job.roles)
            self._managers[job.key] = None if topology is None else _Manager(job, topology, self._session)
        return self._managers[job.key]

    def task_key(self, task: Task) -> float:
        manager = self._manager(task.job)
        return 0 if manager is None else manager.ranks.get(task.uid, 0)

    def couples(self, task: Task) -> bool:
        manager = self._manager(task.job)
        return manager is not None and task.uid in manager.bucket_of and self._weight != 0

    def task_scores(self, task: Task, candidates: Rows, static: Sequence[Rejection]) -> Floats | None:
        manager = self._manager(task.job)
        points = None if manager is None else manager.points(task, candidates)
        if manager is None or points is None:
            return None
        return points * self._weight * 100.0 / manager.largest

    def moved(self, task: Task, row: int, step: int) -> None:
        manager = self._managers.get(task.job.key) if task.job is not None else None
        if manager is not None:
            manager.moved(task, row, step)
