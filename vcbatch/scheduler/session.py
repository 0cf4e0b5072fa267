"""One cycle: the picture, the plugins' answers combined, and what was decided so far.

How answers combine is Volcano's: keys of all plugins in tier order decide an order; filters, readiness and rooms must
all agree; one overused is enough; votes are counted tier by tier, a rejection ending the count and an acceptance
ending it with its tier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import numpy as np

from vcbatch.scheduler.blockers import Blocker
from vcbatch.scheduler.classes import TaskClass
from vcbatch.scheduler.columns import Floats, Rows
from vcbatch.scheduler.consultant import Consultant, Nobody
from vcbatch.scheduler.domain_search import DomainSearch, Purpose
from vcbatch.scheduler.domains import Domain
from vcbatch.scheduler.figures import Measured
from vcbatch.scheduler.gang_order import GangKey, Gangs, last_first
from vcbatch.scheduler.gates import Gates
from vcbatch.scheduler.laps import Laps, NoLaps, Part
from vcbatch.scheduler.model import Job, Phase, Queue, Run, Task, TaskStatus
from vcbatch.scheduler.placement import Placer
from vcbatch.scheduler.plugins.base import (
    UNLIMITED,
    DomainWish,
    EvictionKind,
    GangEviction,
    Leaning,
    Ledger,
    Plugin,
    Verdict,
    Vote,
)
from vcbatch.scheduler.plugins.gang import Gang
from vcbatch.scheduler.policy import PluginOption, Policy
from vcbatch.scheduler.promises import Promises
from vcbatch.scheduler.resources import Mask, Vector
from vcbatch.scheduler.result import Bind, Eviction, Held
from vcbatch.scheduler.state import ClusterState
from vcbatch.scheduler.statement import Statement
from vcbatch.scheduler.static_nodes import PluginSet, StaticCache
from vcbatch.scheduler.sub_gangs import SubKey
from vcbatch.scheduler.switches import Switch

_PLACED = frozenset({TaskStatus.ALLOCATED, TaskStatus.PIPELINED, TaskStatus.BINDING})
Tiered = list[list[Plugin]]
_index = attrgetter("index")


class Session:
    """What actions and plugins work on. Lives for one cycle."""

    def __init__(
        self,
        state: ClusterState,
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
        self.promises = Promises(self)
        self.nominations: Mapping[str, str] = {}
        """Once the cycle ended: by pod UID the node that it is to say is kept for it, empty where none is any more."""
        self.blockers: dict[str, Blocker] = {}
        """By gang key: why it didn't start in this cycle."""
        self.closed_queues: dict[str, str] = {}
        """By queue name: why it got nothing more in this cycle."""
        self.evictions: list[Eviction] = []
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
        self.gates = Gates(self) if state.queue_gates else None
        """Opens the gates of pods that wait for room in their queue; None where that isn't done."""
        self.journal: list[tuple[Sequence[Task], TaskStatus | None]] = []
        """Whom statements placed (None), and whom they evicted, with what each was before; also what was taken back."""
        self._evicted: list[Task] = []
        self._hopeful: list[tuple[Job, Statement]] = []
        self._search: DomainSearch | None = None
        self._open_plugins(policy)
        filters = self._flat(Switch.PREDICATE)
        self.placer = Placer(state, PluginSet(filters, self._flat(Switch.NODE_ORDER)), cache)
        self._laps.lap(Part.OPENED)

    def _open_plugins(self, policy: Policy) -> None:
        self._tiers = [[(o, _made(o)) for o in tier.plugins] for tier in policy.tiers]
        self._named = [(option.name, plugin) for tier in self._tiers for option, plugin in tier]
        self.plugins = [plugin for _, plugin in self._named]
        for name, plugin in self._named:
            plugin.open(self)
            self._laps.lap(Part.PLUGIN_OPENED, name)
        moving = [plugin for plugin in self.plugins if type(plugin).SHARES_PLACES]
        self.queues_share_places = any(_has(plugin, "queue_key") for plugin in moving)
        """Whether serving one queue may move others back in the order."""
        self.gangs_share_places = any(_has(plugin, "job_key") for plugin in moving)
        """Whether serving one gang may move others back in the order."""
        self._standings: dict[str, tuple[Any, ...]] = {}
        self._job_keys = [GangKey.of(p) for p in self._flat(Switch.JOB_ORDER, "job_key")]
        self._task_keys = [p.task_key for p in self._flat(Switch.TASK_ORDER, "task_key")]
        self._queue_orders = self._flat(Switch.QUEUE_ORDER, "queue_key")
        self._queue_keys = [p.queue_key for p in self._queue_orders]
        self._ready = self._flat(Switch.JOB_READY, "job_ready")
        self._valid = [p for p in self.plugins if _has(p, "job_valid")]
        self._pipelined = self._tiered(Switch.JOB_PIPELINED, "job_pipelined")
        self._enqueueable = self._tiered(Switch.JOB_ENQUEUED, "enqueueable")
        self._enqueued = self._flat(Switch.JOB_ENQUEUED, "enqueued")
        self._asking = self._flat(Switch.JOB_ENQUEUED, "admission_needed")
        self._overused = self._flat(Switch.OVERUSED, "overused")
        self._room = self._flat(Switch.ALLOCATABLE, "room")
        self._barring = [p for p in self._flat(Switch.ALLOCATABLE, "barred") if p.barring]
        self._reserving = [p for p in self.plugins if _has(p, "reserve")]
        self._faults = [p for p in self.plugins if _has(p, "queue_fault")]
        self._limits = [p for p in self.plugins if _has(p, "limit_stamp")]
        self._watching = [p for p in self.plugins if _has(p, "placed")]
        self._following = [p for p in self.plugins if _has(p, "moved")]
        self._leaning = self._flat(Switch.NODE_ORDER, "leaning")
        self._domain_scores = self._flat(Switch.HYPER_NODE_ORDER, "domain_scores")
        self._domain_order = self._flat(Switch.HYPER_NODE_GRADIENT, "domain_order")
        self._annotating = [p for p in self.plugins if _has(p, "binding_annotations")]
        self._locking = [p for p in self.plugins if _has(p, "node_lock")]
        self._starving = self._tiered(Switch.JOB_STARVING, "job_starving")
        self._preemptable = self._tiered(Switch.PREEMPTABLE, "preemptable")
        self._reclaimable = self._tiered(Switch.RECLAIMABLE, "reclaimable")
        self._keeping = self._flat(Switch.VICTIM, "movable")
        self._evictable = [[p for _, p in tier if _has(p, "evictable")] for tier in self._tiers]
        self._preemptive = self._flat(Switch.PREEMPTIVE, "preemptive")
        self._victim_queue = [p for p in self.plugins if _has(p, "victim_queue_key")]
        self._unwanted = self._tiered(Switch.VICTIM, "unwanted")

    def _tiered(self, switch: Switch, method: str) -> Tiered:
        return [[p for o, p in tier if o.enabled(switch) and _has(p, method)] for tier in self._tiers]

    def _flat(self, switch: Switch, method: str | None = None) -> list[Plugin]:
        return [p for tier in self._tiers for o, p in tier if o.enabled(switch) and (method is None or _has(p, method))]

    # Order -----------------------------------------------------------------------------------------------------------

    def job_key(self, job: Job) -> tuple[Any, ...]:
        """Sorts gangs of a queue, best first; total, by creation and UID at last."""
        return (*[key.one(job) for key in self._job_keys], job.creation, job.uid, job.key)

    def from_last(self, gangs: Gangs) -> Iterator[Job]:
        """Gangs against their order, the last first. Of many only those that are taken are put in order: plugins are
        asked about a gang as long as it is among equals that may be next. Until it is through nothing may be placed."""
        return last_first(gangs, self._job_keys)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """Sorts queues, best first."""
        known = self._standings.get(queue.name)
        if known is None:
            meta = queue.view.metadata
            keys = [key(queue) for key in self._queue_keys]
            known = self._standings[queue.name] = (*keys, meta.creation_timestamp or "", meta.uid, queue.name)
        return known

    def queue_kin(self, queue: Queue) -> tuple[object, int] | None:
        """The queues that always move together in the order, as the plugin says that alone decides it; with in how many
        numbers of its key they are alike."""
        return self._queue_orders[0].queue_kin(queue) if len(self._queue_orders) == 1 else None

    def runs(self, job: Job) -> list[Run]:
        """The gang's pending tasks that can be looked at, in task order, consecutive alike ones together. Tasks that
        ask for nothing and gated ones aren't among them."""
        if job.runs is None:
            job.runs = self._runs(job)
        return job.runs

    def ordered(self, tasks: list[Task]) -> list[Task]:
        """Tasks of a gang in task order: the plugins', then by index where all have one, creation and UID."""
        indexes = {task.index for task in tasks}
        indexed = None not in indexes
        alike = all(len({key(task) for task in tasks}) < 2 for key in self._task_keys)
        if alike and indexed and len(indexes) == len(tasks):
            return sorted(tasks, key=_index)

        def key(task: Task) -> tuple[Any, ...]:
            index = task.index if indexed else 0
            return (*[k(task) for k in self._task_keys], index, task.creation, task.uid)

        return sorted(tasks, key=key)

    def _runs(self, job: Job) -> list[Run]:
        pending = [
            t for t in job.tasks.values() if t.status is TaskStatus.PENDING and not t.gated and not t.cls.best_effort
        ]
        runs: list[Run] = []
        cls = role = sub = None
        tasks: list[Task] = []
        for task in self.ordered(pending):
            if task.cls is not cls or task.role != role or task.sub != sub:
                cls, role, sub, tasks = task.cls, task.role, task.sub, []
                runs.append(Run(cls, role, sub, tasks))
            tasks.append(task)
        return runs

    # Gangs -----------------------------------------------------------------------------------------------------------

    def invalid(self, job: Job) -> str | None:
        """Why the gang can't run as it is."""
        for plugin in self._valid:
            fault = plugin.job_valid(job)
            if fault:
                return fault
        return None

    def ready(self, job: Job) -> bool:
        for plugin in self._ready:  # noqa: SIM110 - asked several times per gang, where a generator is half the price
            if not plugin.job_ready(job):
                return False
        return True

    def tasks_until_ready(self, job: Job, role: str) -> int:
        return max((plugin.tasks_until_ready(job, role) for plugin in self._ready), default=1)

    def pipelined(self, job: Job) -> bool:
        return _counted(self._pipelined, lambda plugin: plugin.job_pipelined(job)) is None

    @property
    def votes_on_holding(self) -> bool:
        """Whether some plugin votes on what is held; where none does, everything found is."""
        return any(self._pipelined)

    @property
    def judges_readiness(self) -> bool:
        """Whether some plugin says when a gang is ready; where none does, each of its pods is of use alone."""
        return bool(self._ready)

    def ready_without_hope(self, job: Job) -> bool:
        """Whether the gang has its minimum without counting tasks that are yet to be placed."""
        return not self._ready or job.ready_count >= job.min_member

    @property
    def plain(self) -> bool:
        """Whether gangs without minimums of roles start by their number alone, no plugin moves points with each task,
        and a bind says where a pod goes and nothing else."""
        counted = len(self._ready) == 1 and type(self._ready[0]).job_ready is Gang.job_ready
        told = self._leaning or self._annotating or self._locking or self.gates is not None
        return counted and not told

    def lacks_members(self, job: Job) -> bool:
        """Whether fewer members are placed, or could be at no cost, than the minimum; roles aside, as the phase goes
        by the number alone."""
        return bool(self._ready) and job.ready_count + job.pending_best_effort < job.min_member

    def coupled(self, tasks: Sequence[Task]) -> bool:
        """Whether the place of some of these alike tasks depends on which pods are where."""
        cls, couplers = tasks[0].cls, self.placer.plugins.couplers
        if self._barring and cls.spec.resource_claims:
            return True
        if not cls.inter_pod.any and not self.state.inter_pod.active and not cls.claiming and not couplers:
            return False
        return any(self.placer.couples(task) for task in tasks)

    # Domains ---------------------------------------------------------------------------------------------------------

    @property
    def domain_search(self) -> DomainSearch:
        """The domains of the network and what there is room for in them."""
        if self._search is None:
            self._search = DomainSearch(self)
        return self._search

    def domain_order(self, job: Job, sub: SubKey | None, groups: list[Rows], purpose: Purpose) -> list[Rows]:
        """The order in which domains are tried: as the first plugin says that has an opinion, else as given."""
        for plugin in self._domain_order:
            order = plugin.domain_order(job, sub, groups, evicting=purpose is Purpose.EVICT)
            if order is not None:
                return list(order)
        return groups

    def domain_scores(self, wish: DomainWish, domains: Rows) -> Floats:
        """The points of all plugins together."""
        total: Floats = np.zeros(len(domains))
        for plugin in self._domain_scores:
            points = plugin.domain_scores(wish, domains)
            if points is not None:
                total += points
        return total

    def leaning(self, job: Job, sub: SubKey | None, cls: TaskClass, domain: Domain | None) -> Leaning | None:
        """Points for the gang's next tasks that move with each of them; None where no plugin gives any."""
        if not self._leaning:
            return None
        number = None if domain is None else domain.number
        found = [leaning for p in self._leaning if (leaning := p.leaning(job, sub, cls, number)) is not None]
        return found[0] if len(found) == 1 else Leanings(found) if found else None

    # Victims ---------------------------------------------------------------------------------------------------------

    def starving(self, job: Job) -> bool:
        """Whether others may be evicted for what the gang lacks: the first tier in which somebody answers decides."""
        for tier in self._starving:
            if tier:
                return all(plugin.job_starving(job) for plugin in tier)
        return False

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        """The candidates that may be evicted for a task of their queue."""
        return _agreed(self._preemptable, lambda plugin: plugin.preemptable(preemptor, candidates))

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        """The candidates that may be evicted for a task of another queue."""
        return _agreed(self._reclaimable, lambda plugin: plugin.reclaimable(reclaimer, candidates))

    def named(self, kind: EvictionKind, task: Task, candidates: Sequence[Task]) -> tuple[list[Task], bool]:
        """The candidates that may be evicted for a task, and whether, were they gone, another tier might name more."""
        tiers = [tier for tier in self.judges(kind) if tier]
        for nth, tier in enumerate(tiers):
            if kind is EvictionKind.PREEMPT:
                found = _agreed([tier], lambda plugin: plugin.preemptable(task, candidates))
            else:
                found = _agreed([tier], lambda plugin: plugin.reclaimable(task, candidates))
            if found:
                return found, nth + 1 < len(tiers)
        return [], False

    def judges(self, kind: EvictionKind) -> Sequence[Sequence[Plugin]]:
        """The plugins that decide about the victims of single tasks, tier by tier."""
        return self._preemptable if kind is EvictionKind.PREEMPT else self._reclaimable

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> list[Task]:
        """The candidates that may be evicted for a whole gang: all plugins that have an opinion must agree, whatever
        their tier."""
        agreed = list(candidates)
        for plugin in (plugin for tier in self._evictable for plugin in tier):
            found = plugin.evictable(eviction, agreed)
            if found is not None:
                named = {task.uid for task in found}
                agreed = [task for task in agreed if task.uid in named]
        return agreed

    def preemptive(self, queue: Queue, request: Vector) -> bool:
        """Whether the queue may have pods of other queues evicted for this request."""
        return all(plugin.preemptive(queue, request) for plugin in self._preemptive)

    def unwanted(self, running: Sequence[Task]) -> list[tuple[Task, str]]:
        """Pods that had better be moved away, and why: of the first tier that names any, all that it names."""
        for tier in self._unwanted:
            named: dict[str, Task] = {}
            why: dict[str, str] = {}
            for plugin in tier:
                for task in plugin.unwanted(running) or ():
                    named.setdefault(task.uid, task)
                    why.setdefault(task.uid, plugin.UNWANTED)
            if named:
                return [(task, why[task.uid]) for task in self._movable(list(named.values()))]
        return []

    def _movable(self, unwanted: list[Task]) -> list[Task]:
        """Those that nobody keeps in their place."""
        for plugin in self._keeping:
            may_go = plugin.movable(unwanted)
            if may_go is not None:
                named = {task.uid for task in may_go}
                unwanted = [task for task in unwanted if task.uid in named]
        return unwanted

    def victim_order(self, victims: Sequence[Task], preemptor: Task) -> list[Task]:
        """Victims, first evicted first: of one gang the last in task order, gangs that are no more before others, of
        one queue the gang that comes last, and of several queues as the plugins say, the last in queue order first."""
        if not victims:
            return []
        rank = {task.uid: -i for i, task in enumerate(self.ordered(list(victims)))}
        gangs = {t.job.key: t.job for t in victims if t.job is not None and t.job.group is not None}
        by_gang = {job.key: -i for i, job in enumerate(sorted(gangs.values(), key=self.job_key))}
        queues = {job.queue.name: job.queue for job in gangs.values() if job.queue is not None}
        own = preemptor.job.queue if preemptor.job is not None else None
        by_queue: dict[str, int] = {}
        if own is not None and len(queues) > 1:
            by_queue = {q.name: i for i, q in enumerate(self.victim_queues(list(queues.values()), own))}

        def key(task: Task) -> tuple[int, int, int, int]:
            job = task.job
            if job is None or job.group is None:
                return (0, 0, 0, rank[task.uid])
            queue = 0 if job.queue is None else by_queue.get(job.queue.name, 0)
            return (1, queue, by_gang[job.key], rank[task.uid])

        return sorted(victims, key=key)

    def victim_queues(self, queues: Sequence[Queue], preemptor: Queue) -> list[Queue]:
        """Queues that lose pods to another one, first to lose first: as the plugins say, the last in queue order
        first."""
        inverse = {q.name: -i for i, q in enumerate(sorted(queues, key=self.queue_key))}

        def place(queue: Queue) -> tuple[Any, ...]:
            keys = [plugin.victim_queue_key(queue, preemptor) for plugin in self._victim_queue]
            return (*keys, inverse[queue.name])

        return sorted(queues, key=place)

    # Queues ----------------------------------------------------------------------------------------------------------

    def enqueue_refusal(self, job: Job) -> Verdict | None:
        """Why a pending gang may not be admitted, None where it may."""
        refused: Verdict | None = None

        def vote(plugin: Plugin) -> Vote:
            nonlocal refused
            verdict = plugin.enqueueable(job)
            if verdict.vote is Vote.REJECT:
                refused = verdict
            return verdict.vote

        return None if _counted(self._enqueueable, vote) is None else refused

    def admission_needed(self, job: Job) -> bool:
        """Whether plugins are asked to admit a gang that has no minResources."""
        return any(plugin.admission_needed(job) for plugin in self._asking)

    @property
    def admission_keys(self) -> Sequence[Callable[[Job], object]]:
        """What verdicts on gangs go by, besides their queues, minResources and gates (`Plugin.admission_key`)."""
        return [plugin.admission_key for tier in self._enqueueable for plugin in tier]

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

    def overused(self, queue: Queue) -> str | None:
        for plugin in self._overused:
            reason = plugin.overused(queue)
            if reason:
                return reason
        return None

    def room(self, queue: Queue, request: Vector) -> int:
        room = UNLIMITED
        for plugin in self._room:
            room = min(room, plugin.room(queue, request))
        return room

    def room_of(self, job: Job, request: Vector) -> int:
        """How many tasks of the gang with this request its queue may still take."""
        room = UNLIMITED
        for plugin in self._room:
            room = min(room, plugin.room_of(job, request))
        return room

    def barred(self, task: Task) -> Verdict | None:
        """Why the queue of the task may not hold this very task now; None where it may."""
        if not self._barring or not task.cls.spec.resource_claims:
            return None
        return next((verdict for p in self._barring if (verdict := p.barred(task)) is not None), None)

    def place_for(
        self, task: Task, *, only: int | None = None, within: Rows | None = None, leaning: Leaning | None = None
    ) -> tuple[int, bool] | None:
        """The node for one coupled task (`Placer.one`); None where there is none, or its queue may not hold it."""
        if self.barred(task) is not None:
            return None
        return self.placer.one(task, only=only, within=within, leaning=leaning)

    def reserve(self, job: Job, cls: TaskClass, count: int) -> None:
        """Keep room in the gang's queue for so many tasks, or give it back (negative)."""
        self._standings.clear()
        for plugin in self._reserving:
            plugin.reserve(job, cls, count)

    def queue_fault(self, queue: Queue) -> str | None:
        """Why no gang of this queue can be admitted or placed."""
        for plugin in self._faults:
            fault = plugin.queue_fault(queue)
            if fault:
                return fault
        return None

    def ledger(self, queue: Queue, request: Vector) -> Ledger | None:
        """What the plugin with the least room for this request says of the queue."""
        if not self._room:
            return None
        return min(self._room, key=lambda plugin: plugin.room(queue, request)).ledger(queue, request)

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

    # Changes ---------------------------------------------------------------------------------------------------------

    def placed(self, tasks: Sequence[Task], sign: int, *, rows: Sequence[int]) -> None:
        """Tell the plugins of a placement (`sign` 1) or its undoing (-1) of alike tasks of one gang. An eviction is the
        undoing of a placement."""
        self._standings.clear()
        job = tasks[0].job
        if job is not None:
            for plugin in self._watching:
                plugin.placed(job, tasks[0].cls, sign * len(tasks))
        for plugin in self._following:
            for task, row in zip(tasks, rows, strict=True):
                plugin.moved(task, row, sign)

    @property
    def binding_annotations(self) -> Callable[[Task, int], Mapping[str, str] | None] | None:
        """What a pod is told with its binding; None where no plugin has anything to tell."""
        return self._binding_annotations if self._annotating else None

    @property
    def node_lock(self) -> Callable[[Task], str] | None:
        """By which annotation a pod's node is locked while it is bound; None where no plugin locks any."""
        return self._node_lock if self._locking else None

    def _node_lock(self, task: Task) -> str:
        return next((lock for plugin in self._locking if (lock := plugin.node_lock(task))), "")

    def _binding_annotations(self, task: Task, row: int) -> Mapping[str, str] | None:
        told: dict[str, str] = {}
        for plugin in self._annotating:
            told.update(plugin.binding_annotations(task, row))
        return told or None

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

    def look_again(self, at: datetime) -> None:
        """Something changes by time alone: have a cycle then, whatever else happens."""
        if at > self.now and (self.wake_at is None or at < self.wake_at):
            self.wake_at = at

    def close(self) -> list[Held]:
        """Give back what was only held, and say what that was. Gangs that failed are parked until what they failed on
        changes, unless others held room while they were tried."""
        self._retract()
        for name, plugin in self._named:
            if _has(plugin, "close"):
                plugin.close(self)
                self._laps.lap(Part.PLUGIN_CLOSED, name)
        if self.gates is not None:
            self.gates.close()
        given_up = self.promises.settle()
        held = [place for statement in self.held for place in statement.held()]
        self.nominations = self.promises.remember(held)
        for statement in reversed(self.held):
            job = statement.job
            statement.discard()
            if job is not None:
                job.runs = None
        if not held and not given_up:
            self._park()
        for task in self._evicted:
            self.state.evicted(task)
        return held

    def abandon(self) -> None:
        """Put the picture back to what it was when the session began, whatever came in between, and ask no plugin."""
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

    def _retract(self) -> None:
        """Take back what was bound of gangs that didn't get their minimum after all."""
        taken: set[str] = set()
        for job, statement in self._hopeful:
            if not self.ready_without_hope(job):
                taken |= statement.retract()
        if taken:
            self.binds = [bind for bind in self.binds if bind.uid not in taken]

    def _park(self) -> None:
        stamps: dict[str, tuple[object, ...]] = {}
        for job in self.attempted:
            blocker = self.blockers.get(job.key)
            if blocker is None or job.queue is None or blocker.task == "":
                continue
            stamp = stamps.get(job.queue.name)
            if stamp is None:
                stamp = stamps[job.queue.name] = self.stamp(job.queue)
            if not self._depends_on_others(job):
                job.parked, job.blocker = stamp, blocker

    def _depends_on_others(self, job: Job) -> bool:
        """Whether pods that are placed elsewhere could make room for this gang."""
        volumes = self.state.volumes
        return any(
            run.cls.inter_pod.any or volumes.couples(run.cls.profile.claims) or run.cls.spec.resource_claims
            for run in self.runs(job)
        )


