"""The accounting that decisions read: nodes, gangs and pods in arrays and counters, and each pod's part in them.

Every change of a pod updates the same tables: node columns, gang rows and counters.
"""

from __future__ import annotations

from typing import Any

from vcbatch.api.scheduling import PriorityClassView
from vcbatch.scheduler.index.demand import DemandTracker
from vcbatch.scheduler.index.devices.holders import DeviceHolders
from vcbatch.scheduler.index.dra.claimed import ClaimedDevices
from vcbatch.scheduler.index.dra.queue_devices import QueueDevices
from vcbatch.scheduler.index.interpod import InterPodIndex
from vcbatch.scheduler.index.shards import Shards
from vcbatch.scheduler.index.victims import VictimTable
from vcbatch.scheduler.index.volumes import VolumeIndex
from vcbatch.scheduler.model.classes import ClassTable
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import (
    ALLOCATED_STATUSES,
    STATUSES,
    Arrivals,
    Job,
    NodeInfo,
    Queue,
    Task,
    TaskStatus,
)
from vcbatch.scheduler.model.resources import Dimensions, Vector
from vcbatch.scheduler.model.tables import JobTable, NodeTable


class Accounting:
    """All that decisions read, and how one pod is added to it and removed from it.

    Attributes:
        demand: allocated and requested resources of gangs, by queue.
        changed: an input of a cycle changed since the last one.
        room_stamp: grows whenever a placement that failed might succeed now: capacity was added or released, a node
            changed which pods it admits.
        ground_stamp: grows whenever nodes were added, removed or changed, or pods on them that are never evicted.
        staying: these pods, by UID.
        queues_stamp: grows when queues were added, removed or changed.
        static_stamp: grows when nodes were added or removed, or changed labels, taints or images.
        refused: by pod UID, the errors of binds that failed since the last cycle.
        victims: the pods that may be evicted; None while no action of the scheduler configuration evicts.
        inputs: grows when an input other than a pod changed: nodes, queues, priorities, PodGroups.
        failed_evictions: UIDs of gangs of which an eviction failed since the set was last read.
        waiting: the gangs with a PodGroup that have pending tasks or aren't admitted yet, as of the last `settle`.
        queue_gates: whether pods may wait for capacity in their queue behind its scheduling gate.
        facts: the objects that only some plugins read.
        memory: what plugins and actions keep between cycles, each under its own name.
        touched: the gangs whose tasks or PodGroup changed, whose status therefore has to be computed again.
    """

    def __init__(self) -> None:
        self.dims = Dimensions()
        self.classes = ClassTable(self.dims)
        self.nodes = NodeTable(self.dims)
        self.jobs_table = JobTable(self.dims)
        self.demand = DemandTracker(self.jobs_table)
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.tasks: dict[str, Task] = {}
        self.priorities: dict[str, PriorityClassView] = {}
        self.inter_pod = InterPodIndex()
        self.facts = Facts()
        self.volumes = VolumeIndex(self.facts)
        self.shards = Shards(self.facts)
        self.devices = DeviceHolders()
        self.claimed = ClaimedDevices(self.facts)
        self.queue_devices: QueueDevices | None = None
        self.memory: dict[str, Any] = {}
        self.victims: VictimTable | None = None
        self.inputs: int = 0
        self.failed_evictions: set[str] = set()
        self.touched: dict[str, Job] = {}
        self.refused: dict[str, str] = {}
        self.waiting: dict[str, Job] = {}
        self.changed = True
        self.queue_gates = False
        self.room_stamp: int = 0
        self.ground_stamp: int = 0
        self.staying: dict[str, Task] = {}
        self.queues_stamp: int = 0
        self.static_stamp: int = 0
        self.known_nodes: dict[str, NodeInfo] = {}
        self._arrivals: Arrivals = []
        self.nodes_moved = False
        self._related_stamp = -1
        self._namespace_stamp = 0
        self._width = len(self.dims)

    # Reading ----------------------------------------------------------------------------------------------------------

    def node(self, name: str) -> NodeInfo | None:
        """The node of this name, as far as it is known; None if neither the node nor pods on it are known."""
        return self.known_nodes.get(name)

    def row(self, node: str) -> int | None:
        """The row of the node of this name; None where there is no such node."""
        info = self.known_nodes.get(node)
        return info.row if info is not None and info.row >= 0 else None

    def row_of(self, task: Task) -> int:
        """The row of the task's node; -1 if the node doesn't exist."""
        return self.info(task.node).row

    @property
    def queue_rows(self) -> int:
        """The number of rows of queues, unused ones included."""
        return 1 + max((queue.row for queue in self.queues.values()), default=-1)

    def total(self) -> Vector:
        """The allocatable resources of all nodes together, [R]."""
        return self.nodes.alloc.sum(axis=1)

    def info(self, name: str) -> NodeInfo:
        info = self.known_nodes.get(name)
        if info is None:
            info = self.known_nodes[name] = NodeInfo(name, self._arrivals)
        return info

    # One pod ----------------------------------------------------------------------------------------------------------

    def enter(self, task: Task) -> None:
        """Count the task, with its status and on its node."""
        self._book(task, 1)
        if task.node:
            info = self.info(task.node)
            info.tasks[task.uid] = task
            self.volumes.moved(task, task.node, 1)
            self.devices.changed(task, 1)
            info.count_ports(task.cls.ports, 1)
            if info.row >= 0:
                self._charge(task, info.row, 1.0)
                self.inter_pod.moved(task, info.row, 1)
            if task.status is TaskStatus.RELEASING:
                self.room_stamp += 1
            if self.victims is not None:
                self.victims.enter(task)
            if task.stays:
                self.staying[task.uid] = task
                self.ground_stamp += 1
        self._note_change(task)

    def leave(self, task: Task) -> None:
        """Stop counting the task, until `enter` is called for it."""
        self._book(task, -1)
        if task.node:
            if self.victims is not None:
                self.victims.leave(task)
            if task.stays:
                del self.staying[task.uid]
                self.ground_stamp += 1
            info = self.info(task.node)
            del info.tasks[task.uid]
            self.volumes.moved(task, task.node, -1)
            self.devices.changed(task, -1)
            info.count_ports(task.cls.ports, -1)
            if info.row >= 0:
                self._charge(task, info.row, -1.0)
                self.inter_pod.moved(task, info.row, -1)
            elif not info.present and not info.tasks:
                del self.known_nodes[info.name]
            self.room_stamp += 1
        self._note_change(task)

    def progress(self, task: Task, status: TaskStatus) -> None:
        """Change the status of a pod that stays on its node: no capacity was added or released, so that gangs which
        wait for capacity needn't be tried again."""
        self._book(task, -1)
        task.status = status
        self._book(task, 1)
        if self.victims is not None:
            self.victims.leave(task)
            self.victims.enter(task)
        self.changed = True
        if task.job is not None:
            self.touched[task.job.key] = task.job

    def _charge(self, task: Task, row: int, sign: float) -> None:
        amount = sign * task.cls.request
        self.nodes.used[:, row] += amount
        self.nodes.nonzero[:, row] += sign * task.cls.nonzero
        if task.status is TaskStatus.RELEASING:
            self.nodes.releasing[:, row] += amount

    def _note_change(self, task: Task) -> None:
        self.changed = True
        job = task.job
        if job is not None:
            self.touched[job.key] = job
            job.runs = None
            job.parked = None
            self.doubt(job)

    def doubt(self, job: Job) -> None:
        """Forget whether the gang could ever start; the next cycle determines it again."""
        job.verdict = None
        if self.jobs_table.unstartable[job.row]:
            self.jobs_table.set_unstartable(job.row, unstartable=False)

    def _book(self, task: Task, step: int) -> None:
        """Add one task to its gang's counters and vectors (`step` 1), or remove it (-1)."""
        job = task.job
        if job is None:
            return
        self._count(job, task, task.status, step)
        if self.queue_devices is not None and task.status in ALLOCATED_STATUSES:
            (self.queue_devices.hold if step > 0 else self.queue_devices.release)((task,))
        amount = step * task.cls.request
        table = self.jobs_table
        if task.status in ALLOCATED_STATUSES:
            table.allocated[job.row] += amount
        elif task.status is TaskStatus.PENDING:
            table.pending[job.row] += amount
            if task.awaits_room:
                job.awaiting_room += step
            elif task.gated:
                table.gated[job.row] += amount

    def _count(self, job: Job, task: Task, status: TaskStatus, step: int) -> None:
        job.counts[status] += step
        role = job.roles.get(task.role)
        if role is None:
            role = job.roles[task.role] = [0] * STATUSES
        role[status] += step
        if task.sub is not None:
            job.subs.setdefault(task.sub, [0] * STATUSES)[status] += step
        if status is TaskStatus.PENDING and task.cls.best_effort:
            job.pending_best_effort += step
        self._tally(job)

    def _tally(self, job: Job) -> None:
        self.jobs_table.changed.add(job.row)
        self.jobs_table.allocated_count[job.row] = job.allocated_count
        if self.victims is not None:
            self.jobs_table.ready_count[job.row] = job.ready_count
            self.jobs_table.pending_best_effort[job.row] = job.pending_best_effort

    # Optional tables --------------------------------------------------------------------------------------------------

    def count_devices(self, *, capacity: bool) -> QueueDevices:
        """Track what queues use of devices by ResourceClaim from now on; `capacity` as in `QueueDevices`."""
        kept, served = self.queue_devices, self.claimed.served
        if kept is None or kept.capacity is not capacity or kept.served_stamp != served.stamp:
            self.queue_devices = QueueDevices(self.facts, served, self.node, capacity=capacity)
            self.queue_devices.hold(task for task in self.tasks.values() if task.status in ALLOCATED_STATUSES)
            return self.queue_devices
        return kept

    def keep_victims(self, *, kept: bool) -> None:
        """Maintain the table of pods that may be evicted, or drop it."""
        if kept and self.victims is None:
            self.victims = VictimTable()
            self.victims.fill(self.tasks.values())
            for job in self.jobs.values():
                self._tally(job)
        elif not kept:
            self.victims = None

    def widen(self) -> None:
        """Extend every table by the resource names that were added since the last call."""
        if self._width == len(self.dims):
            return
        self._width = len(self.dims)
        self.nodes.pad(self._width)
        self.jobs_table.pad(self._width)
        self.classes.pad()
        for queue in self.queues.values():
            queue.pad(self.dims)
