"""The gangs that may lose pods to a whole gang, in order: computed lazily, since few of many thousands are needed.

Gangs are compared by the vectors of the job table; the pods of a gang are read only when it is next.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from vcbatch.api import names
from vcbatch.scheduler.actions.bundles import Bundle, below_minimum, ending, in_order, remains, spared, sparing
from vcbatch.scheduler.framework.gang_order import Gangs
from vcbatch.scheduler.framework.plugin import EvictionKind, GangEviction
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import ALLOCATED_STATUSES, Job, Task, TaskStatus
from vcbatch.scheduler.model.reading import TRUE, note
from vcbatch.scheduler.model.resources import Mask

_MAY_GO = {
    EvictionKind.PREEMPT: frozenset({TaskStatus.BOUND, TaskStatus.RUNNING}),
    EvictionKind.RECLAIM: frozenset({TaskStatus.RUNNING}),
}
"""The statuses of pods that an action selects."""
_MAY_END = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})
"""The statuses of pods that are evicted together with their gang."""


class _Parts(NamedTuple):
    """The pods of a gang that may be evicted: `safe`, those on the given nodes that it can run without; `here`, the
    other ones on these nodes; `whole`, all pods that are evicted with the latter, empty if the gang can't be evicted
    whole."""

    safe: list[Task]
    here: list[Task]
    whole: list[Task]


class VictimPool:
    """The gangs that may lose pods, computed once for all gangs of a queue and priority that an action serves. It still
    has those that lost all their pods since; no gangs are added."""

    def __init__(self, session: Session, kind: EvictionKind) -> None:
        self._session = session
        self._kind = kind
        self._gangs: dict[tuple[str, int], Gangs] = {}
        self._amounts: dict[tuple[str, int, bytes], Floats] = {}

    def gangs(self, job: Job) -> Gangs:
        """The gangs that may lose pods to this gang: those of lower priority in its queue, or those of other queues
        that are reclaimable."""
        key = self._key(job)
        found = self._gangs.get(key)
        if found is None:
            found = self._preempted(job) if self._kind is EvictionKind.PREEMPT else self._reclaimed(job)
            found = self._gangs[key] = found.where(self._session.state.jobs_table.allocated_count[found.rows] > 0)
        return found

    def amounts(self, job: Job, resources: Rows) -> Floats:
        """The requests of their evictable pods for these resources on each node, [K, N]: an upper bound of what can be
        freed."""
        key = (*self._key(job), resources.tobytes())
        found = self._amounts.get(key)
        if found is None:
            state = self._session.state
            assert state.victims is not None  # noqa: S101 - kept for every policy with an action that evicts
            rows = np.zeros(len(state.jobs_table.queue), dtype=bool)
            rows[self.gangs(job).rows] = True
            victims = state.victims.candidates(running=False, jobs=rows)
            found = self._amounts[key] = victims.amounts(resources, len(state.nodes))
        return found

    def _key(self, job: Job) -> tuple[str, int]:
        return job.queue.name if job.queue else "", job.priority if self._kind is EvictionKind.PREEMPT else 0

    def _preempted(self, job: Job) -> Gangs:
        assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
        found = Gangs.of(job.queue.jobs.values())
        return found.where(self._session.state.jobs_table.priority[found.rows] < job.priority)

    def _reclaimed(self, job: Job) -> Gangs:
        queues = self._session.state.queues.values()
        lending = [q for q in queues if q is not job.queue and q.view.spec.reclaimable is not False]
        return Gangs.of(j for queue in lending for j in queue.jobs.values())


class VictimGangs:
    """The gangs that may lose pods to another one, and their bundles."""

    def __init__(
        self, session: Session, eviction: GangEviction, gangs: Gangs, breakable: frozenset[str] | None = None
    ) -> None:
        """If `breakable` is given, only gangs with these UIDs may be evicted whole."""
        self._session = session
        self._eviction = eviction
        self._statuses = _MAY_GO[eviction.kind]
        self._gangs = gangs
        self._breakable = breakable

    def bundles(self, within: Mask | None, *, whole: bool) -> Iterator[Bundle]:
        """Their bundles on these nodes ([N]; None: all), the first to be evicted first: the pods that gangs can run
        without and the rest of gangs below their minimum; then, with `whole`, gangs that are evicted whole, their pods
        on other nodes included. In the preemptor's own queue the last gang in order comes first; among other queues the
        order is `victim_queues`, and within a queue the gang with the highest `worth` comes first. Until the iteration
        ends nothing may be evicted or placed."""
        known: dict[str, _Parts] = {}

        def parts_of(job: Job) -> _Parts:
            found = known.get(job.key)
            if found is None:
                found = known[job.key] = self._parts(job, within)
            return found

        for group in self._in_order(self._sparing()):
            for job in group:
                parts = parts_of(job)
                if parts.safe:
                    yield sparing(job, parts.safe)
                elif parts.whole and below_minimum(job):
                    yield remains(job, parts.whole)
        if whole:
            for group in self._in_order(self._may_end()):
                yield from self._whole([job for job in group if not below_minimum(job)], parts_of)

    def _whole(self, group: Sequence[Job], parts_of: Callable[[Job], _Parts]) -> Iterator[Bundle]:
        """The whole bundles of gangs of equal order, the one of highest `worth` first. A gang's pods are read only when
        no other gang can have a higher one."""
        need = self._eviction.need

        def bundle_of(job: Job) -> Bundle | None:
            parts = parts_of(job)
            return ending(job, parts.whole, here=parts.here, need=need) if parts.whole else None

        if len(group) <= 1:
            yield from filter(None, map(bundle_of, group))
            return
        queue: list[tuple[float, str, str, int, int, Bundle | None]]
        queue = [(-bound, group[at].uid, "", 0, at, None) for at, bound in enumerate(self._bounds(group))]
        heapq.heapify(queue)
        while queue:
            *_, at, known = heapq.heappop(queue)
            if known is not None:
                yield known
                continue
            bundle = bundle_of(group[at])
            if bundle is not None:
                heapq.heappush(queue, (-bundle.worth, *bundle.tie, at, bundle))

    def _parts(self, job: Job, within: Mask | None) -> _Parts:
        """The pods of a gang that may be evicted for these nodes."""
        there = self._candidates(job, within)
        if not there:
            return _Parts([], [], [])
        safe, rest = ([], there) if below_minimum(job) else spared(job, there)
        if not rest:
            return _Parts(safe, [], [])
        gone = {task.uid for task in safe}
        left = [t for t in job.tasks.values() if t.status in ALLOCATED_STATUSES and t.uid not in gone]
        if any(not t.preemptable or t.status not in _MAY_END or self._session.state.row_of(t) < 0 for t in left):
            return _Parts(safe, rest, [])
        return _Parts(safe, rest, in_order(left))

    def _bounds(self, group: Sequence[Job]) -> list[float]:
        """The upper bound of the `worth` of each gang's whole bundle."""
        table, need = self._session.state.jobs_table, self._eviction.need
        wanted = np.flatnonzero(need > 0)
        rows = Gangs.of(group).rows
        held = table.allocated[np.ix_(rows, wanted)]
        lost = ((held + table.pending[np.ix_(rows, wanted)]) / need[wanted]).sum(axis=1)
        useful = (np.minimum(held, need[wanted]) / need[wanted]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(lost > 0, useful / lost, np.inf).tolist()

    def _candidates(self, job: Job, within: Mask | None) -> list[Task]:
        """The gang's pods on these nodes ([N]; None: all) that the action may evict."""
        group = job.group
        if group is None or self._session.owed(job, self._eviction.job):
            return []
        said = note(group.metadata, names.PREEMPTABLE)
        if said and said not in TRUE:
            return []
        state = self._session.state
        found = [t for t in job.tasks.values() if t.preemptable and t.status in self._statuses]
        rows = {t.uid: state.row_of(t) for t in found}
        return [t for t in found if rows[t.uid] >= 0 and (within is None or within[rows[t.uid]])]

    def _may_end(self) -> Gangs:
        if self._breakable is None:
            return self._gangs
        return self._gangs.where(np.array([job.uid in self._breakable for job in self._gangs.jobs], dtype=bool))

    def _sparing(self) -> Gangs:
        """The gangs that may have pods to spare: their number of pods isn't their minimum."""
        table, rows = self._session.state.jobs_table, self._gangs.rows
        return self._gangs.where(table.ready_count[rows] != table.min_member[rows])

    def _in_order(self, gangs: Gangs) -> Iterator[Sequence[Job]]:
        """Groups of gangs of equal order, the first to lose pods first; within a group by UID."""
        session = self._session
        if self._eviction.kind is EvictionKind.PREEMPT:
            yield from ([job] for job in session.from_last(gangs))
            return
        standing = session.state.jobs_table.queue[gangs.rows]
        there = {*standing.tolist()}
        queues = [queue for queue in session.state.queues.values() if queue.row in there]
        own = self._eviction.job.queue
        assert own is not None  # noqa: S101 - eligible gangs have a queue
        for queue in session.victim_queues(queues, own):
            yield sorted(gangs.where(standing == queue.row).jobs, key=attrgetter("uid"))
