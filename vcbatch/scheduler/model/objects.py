"""The objects of the snapshot: pods, gangs, queues and nodes. Quantities are in the arrays of the tables; these objects
have everything else, and their row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any

import numpy as np

from vcbatch.api import names
from vcbatch.api.node import Node, Taint
from vcbatch.api.pod import Pod
from vcbatch.api.scheduling import PodGroupView, QueueView
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.classes import HostPort, TaskClass
from vcbatch.scheduler.model.network_topology import NetworkTopology
from vcbatch.scheduler.model.resources import Dimensions, Mask, Vector
from vcbatch.scheduler.model.selectors import STARTING_TAINTS
from vcbatch.scheduler.model.sub_gangs import SubGangRule, SubKey


class TaskStatus(IntEnum):
    """The status of a pod. ALLOCATED and PIPELINED exist within a cycle only."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def wire(self) -> str:
        """The name that messages use."""
        return self.name.capitalize()


STATUSES = len(TaskStatus)
_PENDING, _ALLOCATED, _PIPELINED, _BINDING, _BOUND, _RUNNING, _RELEASING, _SUCCEEDED, _FAILED, _ = map(int, TaskStatus)
"""Plain integers index the counters of a gang several times faster than members of an enumeration."""
ALLOCATED_STATUSES = frozenset({TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING})
"""Statuses that count as allocated to the gang and its queue."""
FINISHED_STATUSES = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED})
HOLDING = frozenset({TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.UNKNOWN})
"""Statuses in which a pod uses resources of its node and isn't terminating."""
OFF_NODE = frozenset({TaskStatus.PENDING, TaskStatus.SUCCEEDED, TaskStatus.FAILED})
"""Statuses in which a pod uses no resources of a node."""


class Phase(IntEnum):
    """A PodGroup's phase; the name on the wire is capitalised."""

    PENDING = 0
    INQUEUE = 1
    RUNNING = 2
    UNKNOWN = 3
    COMPLETED = 4

    @property
    def wire(self) -> str:
        return _WORDS[self]

    @staticmethod
    def parse(text: str) -> Phase:
        """The phase of this name; Pending for an empty or unknown one."""
        return _PHASES.get(text, Phase.PENDING)


_PHASES = {phase.name.capitalize(): phase for phase in Phase}
_WORDS = {phase: word for word, phase in _PHASES.items()}


class Task:
    """One pod. `node` is the node's name, empty without one; `index` is None if the pod has none."""

    __slots__ = (
        "awaits_room",
        "cls",
        "condition",
        "creation",
        "evicting",
        "gated",
        "index",
        "job",
        "labels",
        "name",
        "namespace",
        "node",
        "nominated",
        "nominating",
        "pod",
        "preemptable",
        "priority",
        "reported",
        "role",
        "seat",
        "status",
        "stays",
        "sub",
        "uid",
    )

    def __init__(self, *, uid: str, namespace: str, name: str, cls: TaskClass, job: Job | None, pod: Pod) -> None:
        self.pod = pod
        """The pod as last observed, for fields that only some plugins read."""
        self.preemptable = True
        """Whether it may be evicted for others (Volcano: true by default)."""
        self.stays = False
        """Whether it belongs to its node, or to the cluster itself, so that it is never evicted."""
        self.evicting = False
        """Whether its eviction was decided and isn't observed yet."""
        self.uid = uid
        self.namespace = namespace
        self.name = name
        self.cls = cls
        self.job = job
        self.status = TaskStatus.PENDING
        self.node = ""
        self.nominated = ""
        """The nominated node (`status.nominatedNodeName`), empty without one."""
        self.nominating = False
        """Whether the nomination was decided here and isn't observed yet."""
        self.role = ""
        self.sub: SubKey | None = None
        self.priority = 1
        self.index: int | None = None
        self.creation = ""
        self.labels: dict[str, str] = {}
        self.gated = False
        """Whether it has any scheduling gate."""
        self.awaits_room = False
        """Whether the gate of its queue, which it requested, is its only gate."""
        self.condition = ""
        """The content of its PodScheduled=False condition, as far as is known: the kind of the reported blocker, or the
        condition's reason if an earlier scheduler wrote it (`reported` is false then)."""
        self.reported = False
        self.seat = -1
        """Its row in the victim table; -1 if it isn't in it."""

    def nominate(self, node: str) -> None:
        """Set its nominated node."""
        self.nominated, self.nominating = node, True


