"""Evictions for a single task: the nodes on which they could help, and the victims there until the task fits.

The nodes are computed for all equal tasks of a gang at once, from the most that plugins might permit. Evictions and
placements for the gang only ever lower that, so a node that failed isn't tried again for it, unless its queue lacked
capacity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vcbatch.scheduler.actions.fewest_gangs import works
from vcbatch.scheduler.framework.plugin import EvictionKind, Plugin
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.index.victims import VICTIM_STATUSES, Candidates
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats
from vcbatch.scheduler.model.objects import Job, Queue, Task, TaskStatus
from vcbatch.scheduler.model.resources import EPS, Mask

_NO = -np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Which pods may be evicted, and how.

    `kind`: for a gang of their own queue or of another one; `own`: pods of the gang itself instead. `scored`: nodes are
    tried by score instead of by name. `minimize`: unneeded evictions are rolled back. `reason` is the action's name.
    """

    kind: EvictionKind
    reason: str
    own: bool = False
    scored: bool = True
    minimize: bool = False


class Relief:
    """Evicts for tasks of one gang after another, in one action."""

    def __init__(self, session: Session, terms: Terms) -> None:
        self.session = session
        self.terms = terms
        self._judges = session.judges(terms.kind)
        self._alike = all(plugin.VICTIMS_BY_STANDING for tier in self._judges for plugin in tier)
        self._prospects: dict[tuple[object, ...], _Prospect] = {}
        self._spared: frozenset[str] = frozenset()
        self._breakable: frozenset[str] | None = None
        self._futile: dict[tuple[object, ...], int] = {}
        """By standing, tasks that no eviction can help, with how many pods were protected in the search."""
        self._futile_at: tuple[int, ...] = ()

    def begin(self, spared: frozenset[str] = frozenset(), breakable: frozenset[str] | None = None) -> None:
        """Start with another gang, for which nothing is done yet. Gangs whose UIDs are in `spared` lose no pods to it.
        If `breakable` is given, gangs whose UIDs aren't in it lose only pods that they can run without."""
        self._spared = spared
        self._breakable = breakable
        self._prospects.clear()

    def find(self, statement: Statement, task: Task) -> bool:
        """Pipeline the task on a node, with the evictions that it needs; False, with the statement unchanged, if that
        isn't possible."""
        if task.cls.unsupported or task.job is None or task.job.queue is None:
            return False
        coupled = self.session.coupled([task])
        # Futility was recorded without evictions; evictions in the statement may have given the queue capacity since.
        key = None if coupled or statement else self._standing(task)
        if key is not None and key in self._futile:
            self.session.withheld += self._futile[key]
            return False
        before = self.session.withheld
        prospect = self._prospect(task, coupled=coupled)
        roomy = self._roomy(task)
        prospect.admit(roomy)
        while (row := prospect.best()) is not None:
            mark = statement.mark()
            helped = self._help(statement, task, row, coupled=coupled)
            if helped is None:
                for known in self._prospects.values():
                    known.served(row, evicted=statement.mark() > mark + 1)
                return True
            if roomy or helped.more or helped.may_go:
                # Evictions on other nodes may give the queue the capacity that those here don't.
                prospect.failed(row, for_good=roomy and not helped.more)
            else:
                prospect.barred(row)
        if key is not None:
            self._futile[key] = self.session.withheld - before
        return False

    def may_go(self, victim: Task, task: Task) -> bool:
        """Whether the rules of the action, apart from plugins, permit the eviction of this pod for the task."""
        job, own = victim.job, task.job
        if job is None or own is None or job.queue is None or own.queue is None or not victim.preemptable:
            return False
        if job.uid in self._spared or (job is not own and self.session.owed(job, own)):
            return False
        if self._breakable is not None and job.uid not in self._breakable and job.ready_count == job.min_member:
            return False
        if task.cls.best_effort and not victim.cls.best_effort:
            return False
        if self.terms.kind is EvictionKind.RECLAIM:
            return victim.status is TaskStatus.RUNNING and job.queue is not own.queue and reclaimable(job.queue)
        if victim.status not in VICTIM_STATUSES:
            return False
        return job is own if self.terms.own else job is not own and job.queue is own.queue

    def victims(self, task: Task, row: int) -> Victims:
        """The pods on this node that may be evicted for the task."""
        session = self.session
        candidates = [t for t in session.nodes.infos[row].tasks.values() if self.may_go(t, task)]
        candidates = session.victim_order(candidates, task)
        agreed, more = session.named(self.terms.kind, task, candidates)
        named = {victim.uid for victim in agreed}
        return Victims(bool(candidates), [victim for victim in candidates if victim.uid in named], more)

    def fits(self, task: Task, row: int, *, coupled: bool) -> bool:
        """Whether the task may be pipelined on the node on the present snapshot."""
        session = self.session
        if not self._roomy(task):
            return False
        if coupled and session.barred(task) is not None:
            return False
        return session.placer.will_take(task, row, coupled=coupled)

    def _roomy(self, task: Task) -> bool:
        """Whether the queue has capacity for the task; always True for reclaim, which plugins decide."""
        job = task.job
        if self.terms.kind is not EvictionKind.PREEMPT or job is None:
            return True
        return self.session.room_of(job, task.cls.request) >= 1

    def evict(self, statement: Statement, victim: Task, task: Task) -> bool:
        """Evict a pod for the task. False, with the statement unchanged, if its gang can't run without the pod and may
        not be broken."""
        job = victim.job
        kept = self._breakable is not None and job is not None and job.uid not in self._breakable
        whole = kept and job is not None and works(self.session, job)
        mark = statement.mark()
        statement.evict(victim, reason=self.terms.reason, message=self._message(victim, task))
        if whole and job is not None and not works(self.session, job):
            statement.take_back(mark)
            return False
        return True

    # One node --------------------------------------------------------------------------------------------------------

    def _help(self, statement: Statement, task: Task, row: int, *, coupled: bool) -> Victims | None:
        """Evict on one node and pipeline the task. None once the task is pipelined, else the node's victims, which
        don't suffice."""
        fits = self.fits(task, row, coupled=coupled)
        if fits and (self.terms.kind is EvictionKind.PREEMPT or task.cls.best_effort):
            self.promise(statement, task, row, nominated=False)
            return None
        there = self.victims(task, row)
        if self.terms.kind is EvictionKind.RECLAIM and not there.anybody:
            return there
        if not fits and not self._enough(task.cls, there.may_go, row):
            return there
        mark = statement.mark()
        left = there.may_go
        while left and not fits:
            if self.evict(statement, left[0], task):
                fits = self.fits(task, row, coupled=coupled)
            left = self.reordered(left[1:], task)
        if not fits:
            statement.take_back(mark)
            return there
        if self.terms.minimize:
            statement.reprieve(mark, lambda: self.fits(task, row, coupled=coupled))
        self.promise(statement, task, row, nominated=statement.mark() > mark)
        return None

    def reordered(self, victims: list[Task], task: Task) -> list[Task]:
        """The remaining victims in victim order, which changes with every eviction if they belong to several gangs."""
        gangs = {victim.job: victim.job for victim in victims}
        if len(gangs) < 2:
            return victims
        if len({job.queue.name for job in gangs if job is not None and job.queue is not None}) > 1:
            return self.session.victim_order(victims, task)
        rank = {job: self.session.job_key(job) for job in gangs if job is not None}
        last = max(rank, key=lambda job: rank[job])
        if victims[0].job is last:
            return victims
        return [v for v in victims if v.job is last] + [v for v in victims if v.job is not last]

    def promise(self, statement: Statement, task: Task, row: int, *, nominated: bool) -> None:
        """Pipeline the task on resources of the node that are free or will be."""
        statement.pipeline([task], [row], nominated=nominated)
        self.session.placer.returned((row,))

    def _enough(self, cls: TaskClass, victims: Sequence[Task], row: int) -> bool:
        """Whether the node's resources suffice for the task once all of these are evicted."""
        room = self.session.nodes.future_of(row)
        for one, count in Counter(victim.cls for victim in victims).items():
            room += count * one.request
        return bool((cls.need[:, 0] < room[cls.needed] + EPS).all())

    def _message(self, victim: Task, task: Task) -> str:
        """The message for a victim: for which task and why it is evicted."""
        job, lost = task.job, victim.job
        if job is None or job.queue is None or lost is None or lost.queue is None:
            return f"makes room for pod {task.namespace}/{task.name}"
        whom = f"makes room for pod {task.name} of gang {job.key}"
        if self.terms.kind is EvictionKind.RECLAIM:
            return f"{whom}: queue {job.queue.name} takes back what queue {lost.queue.name} holds beyond its share"
        if self.terms.own:
            return f"{whom}: priority {task.priority} is above {victim.priority} in the same gang"
        return f"{whom} of queue {job.queue.name}, with priority {job.priority} against {lost.priority} of this gang"

    # All nodes -------------------------------------------------------------------------------------------------------

    def _prospect(self, task: Task, *, coupled: bool) -> _Prospect:
        """The nodes on which equal tasks of the gang could be helped. Coupled tasks are considered one at a time."""
        key = (task.cls.id, task.role, task.priority)
        known = None if coupled else self._prospects.get(key)
        if known is None:
            known = self._prospects[key] = _Prospect(self, task, coupled=coupled)
        return known

    def open(self, task: Task) -> Mask:
        """The nodes on which evictions could make the task fit, by quantities; [N]."""
        session, cls, job = self.session, task.cls, task.job
        mask = session.placer.static(cls).mask.copy()
        pool = self._pool(task)
        count = len(mask)
        if job is None or pool is None:
            return np.zeros(count, dtype=bool)
        needed = cls.needed
        room = session.nodes.future()[needed] + self._bound(pool, job, cls, count).amounts(needed, count)
        mask &= (cls.need < room + EPS).all(axis=0)
        if self.terms.kind is EvictionKind.RECLAIM and not cls.best_effort:
            mask &= pool.on(count)
        return mask

    def _pool(self, task: Task) -> Candidates | None:
        """The pods that `may_go` permits for the task."""
        session, job = self.session, task.job
        table = session.state.victims
        if table is None or job is None or job.queue is None:
            return None
        queues = session.state.jobs_table.queue
        if self.terms.own:
            jobs = np.zeros(len(queues), dtype=bool)
            jobs[job.row] = True
        elif self.terms.kind is EvictionKind.PREEMPT:
            jobs = queues == job.queue.row
            jobs[job.row] = False
        else:
            lenders = [q.row for q in session.state.queues.values() if q is not job.queue and reclaimable(q)]
            jobs = np.isin(queues, lenders)
        if self._breakable is not None:
            jobs &= self._may_lose(self._breakable)
        pool = table.candidates(running=self.terms.kind is EvictionKind.RECLAIM, jobs=jobs)
        if task.cls.best_effort:
            pool = pool.only(table.best_effort()[pool.classes])
        return pool

    def _may_lose(self, breakable: frozenset[str]) -> Mask:
        """The gangs that may be broken, and those that may have pods to spare: their number of pods isn't their
        minimum."""
        state = self.session.state
        mask = state.jobs_table.ready_count != state.jobs_table.min_member
        mask[[job.row for uid in breakable if (job := state.job_of_group(uid)) is not None]] = True
        return mask

    def _bound(self, pool: Candidates, job: Job, cls: TaskClass, count: int) -> Candidates:
        """A superset of the victims in the pool that plugins might return: the most that each tier can return, for all
        tiers.

        A plugin that returns no victims on a node ends its tier there. If two plugins of a tier have no victim in
        common, the third decides alone: so from the third on each plugin may be the first.
        """
        if self.terms.own or not len(pool.seats):
            return pool
        some = np.zeros(len(pool.seats), dtype=bool)
        for tier in self._judges:
            if tier:
                some |= self._tier_bound(tier, pool, job, cls, count)
        return pool if some.all() else pool.only(some)

    def _tier_bound(self, tier: Sequence[Plugin], pool: Candidates, job: Job, cls: TaskClass, count: int) -> Mask:
        whole = np.ones(len(pool.seats), dtype=bool)
        silent = np.zeros(count, dtype=bool)
        for nth, plugin in enumerate(tier):
            named = plugin.possible_victims(self.terms.kind, job, cls, pool)
            if named is None:
                continue
            there = np.zeros(count, dtype=bool)
            there[pool.nodes[named]] = True
            silent |= ~there
            if nth >= 2 or len(tier) <= 2:
                whole &= named
        return whole & ~silent[pool.nodes]

    # Equal gangs

    def _standing(self, task: Task) -> tuple[object, ...] | None:
        """The inputs that decide whether a gang without pods on nodes can be helped; None if it has any, or if plugins
        use other inputs. A failure is valid until pods are placed or evicted."""
        session, job = self.session, task.job
        if job is None or job.queue is None or not self._alike or self._spared or self._breakable is not None:
            return None
        if session.lenient:
            return None
        if job.counts[TaskStatus.RUNNING] or job.counts[TaskStatus.BOUND]:
            return None
        at = (len(session.binds), len(session.held), len(session.evictions))
        if at != self._futile_at:
            self._futile.clear()
            self._futile_at = at
        holds = session.state.jobs_table.allocated[job.row].tobytes()
        return (job.queue.row, task.cls.id, job.priority, task.priority, holds)


