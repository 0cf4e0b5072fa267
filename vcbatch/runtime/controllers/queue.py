"""The queue controller: the state of a queue, which depends on its unfinished work, and its counts of PodGroups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from vcbatch.api.command import Command
from vcbatch.api.phases import PodGroupPhase
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.api.queue import DEFAULT, Queue, QueueState
from vcbatch.api.resources import QUEUES, Resource
from vcbatch.api.unfinished import controller_of, is_unfinished_group, is_unfinished_job, queue_of, queue_of_pod
from vcbatch.api.workload import Workload
from vcbatch.core.machine import Decision
from vcbatch.core.podgroup import generated_name
from vcbatch.core.queue import QueueView, decide
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache, Change, identity
from vcbatch.runtime.controllers.command import target_of
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.metrics.meter import Meter, NoMeter
from vcbatch.runtime.pacing.pace import Pace

# A gang that starts takes its PodGroup through three phases in a moment; the counts are written once for all of them.
_COUNT_SECONDS = 0.5
_LONGEST_COUNT_SECONDS = 5.0
# Volcano's gauges. A PodGroup that no scheduler has processed is in none of them.
_GAUGES = {phase.value: f"queue_pod_group_{phase.lower()}_count" for phase in PodGroupPhase}
_TARGET = "queue that it is for"
_PARENT = "parent"
_UNFINISHED = "queue of an unfinished job"
_COMPLETED = "queue of a completed group"
_ON_A_NODE = "queue of a pod on a node"
_target_of = target_of(QUEUES)


class QueueController:
    """Reconciles a queue when it changes, and with a short delay when its PodGroups, its Jobs, or the workloads of its
    PodGroups do. A closing queue is also reconciled when its pods leave their nodes.

    Without `jobs`, `pods` and `workloads` only PodGroups count as work."""

    def __init__(
        self,
        queues: Cache[Json],
        podgroups: Cache[Json],
        commands: Cache[Json],
        applier: Applier,
        *,
        jobs: Cache[Json] | None = None,
        pods: Cache[Pod] | None = None,
        workloads: Mapping[Resource, Cache[Workload]] | None = None,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
    ) -> None:
        self._queues = queues
        self._commands = commands
        self._podgroups = podgroups
        self._jobs: Cache[Json] = jobs if jobs is not None else Cache()
        self._pods: Cache[Pod] = pods if pods is not None else Cache(model=Pod)
        self._workloads = dict(workloads or {})
        self._clock = clock
        self._meter = meter or NoMeter()
        self._counts: Pace[str] = Pace(first=_COUNT_SECONDS, limit=_LONGEST_COUNT_SECONDS)  # by queue UID
        self._phases: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.controller = Controller(
            ControllerConfig(name="queue-controller", workers=4),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
        )
        commands.add_index(_TARGET, _target_of)
        queues.add_index(_PARENT, _parent_of)
        queues.listen(self._on_queue)
        podgroups.add_index(_COMPLETED, _queue_where_completed)
        podgroups.listen(self._on_podgroup)
        self._jobs.add_index(_UNFINISHED, _queue_where_unfinished)
        self._jobs.listen(self._on_job)
        self._pods.add_index(_ON_A_NODE, _queue_where_on_a_node)
        self._pods.listen(self._on_pod)
        for cache in self._workloads.values():
            cache.listen(self._on_workload)
        commands.listen(self._on_command)

    def part(self) -> Part:
        return self.controller.part()

    def _on_queue(self, change: Change[Json]) -> None:
        if change.keeps(_beside_counts):
            # The event of our own counts, or the scheduler's allocated resources: no reason to write the counts again.
            self._reconcile_soon(change.current)
            return
        if change.old is None or change.new is None:
            self._report(change.current["metadata"]["name"], there=change.new is not None)
        self.controller.queue.add(identity(change.current).uid)
        if change.keeps(_state):
            return
        for child in self._queues.indexed(_PARENT, change.current["metadata"]["name"]):
            self.controller.queue.add(identity(child).uid)

    def _on_podgroup(self, change: Change[Json]) -> None:
        for held, step in ((change.old, -1), (change.new, 1)):
            if held is None:
                continue
            name, phase = _place(held)
            phases = self._phases[name]
            phases[phase] += step
            if not phases[phase]:
                del phases[phase]
            if not phases:
                del self._phases[name]
        names = {_place(held)[0] for held in (change.old, change.new) if held is not None}
        if change.keeps(_place):
            return
        for name in names:
            queue = self._queues.by_key(name)
            if queue is not None:
                self._report(name, there=True)
                self._reconcile_soon(queue)

    def _on_job(self, change: Change[Json]) -> None:
        if change.keeps(_queue_where_unfinished):
            return
        held = [job for job in (change.old, change.new) if job is not None]
        for name in {name for job in held for name in _queue_where_unfinished(job)}:
            queue = self._queues.by_key(name)
            if queue is not None:
                self._reconcile_soon(queue)

    def _on_pod(self, change: Change[Pod]) -> None:
        if change.keeps(_queue_where_on_a_node):
            return
        for pod in (change.old, change.new):
            for name in _queue_where_on_a_node(pod) if pod is not None else ():
                queue = self._queues.by_key(name)
                if queue is not None and _state(queue) == QueueState.CLOSING:
                    self._reconcile_soon(queue)

    def _on_workload(self, change: Change[Workload]) -> None:
        """Reconcile the queue of a workload: its PodGroup may be Completed while the workload continues."""
        if change.keeps(_goes_on):
            return
        metadata = change.current.metadata
        group = self._podgroups.by_key(f"{metadata.namespace}/{generated_name(metadata.uid)}")
        queue = self._queues.by_key(queue_of(group)) if group is not None else None
        if queue is not None:
            self._reconcile_soon(queue)

    def _report(self, name: str, *, there: bool) -> None:
        """Update the gauges of a queue, or remove them where it was deleted."""
        phases = self._phases.get(name, {})
        for phase, gauge in _GAUGES.items():
            if there:
                self._meter.gauge(gauge, phases.get(phase, 0), queue_name=name)
            else:
                self._meter.forget(gauge, queue_name=name)

    def _reconcile_soon(self, queue: Json) -> None:
        uid = identity(queue).uid
        wait = self._counts.wait(uid, now=self._clock.monotonic())
        self.controller.queue.add_after(uid, max(wait, _COUNT_SECONDS))

    def _on_command(self, change: Change[Json]) -> None:
        for name in _target_of(change.current):
            queue = self._queues.by_key(name)
            if queue is not None:
                self.controller.queue.add(identity(queue).uid)

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        stored = self._queues.get(uid)
        if stored is None:
            return None
        queue = Queue.parse(stored)
        parent = self._parent(queue)
        commands = [Command.parse(item) for item in self._commands.indexed(_TARGET, queue.name)]
        view = QueueView(
            queue=queue,
            parent=parent,
            pod_groups=dict(self._phases.get(queue.name, {})),
            jobs=self._jobs.count(_UNFINISHED, queue.name),
            workloads=sum(map(self._has_next_pod, self._podgroups.indexed(_COMPLETED, queue.name))),
            pods=self._pods.count(_ON_A_NODE, queue.name),
            commands=commands,
        )
        decision = decide(view, now=now)
        if decision.status is not None:
            self._counts.acted(uid, now=self._clock.monotonic())
        return decision

    def _has_next_pod(self, group: Json) -> bool:
        """Whether the workload that controls the PodGroup may create another pod."""
        for resource, cache in self._workloads.items():
            uid = controller_of(group, resource)
            workload = cache.get(uid) if uid else None
            if workload is not None:
                return workload.goes_on
        return False

    def _parent(self, queue: Queue) -> Queue | None:
        stored = self._queues.by_key(queue.spec.parent) if queue.spec.parent else None
        return Queue.parse(stored) if stored is not None else None


def _place(podgroup: Json) -> tuple[str, str]:
    """The queue and the phase of a PodGroup."""
    return (
        (podgroup.get("spec") or {}).get("queue") or DEFAULT,
        (podgroup.get("status") or {}).get("phase") or "",
    )


def _queue_where_unfinished(job: Json) -> Iterable[str]:
    """The queue of a job that isn't finished."""
    return (queue_of(job),) if is_unfinished_job(job) else ()


def _queue_where_on_a_node(pod: Pod) -> Iterable[str]:
    """The queue of a pod that is bound and hasn't ended."""
    if not pod.spec.node_name or pod.status.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED):
        return ()
    queue = queue_of_pod(pod.metadata.annotations or {})
    return (queue,) if queue else ()


def _queue_where_completed(group: Json) -> Iterable[str]:
    """The queue of a Completed PodGroup."""
    return () if is_unfinished_group(group) else (queue_of(group),)


def _goes_on(workload: Workload) -> bool:
    return workload.goes_on


def _beside_counts(queue: Json) -> tuple[object, ...]:
    """The fields of a queue that its decision depends on: all but its counts."""
    metadata = queue["metadata"]
    return _state(queue), *(
        metadata.get(field) for field in ("generation", "deletionTimestamp", "annotations", "labels")
    )


def _parent_of(queue: Json) -> list[str]:
    parent = (queue.get("spec") or {}).get("parent")
    return [str(parent)] if parent else []


def _state(queue: Json) -> str:
    return (queue.get("status") or {}).get("state") or ""
