"""Evict for whole gangs: preempt in their own queue (`gangpreempt`), reclaim from other queues (`gangreclaim`).

Victims are evicted in bundles, so that no gang is left with a part that it can't run with. Pods are evicted only if the
pending gang gets its minimum without them: that is tried on the snapshot before anything is decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.actions.bundles import Bundle, below_minimum
from vcbatch.scheduler.actions.fewest_gangs import with_fewest_broken
from vcbatch.scheduler.actions.gang_trial import GangTrial, Room
from vcbatch.scheduler.actions.permitted import Permitted
from vcbatch.scheduler.actions.protected import ProtectedVictims, likeness
from vcbatch.scheduler.actions.starving import may_preempt, starving
from vcbatch.scheduler.actions.victim_gangs import VictimGangs, VictimPool
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.arguments import Argument, Arguments, ArgumentSpec
from vcbatch.scheduler.framework.plugin import EvictionKind, GangEviction
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.domain import Domain, Purpose
from vcbatch.scheduler.model.objects import Job, Queue, Task
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.topology.domain_search import domains_for

MAX_DOMAINS = "maxDomains"
WHOLE = "allowWholeBundle"
MINIMIZE = "minimizeVictims"
_DOMAINS = 8
_FIRST_CHUNK = 16
_PATIENCE = 16
_NAMES = {EvictionKind.PREEMPT: "gangpreempt", EvictionKind.RECLAIM: "gangreclaim"}


class GangEvict:
    """Serves starving gangs one after the other, best queue and best gang first. Their allowed network topology domains
    are tried with the widest first; in each, bundles are added until the gang fits."""

    arguments = ArgumentSpec(
        named={
            MAX_DOMAINS: Argument(default=_DOMAINS),
            WHOLE: Argument(default=True),
            MINIMIZE: Argument(default=False),
        }
    )

    def __init__(self, kind: EvictionKind) -> None:
        self.kind = kind

    def execute(self, cycle: Cycle) -> None:
        session = cycle.session
        waiting = starving(session, lambda _: True)
        queues = [session.state.queues[name] for name in waiting]
        search = _Search(cycle, self.kind)
        for queue in sorted(queues, key=session.queue_key):
            for job in sorted(waiting[queue.name], key=session.job_key):
                if self.kind is EvictionKind.RECLAIM and session.overused(queue) is not None:
                    break
                if session.starving(job):
                    search.relieve(job, queue)


class _Tries:
    """Decides when to try whether a gang fits: with each bundle at first, later after a quarter more bundles each time,
    so that a gang that something else keeps from fitting costs no more than some dozens of tries."""

    def __init__(self) -> None:
        self.futile = 0
        """The number of bundles with which the gang is known not to fit."""
        self._failed = 0
        self._count = 0

    def due(self, bundles: int) -> bool:
        return bundles > self._failed + (self._failed // 4 if self._count >= _PATIENCE else 0)

    def fail(self, bundles: int) -> None:
        self.futile = self._failed = bundles
        self._count += 1


class _Search:
    """State that the gangs of one action share."""

    def __init__(self, cycle: Cycle, kind: EvictionKind) -> None:
        self.cycle = cycle
        self.session = session = cycle.session
        self.kind = kind
        self.given: Arguments = session.policy.action_arguments[_NAMES[kind]]
        self.pool = VictimPool(session, kind)
        self._futile: dict[tuple[object, ...], bool] = {}
        """By likeness, gangs that no eviction can help; the value says whether protected pods are to be reported."""
        self._protected = ProtectedVictims(session)

    def relieve(self, job: Job, queue: Queue) -> None:
        """Evict for a gang if that gives it its minimum. A gang that is equal to one that no eviction helped isn't
        tried until other pods are evicted."""
        if not self.pool.gangs(job).jobs:
            return
        trial = GangTrial(self.session, job)
        if not trial.tasks or not all(map(may_preempt, trial.tasks)):
            return
        alike = likeness(self.session, job, trial.runs)
        if alike is not None and alike in self._futile:
            if self._futile[alike]:
                self._protected.note(job, alike, tuple)
            return
        with self.cycle.promises.aside(job):
            before = self.session.withheld
            relief = _Relief(self, job, queue, trial)
            found = relief.find()
            if found is not None:
                if self.given[MINIMIZE]:
                    found = with_fewest_broken(self.session, job, found, relief.find, smallest=True)
                relief.decide(found)
                self._futile.clear()
                return
            withheld = self.session.withheld > before
            if withheld:
                self._protected.note(job, alike, relief.victims)
            elif relief.left_out:
                withheld = self._protected.note_share(job, alike, relief.victims)
        if alike is not None:
            self._futile[alike] = withheld


class _Relief:
    """The search for victims for one gang."""

    def __init__(self, search: _Search, job: Job, queue: Queue, trial: GangTrial) -> None:
        self._session = search.session
        self._kind = search.kind
        self._pool = search.pool
        self._given = search.given
        self._job = job
        self._queue = queue
        self._trial = trial
        self._minimize: bool = search.given[MINIMIZE]
        self.left_out = False
        """Whether a gang was found that may not be evicted whole."""
        self._gone: Counter[str] = Counter()
        """By gang key, how many pods of other gangs are evicted in the end."""

    def victims(self) -> Sequence[Task]:
        """The pods that would be evicted, with all evictions rolled back; while deserved shares are ignored, only those
        that are needed."""
        self._minimize = self._minimize or self._session.beyond_shares
        found = self.find()
        if found is None:
            return ()
        victims = found.victims
        found.discard()
        return victims

    def find(self, breakable: frozenset[str] | None = None) -> Statement | None:
        """Search the evictions that give the gang its minimum. Returns the statement with them, applied to the
        snapshot; None, with the snapshot unchanged, if there are none. If `breakable` is given, only gangs with these
        UIDs may be evicted whole; other gangs lose no more than the pods beyond their minimums."""
        session, trial = self._session, self._trial
        eviction = GangEviction(self._kind, self._job, trial.need)
        if self._kind is EvictionKind.RECLAIM and not session.preemptive(self._queue, trial.need):
            return None
        victims = VictimGangs(session, eviction, self._pool.gangs(self._job), breakable)
        most = self._pool.amounts(self._job, trial.resources)
        for domain in self._domains():
            room = Room(session, trial, domain.rows)
            if not room.may_do(most):
                continue
            found = self._in_domain(eviction, victims, room, domain)
            if found is not None:
                return found
        return None

    def _domains(self) -> list[Domain]:
        """The domains that the gang may be placed in: wide domains first, because they leave more choice of victims."""
        groups = domains_for(self._session, self._job, Purpose.EVICT)
        found = {domain.number: domain for group in groups for domain in group}
        most: int = self._given[MAX_DOMAINS]
        return list(found.values())[: most if most > 0 else _DOMAINS]

    def _in_domain(self, eviction: GangEviction, victims: VictimGangs, room: Room, domain: Domain) -> Statement | None:
        """The evictions and placements that give the gang its minimum in one domain; None if there are none."""
        statement = Statement(self._session)
        taken: list[Bundle] = []
        source = victims.bundles(room.within, whole=self._given[WHOLE])
        asked: list[Bundle] = []
        permitted = Permitted(self._session, eviction)
        tries = _Tries()
        while True:
            statement.discard()  # bundles are chosen, and plugins called, on the snapshot without them
            chunk = room.filling(source, least=max(_FIRST_CHUNK, len(asked) // 2))
            if not chunk:
                last = len(taken) > tries.futile and room.may_do() and self._placed(statement, taken, domain)
                return self._settled(statement, taken, tries.futile, domain) if last else None
            asked += chunk
            done = 0
            agreed = permitted.of(asked)
            self.left_out = self.left_out or permitted.left_out
            for bundle in agreed[len(taken) :]:
                taken.append(bundle)
                room.add(bundle)
                if not tries.due(len(taken)):
                    continue
                if not room.may_do():
                    tries.futile = len(taken)
                    continue
                self._evict(statement, taken[done:])
                done = len(taken)
                if self._trial.place(statement, domain):
                    return self._settled(statement, taken, tries.futile, domain)
                tries.fail(done)

    def _settled(self, statement: Statement, taken: list[Bundle], failed: int, domain: Domain) -> Statement | None:
        """Reduce the victims to those needed, given that the gang fits without the bundles `taken` and doesn't fit
        without only the first `failed` of them. Returns the statement; None if the evictions had better not be made
        (`_comes_back`)."""
        fewest, most = failed, len(taken)
        while most - fewest > 1:
            half = (fewest + most) // 2
            if self._placed(statement, taken[:half], domain):
                most = half
            else:
                fewest = half
        taken = taken[:most]
        if failed + 1 < most or fewest > failed:
            self._placed(statement, taken, domain)
        kept = self._needed(statement, taken, domain) if self._minimize else taken
        if self._comes_back(kept):
            statement.discard()
            return None
        return statement

    def _needed(self, statement: Statement, taken: Sequence[Bundle], domain: Domain) -> list[Bundle]:
        """Leave out the bundles that aren't needed, trying those chosen last first; safe bundles are split into pods,
        unless their gang ends anyway. Afterwards the statement has the evictions of the other bundles and the gang's
        placements. Returns the other bundles."""
        kept = [part for bundle in taken for part in bundle.single]
        statement.discard()
        room = Room(self._session, self._trial, domain.rows)
        for bundle in kept:
            room.add(bundle)
        for bundle in reversed(kept[:]):
            if bundle.safe and any(other.job is bundle.job and not other.safe for other in kept):
                continue  # a gang's safe bundle precedes its ending one, so at this point it is known to end
            room.add(bundle, back=True)
            others = [other for other in kept if other is not bundle]
            if room.may_do() and self._placed(statement, others, domain):
                kept = others
            else:
                room.add(bundle)
        self._placed(statement, kept, domain)
        return kept

    def _placed(self, statement: Statement, bundles: Sequence[Bundle], domain: Domain) -> bool:
        """Replace the statement by the evictions of these bundles, and pipeline the gang's pods if they fit then.
        Returns whether they do."""
        statement.discard()
        self._evict(statement, bundles)
        return self._trial.place(statement, domain)

    def _evict(self, statement: Statement, bundles: Sequence[Bundle]) -> None:
        for bundle in bundles:
            for task in bundle.tasks:
                statement.evict(task, reason=_NAMES[self._kind], message="")

    def _message(self, victim: Task) -> str:
        """The message for a victim: for which gang and why it is evicted. Called once all victims are evicted on the
        snapshot."""
        job, of = self._job, victim.job
        assert of is not None  # noqa: S101 - victims are members of gangs
        lacks = f"gang {job.key} of queue {self._queue.name}, which lacks {len(self._trial.tasks)} pods"
        if self._kind is EvictionKind.PREEMPT:
            why = f"priority {job.priority} is above {of.priority}"
        else:
            why = f"queue {self._queue.name} takes back what queue {of.queue_name} holds beyond its share"
        return f"makes room for {lacks}: {why}; {self._left(of)}"

    def _left(self, gang: Job) -> str:
        if not below_minimum(gang) and self._session.ready(gang):
            return "its gang keeps its minimum"
        before = gang.ready_count + self._gone[gang.key]
        return f"its gang ends, as it {'was below its minimum' if before < gang.min_member else 'needs all its pods'}"

    def _comes_back(self, taken: Sequence[Bundle]) -> bool:
        """Whether a lending queue could reclaim what it loses at once, after the gang is placed: the two queues would
        then evict each other's pods forever. Within one queue priorities exclude that."""
        if self._kind is EvictionKind.PREEMPT or self._session.beyond_shares:
            return False
        session, placed = self._session, [task for task in self._trial.tasks if task.node]
        by_gang: dict[str, list[Bundle]] = {}
        for bundle in taken:
            by_gang.setdefault(bundle.job.key, []).append(bundle)
        for bundles in by_gang.values():
            victim = bundles[0].job
            need = np.sum([bundle.amount for bundle in bundles], axis=0)
            back = GangEviction(EvictionKind.RECLAIM, victim, need)
            if victim.queue is not None and session.preemptive(victim.queue, need) and session.evictable(back, placed):
                return True
        return False

    def decide(self, statement: Statement) -> None:
        """Commit the evictions and record the gang's pending reason."""
        session, job = self._session, self._job
        victims = statement.victims
        self._gone = Counter(victim.job.key for victim in victims if victim.job is not None)
        statement.reword(self._message)
        session.commit(statement)
        session.blockers[job.key] = Blocker(
            reason=WaitReason.WAITING_FOR_RELEASE,
            text=f"it fits once {len(victims)} pods that are evicted for it are gone; their places are kept for it",
            placed=job.ready_count + job.waiting_count,
        )