class Job:
    """One gang: a PodGroup and its pods. Created for the first of either; schedulable with both and a queue.

    Attributes:
        row: its row in the job table.
        counts: number of tasks per status, indexed by TaskStatus.
        roles: the counts per role.
        rules: the rules of its sub-gangs, from its PodGroup.
        subs: the counts per sub-gang.
        pending_best_effort: number of pending best-effort tasks.
        awaiting_room: number of pending tasks that only the gate of their queue keeps from being placed.
        phase: as decided so far, which may not be written yet.
        written: the status as last observed or last sent, whichever is newer.
        seen: the status as last observed.
        parked: the snapshot's stamps when it failed to start; None while it has to be tried.
        blocker: why it is parked.
        searches: how many consecutive searches for its placement ended without a result.
        searched: the stamp of the last failed search; None without one.
        verdict: whether it can't start even on empty nodes, with the state for which this is valid; None if unknown.
        reported: the kind of the last event about it.
        set_aside: why it isn't tried at all; empty if it is.
        topology: its network topology.
        domain: the domain of its placed pods, as its PodGroup records or was last sent.
        groupless_since: since when its pods have lacked their PodGroup, as far as cycles observed; None if they don't.
        reported_groupless: whether that was the last report on its pods.
    """

    __slots__ = (
        "awaiting_room",
        "blocker",
        "counts",
        "creation",
        "domain",
        "group",
        "groupless_since",
        "key",
        "parked",
        "pending_best_effort",
        "phase",
        "priority",
        "queue",
        "reported",
        "reported_groupless",
        "roles",
        "row",
        "rules",
        "runs",
        "searched",
        "searches",
        "seen",
        "set_aside",
        "subs",
        "tasks",
        "topology",
        "uid",
        "verdict",
        "written",
    )

    def __init__(self, key: str, row: int) -> None:
        self.key = key
        self.row = row
        self.group: PodGroupView | None = None
        self.creation = ""
        self.uid = ""
        self.queue: Queue | None = None
        self.tasks: dict[str, Task] = {}
        self.counts = [0] * STATUSES
        self.roles: dict[str, list[int]] = {}
        self.rules: tuple[SubGangRule, ...] = ()
        self.subs: dict[SubKey, list[int]] = {}
        self.pending_best_effort = 0
        self.awaiting_room = 0
        self.phase = Phase.PENDING
        self.priority = 0
        self.written: dict[str, Any] = {}
        self.seen: dict[str, Any] = {}
        self.parked: tuple[object, ...] | None = None
        self.runs: list[Run] | None = None
        self.blocker: Blocker | None = None
        self.searches = 0
        self.searched: object = None
        self.verdict: tuple[object, bool] | None = None
        self.reported: tuple[str, ...] = ()
        self.set_aside = ""
        self.topology: NetworkTopology | None = None
        self.domain = ""
        self.groupless_since: datetime | None = None
        self.reported_groupless = False

    @property
    def bound_to_domains(self) -> bool:
        """Whether the gang, or a sub-gang, has a network topology."""
        if not self.rules:  # most gangs; called several times for each
            return self.topology is not None
        return self.topology is not None or any(rule.topology is not None for rule in self.rules)

    @property
    def confined(self) -> bool:
        """Whether the network topology of the gang, or of a sub-gang, excludes any domains."""
        given = (self.topology, *(rule.topology for rule in self.rules))
        return any(topology is not None and topology.bounded for topology in given)

    @property
    def queue_takes(self) -> bool:
        """Whether the state of its queue admits it: an Open queue accepts any gang, a Closing one those that it
        accepted before. False without a queue."""
        return self.queue is not None and (self.queue.open or (self.queue.closing and self._taken_before))

    @property
    def _taken_before(self) -> bool:
        """Whether it was admitted, has members that were placed, or is the next attempt of a Job that was."""
        if self.phase not in (Phase.PENDING, Phase.COMPLETED):
            return True
        c = self.counts
        if c[_BINDING] + c[_BOUND] + c[_RUNNING] + c[_SUCCEEDED] + c[_FAILED] + c[_RELEASING]:
            return True
        return self.group is not None and names.ATTEMPT in (self.group.metadata.annotations or {})

    @property
    def queue_name(self) -> str:
        """The name of its queue; empty if the queue doesn't exist or isn't known."""
        return "" if self.queue is None else self.queue.name

    @property
    def min_member(self) -> int:
        return self.group.spec.min_member if self.group else 0

    @property
    def role_minimums(self) -> dict[str, int]:
        return (self.group.spec.min_task_member if self.group else None) or {}

    def be_of(self, group: PodGroupView | None) -> None:
        """Set its PodGroup; None if it was deleted."""
        self.group = group
        self.groupless_since = None
        self.creation = (group.metadata.creation_timestamp if group else None) or ""
        self.uid = group.metadata.uid if group else ""

    @property
    def allocated_count(self) -> int:
        c = self.counts
        return c[_ALLOCATED] + c[_BINDING] + c[_BOUND] + c[_RUNNING]

    @property
    def ready_count(self) -> int:
        """The number of tasks that are placed or have succeeded (ReadyTaskNum)."""
        c = self.counts
        return c[_ALLOCATED] + c[_BINDING] + c[_BOUND] + c[_RUNNING] + c[_SUCCEEDED]

    @property
    def waiting_count(self) -> int:
        """The number of pipelined tasks (WaitingTaskNum)."""
        return self.counts[_PIPELINED]

    @property
    def valid_count(self) -> int:
        """The number of tasks that are placed, have succeeded or could be placed (ValidTaskNum)."""
        return self.ready_count + self.counts[_PIPELINED] + self.counts[_PENDING]


