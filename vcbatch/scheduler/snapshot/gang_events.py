"""Watch events of gangs: PodGroups, their queues and their priority classes."""

from __future__ import annotations

import msgspec

from vcbatch.api.scheduling import PodGroupView, PriorityClassView, QueueView
from vcbatch.scheduler.model.network_topology import NetworkTopology
from vcbatch.scheduler.model.objects import ALLOCATED_STATUSES, STATUSES, Job, Phase, Queue
from vcbatch.scheduler.model.reading import domain_of, same_notes
from vcbatch.scheduler.model.sub_gangs import SubGangRule, rules_of, sub_of
from vcbatch.scheduler.snapshot.snapshot import Snapshot


class GangEvents:
    """Applies PodGroups, queues and PriorityClasses to the snapshot."""

    def __init__(self, state: Snapshot) -> None:
        self._state = state

    # PodGroups --------------------------------------------------------------------------------------------------------

    def apply_podgroup(self, group: PodGroupView) -> None:
        """Add or update a PodGroup."""
        if not self._state.shards.share.owns(group.metadata):
            self.delete_podgroup(group)  # it may have counted as this instance's until its owner was known
            self._state.elsewhere.add(group.metadata.key)
            return
        self._state.elsewhere.discard(group.metadata.key)
        if self._is_others(group):
            self.delete_podgroup(group)
            self._state.strangers.groups[group.metadata.key] = group
            return
        self._state.strangers.groups.pop(group.metadata.key, None)
        job = self.job(group.metadata.key)
        before = job.group
        job.be_of(group)
        if before is None or before.metadata.uid != group.metadata.uid:
            if before is not None:
                self._state.by_group_uid.pop(before.metadata.uid, None)
            self._state.by_group_uid[group.metadata.uid] = job
            job.written = {}
            job.reported = ()
            self._state.set_phase(job, Phase.PENDING)
        elif before.spec == group.spec and same_notes(before, group):
            self._group_status(job, group)
            return
        self._group_status(job, group)
        self._group_spec(job, group)

    def _is_others(self, group: PodGroupView) -> bool:
        job = self._state.jobs.get(group.metadata.key)
        return self._state.strangers.judge(group, own_pods=job is not None and bool(job.tasks))

    def changed_hands(self, key: str) -> None:
        """Check again which scheduler the gang's PodGroup belongs to, because its pods changed."""
        group = self._state.strangers.groups.get(key)
        if group is None:
            job = self._state.jobs.get(key)
            group = job.group if job is not None else None
        if group is not None and self._is_others(group) is not (key in self._state.strangers.groups):
            self.apply_podgroup(group)

    def _group_status(self, job: Job, group: PodGroupView) -> None:
        """Read the status of the PodGroup; a status that this scheduler wrote itself changes nothing."""
        job.seen = msgspec.to_builtins(group.status)
        if job.seen == job.written:
            return
        job.written = job.seen
        self._state.set_phase(job, Phase.parse(group.status.phase))
        job.parked = None
        self._state.touched[job.key] = job
        self._state.changed = True

    def _group_spec(self, job: Job, group: PodGroupView) -> None:
        table = self._state.jobs_table
        table.min_member[job.row] = group.spec.min_member
        minimum = group.spec.min_resources
        self._state.dims.learn(minimum or ())
        self._state.widen()
        table.set_minimum(
            job.row, None if minimum is None else self._state.dims.bounded(self._state.dims.vector(minimum))
        )
        self._prioritise(job)
        self._state.inputs += 1
        job.topology = NetworkTopology.read(group.spec.network_topology)
        job.domain = domain_of(group)
        self._regroup(job, rules_of(group.spec.sub_group_policy))
        job.runs = None
        job.parked = None
        self._state.doubt(job)
        self._enqueue_in(job, self._state.queues.get(group.spec.queue or self._state.default_queue))
        self._state.touched[job.key] = job
        self._state.changed = True

    @staticmethod
    def _regroup(job: Job, rules: tuple[SubGangRule, ...]) -> None:
        """Assign the gang's tasks to the sub-gangs of these rules."""
        if rules == job.rules:
            return
        job.rules = rules
        job.subs = {}
        for task in job.tasks.values():
            task.sub = sub_of(rules, task.labels)
            if task.sub is not None:
                job.subs.setdefault(task.sub, [0] * STATUSES)[task.status] += 1

    def delete_podgroup(self, group: PodGroupView) -> None:
        """Remove a deleted PodGroup, unless the one known by its name has another UID."""
        self._state.elsewhere.discard(group.metadata.key)
        stranger = self._state.strangers.groups.get(group.metadata.key)
        if stranger is not None and stranger.metadata.uid == group.metadata.uid:
            del self._state.strangers.groups[group.metadata.key]
        job = self._state.jobs.get(group.metadata.key)
        if job is None or job.group is None or job.group.metadata.uid != group.metadata.uid:
            return
        self._state.by_group_uid.pop(group.metadata.uid, None)
        job.be_of(None)
        self._regroup(job, ())
        self._enqueue_in(job, None)
        self._state.touched[job.key] = job
        self._state.changed = True
        self._state.room_stamp += 1
        self._state.inputs += 1
        self.forget_if_empty(job)

    def job(self, key: str) -> Job:
        job = self._state.jobs.get(key)
        if job is None:
            job = self._state.jobs[key] = Job(key, self._state.jobs_table.take_row())
            self._state.jobs_table.queue[job.row] = -1
        return job

    def forget_if_empty(self, job: Job) -> None:
        if job.group is None and not job.tasks:
            self._state.jobs_table.give_row(job.row)
            del self._state.jobs[job.key]
            self._state.touched.pop(job.key, None)
            self._state.waiting.pop(job.key, None)

    def _enqueue_in(self, job: Job, queue: Queue | None) -> None:
        if job.queue is not None:
            job.queue.jobs.pop(job.key, None)
        job.queue = queue
        if queue is not None:
            queue.jobs[job.key] = job
            job.set_aside = ""
        self._state.jobs_table.queue[job.row] = -1 if queue is None else queue.row
        self._state.jobs_table.changed.add(job.row)
        if self._state.queue_devices is not None:
            self._state.queue_devices.release(job.tasks.values())
            self._state.queue_devices.hold(task for task in job.tasks.values() if task.status in ALLOCATED_STATUSES)
        if self._state.classes.by_queue:
            self._reclass(job)

    def set_aside(self, job: Job, why: str) -> None:
        """Don't try this gang again until its PodGroup or the scheduler configuration changes; `why` is the reason."""
        self._enqueue_in(job, None)
        job.set_aside = why
        self._state.touched[job.key] = job

    def restore(self) -> None:
        """Try the gangs again that were set aside."""
        for job in self._state.jobs.values():
            if job.set_aside and job.group is not None:
                job.set_aside = ""
                self._enqueue_in(job, self._state.queues.get(job.group.spec.queue or self._state.default_queue))

    def class_by_queue(self, by_queue: bool) -> None:
        """Whether pods of different queues belong to different classes from now on."""
        if self._state.classes.by_queue is not by_queue:
            self._state.classes.by_queue = by_queue
            for job in self._state.jobs.values():
                self._reclass(job)

    def _reclass(self, job: Job) -> None:
        for task in job.tasks.values():
            cls = self._state.classes.of(task.pod, job.queue_name)
            if cls is not task.cls:
                self._state.leave(task)
                task.cls = cls
                self._state.enter(task)

    # Queues -----------------------------------------------------------------------------------------------------------

    def apply_queue(self, view: QueueView) -> None:
        """Add or update a queue."""
        queue = self._state.queues.get(view.metadata.name)
        new = queue is None
        if queue is None:
            queue = self._state.queues[view.metadata.name] = Queue(view, self._queue_row())
        if not queue.be_as(view) and not new:
            return
        spec = view.spec
        for amounts in (spec.capability, spec.guarantee.resource if spec.guarantee else None, spec.deserved):
            self._state.dims.learn(amounts or ())
        self._state.widen()
        queue.read_limits(self._state.dims)
        if new:
            self._adopt(queue)
        for job in queue.jobs.values():
            job.parked = None
        self._queues_changed()

    def _queues_changed(self) -> None:
        self._state.changed = True
        self._state.room_stamp += 1
        self._state.static_stamp += self._state.classes.by_queue
        self._state.queues_stamp += 1
        self._state.inputs += 1

    def delete_queue(self, view: QueueView) -> None:
        """Remove a deleted queue, unless the one known by its name has another UID. Its gangs are in no queue until a
        queue of that name is created."""
        queue = self._state.queues.get(view.metadata.name)
        if queue is None or queue.view.metadata.uid != view.metadata.uid:
            return
        del self._state.queues[queue.name]
        for job in list(queue.jobs.values()):
            self._enqueue_in(job, None)
            job.parked = None
            self._state.touched[job.key] = job
        self._queues_changed()

    def _queue_row(self) -> int:
        taken = {q.row for q in self._state.queues.values()}
        return next(row for row in range(len(taken) + 1) if row not in taken)

    def _adopt(self, queue: Queue) -> None:
        """Assign the gangs to the queue that named it before it was known."""
        for job in self._state.jobs.values():
            if job.group is not None and (job.group.spec.queue or self._state.default_queue) == queue.name:
                self._enqueue_in(job, queue)
                self._state.touched[job.key] = job

    # Priority classes -------------------------------------------------------------------------------------------------

    def apply_priority_class(self, view: PriorityClassView) -> None:
        """Add or update a PriorityClass."""
        if self._state.priorities.get(view.metadata.name) == view:
            return
        self._state.priorities[view.metadata.name] = view
        self._reprioritise()

    def delete_priority_class(self, view: PriorityClassView) -> None:
        """Remove a deleted PriorityClass; its gangs get the default priority."""
        if self._state.priorities.pop(view.metadata.name, None) is not None:
            self._reprioritise()

    def _reprioritise(self) -> None:
        for job in self._state.jobs.values():
            self._prioritise(job)
        self._state.changed = True
        self._state.inputs += 1

    def _prioritise(self, job: Job) -> None:
        if job.group is not None:
            name = job.group.spec.priority_class_name
            job.priority = self._state.jobs_table.priority[job.row] = self._priority(name)

    def _priority(self, name: str) -> int:
        known = self._state.priorities.get(name) if name else None
        if known is not None:
            return known.value
        return max((p.value for p in self._state.priorities.values() if p.global_default), default=0)
