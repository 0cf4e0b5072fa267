"""Node groups, by label, and queues with an affinity to groups: on which nodes a queue's pods may run, and how much
they may use there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from vcbatch.api import names
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.scheduling import NodeGroupTermsView
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Normalise, Plugin, Preference, Rejection, Rows
from vcbatch.scheduler.model.classes import Profile
from vcbatch.scheduler.model.columns import Floats
from vcbatch.scheduler.model.objects import ALLOCATED_STATUSES, Job, Queue, Task
from vcbatch.scheduler.model.resources import EPS, Vector
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.snapshot.snapshot import Snapshot

OUTSIDE = "node(s) didn't match the node groups of the queue"
FULL = "node(s) were in a node group in which the queue holds all it may"
MALFORMED = f"node(s) couldn't be used: the queue's annotation {names.NODEGROUP_RESOURCE_LIMITS} isn't readable"

_STRICT = "strict"
_ORDERED = "enablePreferredOrder"
_REQUIRED_POINTS = 100.0
_PREFERRED_POINTS = 50.0
_AVOIDED_POINTS = -1.0
_MEMORY = "nodegroup"

Limits = Mapping[str, tuple[npt.NDArray[np.intp], Floats]]
"""By group: the columns that are limited, [K], and the queue's limits of them there, [K]."""


class _Affinity(NamedTuple):
    """The groups that a queue requires, prefers and avoids."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()

    @staticmethod
    def of(queue: Queue) -> _Affinity:
        given = queue.view.spec.affinity
        near = (given.node_group_affinity if given else None) or NodeGroupTermsView()
        far = (given.node_group_anti_affinity if given else None) or NodeGroupTermsView()
        return _Affinity(
            tuple(near.required_during_scheduling_ignored_during_execution or ()),
            tuple(near.preferred_during_scheduling_ignored_during_execution or ()),
            tuple(far.required_during_scheduling_ignored_during_execution or ()),
            tuple(far.preferred_during_scheduling_ignored_during_execution or ()),
        )

    def admits(self, group: str, *, strict: bool) -> bool:
        """Whether pods may run on nodes of the group; an empty name stands for nodes without a group, which take only
        pods of queues without affinity, and these only unless `strict` is set."""
        if not any(self) or not group:
            return not any(self) and not group and not strict
        wanted = group in self.required or group in self.preferred
        return (wanted and group not in self.never) or group in self.avoided

    def points(self, group: str, *, ordered: bool) -> float:
        if group in self.avoided:
            return _AVOIDED_POINTS
        points = _REQUIRED_POINTS if group in self.required else 0.0
        if group in self.preferred:
            length = len(self.preferred)
            share = (length - self.preferred.index(group)) / length if ordered else 1.0
            points += _PREFERRED_POINTS * share
        return points


class _Groups:
    """The groups by number, in the order of their names, 0 meaning no group; and the number of each node's group,
    [N]."""

    def __init__(self, state: Snapshot) -> None:
        self.stamp = state.static_stamp
        labels = [info.labels.get(names.NODEGROUP_NAME, "") for info in state.nodes.infos]
        self.names = ["", *sorted(set(labels) - {""})]
        numbers = {name: i for i, name in enumerate(self.names)}
        self.of_row: npt.NDArray[np.intp] = np.array([numbers[label] for label in labels], dtype=np.intp)


class _Holdings:
    """The usage of the gangs of queues with limits, by gang and group; recounted only for gangs that changed."""

    def __init__(self, groups: _Groups) -> None:
        self.groups = groups
        self.by_job: dict[str, dict[int, Vector]] = {}
        self.changed: set[str] = set()
        """Gangs that the last cycle touched, whose changes aren't counted here yet."""

    def of(self, state: Snapshot, job: Job) -> dict[int, Vector]:
        known = self.by_job.get(job.key)
        if known is None or job.key in self.changed or job.key in state.touched:
            known = self.by_job[job.key] = self._count(state, job)
        return known

    def _count(self, state: Snapshot, job: Job) -> dict[int, Vector]:
        held: dict[int, Vector] = {}
        if not job.allocated_count:
            return held
        for task in job.tasks.values():
            row = state.row_of(task) if task.status in ALLOCATED_STATUSES and task.node else -1
            if row >= 0:
                group = int(self.groups.of_row[row])
                held[group] = held[group] + task.cls.request if group in held else task.cls.request.copy()
        return held


