"""One cycle: the picture, the plugins' answers combined, and what was decided so far.

How answers combine is Volcano's: keys of all plugins in tier order decide an order; filters, readiness and rooms must
all agree; one overused is enough; votes are counted tier by tier, a rejection ending the count and an acceptance
ending it with its tier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from vcbatch.scheduler.blockers import Blocker
from vcbatch.scheduler.model import Job, Phase, Queue, Run, Task, TaskStatus
from vcbatch.scheduler.placement import Placer
from vcbatch.scheduler.plugins.base import UNLIMITED, Ledger, Plugin, Verdict, Vote
from vcbatch.scheduler.policy import Policy
from vcbatch.scheduler.resources import Vector
from vcbatch.scheduler.result import Bind, Held
from vcbatch.scheduler.state import ClusterState
from vcbatch.scheduler.statement import Statement
from vcbatch.scheduler.static_nodes import PluginSet, StaticCache
from vcbatch.scheduler.switches import Switch

Tiered = list[list[Plugin]]
_index = attrgetter("index")


class Session:
    """What actions and plugins work on. Lives for one cycle."""

    def __init__(self, state: ClusterState, policy: Policy, cache: StaticCache, *, now: datetime, uid: str) -> None:
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
        self.blockers: dict[str, Blocker] = {}
        """By gang key: why it didn't start in this cycle."""
        self.closed_queues: dict[str, str] = {}
        """By queue name: why it got nothing more in this cycle."""
        self.exhausted: dict[int, tuple[int, Blocker]] = {}
        """By class id: how many tasks of it found a node at most in this cycle, and why not more."""
        self._failures: dict[tuple[object, ...], Blocker] = {}
        self._failures_at = (0, 0)
        self.eligible: list[Job] | None = None
        """The gangs whose tasks may be placed; None until somebody asks, and again after an admission."""
        self.admitted: list[Job] = []
        self.attempted: list[Job] = []
        self._hopeful: list[tuple[Job, Statement]] = []
        self._open_plugins(policy)
        filters = self._flat(Switch.PREDICATE)
        self.placer = Placer(state, PluginSet(filters, self._flat(Switch.NODE_ORDER)), cache)

    def _open_plugins(self, policy: Policy) -> None:
        self._tiers = [[(o, o.cls(o.arguments)) for o in tier.plugins] for tier in policy.tiers]
        self.plugins = [plugin for tier in self._tiers for _, plugin in tier]
        for plugin in self.plugins:
            plugin.open(self)
        self._job_keys = [p.job_key for p in self._flat(Switch.JOB_ORDER, "job_key")]
        self._task_keys = [p.task_key for p in self._flat(Switch.TASK_ORDER, "task_key")]
        self._queue_keys = [p.queue_key for p in self._flat(Switch.QUEUE_ORDER, "queue_key")]
        self._ready = self._flat(Switch.JOB_READY, "job_ready")
        self._valid = [p for p in self.plugins if _has(p, "job_valid")]
        self._pipelined = self._tiered(Switch.JOB_PIPELINED, "job_pipelined")
        self._enqueueable = self._tiered(Switch.JOB_ENQUEUED, "enqueueable")
        self._enqueued = self._flat(Switch.JOB_ENQUEUED, "enqueued")
        self._overused = self._flat(Switch.OVERUSED, "overused")
        self._room = self._flat(Switch.ALLOCATABLE, "room")
        self._limits = [p for p in self.plugins if _has(p, "limit_stamp")]
        self._watching = [p for p in self.plugins if _has(p, "placed")]

    def _tiered(self, switch: Switch, method: str) -> Tiered:
        return [[p for o, p in tier if o.enabled(switch) and _has(p, method)] for tier in self._tiers]

    def _flat(self, switch: Switch, method: str | None = None) -> list[Plugin]:
        return [p for tier in self._tiers for o, p in tier if o.enabled(switch) and (method is None or _has(p, method))]

    # Order -----------------------------------------------------------------------------------------------------------

    def job_key(self, job: Job) -> tuple[Any, ...]:
        """Sorts gangs of a queue, best first; total, by creation and UID at last."""
        return (*[key(job) for key in self._job_keys], job.creation, job.uid, job.key)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """Sorts queues, best first."""
        meta = queue.view.metadata
        return (*[key(queue) for key in self._queue_keys], meta.creation_timestamp or "", meta.uid, queue.name)

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

    def ready_without_hope(self, job: Job) -> bool:
        """Whether the gang has its minimum without counting tasks that are yet to be placed."""
        return not self._ready or job.ready_count >= job.min_member

    def lacks_members(self, job: Job) -> bool:
        """Whether fewer members are placed, or could be at no cost, than the minimum; roles aside, as the phase goes
        by the number alone."""
        return bool(self._ready) and job.ready_count + job.pending_best_effort < job.min_member

    def coupled(self, tasks: Sequence[Task]) -> bool:
        """Whether the place of some of these alike tasks depends on which pods are where."""
        cls = tasks[0].cls
        if not cls.inter_pod.any and not self.state.inter_pod.active and not cls.profile.claims:
            return False
        return any(self.placer.couples(task) for task in tasks)

    # Queues ----------------------------------------------------------------------------------------------------------

    def enqueue_refusal(self, job: Job) -> str | None:
        """Why a pending gang may not be admitted, None where it may."""
        found: list[str] = []

        def vote(plugin: Plugin) -> Vote:
            verdict: Verdict = plugin.enqueueable(job)
            if verdict.vote is Vote.REJECT:
                found.append(verdict.message)
            return verdict.vote

        return None if _counted(self._enqueueable, vote) is None else "; ".join(found)

    def admit(self, job: Job) -> None:
        """Let a pending gang in: from now on its pods are made and placed."""
        self.state.set_phase(job, Phase.INQUEUE)
        self.state.touched[job.key] = job
        self.admitted.append(job)
        self.eligible = None
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

    def ledger(self, queue: Queue, request: Vector) -> Ledger | None:
        """What the plugin with the least room for this request says of the queue."""
        if not self._room:
            return None
        return min(self._room, key=lambda plugin: plugin.room(queue, request)).ledger(queue)

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

    def placed(self, tasks: Sequence[Task], sign: int) -> None:
        """Tell the plugins of a placement (`sign` 1) or its undoing (-1) of alike tasks of one gang."""
        job = tasks[0].job
        if job is not None:
            for plugin in self._watching:
                plugin.placed(job, tasks[0].cls, sign * len(tasks))

    def commit(self, statement: Statement) -> None:
        """Bind what the statement placed. Where the gang has its minimum only by tasks that are yet to be placed, that
        is looked at again when the cycle ends."""
        job = statement.job
        if job is not None and not self.ready_without_hope(job):
            self._hopeful.append((job, statement))
        self.binds.extend(statement.commit())
        if statement:
            self.held.append(statement)

    def close(self) -> list[Held]:
        """Give back what was only held, and say what that was. Gangs that failed are parked until what they failed on
        changes, unless others held room while they were tried."""
        self._retract()
        held = [place for statement in self.held for place in statement.held()]
        for statement in reversed(self.held):
            statement.discard()
        if not held:
            self._park()
        return held

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
        return any(run.cls.inter_pod.any or volumes.couples(run.cls.profile.claims) for run in self.runs(job))


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