class Leanings:
    """The leanings of several plugins, added up."""

    def __init__(self, leanings: Sequence[Leaning]) -> None:
        self._leanings = leanings

    def points(self, rows: Rows, candidates: Mask) -> Floats:
        total: Floats = np.zeros(len(rows))
        for leaning in self._leanings:
            total += leaning.points(rows, candidates)
        return total

    def placed(self, row: int) -> None:
        for leaning in self._leanings:
            leaning.placed(row)


def _made(option: PluginOption) -> Plugin:
    hierarchical = option.enabled(Switch.HIERARCHY)
    plugin = option.cls.of_mode(hierarchical=hierarchical)(option.arguments)
    plugin.hierarchical = hierarchical
    return plugin


def _agreed(tiers: Sequence[Sequence[Plugin]], ask: Callable[[Plugin], Sequence[Task] | None]) -> list[Task]:
    """The victims on which the plugins of the first tier that finds any agree. A plugin that finds none silences its
    tier; where two have nobody in common, the next plugin of the tier starts anew (Volcano's intersection)."""
    for tier in tiers:
        agreed: list[Task] = []
        for plugin in tier:
            found = ask(plugin)
            if found is None:
                continue
            if not found:
                agreed = []
                break
            named = {task.uid for task in found}
            agreed = [task for task in agreed if task.uid in named] if agreed else list(found)
        if agreed:
            return agreed
    return []


def _has(plugin: Plugin, method: str) -> bool:
    return getattr(type(plugin), method) is not getattr(Plugin, method)


def _counted(tiers: Tiered, vote: Callable[[Plugin], Vote]) -> Plugin | None:
    """Who rejects. A tier in which somebody permits and nobody rejects settles it; if nobody has an opinion, it's
    permitted."""
    for tier in tiers:
        permitted = False
        for plugin in tier:
            answer = vote(plugin)
            if answer is Vote.REJECT:
                return plugin
            permitted = permitted or answer is Vote.PERMIT
        if permitted:
            return None
    return None
