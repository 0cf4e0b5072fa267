"""The picture of the cluster: what the deltas have told, and what was decided since.

Every change of a task goes through `_leave`/`_enter` (one pod, from a delta) or `shift` (a batch, from a decision),
and both keep the same books: node columns, gang rows and counters. A picture reached by any stream of deltas equals
the one built from the objects at its end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from vcbatch.api import names
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.scheduling import PodGroupView, PriorityClassView, QueueView
from vcbatch.scheduler.classes import ClassTable, TaskClass
from vcbatch.scheduler.interpod import InterPodIndex
from vcbatch.scheduler.model import (
    ALLOCATED_STATUSES,
    FINISHED_STATUSES,
    HOLDING,
    OFF_NODE,
    STATUSES,
    Job,
    NodeInfo,
    Phase,
    Queue,
    Task,
    TaskStatus,
)
from vcbatch.scheduler.reading import (
    index_of,
    note,
    priority_of,
    status_of,
    taints_of,
    unscheduled_reason,
    unsupported_group,
)
from vcbatch.scheduler.resources import Dimensions, Vector
from vcbatch.scheduler.tables import JobTable, NodeTable

_FORGET_CLASSES_ABOVE = 4096


class ClusterState:
    """All that decisions read.

    Attributes:
        changed: something that a cycle would look at changed since the last one.
        room_stamp: grows whenever a placement that failed might succeed now: capacity came or was given back, a node
            changed what it admits.
        static_stamp: grows when nodes came, went or changed labels, taints or images.
        refused: by pod UID, the binds that were refused since the last cycle, and why.
        waiting: the gangs with a PodGroup that have pending tasks or aren't admitted yet, as of the last `settle`.
        touched: the gangs whose tasks or PodGroup changed, whose status is therefore to be computed again.
    """

    def __init__(self, *, scheduler_names: Collection[str], default_queue: str) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.default_queue = default_queue
        self.dims = Dimensions()
        self.classes = ClassTable(self.dims)
        self.nodes = NodeTable(self.dims)
        self.jobs_table = JobTable(self.dims)
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.tasks: dict[str, Task] = {}
        self.priorities: dict[str, PriorityClassView] = {}
        self.inter_pod = InterPodIndex()
        self.touched: dict[str, Job] = {}
        self.refused: dict[str, str] = {}
        self.waiting: dict[str, Job] = {}
        self.changed = True
        self.room_stamp = 0
        self.static_stamp = 0
        self._infos: dict[str, NodeInfo] = {}
        self._by_group_uid: dict[str, Job] = {}
        self._nodes_moved = False
        self._related_stamp = -1
        self._width = len(self.dims)

    # Pods ------------------------------------------------------------------------------------------------------------

    def apply_pod(self, pod: Pod) -> None:
        """A pod is there, or changed."""
        known = self.tasks.get(pod.metadata.uid)
        status = status_of(pod)
        if known is None:
            if not pod.spec.node_name and not self._ours(pod):
                return
            if status in FINISHED_STATUSES and not self._ours(pod):
                return
            self._add_pod(pod, status)
            return
        if known.status is TaskStatus.BINDING and status is TaskStatus.PENDING:
            return  # the bind is on its way; an object from before it doesn't undo it
        if self._same_but_status(known, pod, status):
            if known.status is status:
                return
            if known.status in HOLDING and status in HOLDING:
                self._progress(known, status)
                return
        self._drop_pod(known)
        if status in FINISHED_STATUSES and not self._ours(pod):
            return
        self._add_pod(pod, status, condition=known.condition)

    def delete_pod(self, uid: str) -> None:
        """A pod is gone."""
        known = self.tasks.get(uid)
        if known is not None:
            self._drop_pod(known)

    def _ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.scheduler_names

    def _same_but_status(self, known: Task, pod: Pod, status: TaskStatus) -> bool:
        node = "" if status in OFF_NODE else pod.spec.node_name
        return (
            known.node == node
            and known.cls is self.classes.of(pod)
            and known.labels == (pod.metadata.labels or {})
            and known.gated == bool(pod.spec.scheduling_gates)
            and (known.job.key if known.job else "") == (self._job_key(pod) if self._ours(pod) else "")
            and known.priority == priority_of(pod)
        )

    def _progress(self, task: Task, status: TaskStatus) -> None:
        """A pod went on where it is: no room came or went, so nobody who waits for room has to be asked again."""
        self._book(task, -1)
        task.status = status
        self._book(task, 1)
        self.changed = True
        if task.job is not None:
            self.touched[task.job.key] = task.job

    def _add_pod(self, pod: Pod, status: TaskStatus, *, condition: str = "") -> None:
        meta = pod.metadata
        cls = self.classes.of(pod)
        self._widen()
        key = self._job_key(pod) if self._ours(pod) else ""
        job = self._job(key) if key else None
        task = Task(uid=meta.uid, namespace=meta.namespace, name=meta.name, cls=cls, job=job)
        task.status = status
        task.node = "" if status in OFF_NODE else pod.spec.node_name
        task.role = note(meta, names.TASK_SPEC)
        task.priority = priority_of(pod)
        task.index = index_of(meta)
        task.creation = meta.creation_timestamp or ""
        task.labels = meta.labels or {}
        task.gated = bool(pod.spec.scheduling_gates)
        task.condition = condition or unscheduled_reason(pod)
        self.tasks[task.uid] = task
        if job is not None:
            job.tasks[task.uid] = task
        self._enter(task)

    def _drop_pod(self, task: Task) -> None:
        self._leave(task)
        del self.tasks[task.uid]
        job = task.job
        if job is not None:
            del job.tasks[task.uid]
            self._forget_if_empty(job)

    def _job_key(self, pod: Pod) -> str:
        group = (pod.metadata.annotations or {}).get(names.GROUP_NAME, "")
        return f"{pod.metadata.namespace}/{group}" if group else ""

    def _enter(self, task: Task) -> None:
        self._book(task, 1)
        if task.node:
            info = self._info(task.node)
            info.tasks[task.uid] = task
            for port in task.cls.ports:
                info.ports[port] = info.ports.get(port, 0) + 1
            if info.row >= 0:
                self._charge(task, info.row, 1.0)
                self.inter_pod.moved(task, info.row, 1)
            if task.status is TaskStatus.RELEASING:
                self.room_stamp += 1
        self._note_change(task)

    def _leave(self, task: Task) -> None:
        self._book(task, -1)
        if task.node:
            info = self._info(task.node)
            del info.tasks[task.uid]
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
        amount = step * task.cls.request
        table = self.jobs_table
        if task.status in ALLOCATED_STATUSES:
            table.allocated[job.row] += amount
        elif task.status is TaskStatus.PENDING:
            table.pending[job.row] += amount
            if task.gated:
                table.gated[job.row] += amount

    def _count(self, job: Job, task: Task, status: TaskStatus, step: int) -> None:
        job.counts[status] += step
        role = job.roles.get(task.role)
        if role is None:
            role = job.roles[task.role] = [0] * STATUSES
        role[status] += step
        if status is TaskStatus.PENDING and task.cls.best_effort:
            job.pending_best_effort += step
        self.jobs_table.allocated_count[job.row] = job.allocated_count

    # Decisions -------------------------------------------------------------------------------------------------------

    def shift(self, tasks: Sequence[Task], status: TaskStatus, rows: Sequence[int]) -> None:
        """Move tasks of one gang, class, role and status: from Pending to these nodes (Allocated or Pipelined), or
        from there back to Pending, also from Binding while nobody was told."""
        first = tasks[0]
        job, cls, before = first.job, first.cls, first.status
        assert job is not None  # noqa: S101 - only tasks of gangs are decided about
        self._recount(job, first.role, before, status, len(tasks))
        self._shift_vectors(job, cls, before, status, len(tasks))
        self._shift_nodes(tasks, rows, before, status)
        if self.inter_pod_watched(cls):
            for task, row in zip(tasks, rows, strict=True):
                self.inter_pod.moved(task, row, 1 if before is TaskStatus.PENDING else -1)
        self.jobs_table.allocated_count[job.row] = job.allocated_count
        self.touched[job.key] = job

    def bind(self, tasks: Sequence[Task]) -> None:
        """What was Allocated is on its way to its nodes: tasks of one gang, class and role."""
        first = tasks[0]
        job = first.job
        assert job is not None  # noqa: S101 - only tasks of gangs are decided about
        self._recount(job, first.role, TaskStatus.ALLOCATED, TaskStatus.BINDING, len(tasks))
        binding = TaskStatus.BINDING
        for task in tasks:
            task.status = binding
        job.runs = None

    def _recount(self, job: Job, role: str, before: TaskStatus, after: TaskStatus, count: int) -> None:
        b, a = int(before), int(after)
        for counts in (job.counts, job.roles[role]):
            counts[b] -= count
            counts[a] += count

    def inter_pod_watched(self, cls: TaskClass) -> bool:
        """Whether somebody counts where pods of this class are."""
        return cls.inter_pod.any or self.inter_pod.counting

    def _shift_vectors(self, job: Job, cls: TaskClass, before: TaskStatus, after: TaskStatus, k: int) -> None:
        table = self.jobs_table
        amount = k * cls.request
        if before is TaskStatus.PENDING:
            table.pending[job.row] -= amount
            if after is TaskStatus.ALLOCATED:
                table.allocated[job.row] += amount
        else:
            table.pending[job.row] += amount
            if before is not TaskStatus.PIPELINED:
                table.allocated[job.row] -= amount
        if cls.best_effort:
            job.pending_best_effort += -k if before is TaskStatus.PENDING else k

    def _shift_nodes(self, tasks: Sequence[Task], rows: Sequence[int], before: TaskStatus, after: TaskStatus) -> None:
        cls = tasks[0].cls
        placing = before is TaskStatus.PENDING
        infos = self.nodes.infos
        counts: dict[int, int] = {}
        for task, row in zip(tasks, rows, strict=True):
            counts[row] = counts.get(row, 0) + 1
            info = infos[row]
            task.status = after
            if placing:
                task.node = info.name
                info.tasks[task.uid] = task
            else:
                task.node = ""
                del info.tasks[task.uid]
        r = len(cls.request)
        promising = TaskStatus.PIPELINED in (before, after)
        load, amount = (self.nodes.load[r:], cls.promised) if promising else (self.nodes.load[: r + 2], cls.placed)
        times = np.array(list(counts.values()), dtype=np.float64)
        load[:, list(counts)] += amount * (times if placing else -times)
        for port in cls.ports:
            for row, count in counts.items():
                ports = infos[row].ports
                ports[port] = ports.get(port, 0) + (count if placing else -count)
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

    # Gangs -----------------------------------------------------------------------------------------------------------

    def apply_podgroup(self, group: PodGroupView) -> None:
        """A PodGroup is there, or changed."""
        job = self._job(group.metadata.key)
        before, job.group = job.group, group
        if before is None or before.metadata.uid != group.metadata.uid:
            if before is not None:
                self._by_group_uid.pop(before.metadata.uid, None)
            self._by_group_uid[group.metadata.uid] = job
            job.written = {}
            job.told = ()
            self.set_phase(job, Phase.PENDING)
        elif before.spec == group.spec and before.metadata.annotations == group.metadata.annotations:
            self._group_status(job, group)
            return
        self._group_status(job, group)
        self._group_spec(job, group)

    def _group_status(self, job: Job, group: PodGroupView) -> None:
        """Take the status over; one that we wrote ourselves is no news."""
        job.seen = msgspec.to_builtins(group.status)
        if job.seen == job.written:
            return
        job.written = job.seen
        self.set_phase(job, Phase.parse(group.status.phase))
        job.parked = None
        self.touched[job.key] = job
        self.changed = True

    def _group_spec(self, job: Job, group: PodGroupView) -> None:
        table = self.jobs_table
        table.min_member[job.row] = group.spec.min_member
        minimum = group.spec.min_resources
        self.dims.learn(minimum or ())
        self._widen()
        table.set_minimum(job.row, None if minimum is None else self.dims.vector(minimum))
        job.priority = self._priority(group.spec.priority_class_name)
        job.unplaceable = unsupported_group(group)
        job.runs = None
        job.parked = None
        self._enqueue_in(job, self.queues.get(group.spec.queue or self.default_queue))
        self.touched[job.key] = job
        self.changed = True

    def set_phase(self, job: Job, phase: Phase) -> None:
        job.phase = phase
        self.jobs_table.phase[job.row] = phase

    def delete_podgroup(self, group: PodGroupView) -> None:
        """A PodGroup is gone; one of the same name with another UID stays."""
        job = self.jobs.get(group.metadata.key)
        if job is None or job.group is None or job.group.metadata.uid != group.metadata.uid:
            return
        self._by_group_uid.pop(group.metadata.uid, None)
        job.group = None
        self._enqueue_in(job, None)
        self.touched[job.key] = job
        self.changed = True
        self.room_stamp += 1
        self._forget_if_empty(job)

    def job_of_group(self, uid: str) -> Job | None:
        return self._by_group_uid.get(uid)

    def _job(self, key: str) -> Job:
        job = self.jobs.get(key)
        if job is None:
            job = self.jobs[key] = Job(key, self.jobs_table.take_row())
            self.jobs_table.queue[job.row] = -1
        return job

    def _forget_if_empty(self, job: Job) -> None:
        if job.group is None and not job.tasks:
            self.jobs_table.give_row(job.row)
            del self.jobs[job.key]
            self.touched.pop(job.key, None)
            self.waiting.pop(job.key, None)

    def _enqueue_in(self, job: Job, queue: Queue | None) -> None:
        if job.queue is not None:
            job.queue.jobs.pop(job.key, None)
        job.queue = queue
        if queue is not None:
            queue.jobs[job.key] = job
        self.jobs_table.queue[job.row] = -1 if queue is None else queue.row

    # Queues and priority classes -------------------------------------------------------------------------------------

    def apply_queue(self, view: QueueView) -> None:
        """A queue is there, or changed."""
        spec = view.spec
        queue = self.queues.get(view.metadata.name)
        if queue is not None and queue.view.metadata.uid == view.metadata.uid:
            same = queue.view.spec == spec and queue.view.status.state == view.status.state
            if view.status.allocated is not None:
                queue.reported = {k: str(v) for k, v in view.status.allocated.items()}
            queue.view = view
            if same:
                return
        new = queue is None
        if queue is None:
            queue = self.queues[view.metadata.name] = Queue(view, self._queue_row())
        queue.view = view
        if view.status.allocated is not None:
            queue.reported = {k: str(v) for k, v in view.status.allocated.items()}
        guarantee = spec.guarantee.resource if spec.guarantee else None
        self.dims.learn(spec.capability or ())
        self.dims.learn(guarantee or ())
        self._widen()
        queue.guarantee = self.dims.vector(guarantee) if guarantee else None
        queue.capability = self.dims.vector(spec.capability) if spec.capability else None
        queue.capability_named = None
        if spec.capability:
            named = np.zeros(len(self.dims), dtype=bool)
            for name in spec.capability:
                column = self.dims.column(name)
                if column is not None:
                    named[column] = True
            queue.capability_named = named
        if new:
            self._adopt(queue)
        for job in queue.jobs.values():
            job.parked = None
        self.changed = True
        self.room_stamp += 1

    def delete_queue(self, view: QueueView) -> None:
        queue = self.queues.get(view.metadata.name)
        if queue is None or queue.view.metadata.uid != view.metadata.uid:
            return
        del self.queues[queue.name]
        for job in list(queue.jobs.values()):
            self._enqueue_in(job, None)
            job.parked = None
            self.touched[job.key] = job
        self.changed = True
        self.room_stamp += 1

    def _queue_row(self) -> int:
        taken = {q.row for q in self.queues.values()}
        return next(row for row in range(len(taken) + 1) if row not in taken)

    def _adopt(self, queue: Queue) -> None:
        """Gangs that came before their queue."""
        for job in self.jobs.values():
            if job.group is not None and (job.group.spec.queue or self.default_queue) == queue.name:
                self._enqueue_in(job, queue)
                self.touched[job.key] = job

    def apply_priority_class(self, view: PriorityClassView) -> None:
        if self.priorities.get(view.metadata.name) == view:
            return
        self.priorities[view.metadata.name] = view
        self._reprioritise()

    def delete_priority_class(self, view: PriorityClassView) -> None:
        if self.priorities.pop(view.metadata.name, None) is not None:
            self._reprioritise()

    def _reprioritise(self) -> None:
        for job in self.jobs.values():
            if job.group is not None:
                job.priority = self._priority(job.group.spec.priority_class_name)
        self.changed = True

    def _priority(self, name: str) -> int:
        known = self.priorities.get(name) if name else None
        if known is not None:
            return known.value
        return max((p.value for p in self.priorities.values() if p.global_default), default=0)

    # Nodes -----------------------------------------------------------------------------------------------------------

    def apply_node(self, node: Node) -> None:
        """A node is there, or changed. A heartbeat that changes nothing a decision reads costs a comparison."""
        info = self._info(node.metadata.name)
        labels = node.metadata.labels or {}
        taints = taints_of(node)
        images = {n: i.size_bytes for i in node.status.images or () for n in i.names or ()}
        allocatable = node.status.allocatable or {}
        new = not info.present
        if new or info.labels != labels or info.taints != taints or info.images != images:
            info.labels, info.taints, info.images = labels, taints, images
            self.static_stamp += 1
            self._nodes_changed()
        if new or info.allocatable != allocatable:
            info.allocatable = allocatable
            self.dims.learn(allocatable)
            self._widen()
            if info.row >= 0:
                self.nodes.alloc[:, info.row] = self.dims.vector(allocatable)
            self._nodes_changed()
        if new:
            info.present = True
            self._nodes_moved = True

    def delete_node(self, name: str) -> None:
        info = self._infos.get(name)
        if info is None or not info.present:
            return
        info.present = False
        self._nodes_moved = True
        self.static_stamp += 1
        self._nodes_changed()
        if info.row < 0 and not info.tasks:
            del self._infos[name]

    def _nodes_changed(self) -> None:
        self.changed = True
        self.room_stamp += 1

    def _info(self, name: str) -> NodeInfo:
        info = self._infos.get(name)
        if info is None:
            info = self._infos[name] = NodeInfo(name)
        return info

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
            self._related_stamp = self.static_stamp
        elif self.static_stamp != self._related_stamp:
            self.inter_pod.relay(self.nodes.infos)
            self._related_stamp = self.static_stamp
        self._sort_waiting()
        if len(self.classes.classes) > _FORGET_CLASSES_ABOVE + 2 * len(self.tasks):
            self.classes.keep_only({t.cls for t in self.tasks.values()})

    def finish(self) -> None:
        """The cycle is over: what it changed is known."""
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

    def total(self) -> Vector:
        """What all nodes offer together."""
        return self.nodes.alloc.sum(axis=1)
