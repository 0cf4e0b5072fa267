"""Against evictions that lead nowhere: gangs that push each other out in turn, and searches that found nothing before.

On a picture in which only pods come and go, a gang evicts nobody of those that had it evicted, so evictions make up a
graph without a cycle; and a gang evicts another once more only after it got further by it. So evictions end. A new or
changed node, queue, priority or PodGroup starts a new graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from vcbatch.scheduler.actions.relief import reclaimable
from vcbatch.scheduler.model import Job, Task, TaskStatus
from vcbatch.scheduler.plugins.base import EvictionKind
from vcbatch.scheduler.statement import Statement

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

_MEMORY: Final = "evictions"
_Stamp = tuple[object, ...]


@dataclass(slots=True)
class _Memory:
    """What evictions led to so far.

    `evicted`: by the UID of a gang's PodGroup those that it had evicted, as of `inputs`. `tried`: how many members a
    gang had when others were last evicted for it, until it got more. `asleep`: by kind and gang, the stamp as of which
    nobody could be evicted for it.
    """

    inputs: int = -1
    evicted: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    tried: dict[str, int] = field(default_factory=dict[str, int])
    asleep: dict[tuple[EvictionKind, str], _Stamp] = field(default_factory=dict[tuple[EvictionKind, str], _Stamp])


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
        if memory.inputs != state.inputs:
            memory.inputs = state.inputs
            memory.evicted.clear()
            memory.tried.clear()
            memory.asleep.clear()
        for uid, had in list(memory.tried.items()):
            job = state.job_of_group(uid)
            if job is None or job.ready_count > had:
                del memory.tried[uid]
        self._stamps: dict[str, _Stamp] = {}
        self._repeatable = all(p.VICTIMS_BY_STANDING for tier in session.judges(kind) for p in tier)

    def sleeps(self, job: Job) -> bool:
        """Whether nobody could be evicted for the gang before, and nothing has changed since that could help."""
        return self._memory.asleep.get((self._kind, job.uid)) == self._stamp(job)

    def failed(self, job: Job) -> None:
        """Nobody can be evicted for the gang now. Where others hold places until the cycle ends, that says nothing
        about the next."""
        if self._repeatable and not self._session.held and not self._session.evictions:
            self._memory.asleep[self._kind, job.uid] = self._stamp(job)

    def permits(self, statement: Statement, job: Job) -> bool:
        """Whether the gang may have these pods evicted; if so, that is remembered."""
        victims = [task for task in statement.victims if task.job is not None and task.job is not job]
        gangs = {task.job.uid for task in victims if task.job is not None}
        memory = self._memory
        if job.uid in memory.tried and not memory.evicted.get(job.uid, set()).isdisjoint(gangs):
            return False
        if self._prevent and any(self._strikes_back(victim, job) for victim in victims):
            return False
        if gangs:
            memory.evicted.setdefault(job.uid, set()).update(gangs)
            memory.tried[job.uid] = job.ready_count
        return True

    def untouchable(self, job: Job) -> frozenset[str]:
        """The UIDs of the gangs that had this one's pods evicted, or another's that had, and so on."""
        seen: set[str] = set()
        left = [job.uid]
        while left and self._memory.evicted:
            uid = left.pop()
            above = {other for other, gangs in self._memory.evicted.items() if uid in gangs} - seen
            seen |= above
            left.extend(above)
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