class Run:
    """Consecutive pending tasks of one gang and sub-gang, in task order, with the same class and role."""

    __slots__ = ("cls", "role", "sub", "tasks")

    def __init__(self, cls: TaskClass, role: str, sub: SubKey | None, tasks: list[Task]) -> None:
        self.cls = cls
        self.role = role
        self.sub = sub
        self.tasks = tasks

    def rest(self, placed: int) -> Run:
        """The run without its first `placed` tasks."""
        return Run(self.cls, self.role, self.sub, self.tasks[placed:])


class Queue:
    """One queue. `capability` is None if the queue has none; `capability_named` has the columns that it names."""

    __slots__ = ("capability", "capability_named", "guarantee", "jobs", "name", "reported", "row", "view")

    def __init__(self, view: QueueView, row: int) -> None:
        self.name = view.metadata.name
        self.row = row
        self.view = view
        self.jobs: dict[str, Job] = {}
        self.capability: Vector | None = None
        self.capability_named: Mask | None = None
        self.guarantee: Vector | None = None
        self.reported: dict[str, str] | None = None
        """`status.allocated` as last observed or sent; None before either."""

    @property
    def open(self) -> bool:
        """Whether the queue is Open. A queue without a state counts as open, so that a new queue works before its
        controller ran."""
        return self.view.status.state in ("", "Open")

    @property
    def closing(self) -> bool:
        """Whether the queue accepts no new gangs and waits for those that it accepted."""
        return self.view.status.state == "Closing"

    @property
    def fifo(self) -> bool:
        """Whether a gang that can't start blocks those behind it."""
        return self.view.spec.dequeue_strategy == "fifo"

    @property
    def weight(self) -> int:
        return max(self.view.spec.weight, 0)

    def be_as(self, view: QueueView) -> bool:
        """Update the queue. Returns whether that may change a decision; its reported usage never does."""
        before, self.view = self.view, view
        if view.status.allocated is not None:
            self.reported = {k: str(v) for k, v in view.status.allocated.items()}
        return (
            before.metadata.uid != view.metadata.uid
            or before.spec != view.spec
            or before.status.state != view.status.state
            or before.metadata.annotations != view.metadata.annotations
        )

    def read_limits(self, dims: Dimensions) -> None:
        """Read the capability and guarantee of the spec; `dims` has a column for each resource in them."""
        spec = self.view.spec
        guarantee = spec.guarantee.resource if spec.guarantee else None
        self.guarantee = dims.vector(guarantee) if guarantee else None
        self.capability = self.capability_named = None
        if spec.capability:
            self.capability = dims.vector(spec.capability)
            self.capability_named = np.zeros(len(dims), dtype=bool)
            for name in spec.capability:
                column = dims.column(name)
                if column is not None:
                    self.capability_named[column] = True

    def pad(self, dims: Dimensions) -> None:
        """Extend its vectors by the resource names that were added since."""
        if self.capability is not None and self.capability_named is not None:
            missing = len(dims) - len(self.capability_named)
            self.capability = dims.padded(self.capability)
            self.capability_named = np.concatenate([self.capability_named, np.zeros(missing, dtype=bool)])
        if self.guarantee is not None:
            self.guarantee = dims.padded(self.guarantee)


