"""The scheduler object: deltas in, decisions out."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime

import msgspec

from vcbatch.api import names
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import Resource
from vcbatch.api.scheduling import PodGroupView, PriorityClassView, QueueView
from vcbatch.api.storage import Claim, CsiNode, PersistentVolume, StorageClass
from vcbatch.scheduler.actions import ACTIONS
from vcbatch.scheduler.policy import DEFAULT_POLICY, Policy
from vcbatch.scheduler.report import Reporter
from vcbatch.scheduler.result import CycleResult, Explanation
from vcbatch.scheduler.session import Session
from vcbatch.scheduler.state import ClusterState
from vcbatch.scheduler.static_nodes import StaticCache

_SESSIONS = uuid.UUID("6f1b1c0e-6a54-5a3e-9b86-0d7a2b1f4c55")
"""The namespace of session UIDs: the same cycle at the same time has the same one, so that a replay is exact."""


class Scheduler:
    """A gang scheduler that keeps its picture of the cluster and is told what changes.

    Single-threaded and pure: the caller feeds watch events to `apply`, calls `cycle` when `dirty` is true (or at
    `CycleResult.look_again_at`), and carries the result out. Decisions are assumed at once; watch events confirm
    them, `bind_failed` takes one back.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        scheduler_names: Collection[str] = (names.DEFAULT_SCHEDULER,),
        default_queue: str = "default",
    ) -> None:
        """`policy` is the default policy where None. Only pods with one of `scheduler_names` are placed; the others
        count as used where they run. A PodGroup without a queue is in `default_queue`."""
        self._policy = Policy.parse(DEFAULT_POLICY) if policy is None else policy
        self._state = ClusterState(scheduler_names=scheduler_names, default_queue=default_queue)
        self._cache = StaticCache()
        self._reporter = Reporter()
        self._cycles = 0

    def set_policy(self, policy: Policy) -> None:
        """Use another policy from the next cycle on."""
        self._policy = policy
        self._cache.clear()
        self._state.changed = True
        self._state.room_stamp += 1

    def apply(self, resource: Resource, event: str, obj: msgspec.Struct) -> None:
        """Take in one watch event: `event` is ADDED, MODIFIED or DELETED (others are ignored).

        `obj` is a `Pod`, `Node`, `PodGroupView`, `QueueView`, `PriorityClassView` (`vcbatch.api.scheduling`), `Claim`,
        `PersistentVolume`, `StorageClass` or `CsiNode` (`vcbatch.api.storage`), as `resource` says. Idempotent: a
        repeated event changes nothing. After a relist, send ADDED for what is there and DELETED for what is gone.

        Raises:
            TypeError: the object is none of these.
        """
        if event not in ("ADDED", "MODIFIED", "DELETED"):
            return
        gone = event == "DELETED"
        state = self._state
        match obj:
            case Pod():
                state.delete_pod(obj.metadata.uid) if gone else state.apply_pod(obj)
            case Node():
                state.delete_node(obj.metadata.name) if gone else state.apply_node(obj)
            case PodGroupView():
                if gone:
                    state.delete_podgroup(obj)
                    self._reporter.forget(obj.metadata.uid)
                else:
                    state.apply_podgroup(obj)
            case QueueView():
                state.delete_queue(obj) if gone else state.apply_queue(obj)
            case PriorityClassView():
                state.delete_priority_class(obj) if gone else state.apply_priority_class(obj)
            case Claim() | PersistentVolume() | StorageClass() | CsiNode():
                state.delete_storage(obj) if gone else state.apply_storage(obj)
            case _:
                raise TypeError(f"the scheduler doesn't read {resource.plural} as {type(obj).__name__}")

    def bind_failed(self, uid: str, error: str) -> None:
        """The bind of this pod was refused for good (or its outcome became known as refused): the pod waits again."""
        self._state.bind_failed(uid, error)

    def reaches_its_claims(self, uid: str) -> str:
        """Why the node that this pod is to be bound to doesn't do for its claims, now that they are bound; empty where
        it does, or nobody waits for it any more."""
        task = self._state.tasks.get(uid)
        return self._state.volumes.admits(task) if task is not None and task.node else ""

    def podgroup_write_failed(self, uid: str) -> None:
        """A `PodGroupUpdate` wasn't stored: it is decided again in the next cycle."""
        job = self._state.job_of_group(uid)
        if job is not None:
            job.written = job.seen
            self._state.touched[job.key] = job
            self._state.changed = True

    @property
    def dirty(self) -> bool:
        """Whether anything changed since the last cycle that a cycle would look at."""
        return self._state.changed

    def cycle(self, now: datetime) -> CycleResult:
        """Run the policy's actions once on the current picture. `now` is UTC-aware; no decision depends on it but how
        often messages are refreshed."""
        state = self._state
        state.changed = False
        state.settle()
        self._cycles += 1
        uid = str(uuid.uuid5(_SESSIONS, f"{now.isoformat()}/{self._cycles}"))
        session = Session(state, self._policy, self._cache, now=now, uid=uid)
        for name in self._policy.actions:
            ACTIONS[name].execute(session)
        held = session.close()
        if session.binds or session.admitted:
            state.changed = True  # what was decided moves shares and limits, by which more may be decided
        result = self._reporter.report(session, held)
        state.finish()
        return result

    def explain(self, namespace: str, name: str) -> Explanation | None:
        """Why this PodGroup waits, as of the last cycle that looked at it; None where it doesn't wait."""
        job = self._state.jobs.get(f"{namespace}/{name}")
        return None if job is None else self._reporter.explanation(job.uid)

    def phase(self, namespace: str, name: str) -> str | None:
        """The phase of this PodGroup as decided so far; None where there is none."""
        job = self._state.jobs.get(f"{namespace}/{name}")
        return None if job is None or job.group is None else job.phase.wire