class NodeGroup(Plugin):
    """With `enableHierarchy`, a queue without an affinity of its own has that of its nearest ancestor."""

    HIERARCHICAL = True
    BY_QUEUE = True
    ARGUMENTS = ArgumentSpec(named={_STRICT: Argument(default=True), _ORDERED: Argument(default=False)})

    def open(self, session: Handle) -> None:
        state = session.state
        self._state = state
        self._dims = session.dims
        self._queues: Mapping[str, Queue] = state.queues
        holdings = state.memory.get(_MEMORY)
        if not isinstance(holdings, _Holdings) or holdings.groups.stamp != state.static_stamp:
            holdings = state.memory[_MEMORY] = _Holdings(_Groups(state))
        self._holdings = holdings
        self._groups = holdings.groups
        self._limits: dict[str, Limits | None] = {}
        self._limited = {name for name, q in self._queues.items() if names.NODEGROUP_RESOURCE_LIMITS in _annotations(q)}
        self._held = {name: self._sum(self._queues[name]) for name in self._limited}
        holdings.changed.clear()

    def _sum(self, queue: Queue) -> dict[int, Vector]:
        total: dict[int, Vector] = {}
        for job in queue.jobs.values():
            for group, amount in self._holdings.of(self._state, job).items():
                amount = self._dims.padded(amount)
                total[group] = total[group] + amount if group in total else amount.copy()
        return total

    def close(self, session: Handle) -> None:
        self._holdings.changed.update(session.state.touched)
        if len(self._holdings.by_job) > 2 * len(session.state.jobs) + 64:
            self._holdings.by_job = {k: v for k, v in self._holdings.by_job.items() if k in session.state.jobs}

    # Filters and scores by affinity ---------------------------------------------------------------------------------

    def rejections(self, profile: Profile) -> Sequence[Rejection]:
        queue = self._queues.get(profile.queue)
        if queue is None:
            return ()
        affinity, strict = self._affinity(queue), bool(self.arguments[_STRICT])
        refused = np.array([not affinity.admits(group, strict=strict) for group in self._groups.names])
        out = (
            [Rejection(OUTSIDE, refused[self._groups.of_row], "affinity", word=WaitReason.NODE_GROUP)]
            if refused.any()
            else []
        )
        if queue.name in self._limited and self._limits_of(queue) is None:
            out.append(Rejection(MALFORMED, np.ones(len(self._groups.of_row), dtype=bool), word=WaitReason.NODE_GROUP))
        return out

    def preferences(self, profile: Profile) -> Sequence[Preference]:
        queue = self._queues.get(profile.queue)
        if queue is None:
            return ()
        affinity, ordered = self._affinity(queue), bool(self.arguments[_ORDERED])
        points = np.array([affinity.points(group, ordered=ordered) for group in self._groups.names])
        return [Preference(points[self._groups.of_row], 1.0, Normalise.NONE)] if points.any() else ()

    def _affinity(self, queue: Queue) -> _Affinity:
        own = _Affinity.of(queue)
        seen = {queue.name}
        while self.hierarchical and not any(own):
            parent = self._queues.get(queue.view.spec.parent)
            if parent is None or parent.name in seen:
                break
            seen.add(parent.name)
            queue, own = parent, _Affinity.of(parent)
        return own

    # Limits ----------------------------------------------------------------------------------------------------------

    def couples(self, task: Task) -> bool:
        """Nodes of one group share a limit, so a task's usage reduces it for the next one."""
        return task.job is not None and task.job.queue_name in self._limited

    def task_rejections(self, task: Task, static: Sequence[Rejection]) -> Sequence[Rejection]:
        queue = task.job.queue if task.job is not None else None
        if queue is None or queue.name not in self._limited:
            return ()
        limits, held = self._limits_of(queue), self._held[queue.name]
        full = np.zeros(len(self._groups.names), dtype=bool)
        for number, group in enumerate(self._groups.names):
            limit = (limits or {}).get(group)
            if limit is not None:
                columns, most = limit
                after = task.cls.request[columns]
                if number in held:
                    after = after + self._dims.padded(held[number])[columns]
                full[number] = bool((after > most + EPS).any())
        return [Rejection(FULL, full[self._groups.of_row], word=WaitReason.NODE_GROUP)] if full.any() else ()

    def moved(self, task: Task, row: int, step: int) -> None:
        name = task.job.queue_name if task.job is not None else ""
        if name in self._limited and row >= 0:
            held, group = self._held[name], int(self._groups.of_row[row])
            amount = step * task.cls.request
            held[group] = self._dims.padded(held[group]) + amount if group in held else amount

    def _limits_of(self, queue: Queue) -> Limits | None:
        """The queue's limits; None if the annotation is invalid, so that they aren't known."""
        if queue.name not in self._limits:
            self._limits[queue.name] = self._read(_annotations(queue)[names.NODEGROUP_RESOURCE_LIMITS])
        return self._limits[queue.name]

    def _read(self, text: str) -> Limits | None:
        try:
            given: object = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(given, dict):
            return None
        out: dict[str, tuple[npt.NDArray[np.intp], Floats]] = {}
        for group, amounts in cast("dict[str, object]", given).items():
            if not isinstance(amounts, dict):
                return None
            listed = cast("dict[str, str | int | float]", amounts)
            if not all(_is_quantity(amount) for amount in listed.values()):
                return None
            known = [(r, name) for name in listed if (r := self._dims.column(name)) is not None]
            columns: Rows = np.array([r for r, _ in known], dtype=np.intp)
            out[group] = columns, np.array([self._dims.amount(name, listed[name]) for _, name in known])
        return out


def _annotations(queue: Queue) -> Mapping[str, str]:
    return queue.view.metadata.annotations or {}


def _is_quantity(amount: object) -> bool:
    if isinstance(amount, bool) or not isinstance(amount, (str, int, float)):
        return False
    try:
        parse_quantity(amount)
    except MalformedQuantity:
        return False
    return True
