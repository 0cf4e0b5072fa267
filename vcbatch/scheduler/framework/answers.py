"""Calls the plugins of a scheduler configuration and combines their results.

The combination is Volcano's: the keys of all plugins in tier order decide an order; filters, readiness and queue
capacity must all agree; one plugin that reports a queue overused is enough; votes are counted tier by tier, where a
rejection decides at once and a permit decides at the end of its tier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from vcbatch.scheduler.framework.combining import Leanings, Tiered, agreed, counted, has_opinion
from vcbatch.scheduler.framework.gang_order import GangKey, Gangs, last_first
from vcbatch.scheduler.framework.plugin import (
    UNLIMITED,
    DomainRequest,
    EvictionKind,
    GangEviction,
    Leaning,
    Ledger,
    Plugin,
    Protection,
    Verdict,
    Vote,
)
from vcbatch.scheduler.framework.policy import PluginOption, Policy
from vcbatch.scheduler.framework.switches import Switch
from vcbatch.scheduler.framework.task_order import TaskOrder
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.domain import Domain, Purpose
from vcbatch.scheduler.model.objects import Job, Queue, Run, Task
from vcbatch.scheduler.model.resources import Vector
from vcbatch.scheduler.model.result import Shortage
from vcbatch.scheduler.model.sub_gangs import SubKey


class Answers:
    """The combined results of the plugins of a scheduler configuration, in one cycle."""

    def __init__(self, policy: Policy) -> None:
        self._tiers = [[(o, _made(o)) for o in tier.plugins] for tier in policy.tiers]
        self._named = [(option.name, plugin) for tier in self._tiers for option, plugin in tier]
        self.plugins = [plugin for _, plugin in self._named]
        moving = [plugin for plugin in self.plugins if type(plugin).SHARES_PLACES]
        self.queues_share_places = any(has_opinion(plugin, "queue_key") for plugin in moving)
        """Whether serving one queue may move other queues back in the order."""
        self.gangs_share_places = any(has_opinion(plugin, "job_key") for plugin in moving)
        """Whether serving one gang may move other gangs back in the order."""
        self._standings: dict[str, tuple[Any, ...]] = {}
        self._job_keys = [GangKey.of(p) for p in self._flat(Switch.JOB_ORDER, "job_key")]
        self._task_order = TaskOrder(self._flat(Switch.TASK_ORDER, "task_key"))
        self._queue_orders = self._flat(Switch.QUEUE_ORDER, "queue_key")
        self._queue_keys = [p.queue_key for p in self._queue_orders]
        self._ready = self._flat(Switch.JOB_READY, "job_ready")
        self._valid = [p for p in self.plugins if has_opinion(p, "job_valid")]
        self._pipelined = self._tiered(Switch.JOB_PIPELINED, "job_pipelined")
        self._enqueueable = self._tiered(Switch.JOB_ENQUEUED, "enqueueable")
        self._enqueued = self._flat(Switch.JOB_ENQUEUED, "enqueued")
        self._counting = self._flat(Switch.JOB_ENQUEUED, "count_admission")
        self._asking = self._flat(Switch.JOB_ENQUEUED, "admission_needed")
        self._overused = self._flat(Switch.OVERUSED, "overused")
        self._room = self._flat(Switch.ALLOCATABLE, "room")
        self._barring: list[Plugin] = []
        """The plugins that decide about single tasks in this cycle; set once all plugins are open."""
        self._reserving = [p for p in self.plugins if has_opinion(p, "reserve")]
        self._errors = [p for p in self.plugins if has_opinion(p, "queue_error")]
        self._limits = [p for p in self.plugins if has_opinion(p, "limit_stamp")]
        self._watching = [p for p in self.plugins if has_opinion(p, "placed")]
        self._following = [p for p in self.plugins if has_opinion(p, "moved")]
        self._leaning = self._flat(Switch.NODE_ORDER, "leaning")
        self._domain_scores = self._flat(Switch.HYPER_NODE_ORDER, "domain_scores")
        self._domain_order = self._flat(Switch.HYPER_NODE_GRADIENT, "domain_order")
        self._annotating = [p for p in self.plugins if has_opinion(p, "binding_annotations")]
        self._locking = [p for p in self.plugins if has_opinion(p, "node_lock")]
        self._starving = self._tiered(Switch.JOB_STARVING, "job_starving")
        self._preemptable = self._tiered(Switch.PREEMPTABLE, "preemptable")
        self._reclaimable = self._tiered(Switch.RECLAIMABLE, "reclaimable")
        self._keeping = self._flat(Switch.VICTIM, "movable")
        self._evictable = [[p for _, p in tier if has_opinion(p, "evictable")] for tier in self._tiers]
        self._preemptive = self._flat(Switch.PREEMPTIVE, "preemptive")
        self._victim_queue = [p for p in self.plugins if has_opinion(p, "victim_queue_key")]
        self._unwanted = self._tiered(Switch.VICTIM, "unwanted")

    def _tiered(self, switch: Switch, method: str) -> Tiered:
        return [[p for o, p in tier if o.enabled(switch) and has_opinion(p, method)] for tier in self._tiers]

    def _flat(self, switch: Switch, method: str | None = None) -> list[Plugin]:
        return [
            p
            for tier in self._tiers
            for o, p in tier
            if o.enabled(switch) and (method is None or has_opinion(p, method))
        ]

    # Order ------------------------------------------------------------------------------------------------------------

    def job_key(self, job: Job) -> tuple[Any, ...]:
        """The sort key of a gang among those of its queue, the first to be served being the lowest. Creation time and
        UID come last, so that the order is total."""
        return (*[key.one(job) for key in self._job_keys], job.creation, job.uid, job.key)

    def from_last(self, gangs: Gangs) -> Iterator[Job]:
        """Gangs in reverse order, the last first. Only those that are consumed are sorted: plugins are called for a
        gang only while it ties with others for the next position. Nothing may be placed until the iteration has ended.
        """
        return last_first(gangs, self._job_keys)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """The sort key of a queue, the first to be served being the lowest."""
        known = self._standings.get(queue.name)
        if known is None:
            meta = queue.view.metadata
            keys = [key(queue) for key in self._queue_keys]
            known = self._standings[queue.name] = (*keys, meta.creation_timestamp or "", meta.uid, queue.name)
        return known

    def queue_kin(self, queue: Queue) -> tuple[object, int] | None:
        """The group of queues that always move together in the order, with how many numbers of the key they have in
        common, as given by the only plugin with a queue order; None if there are several plugins."""
        return self._queue_orders[0].queue_kin(queue) if len(self._queue_orders) == 1 else None

    def runs(self, job: Job) -> list[Run]:
        """The gang's pending tasks that can be tried, in task order, with consecutive equal ones as one run.
        Best-effort and gated tasks aren't among them."""
        if job.runs is None:
            job.runs = self._task_order.runs(job)
        return job.runs

    def ordered(self, tasks: list[Task]) -> list[Task]:
        """Tasks of a gang in task order: by the plugins, then by index where all have one, creation time and UID."""
        return self._task_order.ordered(tasks)

    # Gangs ------------------------------------------------------------------------------------------------------------

    def invalid(self, job: Job) -> str | None:
        """Why the gang can't run with its present pods; None if it can."""
        for plugin in self._valid:
            error = plugin.job_valid(job)
            if error:
                return error
        return None

    def ready(self, job: Job) -> bool:
        """Whether all plugins agree that enough of the gang is placed for it to start."""
        for plugin in self._ready:  # noqa: SIM110 - called several times per gang, where a generator takes twice the time
            if not plugin.job_ready(job):
                return False
        return True

    def tasks_until_ready(self, job: Job, role: str) -> int:
        """How many more tasks of this role have to be placed, at least, before `ready` can turn true; 1 or more."""
        return max((plugin.tasks_until_ready(job, role) for plugin in self._ready), default=1)

    def pipelined(self, job: Job) -> bool:
        """Whether the resources that the gang was placed on, those being released included, are to be reserved for
        it."""
        return counted(self._pipelined, lambda plugin: plugin.job_pipelined(job)) is None

    @property
    def votes_on_holding(self) -> bool:
        """Whether a plugin votes on `pipelined`; if none does, all placements are kept."""
        return any(self._pipelined)

    @property
    def judges_readiness(self) -> bool:
        """Whether a plugin decides when a gang is ready; if none does, each pod is useful alone."""
        return bool(self._ready)

    def ready_without_hope(self, job: Job) -> bool:
        """Whether the gang has its minimum without the tasks that are yet to be placed."""
        return not self._ready or job.ready_count >= job.min_member

    def lacks_members(self, job: Job) -> bool:
        """Whether fewer members are placed, or are best-effort and can always be, than the minimum. Minimums of roles
        don't count, because the PodGroup's phase depends on the total alone."""
        return bool(self._ready) and job.ready_count + job.pending_best_effort < job.min_member

    # Domains ----------------------------------------------------------------------------------------------------------

    def domain_order(self, job: Job, sub: SubKey | None, groups: list[Rows], purpose: Purpose) -> list[Rows]:
        """The order in which topology domains are tried: that of the first plugin that returns one, else the given
        order."""
        for plugin in self._domain_order:
            order = plugin.domain_order(job, sub, groups, evicting=purpose is Purpose.EVICT)
            if order is not None:
                return list(order)
        return groups

    def domain_scores(self, request: DomainRequest, domains: Rows) -> Floats:
        """The sum of the scores of all plugins for the topology domains."""
        total: Floats = np.zeros(len(domains))
        for plugin in self._domain_scores:
            points = plugin.domain_scores(request, domains)
            if points is not None:
                total += points
        return total

    def leaning(self, job: Job, sub: SubKey | None, cls: TaskClass, domain: Domain | None) -> Leaning | None:
        """Node scores for the gang's next tasks that change with each placement; None if no plugin gives any."""
        if not self._leaning:
            return None
        number = None if domain is None else domain.number
        found = [leaning for p in self._leaning if (leaning := p.leaning(job, sub, cls, number)) is not None]
        return found[0] if len(found) == 1 else Leanings(found) if found else None

    # Victims ----------------------------------------------------------------------------------------------------------

    def starving(self, job: Job) -> bool:
        """Whether pods may be evicted for what the gang lacks. The first tier with a plugin that implements
        `job_starving` decides; all its plugins must agree."""
        for tier in self._starving:
            if tier:
                return all(plugin.job_starving(job) for plugin in tier)
        return False

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        """The candidates that may be evicted for a task of their own queue."""
        return agreed(self._preemptable, lambda plugin: plugin.preemptable(preemptor, candidates))

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        """The candidates that may be evicted for a task of another queue."""
        return agreed(self._reclaimable, lambda plugin: plugin.reclaimable(reclaimer, candidates))

    def named(self, kind: EvictionKind, task: Task, candidates: Sequence[Task]) -> tuple[list[Task], bool]:
        """The candidates that may be evicted for a task, and whether a later tier might return more once these are
        evicted."""
        tiers = [tier for tier in self.judges(kind) if tier]
        for nth, tier in enumerate(tiers):
            if kind is EvictionKind.PREEMPT:
                found = agreed([tier], lambda plugin: plugin.preemptable(task, candidates))
            else:
                found = agreed([tier], lambda plugin: plugin.reclaimable(task, candidates))
            if found:
                return found, nth + 1 < len(tiers)
        return [], False

    def judges(self, kind: EvictionKind) -> Sequence[Sequence[Plugin]]:
        """The plugins that decide about the victims of single tasks, tier by tier."""
        return self._preemptable if kind is EvictionKind.PREEMPT else self._reclaimable

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> list[Task]:
        """The candidates that may be evicted for a whole gang: all plugins with an opinion must agree, whatever their
        tier. Each is called with what the previous ones left, so that a pod which one plugin protects doesn't use up
        what the next one allows."""
        left = list(candidates)
        for plugin in (plugin for tier in self._evictable for plugin in tier):
            found = plugin.evictable(eviction, left)
            if found is not None:
                named = {task.uid for task in found}
                left = [task for task in left if task.uid in named]
        return left

    def protection(self, victims: Sequence[Task]) -> Protection | None:
        """The limit that protects these pods from eviction now; among several the one that protects them longest."""
        found = [limit for plugin in self.plugins if (limit := plugin.protection(victims)) is not None]
        return max(found, key=lambda limit: inf if limit.until is None else limit.until.timestamp(), default=None)

    def share_left(self, queue: Queue, victims: Sequence[Task]) -> Sequence[Shortage]:
        """What the queue would lack of its deserved share without these pods, which are protected for that reason;
        empty if no deserved share protects them."""
        return next((left for plugin in self.plugins if (left := plugin.share_left(queue, victims))), ())

    def preemptive(self, queue: Queue, request: Vector) -> bool:
        """Whether the queue may have pods of other queues evicted for this request."""
        return all(plugin.preemptive(queue, request) for plugin in self._preemptive)

    def unwanted(self, running: Sequence[Task]) -> list[tuple[Task, str]]:
        """Pods that should be moved to other nodes, and why: all that the first tier with any returns."""
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
        """The pods that no plugin protects."""
        for plugin in self._keeping:
            may_go = plugin.movable(unwanted)
            if may_go is not None:
                named = {task.uid for task in may_go}
                unwanted = [task for task in unwanted if task.uid in named]
        return unwanted

    def victim_order(self, victims: Sequence[Task], preemptor: Task) -> list[Task]:
        """Victims in the order in which they are evicted: pods without a PodGroup first; between queues as the plugins
        order them, by default the last queue first; within a queue the last gang first; within a gang the last task
        first."""
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
        """Queues that lose pods to another one, the first to lose any first: as the plugins order them, by default the
        last in queue order first."""
        inverse = {q.name: -i for i, q in enumerate(sorted(queues, key=self.queue_key))}

        def place(queue: Queue) -> tuple[Any, ...]:
            keys = [plugin.victim_queue_key(queue, preemptor) for plugin in self._victim_queue]
            return (*keys, inverse[queue.name])

        return sorted(queues, key=place)

    # Queues -----------------------------------------------------------------------------------------------------------

    def enqueue_refusal(self, job: Job) -> Verdict | None:
        """Why a pending gang may not be admitted; None if it may. If a plugin of the rejecting tier says that it can
        never be admitted, that verdict is returned, else the first rejection."""
        refused: Verdict | None = None

        def vote(plugin: Plugin) -> Vote:
            nonlocal refused
            verdict = plugin.enqueueable(job)
            if verdict.vote is Vote.REJECT:
                refused = verdict
            return verdict.vote

        first = counted(self._enqueueable, vote)
        if first is None or refused is None or refused.reason.hopeless:
            return refused
        tier = next(tier for tier in self._enqueueable if first in tier)
        for plugin in tier[tier.index(first) + 1 :]:
            verdict = plugin.enqueueable(job) if plugin.TELLS_IMPOSSIBLE else refused
            if verdict.vote is Vote.REJECT and verdict.reason.hopeless:
                return verdict
        return refused

    def count_admission(self, jobs: Sequence[Job], sign: int) -> None:
        """Add (`sign` 1) or remove (-1) the minResources of these admitted gangs without placed pods, for the next
        decisions."""
        for plugin in self._counting:
            for job in jobs:
                plugin.count_admission(job, sign)

    def admission_needed(self, job: Job) -> bool:
        """Whether plugins are called for the admission of a gang that has no minResources."""
        return any(plugin.admission_needed(job) for plugin in self._asking)

    @property
    def admission_keys(self) -> Sequence[Callable[[Job], object]]:
        """The inputs of verdicts on gangs, besides their queues, minResources and gates (`Plugin.admission_key`)."""
        return [plugin.admission_key for tier in self._enqueueable for plugin in tier]

    def overused(self, queue: Queue) -> str | None:
        """Why no more is allocated to the queue in this action (a sentence); None if it may be."""
        for plugin in self._overused:
            reason = plugin.overused(queue)
            if reason:
                return reason
        return None

    def room(self, queue: Queue, request: Vector) -> int:
        """How many tasks with this request, [R], the queue has capacity for."""
        room = UNLIMITED
        for plugin in self._room:
            room = min(room, plugin.room(queue, request))
        return room

    def room_for(self, job: Job, request: Vector) -> int:
        """How many tasks with this request the gang's queue has capacity for on its behalf: as `room` if the queue is
        Open. A Closing queue has capacity only for the gangs that it accepted before."""
        if job.queue is None:
            return UNLIMITED
        return self.room(job.queue, request) if job.queue.open else self.room_of(job, request)

    def room_of(self, job: Job, request: Vector) -> int:
        """How many tasks of the gang with this request its queue has capacity for."""
        room = UNLIMITED
        for plugin in self._room:
            room = min(room, plugin.room_of(job, request))
        return room

    def barred(self, task: Task) -> Verdict | None:
        """Why this task may not be placed on behalf of its queue now; None if it may."""
        return next((verdict for p in self._barring if (verdict := p.barred(task)) is not None), None)

    def reserve(self, job: Job, cls: TaskClass, count: int) -> None:
        """Reserve queue capacity for `count` tasks of the gang; a negative count releases it."""
        self._standings.clear()
        for plugin in self._reserving:
            plugin.reserve(job, cls, count)

    def queue_error(self, queue: Queue) -> str | None:
        """Why no gang of this queue can be admitted or placed."""
        for plugin in self._errors:
            error = plugin.queue_error(queue)
            if error:
                return error
        return None

    def ledger(self, queue: Queue, request: Vector) -> Ledger | None:
        """The accounting of the queue by the plugin with the least capacity for this request; None without such
        plugins."""
        if not self._room:
            return None
        return min(self._room, key=lambda plugin: plugin.room(queue, request)).ledger(queue, request)

    # Changes ----------------------------------------------------------------------------------------------------------

    def placed(self, tasks: Sequence[Task], sign: int, *, rows: Sequence[int]) -> None:
        """Notify the plugins of a placement (`sign` 1) or its rollback (-1) of equal tasks of one gang. An eviction
        counts as the rollback of a placement."""
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
        """The annotations that a pod gets with its binding, as a function of task and node row; None if no plugin adds
        any."""
        return self._binding_annotations if self._annotating else None

    @property
    def node_lock(self) -> Callable[[Task], str] | None:
        """The annotation that locks a pod's node while the pod is being bound, as a function of the task; None if no
        plugin locks."""
        return self._node_lock if self._locking else None

    def _node_lock(self, task: Task) -> str:
        return next((lock for plugin in self._locking if (lock := plugin.node_lock(task))), "")

    def _binding_annotations(self, task: Task, row: int) -> Mapping[str, str] | None:
        annotations: dict[str, str] = {}
        for plugin in self._annotating:
            annotations.update(plugin.binding_annotations(task, row))
        return annotations or None


def _made(option: PluginOption) -> Plugin:
    hierarchical = option.enabled(Switch.HIERARCHY)
    plugin = option.cls.of_mode(hierarchical=hierarchical)(option.arguments)
    plugin.hierarchical = hierarchical
    return plugin
