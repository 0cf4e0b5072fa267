"""The picture of the cluster: nodes, gangs and pods in arrays and counters, and how pods move in it.

Every move of a task goes through `_leave`/`_enter` (one pod, from a delta) or `shift` and `bind` (a batch, from a
decision), and all keep the same books: node columns, gang rows and counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vcbatch.api.namespace import Namespace
from vcbatch.api.scheduling import PriorityClassView
from vcbatch.scheduler.devices.holders import DeviceHolders
from vcbatch.scheduler.dra.claimed import ClaimedDevices
from vcbatch.scheduler.dra.queue_devices import QueueDevices
from vcbatch.scheduler.filters.interpod import InterPodIndex
from vcbatch.scheduler.filters.volumes import VolumeIndex
from vcbatch.scheduler.picture.classes import ClassTable, TaskClass
from vcbatch.scheduler.picture.facts import Facts
from vcbatch.scheduler.picture.model import (
    ALLOCATED_STATUSES,
    STATUSES,
    Arrivals,
    Job,
    NodeInfo,
    Phase,
    Queue,
    Task,
    TaskStatus,
)
from vcbatch.scheduler.picture.reading import status_of
from vcbatch.scheduler.picture.tables import JobTable, NodeTable
from vcbatch.scheduler.picture.victims import VictimTable
from vcbatch.scheduler.queues.demand import DemandBooks
from vcbatch.scheduler.resources import Dimensions, Vector
from vcbatch.scheduler.sharding.shards import Shards

_FORGET_CLASSES_ABOVE = 4096


class Picture:
    """All that decisions read, and the books that every move of a task is entered in.

    Attributes:
        demand: what gangs hold and ask for, by queue.
        changed: something that a cycle would look at changed since the last one.
        room_stamp: grows whenever a placement that failed might succeed now: capacity came or was given back, a node
            changed what it admits.
        queues_stamp: grows when queues came, went or changed.
        static_stamp: grows when nodes came, went or changed labels, taints or images.
        refused: by pod UID, the binds that were refused since the last cycle, and why.
        victims: who could be evicted; None while no action of the policy evicts.
        inputs: grows when something changed that no pod can: nodes, queues, priorities, PodGroups.
        failed_evictions: UIDs of gangs of which an eviction couldn't be carried out since somebody took note.
        waiting: the gangs with a PodGroup that have pending tasks or aren't admitted yet, as of the last `settle`.
        queue_gates: whether pods may wait for room in their queue behind its scheduling gate.
        facts: the objects that only some plugins read.
        memory: what plugins and actions remember from cycle to cycle, each under its own name.
        touched: the gangs whose tasks or PodGroup changed, whose status is therefore to be computed again.
    """

    def __init__(self) -> None:
        self.dims = Dimensions()
        self.classes = ClassTable(self.dims)
        self.nodes = NodeTable(self.dims)
        self.jobs_table = JobTable(self.dims)
        self.demand = DemandBooks(self.jobs_table)
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
        self.queues_stamp: int = 0
        self.static_stamp: int = 0
        self._infos: dict[str, NodeInfo] = {}
        self._arrivals: Arrivals = []
        self._nodes_moved = False
        self._related_stamp = -1
        self._namespace_stamp = 0
        self._width = len(self.dims)

    # One pod, by a delta ----------------------------------------------------------------------------------------------

    def _enter(self, task: Task) -> None:
        self._book(task, 1)
        if task.node:
            info = self._info(task.node)
            info.tasks[task.uid] = task
            self.volumes.moved(task, task.node, 1)
            self.devices.changed(task, 1)
            for port in task.cls.ports:
                info.ports[port] = info.ports.get(port, 0) + 1
            if info.row >= 0:
                self._charge(task, info.row, 1.0)
                self.inter_pod.moved(task, info.row, 1)
            if task.status is TaskStatus.RELEASING:
                self.room_stamp += 1
            if self.victims is not None:
                self.victims.enter(task)
        self._note_change(task)

    def _leave(self, task: Task) -> None:
        self._book(task, -1)
        if task.node:
            if self.victims is not None:
                self.victims.leave(task)
            info = self._info(task.node)
            del info.tasks[task.uid]
            self.volumes.moved(task, task.node, -1)
            self.devices.changed(task, -1)
            for port in task.cls.ports:
                info.ports[port] -= 1
                if info.ports[port] <= 0:
                    del info.ports[port]
            if info.row >= 0:
                self._charge(task, info.row, -1.0)
                self.inter_pod.moved(task, info.row, -1)
            elif not info.present and not info.tasks:
                del self._infos[info.name]
            self.room_stamp += 1
        self._note_change(task)

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

    def _book(self, task: Task, step: int) -> None:
        """Count one task in its gang's counters and vectors, or take it out."""
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

    def _progress(self, task: Task, status: TaskStatus) -> None:
        """A pod went on where it is: no room came or went, so nobody who waits for room has to be asked again."""
        self._book(task, -1)
        task.status = status
        self._book(task, 1)
        if self.victims is not None:
            self.victims.leave(task)
            self.victims.enter(task)
        self.changed = True
        if task.job is not None:
            self.touched[task.job.key] = task.job

    def _info(self, name: str) -> NodeInfo:
        info = self._infos.get(name)
        if info is None:
            info = self._infos[name] = NodeInfo(name, self._arrivals)
        return info

    # Decisions -------------------------------------------------------------------------------------------------------

    def shift(self, tasks: Sequence[Task], status: TaskStatus, rows: Sequence[int]) -> None:
        """Move tasks of one gang, sub-gang, class, role and status: from Pending to these nodes (Allocated or
        Pipelined), or from there back to Pending, also from Binding while nobody was told."""
        first = tasks[0]
        job, cls, before = first.job, first.cls, first.status
        assert job is not None  # noqa: S101 - only tasks of gangs are decided about
        self._recount(job, first, before, status, len(tasks))
        self._shift_vectors(job, cls, before, status, len(tasks))
        self._shift_nodes(tasks, rows, before, status)
        if cls.profile.claims:
            self._shift_claims(tasks, rows, placing=before is TaskStatus.PENDING)
        if self.claimed.enabled and cls.spec.resource_claims:
            self._shift_devices(tasks, rows, placing=before is TaskStatus.PENDING)
        if self.queue_devices is not None and cls.spec.resource_claims:
            (self.queue_devices.hold if before is TaskStatus.PENDING else self.queue_devices.release)(tasks)
        if self.inter_pod_watched(cls):
            for task, row in zip(tasks, rows, strict=True):
                self.inter_pod.moved(task, row, 1 if before is TaskStatus.PENDING else -1)
        self._tally(job)
        self.touched[job.key] = job

    def _shift_devices(self, tasks: Sequence[Task], rows: Sequence[int], *, placing: bool) -> None:
        for task, row in zip(tasks, rows, strict=True):
            (self.claimed.place if placing else self.claimed.take_back)(task, row)

    def _shift_claims(self, tasks: Sequence[Task], rows: Sequence[int], *, placing: bool) -> None:
        for task, row in zip(tasks, rows, strict=True):
            if placing:
                self.volumes.choose(task, row)
            self.volumes.moved(task, self.nodes.infos[row].name, 1 if placing else -1)

    def bind(self, tasks: Sequence[Task]) -> None:
        """What was Allocated is on its way to its nodes: tasks of one gang, sub-gang, class and role."""
        first = tasks[0]
        job = first.job
        assert job is not None  # noqa: S101 - only tasks of gangs are decided about
        self._recount(job, first, TaskStatus.ALLOCATED, TaskStatus.BINDING, len(tasks))
        binding = TaskStatus.BINDING
        for task in tasks:
            task.status = binding
        job.runs = None

    def _recount(self, job: Job, one: Task, before: TaskStatus, after: TaskStatus, count: int) -> None:
        b, a = int(before), int(after)
        for counts in (job.counts, job.roles[one.role]):
            counts[b] -= count
            counts[a] += count
        if one.sub is not None:
            counts = job.subs[one.sub]
            counts[b] -= count
            counts[a] += count

    def node(self, name: str) -> NodeInfo | None:
        """What is known of the node of this name; None where nothing is."""
        return self._infos.get(name)

    def row(self, node: str) -> int | None:
        """The row of the node of this name; None where there is no such node."""
        info = self._infos.get(node)
        return info.row if info is not None and info.row >= 0 else None

    def row_of(self, task: Task) -> int:
        """The row of the node that the task is on."""
        return self._info(task.node).row

    def row_of_node(self, name: str) -> int:
        """The row of the node of this name; -1 where there is none."""
        info = self._infos.get(name)
        return -1 if info is None else info.row

    def evict(self, task: Task) -> TaskStatus:
        """A pod that holds its place is on its way out: what it takes counts as being released, and no rule about pods
        sees it any more. Returns what it was, for `spare`."""
        before = task.status
        self._turn(task, TaskStatus.RELEASING, 1.0)
        if self.victims is not None:
            self.victims.hide(task)
        task.evicting = True
        return before

    def spare(self, task: Task, before: TaskStatus) -> None:
        """Take an eviction back, exactly."""
        self._turn(task, before, -1.0)
        if self.victims is not None:
            self.victims.show(task)
        task.evicting = False

    def evicted(self, task: Task) -> None:
        """The eviction is decided: until the pod is gone, rules about pods see it again, as they see every pod that is
        ending. What it takes is worth waiting for from now on."""
        self._show(task, 1)
        self.room_stamp += 1

    def _turn(self, task: Task, status: TaskStatus, sign: float) -> None:
        # Rules that don't count pods which are ending count it as what it is while it holds its place.
        if sign > 0:
            self._show(task, -1)
        self._book(task, -1)
        task.status = status
        self._book(task, 1)
        info = self._info(task.node)
        if info.row >= 0:
            self.nodes.releasing[:, info.row] += sign * task.cls.request
        if sign < 0:
            self._show(task, 1)
        if task.job is not None:
            self.touched[task.job.key] = task.job

    def _show(self, task: Task, step: int) -> None:
        """Let rules about pods see the task on its node, or no longer."""
        info = self._info(task.node)
        self.volumes.moved(task, task.node, step)
        for port in task.cls.ports:
            info.ports[port] = info.ports.get(port, 0) + step
            if info.ports[port] <= 0:
                del info.ports[port]
        if info.row >= 0:
            self.inter_pod.moved(task, info.row, step)
            nodes = self.nodes
            nodes.nonzero[:, info.row] += step * task.cls.nonzero
            if nodes.leaving is None:
                nodes.leaving = np.zeros_like(nodes.releasing)
            nodes.leaving[:, info.row] -= step * task.cls.request

    def eviction_failed(self, uid: str) -> None:
        """An eviction that was decided couldn't be carried out: the pod holds its place again."""
        task = self.tasks.get(uid)
        if task is None or not task.evicting or task.status is not TaskStatus.RELEASING:
            return
        self._leave(task)
        task.evicting = False
        task.status = status_of(task.pod)
        self._enter(task)
        self.inputs += 1
        if task.job is not None:
            self.failed_evictions.add(task.job.uid)

    def count_devices(self, *, capacity: bool) -> QueueDevices:
        """Keep what queues hold of devices by claim from now on; `capacity` as in `QueueDevices`."""
        if self.queue_devices is None or self.queue_devices.capacity is not capacity:
            self.queue_devices = QueueDevices(self.facts, capacity=capacity)
            self.queue_devices.hold(task for task in self.tasks.values() if task.status in ALLOCATED_STATUSES)
        return self.queue_devices

    def inter_pod_watched(self, cls: TaskClass) -> bool:
        """Whether somebody counts where pods of this class are."""
        return cls.inter_pod.any or self.inter_pod.counting

    def _shift_vectors(self, job: Job, cls: TaskClass, before: TaskStatus, after: TaskStatus, k: int) -> None:
        sign = 1 if before is TaskStatus.PENDING else -1
        held = TaskStatus.PIPELINED not in (before, after)
        self.jobs_table.shift(job.row, cls, allocated=sign * k if held else 0, pending=-sign * k)
        if cls.best_effort:
            job.pending_best_effort += -k if before is TaskStatus.PENDING else k

    def _shift_nodes(self, tasks: Sequence[Task], rows: Sequence[int], before: TaskStatus, after: TaskStatus) -> None:
        cls = tasks[0].cls
        placing = before is TaskStatus.PENDING
        infos = self.nodes.infos
        if placing:
            homes = [infos[row] for row in rows]
            for task, info in zip(tasks, homes, strict=True):
                task.status = after
                task.node = info.name
            self._arrivals.append((tasks, homes))
        else:
            for task, row in zip(tasks, rows, strict=True):
                task.status = after
                task.node = ""
                del infos[row].tasks[task.uid]
        promised = TaskStatus.PIPELINED in (before, after)
        self.nodes.charge(rows, cls, promised=promised, times=1 if placing else -1)
        if cls.ports:
            self._shift_ports(cls, rows, 1 if placing else -1)

    def _shift_ports(self, cls: TaskClass, rows: Sequence[int], step: int) -> None:
        for row in rows:
            ports = self.nodes.infos[row].ports
            for port in cls.ports:
                ports[port] = ports.get(port, 0) + step
                if ports[port] <= 0:
                    del ports[port]

    def bind_failed(self, uid: str, error: str) -> None:
        """Take an assumed bind back: the pod is pending again."""
        task = self.tasks.get(uid)
        if task is None or task.status is not TaskStatus.BINDING:
            return
        self._leave(task)
        task.status, task.node = TaskStatus.PENDING, ""
        self._enter(task)
        self.refused[uid] = error

    # Before a cycle --------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Bring the arrays in order for a cycle: columns for the nodes there are, counts of the terms in use."""
        if self._nodes_moved:
            present = sorted((i for i in self._infos.values() if i.present), key=lambda i: i.name)
            gone = [i for i in self.nodes.infos if not i.present]
            for info in self.nodes.relay(present):
                self.nodes.alloc[:, info.row] = self.dims.vector(info.allocatable)
                for task in info.tasks.values():
                    self._charge(task, info.row, 1.0)
            for info in gone:
                if not info.tasks:
                    self._infos.pop(info.name, None)
            self._nodes_moved = False
            self.inter_pod.relay(self.nodes.infos)
            self.volumes.relay(self.nodes.infos)
            self.claimed.relay(self.nodes.infos)
            self._related_stamp = self.static_stamp
        elif self.static_stamp != self._related_stamp:
            self.inter_pod.relay(self.nodes.infos)
            self.volumes.relay(self.nodes.infos)
            self.claimed.relay(self.nodes.infos)
            self._related_stamp = self.static_stamp
        if self._namespace_stamp != self.facts.stamp(Namespace):
            self._namespace_stamp = self.facts.stamp(Namespace)
            labels = {name: seen.metadata.labels or {} for name, seen in self.facts.of(Namespace).items()}
            self.inter_pod.set_namespaces(labels)
        if self.victims is not None:
            self.victims.settle(self.nodes.infos, len(self.dims))
        self._sort_waiting()
        if len(self.classes.classes) > _FORGET_CLASSES_ABOVE + 2 * len(self.tasks):
            self.classes.keep_only({t.cls for t in self.tasks.values()})

    def keep_victims(self, *, kept: bool) -> None:
        """Keep the table of who could be evicted, or do without."""
        if kept and self.victims is None:
            self.victims = VictimTable()
            self.victims.fill(self.tasks.values())
            for job in self.jobs.values():
                self._tally(job)
        elif not kept:
            self.victims = None

    def finish(self) -> None:
        """The cycle is over: what it changed is known."""
        self.nodes.leaving = None
        self._sort_waiting()
        self.touched.clear()
        self.refused.clear()

    def _sort_waiting(self) -> None:
        for job in self.touched.values():
            if job.group is not None and (job.counts[TaskStatus.PENDING] > 0 or job.phase is Phase.PENDING):
                self.waiting[job.key] = job
            else:
                self.waiting.pop(job.key, None)

    def _widen(self) -> None:
        """Extend every table by the resource names learned since."""
        if self._width == len(self.dims):
            return
        self._width = len(self.dims)
        self.nodes.pad(self._width)
        self.jobs_table.pad(self._width)
        self.classes.pad()
        for queue in self.queues.values():
            if queue.capability is not None and queue.capability_named is not None:
                missing = self._width - len(queue.capability_named)
                queue.capability = self.dims.padded(queue.capability)
                queue.capability_named = np.concatenate([queue.capability_named, np.zeros(missing, dtype=bool)])
            if queue.guarantee is not None:
                queue.guarantee = self.dims.padded(queue.guarantee)

    @property
    def queue_rows(self) -> int:
        """How many rows the queues take, those that none has now included."""
        return 1 + max((queue.row for queue in self.queues.values()), default=-1)

    def total(self) -> Vector:
        """What all nodes offer together."""
        return self.nodes.alloc.sum(axis=1)