Arrivals = list[tuple[Sequence[Task], Sequence["NodeInfo"]]]
"""Tasks that were placed on nodes, one each, and aren't in the nodes' `tasks` yet."""


class NodeInfo:
    """One node name: the node itself (`row` is -1 while it doesn't exist) and the pods on it."""

    __slots__ = (
        "_arrivals",
        "_tasks",
        "allocatable",
        "images",
        "labels",
        "name",
        "node",
        "ports",
        "present",
        "row",
        "served",
        "taints",
    )

    def __init__(self, name: str, arrivals: Arrivals) -> None:
        """`arrivals` are shared by all nodes."""
        self.name = name
        self._arrivals = arrivals
        self.row = -1
        self.node: Node | None = None
        """The node as last observed, for fields that only some plugins read."""
        self.present = False
        self.labels: dict[str, str] = {}
        self.taints: tuple[Taint, ...] = ()
        self.allocatable: Mapping[str, str | int | float] = {}
        self.served: Mapping[str, int] = {}
        """The number of its devices per extended resource that it doesn't report itself and a DeviceClass provides."""
        self.images: dict[str, int] = {}
        self._tasks: dict[str, Task] = {}
        self.ports: dict[HostPort, int] = {}

    @property
    def offers(self) -> Mapping[str, str | int | float]:
        """The resources that pods may request of it: those that it reports, and those that its devices provide."""
        return {**self.allocatable, **self.served} if self.served else self.allocatable

    @property
    def starting(self) -> bool:
        """Whether it is being added to the cluster: its labels and resources aren't final."""
        return any(taint.key in STARTING_TAINTS for taint in self.taints)

    @property
    def tasks(self) -> dict[str, Task]:
        """The pods on it, by UID. Pods placed in a cycle are entered on the next read: writing to dictionaries that
        aren't in the processor's cache would be most of the cost of placing a pod."""
        if self._arrivals:
            for tasks, infos in self._arrivals:
                for task, info in zip(tasks, infos, strict=True):
                    info._tasks[task.uid] = task
            self._arrivals.clear()
        return self._tasks

    def count_ports(self, ports: Sequence[HostPort], step: int) -> None:
        """Count the host ports of a pod that was added (`step` 1) or removed (-1)."""
        for port in ports:
            self.ports[port] = self.ports.get(port, 0) + step
            if self.ports[port] <= 0:
                del self.ports[port]
