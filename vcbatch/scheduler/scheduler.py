"""The scheduler object: watch events in, decisions out."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from vcbatch.api import names
from vcbatch.api.config_map import ConfigMap
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import Resource
from vcbatch.api.scheduling import PodGroupView, PriorityClassView, QueueView
from vcbatch.api.storage import Claim, CsiNode, PersistentVolume, StorageClass
from vcbatch.scheduler.actions import ADMITTING
from vcbatch.scheduler.actions.base import eligible
from vcbatch.scheduler.actions.names import EVICTING
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.failures import blame
from vcbatch.scheduler.framework.consultant import Consultant
from vcbatch.scheduler.framework.laps import Laps, NoLaps, Part
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.framework.policy import Policy
from vcbatch.scheduler.index.volumes import VolumeRules
from vcbatch.scheduler.model.objects import TaskStatus
from vcbatch.scheduler.model.reading import domain_of
from vcbatch.scheduler.model.reads import MEASURED, READS
from vcbatch.scheduler.model.result import CycleResult, Explanation, Held, PluginFailure, WaitReason
from vcbatch.scheduler.model.share import WHOLE, Share
from vcbatch.scheduler.policy.reader import DEFAULT_POLICY, parse_policy
from vcbatch.scheduler.policy.registry import steps
from vcbatch.scheduler.queues.gates import opened
from vcbatch.scheduler.reasons.report import Reporter
from vcbatch.scheduler.reasons.said import PODS_GRACE
from vcbatch.scheduler.reasons.standing import Standings, StandingsError, standings
from vcbatch.scheduler.snapshot.assumed import Assumed, assume, assumed
from vcbatch.scheduler.snapshot.cluster_events import ClusterEvents
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_FACTS = {read.struct: read for read in (*READS, *MEASURED)}

_SESSIONS = uuid.UUID("6f1b1c0e-6a54-5a3e-9b86-0d7a2b1f4c55")
"""The namespace of session UIDs: the same cycle at the same time has the same UID, so that a replay is exact."""

_MOST_SET_ASIDE = 4
"""The most gangs that are set aside in one cycle; each costs another attempt."""
_RETRY = timedelta(seconds=1)
"""The pause after a cycle in which a plugin failed; doubled after each further one, up to `_LONGEST_RETRY`."""
_LONGEST_RETRY = timedelta(seconds=30)


class Scheduler:
    """A gang scheduler that keeps a snapshot of the cluster and updates it by watch events.

    Single-threaded and pure: the caller passes watch events to `apply`, calls `cycle` when `dirty` is true (or at
    `CycleResult.requeue_at`), and carries the result out. Decisions are assumed at once; watch events confirm them, and
    `bind_failed` undoes one.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        scheduler_names: Collection[str] = (names.DEFAULT_SCHEDULER,),
        default_queue: str = "default",
        pods_grace: timedelta = PODS_GRACE,
        share: Share = WHOLE,
        queue_gates: bool = False,
        consultant: Consultant | None = None,
    ) -> None:
        """`policy` None means the default scheduler configuration. Only pods with one of `scheduler_names` are placed;
        others count on their nodes. A PodGroup without a queue is in `default_queue`. A gang that lacks pods is
        reported `pods_grace` after that was first observed, since its controller is creating them. `share` is this
        scheduler's part of the cluster, if several schedulers share it. With `queue_gates`, pods that request it wait
        behind a scheduling gate until their queue has capacity for their gang (Volcano's
        SchedulingGatesQueueAdmission). `consultant` calls the server of the extender plugin; without one every call
        fails."""
        self.consultant = consultant
        self.laps: Laps = NoLaps()
        """Called at the end of each part of a cycle, for measurements."""
        self._policy = parse_policy(DEFAULT_POLICY) if policy is None else policy
        self._state = Snapshot(scheduler_names=scheduler_names, default_queue=default_queue, share=share)
        self._state.queue_gates = queue_gates
        self._events = ClusterEvents(self._state)
        self._cache = StaticCache()
        self._reporter = Reporter(pods_grace=pods_grace)
        self._cycles = 0
        self._failed = 0
        self._retry_at: datetime | None = None
        """Until when nothing is decided, because a plugin fails."""
        self._adapt()

    def _adapt(self) -> None:
        """Have the snapshot keep what the scheduler configuration reads."""
        self._events.ignore_resources(self._policy.ignored_resources(self._state.facts))
        self._state.claimed.enabled = self._policy.devices_by_claim
        self._events.gangs.class_by_queue(self._policy.by_queue)
        self._state.keep_victims(
            kept=not (EVICTING | self._policy.extensions.actions.keys()).isdisjoint(self._policy.actions)
        )

    @property
    def policy(self) -> Policy:
        """The scheduler configuration in use."""
        return self._policy

    def set_policy(self, policy: Policy) -> None:
        """Use another scheduler configuration from the next cycle on. Every gang is tried again."""
        self._policy = policy
        self._failed, self._retry_at = 0, None
        self._events.gangs.restore()
        for job in self._state.jobs.values():
            job.parked = None
        self._adapt()
        self._cache.clear()
        self._state.volumes.rules = VolumeRules()
        self._state.queue_devices = None
        self._state.changed = True
        self._state.room_stamp += 1
        self._state.ground_stamp += 1

    def apply(self, resource: Resource, event: str, obj: msgspec.Struct) -> None:
        """Apply one watch event: `event` is ADDED, MODIFIED or DELETED (others are ignored).

        `obj` is a `Pod`, `Node`, `PodGroupView`, `QueueView`, `PriorityClassView` (`vcbatch.api.scheduling`), `Claim`,
        `PersistentVolume`, `StorageClass`, `CsiNode` (`vcbatch.api.storage`) or of another kind of
        `vcbatch.scheduler.model.reads`, as `resource` says. Idempotent: a repeated event changes nothing. After a
        relist, send ADDED for existing objects and DELETED for those that no longer exist.

        Raises:
            TypeError: the object is of none of these kinds.
        """
        if event not in ("ADDED", "MODIFIED", "DELETED"):
            return
        gone = event == "DELETED"
        events, gangs = self._events, self._events.gangs
        match obj:
            case Pod():
                events.delete_pod(obj.metadata.uid) if gone else events.apply_pod(obj)
            case Node():
                events.delete_node(obj.metadata.name) if gone else events.apply_node(obj)
            case PodGroupView():
                if gone:
                    gangs.delete_podgroup(obj)
                    self._reporter.forget(obj.metadata.uid)
                else:
                    gangs.apply_podgroup(obj)
            case QueueView():
                gangs.delete_queue(obj) if gone else gangs.apply_queue(obj)
            case PriorityClassView():
                gangs.delete_priority_class(obj) if gone else gangs.apply_priority_class(obj)
            case Claim() | PersistentVolume() | StorageClass() | CsiNode():
                events.delete_storage(obj) if gone else events.apply_storage(obj)
            case _:
                self._fact(resource, obj, gone=gone)

    def _fact(self, resource: Resource, obj: msgspec.Struct, *, gone: bool) -> None:
        read = _FACTS.get(type(obj))
        if read is None:
            raise TypeError(f"the scheduler doesn't read {resource.plural} as {type(obj).__name__}")
        state = self._state
        news = state.facts.drop(obj) if gone else state.facts.put(obj)
        if news:
            state.changed = True
            state.room_stamp += 1
            state.static_stamp += read.of_nodes
            if isinstance(obj, ConfigMap):
                self._events.ignore_resources(self._policy.ignored_resources(state.facts))

    def eviction_failed(self, uid: str, error: str) -> None:
        """Undo the eviction of this pod, which failed: the pod keeps its node."""
        self._state.eviction_failed(uid)

    def gate_removal_failed(self, uid: str) -> None:
        """Undo a `GateRemoval` that failed: it is decided again."""
        opened(self._state).discard(uid)
        self._state.changed = True
        self._state.room_stamp += 1

    def bind_failed(self, uid: str, error: str) -> None:
        """Undo the bind of this pod, which failed permanently: the pod is pending again."""
        self._state.bind_failed(uid, error)

    def reaches_its_claims(self, uid: str) -> str:
        """Why the node that this pod is to be bound to doesn't suit its claims, now that they are bound; empty if it
        does, or if the pod isn't waiting for it any more."""
        task = self._state.tasks.get(uid)
        return self._state.volumes.admits(task) if task is not None and task.node else ""

    def shard_write_failed(self, uid: str) -> None:
        """Note that a `NodeShardUpdate` wasn't stored: it is decided again in the next cycle."""
        self._state.shards.write_failed(uid)

    def podgroup_write_failed(self, uid: str) -> None:
        """Note that a `PodGroupUpdate` wasn't stored: it is decided again in the next cycle."""
        job = self._state.job_of_group(uid)
        if job is not None:
            job.written = job.seen
            job.domain = domain_of(job.group) if job.group is not None else ""
            self._state.touched[job.key] = job
            self._state.changed = True

    @property
    def dirty(self) -> bool:
        """Whether any input of a cycle changed since the last one."""
        return self._state.changed

    def cycle(self, now: datetime) -> CycleResult:
        """Run the actions of the scheduler configuration once on the present snapshot. `now` is UTC-aware. A cycle in
        which custom plugins fail repeatedly decides nothing, and is retried after a pause."""
        if self._retry_at is not None and now < self._retry_at:
            self._state.changed = False
            return CycleResult(requeue_at=self._retry_at)
        failures: list[PluginFailure] = []
        while len(failures) < _MOST_SET_ASIDE:
            tried = self._try(now)
            if isinstance(tried, CycleResult):
                self._failed, self._retry_at = 0, None
                return replace(tried, failures=(*tried.failures, *failures)) if failures else tried
            failures.append(tried)
            job = self._state.jobs.get(tried.gang)
            if job is None or job.set_aside:
                break
            self._events.gangs.set_aside(job, tried.sentence)
        self._failed += 1
        self._retry_at = now + min(_RETRY * 2 ** (self._failed - 1), _LONGEST_RETRY)
        self._state.changed = False
        return CycleResult(failures=failures, requeue_at=self._retry_at)

    def _try(self, now: datetime) -> CycleResult | PluginFailure:
        """Run one cycle, step by step; or return the plugin failure because of which nothing is decided, with the
        snapshot restored.

        The snapshot is prepared, the plugins are opened, the actions decide in the configured order, the cycle is
        closed, and its results are reported.
        """
        state = self._state
        state.changed = False
        state.settle()
        self._cycles += 1
        uid = str(uuid.uuid5(_SESSIONS, f"{now.isoformat()}/{self._cycles}"))
        cycle = None
        try:
            cycle = Cycle.open(
                state, self._policy, self._cache, now=now, uid=uid, consultant=self.consultant, laps=self.laps
            )
            for name, action in steps(self._policy):
                if cycle.promises.open and name != ADMITTING:
                    cycle.promises.keep(eligible(cycle.session))
                action.execute(cycle)
                self.laps.lap(Part.ACTION, name)
            held = cycle.close()
        except Exception as error:
            failure = blame(error, self._policy.extensions)
            if failure is None:
                raise
            if cycle is not None:
                cycle.session.abandon()
                cycle.session.release()
            return failure
        session = cycle.session
        if session.binds or session.admitted or session.evictions:
            state.changed = True  # the decisions change shares and limits, so that more may be decided
        result = self._report(cycle, held, now)
        session.release()
        return result

    def _report(self, cycle: Cycle, held: list[Held], now: datetime) -> CycleResult:
        """The decisions with the report on them. Only the report can still fail; it is then made in the next cycle."""
        state, session = self._state, cycle.session
        removals = () if cycle.gates is None else cycle.gates.removals
        try:
            result = self._reporter.report(session, held, removals)
        except Exception as error:
            failure = blame(error, self._policy.extensions)
            if failure is None:
                raise
            state.nodes.leaving = None
            return CycleResult(binds=session.binds, held=held, evictions=session.evictions, failures=(failure,))
        state.finish()
        shard = state.shards.update(now)
        return result if shard is None else replace(result, node_shard=shard)

    def standings(self, now: datetime) -> Standings:
        """The order in which queues and gangs would be served in a cycle now; decides nothing. Only for a scheduler
        that was created for this: plugins that keep state count it as a cycle.

        Raises:
            StandingsError: a custom plugin failed.
        """
        state = self._state
        state.settle()
        session = None
        try:
            session = Cycle.open(state, self._policy, self._cache, now=now, uid="", consultant=self.consultant).session
            return standings(session)
        except Exception as error:
            failure = blame(error, self._policy.extensions)
            if failure is None:
                raise
            raise StandingsError(failure.sentence) from error
        finally:
            if session is not None:
                session.abandon()
                session.release()

    def assumed(self) -> Assumed:
        """The decisions that no watch event has confirmed yet."""
        return assumed(self._state)

    def resume(self, what: Assumed, *, cycles: int) -> None:
        """Continue for another scheduler that had the same objects, assumed this and had run that many cycles."""
        assume(self._state, what)
        self._cycles = cycles

    @property
    def cycles(self) -> int:
        """The number of attempted cycles."""
        return self._cycles

    def explain(self, namespace: str, name: str) -> Explanation | None:
        """Why this PodGroup is pending, as of the last cycle that checked it; None if it isn't pending."""
        job = self._state.jobs.get(f"{namespace}/{name}")
        return None if job is None else self._reporter.explanation(job.uid)

    def strays(self) -> Mapping[str, str]:
        """The pods whose PodGroup doesn't exist, with its name, both as `namespace/name`."""
        lost = [task for job in self._state.jobs.values() for task in self._state.groupless(job)]
        return {f"{task.namespace}/{task.name}": task.job.key for task in lost if task.job is not None}

    def waiting(self) -> Mapping[tuple[str, WaitReason], int]:
        """How many gangs of each queue are pending for which reason; some may be 0. Pods whose PodGroup doesn't exist
        count as a gang of the queue "", because their queue isn't known."""
        return self._reporter.waiting

    def phase(self, namespace: str, name: str) -> str | None:
        """The phase of this PodGroup as decided so far; None if it doesn't exist."""
        job = self._state.jobs.get(f"{namespace}/{name}")
        return None if job is None or job.group is None else job.phase.wire

    def counts(self, namespace: str, name: str) -> Mapping[str, int]:
        """How many pods of this PodGroup have which status, by its name; statuses without pods are left out."""
        job = self._state.jobs.get(f"{namespace}/{name}")
        if job is None:
            return {}
        return {status.wire: count for status, count in zip(TaskStatus, job.counts, strict=True) if count}

    @property
    def scheduler_names(self) -> Collection[str]:
        """The scheduler names whose pods are placed."""
        return self._state.scheduler_names

    def places(self, pod: Pod) -> bool:
        """Whether this scheduler instance places the pod."""
        return self._state.ours(pod)

    @property
    def default_queue(self) -> str:
        """The queue of PodGroups that name none."""
        return self._state.default_queue
