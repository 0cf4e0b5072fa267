"""One cycle: the snapshot, what the plugins say of it, and what was decided so far."""

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
    """What actions and plugins work on. Lives for one cycle."""

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
        """Names the cycle; conditions that change in it carry it."""
        self.nodes = state.nodes
        self.dims = state.dims
        self.total: Vector = state.total()
        self.binds: list[Bind] = []
        self.held: list[Statement] = []
        """Statements of gangs that wait for releasing resources: kept until the cycle ends."""
        self.promised: set[str] = set()
        """By key the gangs that were promised places before this cycle, and for which these promises stand."""
        self.nominations: Mapping[str, str] = {}
        """Once the cycle ended: by pod UID the node that it is to say is kept for it, empty where none is any more."""
        self.blockers: dict[str, Blocker] = {}
        """By gang key: why it didn't start in this cycle."""
        self.closed_queues: dict[str, str] = {}
        """By queue name: why it got nothing more in this cycle."""
        self.evictions: list[Eviction] = []
        self.searches = Searches(len(state.nodes))
        """The searches for placements of gangs in this cycle."""
        self.relieved: set[str] = set()
        """By key the gangs for which others were evicted in this cycle. They lose nobody in it, or those would have
        gone for nothing."""
        self.lenient = False
        """Whether plugins let pods go that they only protect for a time: in trials that are taken back."""
        self.beyond_shares = False
        """Whether queues may be left with less than they deserve: in trials that are taken back."""
        self.withheld = 0
        """How often plugins kept pods that they protect for a time."""
        self.protected: dict[str, Protected | KeptShare] = {}
        """By gang key: whose eviction would make room for it, if the policy didn't protect them for now, or if it left
        their queue what it deserves."""
        self.exhausted: dict[int, tuple[int, Blocker]] = {}
        """By class id: how many tasks of it found a node at most in this cycle, and why not more."""
        self._failures: dict[tuple[object, ...], Blocker] = {}
        self._failures_at = (0, 0)
        self.eligible: list[Job] | None = None
        """The gangs whose tasks may be placed; None until somebody asks, and after each admission or eviction."""
        self.admitted: list[Job] = []
        self.attempted: list[Job] = []
        self.wake_at: datetime | None = None
        """When time alone changes something that was decided; None where it doesn't."""
        self.measured = Measured()
        """What queues and gangs hold, deserve and ask for, as plugins say; for people."""
        self.journal: list[tuple[Sequence[Task], TaskStatus | None]] = []
        """Whom statements placed (None), and whom they evicted, with what each was before; also what was taken back."""
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
        """Where the real load of nodes is measured; None where it isn't."""
        return self.policy.metrics

    def shared(self, make: Callable[[Any], _T]) -> _T:
        """The one object that `make` makes of this session, for all who ask for it by that."""
        found = self._shared.get(make)
        if found is None:
            found = self._shared[make] = make(self)
        return cast("_T", found)

    @property
    def plain(self) -> bool:
        """Whether gangs without minimums of roles start by their number alone, no plugin moves points with each task,
        and a bind says where a pod goes and nothing else."""
        counted = len(self._ready) == 1 and type(self._ready[0]).ready_by_number
        reported = self._leaning or self._annotating or self._locking or self.state.queue_gates
        return counted and not reported

    def coupled(self, tasks: Sequence[Task]) -> bool:
        """Whether the place of some of these alike tasks depends on which pods are where."""
        cls, couplers = tasks[0].cls, self.placer.plugins.couplers
        if self._barring and self.state.claimed.concerns(cls):
            return True
        claiming = cls.claiming or self.state.claimed.asked(cls)
        if not cls.inter_pod.any and not self.state.inter_pod.active and not claiming and not couplers:
            return False
        return any(self.placer.couples(task) for task in tasks)

    def barred(self, task: Task) -> Verdict | None:
        """Why the queue of the task may not hold its devices now; None where it may, or it gets none."""
        return super().barred(task) if self._barring and self.state.claimed.concerns(task.cls) else None

    def admit(self, job: Job) -> None:
        """Let a pending gang in: from now on its pods are made and placed."""
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
        """The node for one coupled task (`Placer.one`); None where there is none, or its queue may not hold it."""
        if self.barred(task) is not None:
            return None
        return self.placer.one(task, only=only, within=within, leaning=leaning)

    def failure(self, key: tuple[object, ...], make: Callable[[], Blocker]) -> Blocker:
        """What keeps a task from a place, found once for tasks with the same key as long as nothing is placed. For
        gangs that hold nothing themselves."""
        at = (len(self.binds), len(self.held))
        if at != self._failures_at:
            self._failures.clear()
            self._failures_at = at
        known = self._failures.get(key)
        if known is None:
            known = self._failures[key] = make()
        return known

    def stamp(self, queue: Queue) -> tuple[object, ...]:
        """Equal as long as a gang of this queue that failed would fail again."""
        return (self.state.room_stamp, *[plugin.limit_stamp(queue) for plugin in self._limits])

    def bind(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Bind alike pending tasks of a gang, which thereby starts, to what is free on these nodes; for what a
        `Statement` needn't try first. Not for tasks with claims, nor where plugins tell pods things."""
        self.state.shift(tasks, TaskStatus.BINDING, rows)
        self.journal.append((tasks, None))
        self.placed(tasks, 1, rows=rows)
        self.binds += [Bind(t.namespace, t.name, t.uid, t.node) for t in tasks]
        job = tasks[0].job
        if job is not None:
            job.runs = None

    def commit(self, statement: Statement) -> None:
        """Bind what the statement placed, and evict whom it evicts; what it promises then is kept until the gang takes
        it. Where the gang has its minimum only by tasks that are yet to be placed, that is looked at again when the
        cycle ends."""
        job = statement.job
        victims = statement.victims
        if job is not None and not victims and not self.ready_without_hope(job):
            self._hopeful.append((job, statement))
        if victims:
            if job is not None and any(victim.job is not job for victim in victims):
                self.relieved.add(job.key)
            self._evicted += victims
            self.eligible = None  # whoever loses pods may have too few left
            statement.nominate()
        binds, evictions = statement.commit()
        self.binds.extend(binds)
        self.evictions.extend(evictions)
        if statement:
            self.held.append(statement)
            if job is not None:
                job.runs = None  # what is promised isn't pending for the actions to come

    def owed(self, job: Job, preemptor: Job) -> bool:
        """Whether the gang loses nobody to this one, as others went or go for it, who would have gone for nothing. What
        was promised before the cycle is taken by gangs of higher priority in the same queue alone."""
        if job.key in self.relieved:
            return True
        above = preemptor.queue is job.queue and preemptor.priority > job.priority
        return job.key in self.promised and not above

    def requeue_at(self, at: datetime) -> None:
        """Something changes by time alone: have a cycle then, whatever else happens."""
        if at > self.now and (self.wake_at is None or at < self.wake_at):
            self.wake_at = at

    def close_plugins(self) -> None:
        """Tell the plugins that decisions are made; what is only held is still in place."""
        for name, plugin in self._named:
            if has_opinion(plugin, "close"):
                plugin.close(self)
                self._laps.lap(Part.PLUGIN_CLOSED, name)

    def discard_held(self) -> None:
        """Give back what was only held."""
        for statement in reversed(self.held):
            job = statement.job
            statement.discard()
            if job is not None:
                job.runs = None

    def show_evicted(self) -> None:
        """Rules about pods see those again whose eviction is decided."""
        for task in self._evicted:
            self.state.evicted(task)

    def abandon(self) -> None:
        """Put the snapshot back to what it was when the session began, whatever came in between, and ask no plugin."""
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
        """Let go of everything, so that it is freed at once. A session, its plugins and its statements name each other,
        and arrays of thousands of nodes would lie about until the garbage collector, which counts objects and not
        bytes, sees to them."""
        self.placer.release()
        vars(self).clear()

    def retract(self) -> None:
        """Take back what was bound of gangs that didn't get their minimum after all."""
        taken: set[str] = set()
        for job, statement in self._hopeful:
            if not self.ready_without_hope(job):
                taken |= statement.retract()
        if taken:
            self.binds = [bind for bind in self.binds if bind.uid not in taken]

    def park(self) -> None:
        """Have gangs that failed wait until what they failed on changes."""
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
        """Whether pods that are placed elsewhere could make room for this gang."""
        volumes, claimed = self.state.volumes, self.state.claimed
        return any(
            cls.inter_pod.any or volumes.couples(cls.profile.claims) or claimed.concerns(cls)
            for cls in (run.cls for run in self.runs(job))
        )
