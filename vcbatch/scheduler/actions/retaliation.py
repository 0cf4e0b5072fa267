"""Against evictions that lead nowhere: gangs that push each other out in turn, and searches that found nothing before.

A gang evicts nobody of those that had it evicted, so evictions make up a graph without a cycle; and a gang evicts
another once more only after it got further by it. On a snapshot in which only pods come and go, that holds for ever, so
evictions end. Nodes, queues, priorities and PodGroups that change may make it right to evict all the same, and may have
nothing to do with it: so the first such change ends it, and each time that one has the other evicted again it takes
twice as many changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from vcbatch.scheduler.actions.relief import reclaimable
from vcbatch.scheduler.framework.plugin import EvictionKind
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus

_MEMORY: Final = "evictions"
_LONGEST: Final = 10
"""How often the time for which somebody is left alone is doubled at most."""
_FEW: Final = 64
"""So many more gangs than before are remembered before those that are gone are looked for."""
_Stamp = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Rest:
    """What may not happen again before the inputs are at `until`, having happened so many `times`."""

    until: int
    times: int

    @staticmethod
    def after(last: _Rest | None, inputs: int) -> _Rest:
        """Twice as long as the last one; a single change is enough after the first."""
        times = 0 if last is None else last.times
        return _Rest(inputs + 2 ** min(times, _LONGEST), times + 1)


@dataclass(slots=True)
class _Memory:
    """What evictions led to so far.

    `evictors`: by the UID of a gang's PodGroup those that had it evicted. `tried`: by that of a gang that others were
    evicted for, how many members it had then, until it gets more. `asleep`: by kind and gang, the stamp as of which
    nobody could be evicted for it. `inputs` are those of the state as of which this is kept, `swept` is how many gangs
    were left when those that are gone were last forgotten.
    """

    inputs: int = -1
    swept: int = 0
    evictors: dict[str, dict[str, _Rest]] = field(default_factory=dict[str, dict[str, "_Rest"]])
    tried: dict[str, tuple[int, _Rest]] = field(default_factory=dict[str, tuple[int, "_Rest"]])
    asleep: dict[tuple[EvictionKind, str], _Stamp] = field(default_factory=dict[tuple[EvictionKind, str], _Stamp])

    def holds(self, rest: _Rest) -> bool:
        """Whether it isn't over."""
        return rest.until > self.inputs


class Retaliation:
    """What one action of a cycle remembers and goes by."""

    def __init__(self, session: Session, kind: EvictionKind, *, prevent: bool) -> None:
        """`prevent` where nobody is evicted who could take the place back at once."""
        self._prevent = prevent
        self._session = session
        self._kind = kind
        state = session.state
        memory: _Memory = state.memory.setdefault(_MEMORY, _Memory())
        self._memory = memory
        for uid in state.failed_evictions:
            for other in memory.evictors.pop(uid, ()):
                memory.tried.pop(other, None)
        state.failed_evictions.clear()
        if memory.inputs != state.inputs:
            memory.inputs = state.inputs
            memory.asleep.clear()
            if len(memory.evictors) > 2 * memory.swept + _FEW:
                self._sweep()
        for uid, (had, _) in list(memory.tried.items()):
            job = state.job_of_group(uid)
            if job is None or job.ready_count > had:
                del memory.tried[uid]
        self._stamps: dict[str, _Stamp] = {}
        self._repeatable = all(p.VICTIMS_BY_STANDING for tier in session.judges(kind) for p in tier)

    def _sweep(self) -> None:
        """Forget gangs that are gone."""
        memory, known = self._memory, self._session.state.job_of_group
        for uid, above in list(memory.evictors.items()):
            left = {other: rest for other, rest in above.items() if known(other) is not None}
            if left and known(uid) is not None:
                memory.evictors[uid] = left
            else:
                del memory.evictors[uid]
        memory.swept = len(memory.evictors)

    def sleeps(self, job: Job) -> bool:
        """Whether nobody could be evicted for the gang before, and nothing has changed since that could help."""
        return self._memory.asleep.get((self._kind, job.uid)) == self._stamp(job)

    def failed(self, job: Job) -> None:
        """Nobody can be evicted for the gang now. Where others hold places until the cycle ends, that says nothing
        about the next; where victims are protected for a time, it is told of them as long as they are."""
        session = self._session
        if self._repeatable and not session.held and not session.evictions and job.key not in session.protected:
            self._memory.asleep[self._kind, job.uid] = self._stamp(job)

    def permits(self, statement: Statement, job: Job) -> bool:
        """Whether the gang may have these pods evicted."""
        victims = _of_others(statement, job)
        memory = self._memory
        _, rest = memory.tried.get(job.uid, (0, None))
        if rest is not None and memory.holds(rest):
            gangs = {task.job.uid for task in victims if task.job is not None}
            if any(job.uid in memory.evictors.get(uid, ()) for uid in gangs):
                return False
        return not (self._prevent and any(self._strikes_back(victim, job) for victim in victims))

    def remember(self, statement: Statement, job: Job) -> None:
        """These pods are evicted for the gang."""
        memory = self._memory
        gangs = {task.job.uid for task in _of_others(statement, job) if task.job is not None}
        if gangs:
            _, rest = memory.tried.get(job.uid, (0, None))
            memory.tried[job.uid] = (job.ready_count, _Rest.after(rest, memory.inputs))
        for uid in gangs:
            above = memory.evictors.setdefault(uid, {})
            above[job.uid] = _Rest.after(above.get(job.uid), memory.inputs)

    def untouchable(self, job: Job) -> frozenset[str]:
        """The UIDs of the gangs that had this one's pods evicted, or another's that had, and so on."""
        memory = self._memory
        seen: set[str] = set()
        left = [job.uid]
        while left:
            above = memory.evictors.get(left.pop(), {})
            found = {uid for uid, rest in above.items() if memory.holds(rest)} - seen
            seen |= found
            left.extend(found)
        return frozenset(seen - {job.uid})

    def _strikes_back(self, victim: Task, job: Job) -> bool:
        """Whether, with everything in its new place, the victim could have the gang's pods evicted in its turn: where a
        share isn't a whole number of pods, one would go to and fro."""
        session, lost, queue = self._session, victim.job, job.queue
        if lost is None or lost.queue is None or queue is None or not session.starving(lost):
            return False
        placed = [t for t in job.tasks.values() if t.status is TaskStatus.PIPELINED and t.preemptable]
        if self._kind is EvictionKind.PREEMPT:
            if victim.cls.best_effort:
                placed = [task for task in placed if task.cls.best_effort]
            return bool(session.preemptable(victim, session.victim_order(placed, victim)))
        if not reclaimable(queue) or not session.preemptive(lost.queue, victim.cls.request):
            return False
        return bool(session.reclaimable(victim, session.victim_order(placed, victim)))

    def _stamp(self, job: Job) -> _Stamp:
        session = self._session
        if job.queue is None:
            return ()
        stamp = self._stamps.get(job.queue.name)
        if stamp is None:
            table = session.state.victims
            came = 0 if table is None else table.stamp
            stamp = self._stamps[job.queue.name] = (came, *session.stamp(job.queue))
        return (*stamp, tuple(job.counts))


def _of_others(statement: Statement, job: Job) -> list[Task]:
    return [task for task in statement.victims if task.job is not None and task.job is not job]
