"""What the deltas tell: objects as the API server has them, brought into the snapshot.

A snapshot reached by any stream of deltas equals the one built from the objects at its end.
"""

from __future__ import annotations

from collections.abc import Collection

from vcbatch.api import names
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import WaitReason
from vcbatch.scheduler.model.objects import FINISHED_STATUSES, HOLDING, OFF_NODE, Task, TaskStatus
from vcbatch.scheduler.model.promise import Promise
from vcbatch.scheduler.model.reading import (
    awaits_room,
    index_of,
    note,
    preemptable,
    priority_of,
    status_of,
    stays,
    taints_of,
    unscheduled_reason,
    with_oversubscription,
)
from vcbatch.scheduler.model.share import WHOLE, Share
from vcbatch.scheduler.model.storage_objects import StorageObject
from vcbatch.scheduler.model.sub_gangs import sub_of
from vcbatch.scheduler.snapshot.gang_deltas import GangDeltas


class ClusterState(GangDeltas):
    """The snapshot, told by deltas. Pods of other schedulers than `scheduler_names` count where they run and are never
    placed; a PodGroup without a queue is in `default_queue`. What isn't in its `share` is another instance's."""

    def __init__(self, *, scheduler_names: Collection[str], default_queue: str, share: Share = WHOLE) -> None:
        super().__init__(scheduler_names=scheduler_names, default_queue=default_queue, share=share)
        self.promised: dict[str, Promise | None] = {}
        """The gangs of which pods say that nodes are kept for them; None where no cycle has looked at it yet."""

    # Pods ------------------------------------------------------------------------------------------------------------

    def apply_pod(self, pod: Pod) -> None:
        """A pod is there, or changed."""
        known = self.tasks.get(pod.metadata.uid)
        self._changed_hands(self._strangers.pod(pod.metadata.uid, self._others_key(pod)))
        status = status_of(pod)
        if known is None:
            if not pod.spec.node_name and not self.ours(pod):
                return
            if status in FINISHED_STATUSES and not self.ours(pod):
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
        if status in FINISHED_STATUSES and not self.ours(pod):
            return
        nominated = known.nominated if known.nominating else None
        self._add_pod(pod, status, condition=known.condition, reported=known.reported, nominated=nominated)

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

    def ours(self, pod: Pod) -> bool:
        """Whether the pod is this scheduler's to place."""
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
            and (known.job.key if known.job else "") == (self._job_key(pod) if self.ours(pod) else "")
            and known.priority == priority_of(pod)
            and known.preemptable == preemptable(pod.metadata)
        )

    def _add_pod(
        self, pod: Pod, status: TaskStatus, *, condition: str = "", reported: bool = False, nominated: str | None = None
    ) -> None:
        meta = pod.metadata
        key = self._job_key(pod) if self.ours(pod) else ""
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
        task.stays = job is None and stays(pod)
        task.index = index_of(meta)
        task.creation = meta.creation_timestamp or ""
        task.labels = meta.labels or {}
        if job is not None and job.rules:
            task.sub = sub_of(job.rules, task.labels)
        task.gated = bool(pod.spec.scheduling_gates)
        task.awaits_room = awaits_room(pod)
        task.condition = condition or unscheduled_reason(pod)
        groupless = task.condition == WaitReason.POD_GROUP_MISSING
        task.reported = reported or groupless
        self.tasks[task.uid] = task
        if job is not None:
            job.tasks[task.uid] = task
            job.reported_groupless = job.reported_groupless or groupless
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
            self.nodes.alloc[:, info.row] = self.dims.vector(info.offers)

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
                self.nodes.alloc[:, info.row] = self.dims.vector(info.offers)
            self.claimed.served.changed()
            self._nodes_changed()
        if new:
            info.present = True
            self._nodes_moved = True

    def delete_node(self, name: str) -> None:
        """A node is gone; pods on it stay known until they go."""
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
        self.ground_stamp += 1
        self.inputs += 1


def _of_devices(node: Node | None) -> tuple[object, ...]:
    """What a node says of its cards."""
    if node is None:
        return ()
    notes, capacity = node.metadata.annotations or {}, node.status.capacity or {}
    said = (names.VGPU_REGISTER, names.GPU_UNHEALTHY, *(n for n in sorted(notes) if n.startswith(names.NPU_REGISTER)))
    return (*((n, notes.get(n)) for n in said), *map(capacity.get, (names.GPU_NUMBER, names.GPU_MEMORY)))
