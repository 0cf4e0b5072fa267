"""Watch events: objects as the API server has them, applied to the snapshot.

A snapshot reached by any stream of events equals the one built from the objects at its end.
"""

from __future__ import annotations

from vcbatch.api import names
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import WaitReason
from vcbatch.scheduler.model.objects import FINISHED_STATUSES, HOLDING, OFF_NODE, Task, TaskStatus
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
from vcbatch.scheduler.model.storage_objects import StorageObject
from vcbatch.scheduler.model.sub_gangs import sub_of
from vcbatch.scheduler.snapshot.gang_events import GangEvents
from vcbatch.scheduler.snapshot.snapshot import Snapshot


class ClusterEvents:
    """Applies watch events of pods, nodes and volumes to the snapshot; `gangs` applies those of gangs and queues."""

    def __init__(self, state: Snapshot) -> None:
        self._state = state
        self.gangs = GangEvents(state)

    # Pods ------------------------------------------------------------------------------------------------------------

    def apply_pod(self, pod: Pod) -> None:
        """Add or update a pod."""
        known = self._state.tasks.get(pod.metadata.uid)
        self.gangs.changed_hands(self._state.strangers.pod(pod.metadata.uid, self._others_key(pod)))
        status = status_of(pod)
        if known is None:
            if not pod.spec.node_name and not self._state.ours(pod):
                return
            if status in FINISHED_STATUSES and not self._state.ours(pod):
                return
            self._add_pod(pod, status)
            return
        if known.status is TaskStatus.BINDING and status is TaskStatus.PENDING:
            return  # the bind is in progress; an object from before it doesn't undo it
        if known.evicting and status in HOLDING:
            known.pod = pod
            return  # the eviction is in progress
        if self._same_but_status(known, pod, status):
            known.pod = pod
            self._nominate(known, pod)
            if known.status is status:
                return
            if known.status in HOLDING and status in HOLDING:
                self._state.progress(known, status)
                return
        self._drop_pod(known)
        if status in FINISHED_STATUSES and not self._state.ours(pod):
            return
        nominated = known.nominated if known.nominating else None
        self._add_pod(pod, status, condition=known.condition, reported=known.reported, nominated=nominated)

    def _nominate(self, task: Task, pod: Pod) -> None:
        """Read the nominated node of the pod, which is no reason in itself to try the pod again. An object from before
        a newer decision doesn't undo that decision."""
        said = pod.status.nominated_node_name
        if task.nominating:
            task.nominating = task.nominated != said
        elif task.nominated != said:
            task.nominated = said
            self._state.note_promise(task)

    def delete_pod(self, uid: str) -> None:
        """Remove a deleted pod."""
        known = self._state.tasks.get(uid)
        key = self._state.strangers.pod(uid, "")
        if known is not None:
            self._drop_pod(known)
            key = key or (known.job.key if known.job is not None else "")
        self.gangs.changed_hands(key)

    def _same_but_status(self, known: Task, pod: Pod, status: TaskStatus) -> bool:
        node = "" if status in OFF_NODE else pod.spec.node_name
        return (
            known.node == node
            and known.cls is self._state.classes.of(pod, known.job.queue_name if known.job else "")
            and known.labels == (pod.metadata.labels or {})
            and known.gated == bool(pod.spec.scheduling_gates)
            and known.awaits_room == awaits_room(pod)
            and known.pod.status.resource_claim_statuses == pod.status.resource_claim_statuses
            and (known.job.key if known.job else "") == (self._job_key(pod) if self._state.ours(pod) else "")
            and known.priority == priority_of(pod)
            and known.preemptable == preemptable(pod.metadata)
        )

    def _add_pod(
        self, pod: Pod, status: TaskStatus, *, condition: str = "", reported: bool = False, nominated: str | None = None
    ) -> None:
        meta = pod.metadata
        key = self._job_key(pod) if self._state.ours(pod) else ""
        job = self.gangs.job(key) if key else None
        cls = self._state.classes.of(pod, job.queue_name if job is not None else "")
        self._state.widen()
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
        self._state.tasks[task.uid] = task
        if job is not None:
            job.tasks[task.uid] = task
            job.reported_groupless = job.reported_groupless or groupless
            if job.group is None:
                self.gangs.changed_hands(key)
        self._state.note_promise(task)
        self._state.enter(task)

    def _drop_pod(self, task: Task) -> None:
        self._state.leave(task)
        del self._state.tasks[task.uid]
        job = task.job
        if job is not None:
            del job.tasks[task.uid]
            self.gangs.forget_if_empty(job)

    def _job_key(self, pod: Pod) -> str:
        group = (pod.metadata.annotations or {}).get(names.GROUP_NAME, "")
        return f"{pod.metadata.namespace}/{group}" if group else ""

    def _others_key(self, pod: Pod) -> str:
        """The gang of a pod that another scheduler places; empty if this scheduler places the pod or it belongs to no
        gang."""
        return "" if pod.spec.scheduler_name in self._state.scheduler_names else self._job_key(pod)

    def ignore_resources(self, names: frozenset[str]) -> None:
        """Ignore resources of exactly these names from now on."""
        if names == self._state.dims.ignored:
            return
        self._state.dims.ignored = names
        self._state.classes.read_again()
        for task in self._state.tasks.values():
            cls = self._state.classes.of(task.pod, task.job.queue_name if task.job is not None else "")
            self._state.widen()
            self._state.leave(task)
            task.cls = cls
            self._state.enter(task)
        for info in self._state.nodes.infos:
            self._state.dims.learn(info.allocatable)
            self._state.widen()
            self._state.nodes.alloc[:, info.row] = self._state.dims.vector(info.offers)

    # Volumes ---------------------------------------------------------------------------------------------------------

    def apply_storage(self, obj: StorageObject) -> None:
        """Add or update a PersistentVolumeClaim, a PersistentVolume, a StorageClass or a CSI object of a node."""
        self._storage_changed(self._state.volumes.put(obj))

    def delete_storage(self, obj: StorageObject) -> None:
        """Remove such an object."""
        self._storage_changed(self._state.volumes.drop(obj))

    def _storage_changed(self, news: bool) -> None:
        """Pending pods may fit after the change, if any known pod uses volume claims."""
        if news and self._state.classes.claiming:
            self._state.changed = True
            self._state.room_stamp += 1

    # Nodes -----------------------------------------------------------------------------------------------------------

    def apply_node(self, node: Node) -> None:
        """Add or update a node. A heartbeat that changes nothing that decisions read costs one comparison."""
        if not self._state.shards.share.node(node):
            self.delete_node(node.metadata.name)
            return
        info = self._state.info(node.metadata.name)
        labels = node.metadata.labels or {}
        taints = taints_of(node)
        images = {n: i.size_bytes for i in node.status.images or () for n in i.names or ()}
        allocatable = with_oversubscription(node, node.status.allocatable)
        new = not info.present
        if self._state.devices.active:
            said = _of_devices(info.node) != _of_devices(node)
            if new or said or info.allocatable != allocatable:
                self._state.devices.node_changed(info.name)
                self._nodes_changed()
        info.node = node
        if new or info.labels != labels or info.taints != taints or info.images != images:
            info.labels, info.taints, info.images = labels, taints, images
            self._state.static_stamp += 1
            self._nodes_changed()
        if new or info.allocatable != allocatable:
            info.allocatable = allocatable
            self._state.dims.learn(allocatable)
            self._state.widen()
            if info.row >= 0:
                self._state.nodes.alloc[:, info.row] = self._state.dims.vector(info.offers)
            self._state.claimed.served.changed()
            self._nodes_changed()
        if new:
            info.present = True
            self._state.nodes_moved = True

    def delete_node(self, name: str) -> None:
        """Remove a deleted node; pods on it stay known until they are deleted."""
        info = self._state.known_nodes.get(name)
        if info is None or not info.present:
            return
        info.present = False
        self._state.devices.node_changed(name)
        self._state.nodes_moved = True
        self._state.static_stamp += 1
        self._nodes_changed()
        if info.row < 0 and not info.tasks:
            del self._state.known_nodes[name]

    def _nodes_changed(self) -> None:
        self._state.changed = True
        self._state.room_stamp += 1
        self._state.ground_stamp += 1
        self._state.inputs += 1


def _of_devices(node: Node | None) -> tuple[object, ...]:
    """The parts of a node that describe its device cards: annotations and capacity."""
    if node is None:
        return ()
    notes, capacity = node.metadata.annotations or {}, node.status.capacity or {}
    said = (names.VGPU_REGISTER, names.GPU_UNHEALTHY, *(n for n in sorted(notes) if n.startswith(names.NPU_REGISTER)))
    return (*((n, notes.get(n)) for n in said), *map(capacity.get, (names.GPU_NUMBER, names.GPU_MEMORY)))
