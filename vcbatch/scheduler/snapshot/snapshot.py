"""The snapshot of the cluster: how a cycle moves groups of pods in it, and what is done before and after the cycle."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from vcbatch.api.namespace import Namespace
from vcbatch.api.pod import Pod
from vcbatch.scheduler.index.strangers import Strangers
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.objects import Job, Phase, Task, TaskStatus
from vcbatch.scheduler.model.promise import Promise
from vcbatch.scheduler.model.reading import status_of
from vcbatch.scheduler.model.share import WHOLE, Share
from vcbatch.scheduler.snapshot.accounting import Accounting

_FORGET_CLASSES_ABOVE = 4096


class Snapshot(Accounting):
    """The cluster as a cycle sees it and changes it. Every move of a decision can be rolled back exactly.

    Pods of schedulers other than `scheduler_names` count on their nodes and are never placed; a PodGroup without a
    queue is in `default_queue`. Objects outside of its `share` belong to other instances of the scheduler.
    """

    def __init__(self, *, scheduler_names: Collection[str], default_queue: str, share: Share = WHOLE) -> None:
        super().__init__()
        self.shards.share = share
        self.scheduler_names = frozenset(scheduler_names)
        self.default_queue = default_queue
        self.strangers = Strangers(self.scheduler_names)
        """The gangs of other schedulers."""
        self.by_group_uid: dict[str, Job] = {}
        """The gangs by the UIDs of their PodGroups."""
        self.elsewhere: set[str] = set()
        """The PodGroups that other instances of the scheduler own, by `namespace/name`."""
        self.promised: dict[str, Promise | None] = {}
        """The gangs with nominated pods, by `namespace/name`; None if no cycle has checked the nomination yet."""

    # Gangs and pods ---------------------------------------------------------------------------------------------------

    def set_phase(self, job: Job, phase: Phase) -> None:
        """Set the gang's phase, here and in the job table."""
        job.phase = phase
        self.jobs_table.phase[job.row] = phase
        self.jobs_table.changed.add(job.row)

    def groupless(self, job: Job) -> list[Task]:
        """The pending pods that can't be placed because the PodGroup that they name doesn't exist."""
        if job.group is not None or job.key in self.elsewhere or job.key in self.strangers.groups:
            return []
        return [task for task in job.tasks.values() if task.status is TaskStatus.PENDING and not task.gated]

    def job_of_group(self, uid: str) -> Job | None:
        """The gang of the PodGroup with this UID; None if this scheduler doesn't own it or it was deleted."""
        return self.by_group_uid.get(uid)

    def ours(self, pod: Pod) -> bool:
        """Whether this scheduler places the pod."""
        return pod.spec.scheduler_name in self.scheduler_names and self.shards.share.owns(pod.metadata)

    def note_promise(self, task: Task) -> None:
        """If the pod of a gang has a nominated node, have the next cycle check the nomination."""
        if task.nominated and task.job is not None and task.status is TaskStatus.PENDING:
            self.promised.setdefault(task.job.key, None)

    # Placements -------------------------------------------------------------------------------------------------------

    def shift(self, tasks: Sequence[Task], status: TaskStatus, rows: Sequence[int]) -> None:
        """Move tasks of one gang, sub-gang, class, role and status: from Pending to these nodes (Allocated or
        Pipelined), or from there back to Pending, also from Binding while the bind hasn't been sent."""
        first = tasks[0]
        job, cls, before = first.job, first.cls, first.status
        assert job is not None  # noqa: S101 - only tasks of gangs are decided about
        self._recount(job, first, before, status, len(tasks))
        self._shift_vectors(job, cls, before, status, len(tasks))
        self._shift_nodes(tasks, rows, before, status)
        if cls.profile.claims:
            self._shift_claims(tasks, rows, placing=before is TaskStatus.PENDING)
        if self.claimed.asked(cls):
            self._shift_devices(tasks, rows, placing=before is TaskStatus.PENDING)
        if self.queue_devices is not None and self.claimed.concerns(cls):
            (self.queue_devices.hold if before is TaskStatus.PENDING else self.queue_devices.release)(tasks)
        if self.inter_pod_watched(cls):
            for task, row in zip(tasks, rows, strict=True):
                self.inter_pod.moved(task, row, 1 if before is TaskStatus.PENDING else -1)
        self._tally(job)
        self.touched[job.key] = job

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
            for row in rows:
                infos[row].count_ports(cls.ports, 1 if placing else -1)

    def _shift_claims(self, tasks: Sequence[Task], rows: Sequence[int], *, placing: bool) -> None:
        for task, row in zip(tasks, rows, strict=True):
            if placing:
                self.volumes.choose(task, row)
            self.volumes.moved(task, self.nodes.infos[row].name, 1 if placing else -1)

    def _shift_devices(self, tasks: Sequence[Task], rows: Sequence[int], *, placing: bool) -> None:
        for task, row in zip(tasks, rows, strict=True):
            (self.claimed.place if placing else self.claimed.take_back)(task, row)

    def inter_pod_watched(self, cls: TaskClass) -> bool:
        """Whether some affinity or topology spread term counts the nodes of pods of this class."""
        return cls.inter_pod.any or self.inter_pod.counting

    def bind(self, tasks: Sequence[Task]) -> None:
        """Mark Allocated tasks of one gang, sub-gang, class and role as Binding."""
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

    def bind_failed(self, uid: str, error: str) -> None:
        """Undo an assumed bind that failed: the pod is pending again, still nominated to its node if that is reserved
        for it."""
        task = self.tasks.get(uid)
        if task is None:
            return
        if task.status is TaskStatus.BINDING:
            self.leave(task)
            task.status, task.node = TaskStatus.PENDING, ""
            self.enter(task)
            self.refused[uid] = error
        self.note_promise(task)

    # Evictions --------------------------------------------------------------------------------------------------------

    def evict(self, task: Task) -> TaskStatus:
        """Evict a running pod: its requests count as being released, and pod affinity and other rules that count pods
        ignore it. Returns its status before, for `spare`."""
        before = task.status
        self._turn(task, TaskStatus.RELEASING, 1.0)
        if self.victims is not None:
            self.victims.hide(task)
        task.evicting = True
        return before

    def spare(self, task: Task, before: TaskStatus) -> None:
        """Roll back an eviction, exactly."""
        self._turn(task, before, -1.0)
        if self.victims is not None:
            self.victims.show(task)
        task.evicting = False

    def evicted(self, task: Task) -> None:
        """Commit the eviction: until the pod is deleted, rules that count pods include it again, like every terminating
        pod. Other pods may wait for its resources from now on."""
        self._show(task, 1)
        self.room_stamp += 1

    def _turn(self, task: Task, status: TaskStatus, sign: float) -> None:
        # Rules that leave out terminating pods count it with its status from before the eviction.
        if sign > 0:
            self._show(task, -1)
        self._book(task, -1)
        task.status = status
        self._book(task, 1)
        info = self.info(task.node)
        if info.row >= 0:
            self.nodes.releasing[:, info.row] += sign * task.cls.request
        if sign < 0:
            self._show(task, 1)
        if task.job is not None:
            self.touched[task.job.key] = task.job

    def _show(self, task: Task, step: int) -> None:
        """Add the task to the rules that count pods on its node (`step` 1), or remove it (-1)."""
        info = self.info(task.node)
        self.volumes.moved(task, task.node, step)
        info.count_ports(task.cls.ports, step)
        if info.row >= 0:
            self.inter_pod.moved(task, info.row, step)
            nodes = self.nodes
            nodes.nonzero[:, info.row] += step * task.cls.nonzero
            if nodes.leaving is None:
                nodes.leaving = np.zeros_like(nodes.releasing)
            nodes.leaving[:, info.row] -= step * task.cls.request

    def eviction_failed(self, uid: str) -> None:
        """Undo a committed eviction that failed: the pod keeps its node."""
        task = self.tasks.get(uid)
        if task is None or not task.evicting or task.status is not TaskStatus.RELEASING:
            return
        self.leave(task)
        task.evicting = False
        task.status = status_of(task.pod)
        self.enter(task)
        self.inputs += 1
        if task.job is not None:
            self.failed_evictions.add(task.job.uid)

    # Before and after a cycle -----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Prepare the arrays for a cycle: columns for the existing nodes, counts of the terms in use."""
        if self.nodes_moved:
            self._lay_out_nodes()
        if self.nodes_moved or self.static_stamp != self._related_stamp:
            self.inter_pod.relay(self.nodes.infos)
            self.volumes.relay(self.nodes.infos)
            self.claimed.relay(self.nodes.infos)
            self.nodes_moved = False
            self._related_stamp = self.static_stamp
        for info in self.claimed.offer(self.dims):
            self.nodes.alloc[:, info.row] = self.dims.vector(info.offers)
            self.inputs += 1
            self.room_stamp += 1
        if self._namespace_stamp != self.facts.stamp(Namespace):
            self._namespace_stamp = self.facts.stamp(Namespace)
            labels = {name: seen.metadata.labels or {} for name, seen in self.facts.of(Namespace).items()}
            self.inter_pod.set_namespaces(labels)
        if self.victims is not None:
            self.victims.settle(self.nodes.infos, len(self.dims))
        self._sort_waiting()
        if len(self.classes.classes) > _FORGET_CLASSES_ABOVE + 2 * len(self.tasks):
            self.classes.keep_only({t.cls for t in self.tasks.values()})

    def _lay_out_nodes(self) -> None:
        """Create a column for each existing node, in order of their names, with the requests of its pods."""
        present = sorted((i for i in self.known_nodes.values() if i.present), key=lambda i: i.name)
        gone = [i for i in self.nodes.infos if not i.present]
        for info in self.nodes.relay(present):
            self.nodes.alloc[:, info.row] = self.dims.vector(info.offers)
            for task in info.tasks.values():
                self._charge(task, info.row, 1.0)
        for info in gone:
            if not info.tasks:
                self.known_nodes.pop(info.name, None)

    def _sort_waiting(self) -> None:
        for job in self.touched.values():
            if job.group is not None and (job.counts[TaskStatus.PENDING] > 0 or job.phase is Phase.PENDING):
                self.waiting[job.key] = job
            else:
                self.waiting.pop(job.key, None)

    def finish(self) -> None:
        """End the cycle: clear the sets of changes that it has processed."""
        self.nodes.leaving = None
        self._sort_waiting()
        self.touched.clear()
        self.refused.clear()
