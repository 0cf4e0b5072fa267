"""Make room for a single task: on which nodes evictions could help, and whom to evict there until it fits.

Which nodes could help is found for all alike tasks of a gang at once, by what plugins might let go at most. Evictions
and promises for the gang only ever lower that, so a node that failed isn't asked again for it, unless its queue lacked
room.
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
    """Whose pods may go, and how.

    `kind`: for a gang of their own queue or of another one; `own`: pods of the gang itself instead. `scored`: nodes are
    tried by score instead of by name. `minimize`: who turns out not to be needed is spared. `reason` is the action's
    name.
    """

    kind: EvictionKind
    reason: str
    own: bool = False
    scored: bool = True
    minimize: bool = False


class Relief:
    """Room for tasks of one gang after the other, in one action."""

    def __init__(self, session: Session, terms: Terms) -> None:
        self.session = session
        self.terms = terms
        self._judges = session.judges(terms.kind)
        self._alike = all(plugin.VICTIMS_BY_STANDING for tier in self._judges for plugin in tier)
        self._prospects: dict[tuple[object, ...], _Prospect] = {}
        self._spared: frozenset[str] = frozenset()
        self._breakable: frozenset[str] | None = None
        self._futile: dict[tuple[object, ...], int] = {}
        """Tasks like these can't be helped; how many pods were protected meanwhile."""
        self._futile_at: tuple[int, ...] = ()

    def begin(self, spared: frozenset[str] = frozenset(), breakable: frozenset[str] | None = None) -> None:
        """The tasks that come next are of another gang, and nothing is done for it yet. Gangs of which `spared` has the
        UIDs lose nobody to it; those of which `breakable` hasn't, where it is there, only what they can do without."""
        self._spared = spared
        self._breakable = breakable
        self._prospects.clear()

    def find(self, statement: Statement, task: Task) -> bool:
        """Promise the task a place, evicting whom it takes; False, with the statement as it was, where that can't
        be."""
        if task.cls.unsupported or task.job is None or task.job.queue is None:
            return False
        coupled = self.session.coupled([task])
        # What was found futile was so while nobody was to go; evictions may have given the queue room since.
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
                # Who goes elsewhere may give the queue the room that those here don't.
                prospect.failed(row, for_good=roomy and not helped.more)
            else:
                prospect.barred(row)
        if key is not None:
            self._futile[key] = self.session.withheld - before
        return False

    def may_go(self, victim: Task, task: Task) -> bool:
        """Whether the rules of the action, plugins aside, let this pod be evicted for the task."""
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
        """Who on this node may go for the task."""
        session = self.session
        candidates = [t for t in session.nodes.infos[row].tasks.values() if self.may_go(t, task)]
        candidates = session.victim_order(candidates, task)
        agreed, more = session.named(self.terms.kind, task, candidates)
        named = {victim.uid for victim in agreed}
        return Victims(bool(candidates), [victim for victim in candidates if victim.uid in named], more)

    def fits(self, task: Task, row: int, *, coupled: bool) -> bool:
        """Whether the task may be promised a place on the node, as the snapshot is now."""
        session = self.session
        if not self._roomy(task):
            return False
        if coupled and session.barred(task) is not None:
            return False
        return session.placer.will_take(task, row, coupled=coupled)

    def _roomy(self, task: Task) -> bool:
        """Whether the queue has room for the task, where that counts."""
        job = task.job
        if self.terms.kind is not EvictionKind.PREEMPT or job is None:
            return True
        return self.session.room_of(job, task.cls.request) >= 1

    def evict(self, statement: Statement, victim: Task, task: Task) -> bool:
        """Evict a pod for the task. False, with the statement as it was, where its gang can't do without it and may
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
        """None once the task is promised its place, else who there was that couldn't make room."""
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
        """The others in victim order, which moves with every eviction where several gangs have some to lose."""
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
        """Give the task the place that is or will be free on the node."""
        statement.pipeline([task], [row], nominated=nominated)
        self.session.placer.returned((row,))

    def _enough(self, cls: TaskClass, victims: Sequence[Task], row: int) -> bool:
        """Whether the task would fit if all of them went, by resources."""
        room = self.session.nodes.future_of(row)
        for one, count in Counter(victim.cls for victim in victims).items():
            room += count * one.request
        return bool((cls.need[:, 0] < room[cls.needed] + EPS).all())

    def _message(self, victim: Task, task: Task) -> str:
        """Tells a victim for whom and why it goes."""
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
        """Where alike tasks of the gang could be helped. Where pods decide about each other each task is one alone."""
        key = (task.cls.id, task.role, task.priority)
        known = None if coupled else self._prospects.get(key)
        if known is None:
            known = self._prospects[key] = _Prospect(self, task, coupled=coupled)
        return known

    def open(self, task: Task) -> Mask:
        """The nodes that evictions could make fit for the task, as far as amounts tell; [N]."""
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
        """The pods that `may_go` lets go for the task."""
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
        """The gangs that may be broken, and those that may have pods to spare: they don't have just their minimum."""
        state = self.session.state
        mask = state.jobs_table.ready_count != state.jobs_table.min_member
        mask[[job.row for uid in breakable if (job := state.job_of_group(uid)) is not None]] = True
        return mask

    def _bound(self, pool: Candidates, job: Job, cls: TaskClass, count: int) -> Candidates:
        """Those of the pool that plugins might name, at least: what a tier can come to at most, for every tier.

        A plugin that names nobody on a node silences its tier there. Where two plugins of a tier have nobody in
        common, the third decides alone: so from the third on each may be the first.
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

    # Gangs alike -----------------------------------------------------------------------------------------------------

    def _standing(self, task: Task) -> tuple[object, ...] | None:
        """What decides whether a gang that holds nothing on nodes can be helped; None where it holds something, or
        plugins go by something else. What failed holds until somebody gets a place."""
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
    """Whether a node has anybody whom the action might evict for a task, who of them may go, first first, and whether,
    were they gone, other plugins might name others."""

    anybody: bool
    may_go: list[Task]
    more: bool


class _Prospect:
    """The nodes that may be made fit for alike tasks of a gang, best first."""

    __slots__ = ("_barred", "_bonus", "_cls", "_failed", "_heads", "_known", "_placer", "_scored")

    def __init__(self, relief: Relief, task: Task, *, coupled: bool) -> None:
        self._placer = relief.session.placer
        self._cls = task.cls
        self._scored = relief.terms.scored
        self._known: dict[bytes, float] = {}
        self._failed: dict[int, float] = {}
        """Nodes that failed and might do once more are gone, on them or elsewhere, with where they stood."""
        self._barred: dict[int, float] = {}
        """Nodes with nobody to go that failed while the queue had no room, with where they stand."""
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
        """The row to try next, the first of equals; None where no node is left."""
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
        """Look at the nodes with nobody to go again, or not, by whether the queue has room now."""
        for row, head in self._barred.items():
            self._heads[row] = head if roomy else _NO
        if roomy:
            self._barred.clear()

    def served(self, row: int, *, evicted: bool) -> None:
        """A task of the gang, of whatever role, got its place there, so that the node stands differently for the next.
        Evictions may have silenced a tier of plugins on other nodes, so that another one decides there now, or
        have given the queue room."""
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
        """The points of one node. Nodes of one make go through the same few states."""
        placer = self._placer
        state = placer.state_of(row) if placer.plugins.by_amounts else b""
        known = self._known.get(state) if state else None
        if known is None:
            known = self._known[state] = float(placer.points(self._cls, np.array([row], dtype=np.intp))[0])
        return known


def reclaimable(queue: Queue) -> bool:
    """Whether other queues may take back from this one what it holds beyond its share; they may where it doesn't
    say."""
    return queue.view.spec.reclaimable is not False
