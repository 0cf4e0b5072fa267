"""Prevents evictions without progress: gangs that evict each other in turn, and searches that failed before.

A gang evicts no pods of gangs that had its own pods evicted, so evictions form an acyclic graph; and a gang evicts pods
of another gang once more only after it got further by the first eviction. On a snapshot in which only pods change that
is permanent, so evictions end. Changes of nodes, queues, priorities and PodGroups may justify another eviction, or may
be unrelated: so the first such change lifts the rule, and each time that a gang has pods of the same other gang evicted
again it takes twice as many changes.
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
"""How often the number of changes is doubled at most."""
_FEW: Final = 64
"""By how many gangs the memory grows before deleted ones are removed from it."""
_Stamp = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Rest:
    """The end of a rule: it is lifted when the input counter reaches `until`; it was applied `times` times."""

    until: int
    times: int

    @staticmethod
    def after(last: _Rest | None, inputs: int) -> _Rest:
        """Twice as long as the last one; after the first time a single change is enough."""
        times = 0 if last is None else last.times
        return _Rest(inputs + 2 ** min(times, _LONGEST), times + 1)


@dataclass(slots=True)
class _Memory:
    """The history of evictions.

    `evictors`: by the UID of a gang's PodGroup, the gangs that had its pods evicted. `tried`: by the UID of a gang that
    pods were evicted for, how many members it had then, until it has more. `asleep`: by kind and gang, the stamp at
    which no eviction could help it. `inputs` is the input counter of the state at which this is valid, `swept` is how
    many gangs were left when deleted ones were last removed.
    """

    inputs: int = -1
    swept: int = 0
    evictors: dict[str, dict[str, _Rest]] = field(default_factory=dict[str, dict[str, "_Rest"]])
    tried: dict[str, tuple[int, _Rest]] = field(default_factory=dict[str, tuple[int, "_Rest"]])
    asleep: dict[tuple[EvictionKind, str], _Stamp] = field(default_factory=dict[tuple[EvictionKind, str], _Stamp])

    def holds(self, rest: _Rest) -> bool:
        """Whether the rule is still in force."""
        return rest.until > self.inputs


class Retaliation:
    """The rules of one action of a cycle."""

    def __init__(self, session: Session, kind: EvictionKind, *, prevent: bool) -> None:
        """`prevent`: no pod is evicted that could have the preemptor's pods evicted at once."""
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
        """Remove deleted gangs from the memory."""
        memory, known = self._memory, self._session.state.job_of_group
        for uid, above in list(memory.evictors.items()):
            left = {other: rest for other, rest in above.items() if known(other) is not None}
            if left and known(uid) is not None:
                memory.evictors[uid] = left
            else:
                del memory.evictors[uid]
        memory.swept = len(memory.evictors)

    def sleeps(self, job: Job) -> bool:
        """Whether no eviction could help the gang before, and nothing has changed since that could."""
        return self._memory.asleep.get((self._kind, job.uid)) == self._stamp(job)

    def failed(self, job: Job) -> None:
        """No eviction can help the gang now. If resources are held for others until the cycle ends, that says nothing
        about the next cycle and isn't recorded; nor is it if victims are protected for a time, so that the protection
        is reported each time."""
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
        """Record that these pods are evicted for the gang."""
        memory = self._memory
        gangs = {task.job.uid for task in _of_others(statement, job) if task.job is not None}
        if gangs:
            _, rest = memory.tried.get(job.uid, (0, None))
            memory.tried[job.uid] = (job.ready_count, _Rest.after(rest, memory.inputs))
        for uid in gangs:
            above = memory.evictors.setdefault(uid, {})
            above[job.uid] = _Rest.after(above.get(job.uid), memory.inputs)

    def untouchable(self, job: Job) -> frozenset[str]:
        """The UIDs of the gangs that had this one's pods evicted, and transitively of those that had theirs evicted."""
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
        """Whether the victim could in turn have the gang's pods evicted, with all placements applied: if a share isn't
        a whole number of pods, one pod would alternate between the two."""
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
