"""Which gangs may lose pods to a whole gang, and in which order: lazily, since of many thousand few are needed.

Gangs are weighed by the vectors of the job table; only of a gang whose turn comes are the pods looked at.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vcbatch.api import names
from vcbatch.scheduler.actions.bundles import Bundle, bundles_of
from vcbatch.scheduler.columns import Floats, Rows
from vcbatch.scheduler.model import Job, Queue, Task, TaskStatus
from vcbatch.scheduler.plugins.base import EvictionKind, GangEviction
from vcbatch.scheduler.reading import TRUE, note
from vcbatch.scheduler.resources import Mask, Vector

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

_MAY_GO = {
    EvictionKind.PREEMPT: frozenset({TaskStatus.BOUND, TaskStatus.RUNNING}),
    EvictionKind.RECLAIM: frozenset({TaskStatus.RUNNING}),
}


class VictimPool:
    """The gangs that may lose pods at all, found once for all gangs of a queue and priority that an action looks at.
    Those that lost all since are among them still; nobody else comes."""

    def __init__(self, session: Session, kind: EvictionKind) -> None:
        self._session = session
        self._kind = kind
        self._jobs: dict[tuple[str, int], list[Job]] = {}
        self._amounts: dict[tuple[str, int, bytes], Floats] = {}

    def jobs(self, job: Job) -> list[Job]:
        """Those that may lose pods to this gang: of its queue those with lower priority, or those of the other queues
        that lend."""
        key = self._key(job)
        found = self._jobs.get(key)
        if found is None:
            found = self._preempted(job) if self._kind is EvictionKind.PREEMPT else self._reclaimed(job)
            rows = np.fromiter((j.row for j in found), dtype=np.intp, count=len(found))
            holds = (self._session.state.jobs_table.allocated_count[rows] > 0).tolist()
            found = self._jobs[key] = [j for j, held in zip(found, holds, strict=True) if held]
        return found

    def amounts(self, job: Job, resources: Rows) -> Floats:
        """What their pods that may go take of these resources on each node, [K, N]: no more can come of evicting."""
        key = (*self._key(job), resources.tobytes())
        found = self._amounts.get(key)
        if found is None:
            state = self._session.state
            assert state.victims is not None  # noqa: S101 - kept for every policy with an action that evicts
            rows = np.zeros(len(state.jobs_table.queue), dtype=bool)
            rows[[j.row for j in self.jobs(job)]] = True
            victims = state.victims.candidates(running=self._kind is EvictionKind.RECLAIM, jobs=rows)
            found = self._amounts[key] = victims.amounts(resources, len(state.nodes))
        return found

    def _key(self, job: Job) -> tuple[str, int]:
        return job.queue.name if job.queue else "", job.priority if self._kind is EvictionKind.PREEMPT else 0

    def _preempted(self, job: Job) -> list[Job]:
        assert job.queue is not None  # noqa: S101 - eligible gangs have a queue
        priority = job.priority
        return [j for j in job.queue.jobs.values() if j.priority < priority]

    def _reclaimed(self, job: Job) -> list[Job]:
        queues = self._session.state.queues.values()
        lending = [q for q in queues if q is not job.queue and q.view.spec.reclaimable is not False]
        return [j for queue in lending for j in queue.jobs.values()]


class VictimGangs:
    """The gangs that may lose pods to another one, and their bundles."""

    def __init__(self, session: Session, eviction: GangEviction, jobs: list[Job]) -> None:
        self._session = session
        self._eviction = eviction
        self._statuses = _MAY_GO[eviction.kind]
        self.jobs = jobs

    def bundles(self, within: Mask | None, *, whole: bool) -> Iterator[Bundle]:
        """Their bundles on these nodes ([N]; None: on all), first to go first: what gangs can spare, and then, where
        `whole` says so, gangs that end by it. Of one's own queue the gang that comes last goes first; of others the
        queue that lends most readily, and of its gangs the one whose end is of most use for what it costs. Until all
        that are wanted are taken nothing may be evicted or placed."""
        need = self._eviction.need
        parts: dict[str, list[Bundle]] = {}

        def parts_of(job: Job) -> list[Bundle]:
            known = parts.get(job.key)
            if known is None:
                tasks = self._candidates(job, within)
                known = parts[job.key] = bundles_of(job, tasks, need=need, total=_total(job)) if tasks else []
            return known

        for group in self._in_order(self._sparing()):
            for job in group:
                yield from (bundle for bundle in parts_of(job) if bundle.safe)
        if whole:
            for group in self._in_order(self.jobs):
                yield from self._whole(group, parts_of)

    def _whole(self, group: Sequence[Job], parts_of: Callable[[Job], list[Bundle]]) -> Iterator[Bundle]:
        """The whole bundles of gangs of equal standing, the one of most worth first. A gang's pods are looked at when
        nothing else can be worth more."""
        if len(group) == 1:
            yield from (bundle for bundle in parts_of(group[0]) if not bundle.safe)
            return
        queue: list[tuple[float, str, str, int, int, Bundle | None]]
        queue = [(-bound, group[at].uid, "", 0, at, None) for at, bound in enumerate(self._bounds(group))]
        heapq.heapify(queue)
        while queue:
            *_, at, known = heapq.heappop(queue)
            if known is not None:
                yield known
                continue
            for bundle in parts_of(group[at]):
                if not bundle.safe:
                    heapq.heappush(queue, (-bundle.worth, *bundle.tie, at, bundle))

    def _bounds(self, group: Sequence[Job]) -> list[float]:
        """The most that ending each gang can be worth."""
        table, need = self._session.state.jobs_table, self._eviction.need
        wanted = np.flatnonzero(need > 0)
        rows = np.fromiter((job.row for job in group), dtype=np.intp, count=len(group))
        held = table.allocated[np.ix_(rows, wanted)]
        lost = ((held + table.pending[np.ix_(rows, wanted)]) / need[wanted]).sum(axis=1)
        useful = (np.minimum(held, need[wanted]) / need[wanted]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(lost > 0, useful / lost, np.inf).tolist()

    def _candidates(self, job: Job, within: Mask | None) -> list[Task]:
        """The gang's pods that may go."""
        group = job.group
        if group is None:
            return []
        said = note(group.metadata, names.PREEMPTABLE)
        if said and said not in TRUE:
            return []
        state = self._session.state
        found = [t for t in job.tasks.values() if t.preemptable and t.status in self._statuses]
        rows = {t.uid: state.row_of(t) for t in found}
        return [t for t in found if rows[t.uid] >= 0 and (within is None or within[rows[t.uid]])]

    def _sparing(self) -> list[Job]:
        """Those that may have pods to spare: they don't have just their minimum."""
        table = self._session.state.jobs_table
        rows = np.fromiter((job.row for job in self.jobs), dtype=np.intp, count=len(self.jobs))
        exact = (table.allocated_count[rows] == table.min_member[rows]).tolist()
        succeeded = int(TaskStatus.SUCCEEDED)
        return [job for job, same in zip(self.jobs, exact, strict=True) if not same or job.counts[succeeded]]

    def _in_order(self, jobs: Sequence[Job]) -> Iterator[list[Job]]:
        """Groups of gangs of equal standing, first to lose first; inside a group by UID."""
        session = self._session
        if self._eviction.kind is EvictionKind.PREEMPT:
            yield from ([job] for job in session.from_last(jobs))
            return
        by_queue: dict[str, list[Job]] = {}
        queues: dict[str, Queue] = {}
        for job in jobs:
            assert job.queue is not None  # noqa: S101 - they were found in their queues
            by_queue.setdefault(job.queue.name, []).append(job)
            queues[job.queue.name] = job.queue
        own = self._eviction.job.queue
        assert own is not None  # noqa: S101 - eligible gangs have a queue
        for queue in session.victim_queues(list(queues.values()), own):
            yield sorted(by_queue[queue.name], key=lambda job: job.uid)


def _total(job: Job) -> Vector:
    """What all pods of the gang ask for, [R]."""
    times: dict[int, int] = {}
    classes = {task.cls.id: task.cls for task in job.tasks.values()}
    for task in job.tasks.values():
        times[task.cls.id] = times.get(task.cls.id, 0) + 1
    return np.sum([times[number] * cls.request for number, cls in classes.items()], axis=0)
