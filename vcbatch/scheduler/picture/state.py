"""What the deltas tell: objects as the API server has them, brought into the picture.

A picture reached by any stream of deltas equals the one built from the objects at its end.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import numpy as np

from vcbatch.api import names
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.scheduling import PodGroupView, PriorityClassView, QueueView
from vcbatch.scheduler.filters.storage_objects import StorageObject
from vcbatch.scheduler.picture.model import (
    ALLOCATED_STATUSES,
    FINISHED_STATUSES,
    HOLDING,
    OFF_NODE,
    STATUSES,
    Job,
    Phase,
    Queue,
    Task,
    TaskStatus,
)
from vcbatch.scheduler.picture.picture import Picture
from vcbatch.scheduler.picture.reading import (
    awaits_room,
    domain_of,
    index_of,
    note,
    preemptable,
    priority_of,
    status_of,
    taints_of,
    unscheduled_reason,
    with_oversubscription,
)
from vcbatch.scheduler.reservations.promises import Promise
from vcbatch.scheduler.sharding.share import WHOLE, Share
from vcbatch.scheduler.sharding.strangers import Strangers
from vcbatch.scheduler.topology.network_topology import NetworkTopology
from vcbatch.scheduler.topology.sub_gangs import SubGangRule, rules_of, sub_of


class ClusterState(Picture):
    """The picture, told by deltas. Pods of other schedulers than `scheduler_names` count where they run and are never
    placed; a PodGroup without a queue is in `default_queue`. What isn't in its `share` is another instance's."""

    def __init__(self, *, scheduler_names: Collection[str], default_queue: str, share: Share = WHOLE) -> None:
        super().__init__()
        self.shards.share = share
        self.scheduler_names = frozenset(scheduler_names)
        self._strangers = Strangers(self.scheduler_names)
        self.default_queue = default_queue
        self.promised: dict[str, Promise | None] = {}
        """The gangs of which pods say that nodes are kept for them; None where no cycle has looked at it yet."""
        self._by_group_uid: dict[str, Job] = {}

    # Pods ------------------------------------------------------------------------------------------------------------

    def apply_pod(self, pod: Pod) -> None:
        """A pod is there, or changed."""
        known = self.tasks.get(pod.metadata.uid)
        self._changed_hands(self._strangers.pod(pod.metadata.uid, self._others_key(pod)))
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
        if known.evicting and status in HOLDING:
            known.pod = pod
            return  # the eviction is on its way
        if self._same_but_status(known, pod, status):
            known.pod = pod
            self._nominate(known, pod)
            if known.status is status:
                return
            if known.status in HOLDING and status in HOLDING:
                self._progress(known, status)
                return
        self._drop_pod(known)
        if status in FINISHED_STATUSES and not self._ours(pod):
            return
        nominated = known.nominated if known.nominating else None
        self._add_pod(pod, status, condition=known.condition, nominated=nominated)

    def _nominate(self, task: Task, pod: Pod) -> None:
        """Take over which node the pod says is kept for it, which is no reason to try it again by itself. What was
        decided since isn't undone by an object from before."""
        said = pod.status.nominated_node_name
        if task.nominating:
            task.nominating = task.nominated != said
        elif task.nominated != said:
            task.nominated = said
            self._note_promise(task)

    def bind_failed(self, uid: str, error: str) -> None:
        """Take an assumed bind back: the pod is pending again, and has its node still where one was kept for it."""
        super().bind_failed(uid, error)
        task = self.tasks.get(uid)
        if task is not None:
            self._note_promise(task)

    def _note_promise(self, task: Task) -> None:
        if task.nominated and task.job is not None and task.status is TaskStatus.PENDING:
            self.promised.setdefault(task.job.key, None)

    def delete_pod(self, uid: str) -> None:
        """A pod is gone."""
        known = self.tasks.get(uid)
        key = self._strangers.pod(uid, "")
        if known is not None:
            self._drop_pod(known)
            key = key or (known.job.key if known.job is not None else "")
        self._changed_hands(key)

    def _ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.scheduler_names and self.shards.share.owns(pod.metadata)

    def _same_but_status(self, known: Task, pod: Pod, status: TaskStatus) -> bool:
        node = "" if status in OFF_NODE else pod.spec.node_name
        return (
            known.node == node
            and known.cls is self.classes.of(pod, known.job.queue_name if known.job else "")
            and known.labels == (pod.metadata.labels or {})
            and known.gated == bool(pod.spec.scheduling_gates)
            and known.awaits_room == awaits_room(pod)
            and known.pod.status.resource_claim_statuses == pod.status.resource_claim_statuses
            and (known.job.key if known.job else "") == (self._job_key(pod) if self._ours(pod) else "")
            and known.priority == priority_of(pod)
            and known.preemptable == preemptable(pod.metadata)
        )

    def _add_pod(self, pod: Pod, status: TaskStatus, *, condition: str = "", nominated: str | None = None) -> None:
        meta = pod.metadata
        key = self._job_key(pod) if self._ours(pod) else ""
        job = self._job(key) if key else None
        cls = self.classes.of(pod, job.queue_name if job is not None else "")
        self._widen()
        task = Task(uid=meta.uid, namespace=meta.namespace, name=meta.name, cls=cls, job=job, pod=pod)
        task.status = status
        task.node = "" if status in OFF_NODE else pod.spec.node_name
        if nominated is None:
            task.nominated = pod.status.nominated_node_name
        else:
            task.nominate(nominated)
        task.role = note(meta, names.TASK_SPEC)
        task.priority = priority_of(pod)
        task.preemptable = preemptable(meta)
        task.index = index_of(meta)
        task.creation = meta.creation_timestamp or ""
        task.labels = meta.labels or {}
        if job is not None and job.rules:
            task.sub = sub_of(job.rules, task.labels)
        task.gated = bool(pod.spec.scheduling_gates)
        task.awaits_room = awaits_room(pod)
        task.condition = condition or unscheduled_reason(pod)
        self.tasks[task.uid] = task
        if job is not None:
            job.tasks[task.uid] = task
            if job.group is None:
                self._changed_hands(key)
        self._note_promise(task)
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

    def _others_key(self, pod: Pod) -> str:
        """The gang that the pod belongs to where another scheduler places it; empty where that is none."""
        return "" if pod.spec.scheduler_name in self.scheduler_names else self._job_key(pod)

    # Gangs -----------------------------------------------------------------------------------------------------------

    def apply_podgroup(self, group: PodGroupView) -> None:
        """A PodGroup is there, or changed."""
        if not self.shards.share.owns(group.metadata):
            self.delete_podgroup(group)  # where it was ours until its owner was known
            return
        if self._is_others(group):
            self.delete_podgroup(group)
            self._strangers.groups[group.metadata.key] = group
            return
        self._strangers.groups.pop(group.metadata.key, None)
        job = self._job(group.metadata.key)
        before = job.group
        job.be_of(group)
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

    def _is_others(self, group: PodGroupView) -> bool:
        job = self.jobs.get(group.metadata.key)
        return self._strangers.judge(group, own_pods=job is not None and bool(job.tasks))

    def _changed_hands(self, key: str) -> None:
        """Pods of this gang came or went, so that its PodGroup may be ours now, or another's."""
        group = self._strangers.groups.get(key)
        if group is None:
            job = self.jobs.get(key)
            group = job.group if job is not None else None
        if group is not None and self._is_others(group) is not (key in self._strangers.groups):
            self.apply_podgroup(group)

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
        self._prioritise(job)
        self.inputs += 1
        job.topology = NetworkTopology.read(group.spec.network_topology)
        job.domain = domain_of(group)
        self._regroup(job, rules_of(group.spec.sub_group_policy))
        job.runs = None
        job.parked = None
        self._enqueue_in(job, self.queues.get(group.spec.queue or self.default_queue))
        self.touched[job.key] = job
        self.changed = True

    @staticmethod
    def _regroup(job: Job, rules: tuple[SubGangRule, ...]) -> None:
        """Sort the gang's tasks into the sub-gangs that are wanted now."""
        if rules == job.rules:
            return
        job.rules = rules
        job.subs = {}
        for task in job.tasks.values():
            task.sub = sub_of(rules, task.labels)
            if task.sub is not None:
                job.subs.setdefault(task.sub, [0] * STATUSES)[task.status] += 1

    def set_phase(self, job: Job, phase: Phase) -> None:
        job.phase = phase
        self.jobs_table.phase[job.row] = phase
        self.jobs_table.changed.add(job.row)

    def delete_podgroup(self, group: PodGroupView) -> None:
        """A PodGroup is gone; one of the same name with another UID stays."""
        stranger = self._strangers.groups.get(group.metadata.key)
        if stranger is not None and stranger.metadata.uid == group.metadata.uid:
            del self._strangers.groups[group.metadata.key]
        job = self.jobs.get(group.metadata.key)
        if job is None or job.group is None or job.group.metadata.uid != group.metadata.uid:
            return
        self._by_group_uid.pop(group.metadata.uid, None)
        job.be_of(None)
        self._regroup(job, ())
        self._enqueue_in(job, None)
        self.touched[job.key] = job
        self.changed = True
        self.room_stamp += 1
        self.inputs += 1
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
            job.set_aside = ""
        self.jobs_table.queue[job.row] = -1 if queue is None else queue.row
        self.jobs_table.changed.add(job.row)
        if self.queue_devices is not None:
            self.queue_devices.release(job.tasks.values())
            self.queue_devices.hold(task for task in job.tasks.values() if task.status in ALLOCATED_STATUSES)
        if self.classes.by_queue:
            self._reclass(job)

    def set_aside(self, job: Job, why: str) -> None:
        """Try this gang no more, until its PodGroup or the policy changes."""
        self._enqueue_in(job, None)
        job.set_aside = why
        self.touched[job.key] = job

    def restore(self) -> None:
        """Try gangs again that were set aside."""
        for job in self.jobs.values():
            if job.set_aside and job.group is not None:
                job.set_aside = ""
                self._enqueue_in(job, self.queues.get(job.group.spec.queue or self.default_queue))

    def class_by_queue(self, by_queue: bool) -> None:
        """Whether pods of different queues are different classes from now on."""
        if self.classes.by_queue is not by_queue:
            self.classes.by_queue = by_queue
            for job in self.jobs.values():
                self._reclass(job)

    def ignore_resources(self, names: frozenset[str]) -> None:
        """Amounts of these names count for nothing from now on, and others count again."""
        if names == self.dims.ignored:
            return
        self.dims.ignored = names
        self.classes.read_again()
        for task in self.tasks.values():
            cls = self.classes.of(task.pod, task.job.queue_name if task.job is not None else "")
            self._widen()
            self._leave(task)
            task.cls = cls
            self._enter(task)
        for info in self.nodes.infos:
            self.dims.learn(info.allocatable)
            self._widen()
            self.nodes.alloc[:, info.row] = self.dims.vector(info.allocatable)

    def _reclass(self, job: Job) -> None:
        for task in job.tasks.values():
            cls = self.classes.of(task.pod, job.queue_name)
            if cls is not task.cls:
                self._leave(task)
                task.cls = cls
                self._enter(task)

    # Queues and priority classes -------------------------------------------------------------------------------------

    def apply_queue(self, view: QueueView) -> None:
        """A queue is there, or changed."""
        spec = view.spec
        queue = self.queues.get(view.metadata.name)
        if queue is not None and queue.view.metadata.uid == view.metadata.uid:
            same = queue.view.spec == spec and queue.view.status.state == view.status.state
            same = same and queue.view.metadata.annotations == view.metadata.annotations
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
        self.dims.learn(spec.deserved or ())
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
        self._queues_changed()

    def _queues_changed(self) -> None:
        self.changed = True
        self.room_stamp += 1
        self.static_stamp += self.classes.by_queue
        self.queues_stamp += 1
        self.inputs += 1

    def delete_queue(self, view: QueueView) -> None:
        queue = self.queues.get(view.metadata.name)
        if queue is None or queue.view.metadata.uid != view.metadata.uid:
            return
        del self.queues[queue.name]
        for job in list(queue.jobs.values()):
            self._enqueue_in(job, None)
            job.parked = None
            self.touched[job.key] = job
        self._queues_changed()

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
            self._prioritise(job)
        self.changed = True
        self.inputs += 1

    def _prioritise(self, job: Job) -> None:
        if job.group is not None:
            name = job.group.spec.priority_class_name
            job.priority = self.jobs_table.priority[job.row] = self._priority(name)

    def _priority(self, name: str) -> int:
        known = self.priorities.get(name) if name else None
        if known is not None:
            return known.value
        return max((p.value for p in self.priorities.values() if p.global_default), default=0)

    # Volumes ---------------------------------------------------------------------------------------------------------

    def apply_storage(self, obj: StorageObject) -> None:
        """A claim, a volume, a class or what a node's drivers say is there, or changed."""
        self._storage_changed(self.volumes.put(obj))

    def delete_storage(self, obj: StorageObject) -> None:
        """One of these is gone."""
        self._storage_changed(self.volumes.drop(obj))

    def _storage_changed(self, news: bool) -> None:
        """Whoever waits may be helped by it, where pods with claims are known at all."""
        if news and self.classes.claiming:
            self.changed = True
            self.room_stamp += 1

    # Nodes -----------------------------------------------------------------------------------------------------------

    def apply_node(self, node: Node) -> None:
        """A node is there, or changed. A heartbeat that changes nothing a decision reads costs a comparison."""
        if not self.shards.share.node(node):
            self.delete_node(node.metadata.name)
            return
        info = self._info(node.metadata.name)
        labels = node.metadata.labels or {}
        taints = taints_of(node)
        images = {n: i.size_bytes for i in node.status.images or () for n in i.names or ()}
        allocatable = with_oversubscription(node, node.status.allocatable)
        new = not info.present
        if self.devices.active:
            said = _of_devices(info.node) != _of_devices(node)
            if new or said or info.allocatable != allocatable:
                self.devices.node_changed(info.name)
                self._nodes_changed()
        info.node = node
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
        self.devices.node_changed(name)
        self._nodes_moved = True
        self.static_stamp += 1
        self._nodes_changed()
        if info.row < 0 and not info.tasks:
            del self._infos[name]

    def _nodes_changed(self) -> None:
        self.changed = True
        self.room_stamp += 1
        self.inputs += 1


def _of_devices(node: Node | None) -> tuple[object, ...]:
    """What a node says of its cards."""
    if node is None:
        return ()
    notes, capacity = node.metadata.annotations or {}, node.status.capacity or {}
    said = (names.VGPU_REGISTER, names.GPU_UNHEALTHY, *(n for n in sorted(notes) if n.startswith(names.NPU_REGISTER)))
    return (*((n, notes.get(n)) for n in said), *map(capacity.get, (names.GPU_NUMBER, names.GPU_MEMORY)))
