"""The session of one cycle: the snapshot, the plugins, and the decisions made so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from vcbatch.scheduler.framework.answers import Answers
from vcbatch.scheduler.framework.combining import has_opinion
from vcbatch.scheduler.framework.consultant import Consultant, Nobody
from vcbatch.scheduler.framework.laps import Laps, NoLaps, Part
from vcbatch.scheduler.framework.metrics_section import MetricsSection
from vcbatch.scheduler.framework.placing.placement import Placer
from vcbatch.scheduler.framework.placing.static_nodes import PluginSet, StaticCache
from vcbatch.scheduler.framework.plugin import Leaning, Verdict
from vcbatch.scheduler.framework.policy import Policy
from vcbatch.scheduler.framework.search_budget import Searches
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.framework.switches import Switch
from vcbatch.scheduler.model.blocker import Blocker, KeptShare
from vcbatch.scheduler.model.columns import Rows
from vcbatch.scheduler.model.figures import Measured
from vcbatch.scheduler.model.objects import Job, Phase, Queue, Task, TaskStatus
from vcbatch.scheduler.model.resources import Vector
from vcbatch.scheduler.model.result import Bind, Eviction, Protected
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_T = TypeVar("_T")

_PLACED = frozenset({TaskStatus.ALLOCATED, TaskStatus.PIPELINED, TaskStatus.BINDING})


class Session(Answers):
    """The state that actions and plugins work on, for one cycle."""

    def __init__(
        self,
        state: Snapshot,
        policy: Policy,
        cache: StaticCache,
        *,
        now: datetime,
        uid: str,
        consultant: Consultant | None = None,
        laps: Laps | None = None,
    ) -> None:
        self._laps: Laps = laps or NoLaps()
        self._laps.start()
        super().__init__(policy)
        self.consultant: Consultant = consultant or Nobody()
        self.state = state
        self.policy = policy
        self.now = now
        self.uid = uid
        """The identifier of the cycle; conditions that change in it carry it."""
        self.nodes = state.nodes
        self.dims = state.dims
        self.total: Vector = state.total()
        self.binds: list[Bind] = []
        self.held: list[Statement] = []
        """Statements of gangs that wait for resources being released: kept until the cycle ends."""
        self.promised: set[str] = set()
        """The keys of the gangs with nominated pods from before this cycle whose nominations are still valid."""
        self.nominations: Mapping[str, str] = {}
        """Set at the end of the cycle: by pod UID the node to write to `nominatedNodeName`, empty to remove it."""
        self.blockers: dict[str, Blocker] = {}
        """By gang key, why the gang didn't start in this cycle."""
        self.closed_queues: dict[str, str] = {}
        """By queue name, why no more was allocated to the queue in this cycle."""
        self.evictions: list[Eviction] = []
        self.searches = Searches(len(state.nodes))
        """The searches for placements of gangs in this cycle."""
        self.relieved: set[str] = set()
        """The keys of gangs for which pods were evicted in this cycle. Their own pods aren't evicted in it, or those
        evictions would have been in vain."""
        self.lenient = False
        """Whether plugins permit the eviction of pods that they only protect for a time; set in trials that are rolled
        back."""
        self.beyond_shares = False
        """Whether queues may be left with less than their deserved share; set in trials that are rolled back."""
        self.withheld = 0
        """How often plugins protected pods for a time."""
        self.protected: dict[str, Protected | KeptShare] = {}
        """By gang key, the pods whose eviction would free enough for the gang if the scheduler configuration didn't
        protect them for now, or if it didn't leave their queue its deserved share."""
        self.exhausted: dict[int, tuple[int, Blocker]] = {}
        """By class id, the most tasks of it that found nodes in this cycle, and why no more did."""
        self._failures: dict[tuple[object, ...], Blocker] = {}
        self._failures_at = (0, 0)
        self.eligible: list[Job] | None = None
        """The gangs whose tasks may be placed; None until they are first computed, and after each admission or
        eviction."""
        self.admitted: list[Job] = []
        self.attempted: list[Job] = []
        self.wake_at: datetime | None = None
        """When a decision changes by time alone; None if none does."""
        self.measured = Measured()
        """Quantities of queues and gangs (allocated, deserved, requested) that plugins record for metrics."""
        self.journal: list[tuple[Sequence[Task], TaskStatus | None]] = []
        """The tasks that statements placed (None) or evicted (with their status before), those rolled back included."""
        self._evicted: list[Task] = []
        self._hopeful: list[tuple[Job, Statement]] = []
        self._shared: dict[Callable[[Any], object], object] = {}
        for name, plugin in self._named:
            plugin.open(self)
            self._laps.lap(Part.PLUGIN_OPENED, name)
        self._barring = [p for p in self._flat(Switch.ALLOCATABLE, "barred") if p.barring]
        filters = self._flat(Switch.PREDICATE)
        self.placer = Placer(state, PluginSet(filters, self._flat(Switch.NODE_ORDER)), cache)
        self._laps.lap(Part.OPENED)

    @property
    def metrics(self) -> MetricsSection | None:
        """The source of the nodes' actual load; None without one."""
        return self.policy.metrics

    def shared(self, make: Callable[[Any], _T]) -> _T:
        """The object that `make` creates for this session; created once and shared by all callers with the same
        `make`."""
        found = self._shared.get(make)
        if found is None:
            found = self._shared[make] = make(self)
        return cast("_T", found)

    @property
    def plain(self) -> bool:
        """Whether gangs without minimums of roles start by their number of placed tasks alone, no plugin has scores
        that change with each task, and a bind has nothing but the node."""
        counted = len(self._ready) == 1 and type(self._ready[0]).ready_by_number
        individually = self._leaning or self._annotating or self._locking or self.state.queue_gates
        return counted and not individually

    def coupled(self, tasks: Sequence[Task]) -> bool:
        """Whether the placement of some of these equal tasks depends on the pods on nodes."""
        cls, couplers = tasks[0].cls, self.placer.plugins.couplers
        if self._barring and self.state.claimed.concerns(cls):
            return True
        claiming = cls.claiming or self.state.claimed.asked(cls)
        if not cls.inter_pod.any and not self.state.inter_pod.active and not claiming and not couplers:
            return False
        return any(self.placer.couples(task) for task in tasks)

    def barred(self, task: Task) -> Verdict | None:
        """Why the devices of the task may not be allocated on behalf of its queue now; None if they may, or it claims
        none."""
        return super().barred(task) if self._barring and self.state.claimed.concerns(task.cls) else None

    def admit(self, job: Job) -> None:
        """Admit a pending gang: its pods are created and placed from now on."""
        self.state.set_phase(job, Phase.INQUEUE)
        job.parked = None
        self.state.touched[job.key] = job
        self.admitted.append(job)
        self.eligible = None
        self._standings.clear()
        for plugin in self._enqueued:
            plugin.enqueued(job)

    def place_for(
        self, task: Task, *, only: int | None = None, within: Rows | None = None, leaning: Leaning | None = None
    ) -> tuple[int, bool] | None:
        """The node for one coupled task (`Placer.one`); None if no node fits, or the queue may not allocate its
        devices."""
        if self.barred(task) is not None:
            return None
        return self.placer.one(task, only=only, within=within, leaning=leaning)

    def failure(self, key: tuple[object, ...], make: Callable[[], Blocker]) -> Blocker:
        """Why a task can't be placed, computed once for tasks with the same key as long as nothing is placed. For gangs
        without placed tasks."""
        at = (len(self.binds), len(self.held))
        if at != self._failures_at:
            self._failures.clear()
            self._failures_at = at
        known = self._failures.get(key)
        if known is None:
            known = self._failures[key] = make()
        return known

    def stamp(self, queue: Queue) -> tuple[object, ...]:
        """A value that is equal as long as a gang of this queue that failed would fail again."""
        return (self.state.room_stamp, *[plugin.limit_stamp(queue) for plugin in self._limits])

    def bind(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Bind equal pending tasks of a gang, which then starts, to free resources of these nodes, where a trial in a
        `Statement` isn't necessary. Not for tasks with claims, nor while plugins add annotations to binds."""
        self.state.shift(tasks, TaskStatus.BINDING, rows)
        self.journal.append((tasks, None))
        self.placed(tasks, 1, rows=rows)
        self.binds += [Bind(t.namespace, t.name, t.uid, t.node) for t in tasks]
        job = tasks[0].job
        if job is not None:
            job.runs = None

    def commit(self, statement: Statement) -> None:
        """Bind the tasks that the statement allocated, and evict its victims; if it has victims, its pipelined tasks
        are nominated until the gang starts. If the gang reaches its minimum only by best-effort tasks that are still to
        be placed, that is checked again at the end of the cycle."""
        job = statement.job
        victims = statement.victims
        if job is not None and not victims and not self.ready_without_hope(job):
            self._hopeful.append((job, statement))
        if victims:
            if job is not None and any(victim.job is not job for victim in victims):
                self.relieved.add(job.key)
            self._evicted += victims
            self.eligible = None  # gangs that lose pods may have too few left
            statement.nominate()
        binds, evictions = statement.commit()
        self.binds.extend(binds)
        self.evictions.extend(evictions)
        if statement:
            self.held.append(statement)
            if job is not None:
                job.runs = None  # pipelined tasks aren't pending for later actions

    def owed(self, job: Job, preemptor: Job) -> bool:
        """Whether the gang may lose no pods to this one, because pods were evicted for it and would have been in vain.
        Nodes that were reserved before the cycle may be taken by gangs of higher priority in the same queue alone."""
        if job.key in self.relieved:
            return True
        above = preemptor.queue is job.queue and preemptor.priority > job.priority
        return job.key in self.promised and not above

    def requeue_at(self, at: datetime) -> None:
        """Have a cycle run at this time, because a decision then depends on the time alone."""
        if at > self.now and (self.wake_at is None or at < self.wake_at):
            self.wake_at = at

    def close_plugins(self) -> None:
        """Close the plugins: all decisions are made, and pipelined tasks are still in place."""
        for name, plugin in self._named:
            if has_opinion(plugin, "close"):
                plugin.close(self)
                self._laps.lap(Part.PLUGIN_CLOSED, name)

    def discard_held(self) -> None:
        """Roll back the pipelined tasks."""
        for statement in reversed(self.held):
            job = statement.job
            statement.discard()
            if job is not None:
                job.runs = None

    def show_evicted(self) -> None:
        """Have rules that count pods include those again whose eviction is committed."""
        for task in self._evicted:
            self.state.evicted(task)

    def abandon(self) -> None:
        """Restore the snapshot to its state before the session, wherever the session stopped, without calling
        plugins."""
        state = self.state
        for tasks, before in reversed(self.journal):
            for task in tasks:
                if before is not None:
                    if task.evicting and task.status is TaskStatus.RELEASING:
                        state.spare(task, before)
                elif task.status in _PLACED:
                    state.shift([task], TaskStatus.PENDING, [state.row_of(task)])
            if before is None and tasks[0].job is not None:
                tasks[0].job.runs = None
        for job in self.admitted:
            state.set_phase(job, Phase.PENDING)
        state.nodes.leaving = None

    def release(self) -> None:
        """Clear all attributes, so that the memory is freed at once. A session, its plugins and its statements refer to
        each other, and arrays of thousands of nodes would stay until the garbage collector, which counts objects and
        not bytes, runs."""
        self.placer.release()
        vars(self).clear()

    def retract(self) -> None:
        """Roll back the binds of gangs that didn't get their minimum in the end."""
        taken: set[str] = set()
        for job, statement in self._hopeful:
            if not self.ready_without_hope(job):
                taken |= statement.retract()
        if taken:
            self.binds = [bind for bind in self.binds if bind.uid not in taken]

    def park(self) -> None:
        """Park gangs that failed until what they failed on changes."""
        stamps: dict[str, tuple[object, ...]] = {}
        for job in self.attempted:
            blocker = self.blockers.get(job.key)
            if blocker is None or job.queue is None or self.searches.again(job) or blocker.task == "":
                continue
            stamp = stamps.get(job.queue.name)
            if stamp is None:
                stamp = stamps[job.queue.name] = self.stamp(job.queue)
            if not self._depends_on_others(job):
                job.parked, job.blocker = stamp, blocker

    def _depends_on_others(self, job: Job) -> bool:
        """Whether pods that are placed elsewhere could make it possible to place this gang."""
        volumes, claimed = self.state.volumes, self.state.claimed
        return any(
            cls.inter_pod.any or volumes.couples(cls.profile.claims) or claimed.concerns(cls)
            for cls in (run.cls for run in self.runs(job))
        )