class Victims(NamedTuple):
    """Whether the node has any candidates for the task, the victims that may be evicted in order, and whether other
    plugins might return more once these are evicted."""

    anybody: bool
    may_go: list[Task]
    more: bool


class _Prospect:
    """The nodes on which evictions may make equal tasks of a gang fit, best first."""

    __slots__ = ("_barred", "_bonus", "_cls", "_failed", "_heads", "_known", "_placer", "_scored")

    def __init__(self, relief: Relief, task: Task, *, coupled: bool) -> None:
        self._placer = relief.session.placer
        self._cls = task.cls
        self._scored = relief.terms.scored
        self._known: dict[bytes, float] = {}
        self._failed: dict[int, float] = {}
        """Nodes that failed and might fit after further evictions, on them or elsewhere, with their scores."""
        self._barred: dict[int, float] = {}
        """Nodes without victims that failed while the queue had no capacity, with their scores."""
        mask = relief.open(task)
        self._heads: Floats = np.full(len(mask), _NO)
        self._bonus: Floats = np.zeros(len(mask))
        if not mask.any():
            return
        if self._scored:
            rows = np.flatnonzero(self._placer.static(self._cls).mask)
            self._bonus[rows] = self._placer.preferred(task, rows, coupled=coupled)
            self._heads[rows] = self._placer.points(self._cls, rows) + self._bonus[rows]
            self._heads[~mask] = _NO
        else:
            self._heads[mask] = -np.flatnonzero(mask)

    def best(self) -> int | None:
        """The row to try next, the first of equals; None if no node is left."""
        if not len(self._heads):
            return None
        best = int(self._heads.argmax())
        return None if self._heads[best] == _NO else best

    def failed(self, row: int, *, for_good: bool) -> None:
        if not for_good:
            self._failed[row] = float(self._heads[row])
        self._heads[row] = _NO

    def barred(self, row: int) -> None:
        self._barred[row] = float(self._heads[row])
        self._heads[row] = _NO

    def admit(self, roomy: bool) -> None:
        """Include the nodes without victims again if the queue has capacity now, else exclude them."""
        for row, head in self._barred.items():
            self._heads[row] = head if roomy else _NO
        if roomy:
            self._barred.clear()

    def served(self, row: int, *, evicted: bool) -> None:
        """A task of the gang, of any role, was placed on the node, so its score changes. Evictions may have ended a
        tier of plugins on other nodes, so that another tier decides there now, or have given the queue capacity."""
        if self._scored and self._heads[row] != _NO:
            self._heads[row] = self._points(row) + self._bonus[row]
        elif self._scored and row in self._failed:
            self._failed[row] = self._points(row) + float(self._bonus[row])
        if self._scored and row in self._barred:
            self._barred[row] = self._points(row) + float(self._bonus[row])
        if evicted:
            for other, head in self._failed.items():
                self._heads[other] = head
            self._failed.clear()

    def _points(self, row: int) -> float:
        """The score of one node. Nodes of one type pass through the same few states, whose scores are kept."""
        placer = self._placer
        state = placer.state_of(row) if placer.plugins.by_amounts else b""
        known = self._known.get(state) if state else None
        if known is None:
            known = self._known[state] = float(placer.points(self._cls, np.array([row], dtype=np.intp))[0])
        return known


def reclaimable(queue: Queue) -> bool:
    """Whether other queues may reclaim what this one uses beyond its share; true unless its spec says otherwise."""
    return queue.view.spec.reclaimable is not False
