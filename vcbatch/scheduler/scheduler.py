"""The scheduler object: deltas in, decisions out."""

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
"""The namespace of session UIDs: the same cycle at the same time has the same one, so that a replay is exact."""

_MOST_SET_ASIDE = 4
"""Gangs that are set aside in one cycle, each of which costs another try."""
_RETRY = timedelta(seconds=1)
"""After a cycle that a plugin spoilt; twice as long after the next, up to `_LONGEST_RETRY`."""
_LONGEST_RETRY = timedelta(seconds=30)


class Scheduler:
    """A gang scheduler that keeps its snapshot of the cluster and is told what changes.

    Single-threaded and pure: the caller feeds watch events to `apply`, calls `cycle` when `dirty` is true (or at
    `CycleResult.requeue_at`), and carries the result out. Decisions are assumed at once; watch events confirm
    them, `bind_failed` takes one back.
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
        """`policy` is the default policy where None. Only pods with one of `scheduler_names` are placed; the others
        count as used where they run. A PodGroup without a queue is in `default_queue`. That a gang lacks pods is said
        `pods_grace` after it was seen first, since its controller is making them. `share` is what of the cluster is
        this scheduler's, where several work on it. With `queue_gates` pods that ask for it wait behind a scheduling
        gate until their queue has room for their gang (Volcano's SchedulingGatesQueueAdmission). `consultant` asks the
        server of the extender plugin; without one it counts as a server that doesn't answer."""
        self.consultant = consultant
        self.laps: Laps = NoLaps()
        """Told how far a cycle is, for whoever measures its parts."""
        self._policy = parse_policy(DEFAULT_POLICY) if policy is None else policy
        self._state = Snapshot(scheduler_names=scheduler_names, default_queue=default_queue, share=share)
        self._state.queue_gates = queue_gates
        self._events = ClusterEvents(self._state)
        self._cache = StaticCache()
        self._reporter = Reporter(pods_grace=pods_grace)
        self._cycles = 0
        self._failed = 0
        self._retry_at: datetime | None = None
        """Until when nothing is decided, since a plugin fails."""
        self._adapt()

    def _adapt(self) -> None:
        """Have the snapshot keep what the policy reads."""
        self._events.ignore_resources(self._policy.ignored_resources(self._state.facts))
        self._state.claimed.enabled = self._policy.devices_by_claim
        self._events.gangs.class_by_queue(self._policy.by_queue)
        self._state.keep_victims(
            kept=not (EVICTING | self._policy.extensions.actions.keys()).isdisjoint(self._policy.actions)
        )

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def set_policy(self, policy: Policy) -> None:
        """Use another policy from the next cycle on. Every gang is tried again."""
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
        """Take in one watch event: `event` is ADDED, MODIFIED or DELETED (others are ignored).

        `obj` is a `Pod`, `Node`, `PodGroupView`, `QueueView`, `PriorityClassView` (`vcbatch.api.scheduling`), `Claim`,
        `PersistentVolume`, `StorageClass`, `CsiNode` (`vcbatch.api.storage`) or of another kind of
        `vcbatch.scheduler.model.reads`, as `resource` says. Idempotent: a
        repeated event changes nothing. After a relist, send ADDED for what is there and DELETED for what is gone.

        Raises:
            TypeError: the object is none of these.
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
        """The eviction of this pod couldn't be carried out: it holds its place again."""
        self._state.eviction_failed(uid)

    def gate_removal_failed(self, uid: str) -> None:
        """A `GateRemoval` couldn't be carried out: it is decided again."""
        opened(self._state).discard(uid)
        self._state.changed = True
        self._state.room_stamp += 1

    def bind_failed(self, uid: str, error: str) -> None:
        """The bind of this pod was refused for good (or its outcome became known as refused): the pod waits again."""
        self._state.bind_failed(uid, error)

    def reaches_its_claims(self, uid: str) -> str:
        """Why the node that this pod is to be bound to doesn't do for its claims, now that they are bound; empty where
        it does, or nobody waits for it any more."""
        task = self._state.tasks.get(uid)
        return self._state.volumes.admits(task) if task is not None and task.node else ""

    def shard_write_failed(self, uid: str) -> None:
        """A `NodeShardUpdate` wasn't stored: it is decided again in the next cycle, whenever that is."""
        self._state.shards.write_failed(uid)

    def podgroup_write_failed(self, uid: str) -> None:
        """A `PodGroupUpdate` wasn't stored: it is decided again in the next cycle."""
        job = self._state.job_of_group(uid)
        if job is not None:
            job.written = job.seen
            job.domain = domain_of(job.group) if job.group is not None else ""
            self._state.touched[job.key] = job
            self._state.changed = True

    @property
    def dirty(self) -> bool:
        """Whether anything changed since the last cycle that a cycle would look at."""
        return self._state.changed

    def cycle(self, now: datetime) -> CycleResult:
        """Run the policy's actions once on the current snapshot. `now` is UTC-aware; no decision depends on it but how
        often messages are refreshed."""
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
        """One cycle, step by step; or whose error it was that nothing is decided, the snapshot being as it was before.

        The snapshot is brought in order, the plugins are opened, the actions decide in the policy's order, the cycle
        is closed, and what happened is reported."""
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
            state.changed = True  # what was decided moves shares and limits, by which more may be decided
        result = self._report(cycle, held, now)
        session.release()
        return result

    def _report(self, cycle: Cycle, held: list[Held], now: datetime) -> CycleResult:
        """What was decided, with what there is to report about it; that alone can still fail, and is said in the next
        cycle then."""
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
        """Who would be served before whom in a cycle now; decides nothing. For a scheduler that was made to be asked:
        plugins that remember what happened take it that a cycle began.

        Raises:
            StandingsError: a plugin of the user's own failed.
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
        """What was decided and no watch event has confirmed yet."""
        return assumed(self._state)

    def resume(self, what: Assumed, *, cycles: int) -> None:
        """Go on where another scheduler was that knew the same objects, assumed this and had run so many cycles."""
        assume(self._state, what)
        self._cycles = cycles

    @property
    def cycles(self) -> int:
        """How many cycles were tried."""
        return self._cycles

    def explain(self, namespace: str, name: str) -> Explanation | None:
        """Why this PodGroup waits, as of the last cycle that looked at it; None where it doesn't wait."""
        job = self._state.jobs.get(f"{namespace}/{name}")
        return None if job is None else self._reporter.explanation(job.uid)

    def strays(self) -> Mapping[str, str]:
        """The pods that wait for a PodGroup which doesn't exist, and its name, both as `namespace/name`."""
        lost = [task for job in self._state.jobs.values() for task in self._state.groupless(job)]
        return {f"{task.namespace}/{task.name}": task.job.key for task in lost if task.job is not None}

    def waiting(self) -> Mapping[tuple[str, WaitReason], int]:
        """How many gangs of each queue wait for which reason; some may be 0. Pods whose PodGroup doesn't exist are a
        gang of the queue "", as nobody said of which they are."""
        return self._reporter.waiting

    def phase(self, namespace: str, name: str) -> str | None:
        """The phase of this PodGroup as decided so far; None where there is none."""
        job = self._state.jobs.get(f"{namespace}/{name}")
        return None if job is None or job.group is None else job.phase.wire

    def counts(self, namespace: str, name: str) -> Mapping[str, int]:
        """How many pods of this PodGroup are in which state, by its word; states without any are left out."""
        job = self._state.jobs.get(f"{namespace}/{name}")
        if job is None:
            return {}
        return {status.wire: count for status, count in zip(TaskStatus, job.counts, strict=True) if count}

    @property
    def scheduler_names(self) -> Collection[str]:
        """Whose pods are placed."""
        return self._state.scheduler_names

    def places(self, pod: Pod) -> bool:
        """Whether the pod is this scheduler's to place, and no other instance's."""
        return self._state.ours(pod)

    @property
    def default_queue(self) -> str:
        """The queue of PodGroups that name none."""
        return self._state.default_queue
