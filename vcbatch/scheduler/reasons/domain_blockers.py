"""Why no network topology domain fits a gang, as data with numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.feasibility.judge import Judge
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats
from vcbatch.scheduler.model.domain import Domain
from vcbatch.scheduler.model.gang_counts import PLACED, whole_subs
from vcbatch.scheduler.model.objects import Job, Run
from vcbatch.scheduler.model.result import ClosestDomain, WaitReason
from vcbatch.scheduler.model.sub_gangs import SubKey
from vcbatch.scheduler.reasons.blockers import histogram
from vcbatch.scheduler.reasons.nearest import Place, nearest_places
from vcbatch.scheduler.reasons.ways_out import free_at, node_of, short_on, shortages_at
from vcbatch.scheduler.topology.domain_search import DomainSearch, Misfit, Room, tasks_by_class


def inconsistent(job: Job, misfit: Misfit, *, task: str) -> Blocker:
    """The blocker if the HyperNodes or the gang's topology are inconsistent, so that its allowed domains aren't
    known."""
    return Blocker(reason=WaitReason.TOPOLOGY_INCONSISTENT, text=misfit.message, task=task, placed=job.ready_count)


def no_domain(
    session: Session, job: Job, *, placed: int, sub: SubKey | None = None, within: Domain | None = None
) -> Blocker:
    """The blocker if by count no domain that the topology allows can hold the gang, or its sub-gang `sub` in the domain
    `within`: the closest domain, and what it lacks."""
    return _Shortfall(session, job, sub, within).blocker(placed)


class _Shortfall:
    def __init__(self, session: Session, job: Job, sub: SubKey | None, within: Domain | None) -> None:
        self._session = session
        self._search: DomainSearch = session.shared(DomainSearch)
        self._job = job
        self._sub = sub
        self._limit = self._search.limit(job, sub)
        self._within = within
        self._allowed = self._search.allowed(job, sub, None if within is None else within.number)
        self._runs: Sequence[Run] = [run for run in session.runs(job) if sub is None or run.sub == sub]
        self._task = self._runs[0].tasks[0]

    def blocker(self, placed: int) -> Blocker:
        if not len(self._allowed):
            return Blocker(reason=WaitReason.TOPOLOGY, text=self._apart(), task=self._task.name, placed=placed)
        missing = self._missing()
        room = self._search.placeable(self._runs, Room.FUTURE)
        best = self._best(room)
        if room[best] >= missing:
            return self._inside(best, placed)
        empty = self._search.placeable(self._runs, Room.EMPTY)
        largest = self._best(empty)
        if empty[largest] < missing and self._search.allocated(self._job, self._sub) is None:
            return self._short(largest, int(empty[largest]), Room.EMPTY, placed)
        return self._short(best, int(room[best]), Room.FUTURE, placed)

    def _missing(self) -> int:
        if self._sub is None:
            return self._search.missing(self._job)
        return self._search.missing_of(self._job, self._sub)

    def _best(self, room: Floats) -> int:
        """The allowed domain with the most slots, the first by tier and name among equals; the whole cluster if that is
        allowed."""
        if not self._limited:
            return self._search.tree.top
        return int(self._allowed[int(room[self._allowed].argmax())])

    def _apart(self) -> str:
        """The message if the gang's placed pods are in no allowed domain, or further apart than its topology allows."""
        tree, held = self._search.tree, self._search.allocated(self._job, self._sub)
        who = self._who()
        if held is None or self._within is not None:
            return f"{who} may be in no domain of tier {self._limit} or lower"
        return f"{who} holds places in {tree.names[held]} of tier {tree.tiers[held]}, above tier {self._limit}, the \
highest that it may span"

    def _inside(self, best: int, placed: int) -> Blocker:
        """The blocker if there are enough slots for the needed pods, but not for the sub-gangs."""
        session, job, search = self._session, self._job, self._search
        if self._sub is None:
            for position, rule in enumerate(job.rules):
                if rule.least <= whole_subs(job, position, PLACED):
                    continue
                for key in sorted({run.sub for run in self._runs if run.sub and run.sub[0] == position}):
                    own = search.allowed(job, key)
                    if not len(own) or not search.could_hold(job, own, Room.FUTURE, sub=key).any():
                        return no_domain(session, job, sub=key, placed=placed)
        tree = search.tree
        text = f"no domain of tier {self._limit} or lower has room for the pods of {self._who()} together: \
{tree.names[best]} has it for as many pods, not for the sub-groups that are needed"
        return Blocker(reason=WaitReason.TOPOLOGY, text=text, task=self._task.name, placed=placed)

    def _short(self, best: int, room: int, counted: Room, placed: int) -> Blocker:
        domain, missing = self._search.tree.domain(best), self._missing()
        impossible = counted is Room.EMPTY
        nodes = self._session.nodes
        free = np.maximum(nodes.alloc if impossible else nodes.future(), 0.0)
        places = self._places(domain, free)
        shortages = shortages_at(self._session, places[0]) if places else []
        if impossible and self._session.shared(Judge).impossible(self._job):
            reason = WaitReason.IMPOSSIBLE
        else:
            reason = WaitReason.TOPOLOGY if self._limited else WaitReason.INSUFFICIENT
        return Blocker(
            reason=reason,
            text=self._sentence(domain, room, places, impossible=impossible),
            task=self._task.name,
            placed=placed,
            shortages=shortages,
            place=node_of(self._session, places[0]) if places else "",
            remedies=free_at(self._session, self._places(domain, np.maximum(nodes.future(), 0.0))),
            nodes_examined=0 if room else len(domain.rows),
            nodes={} if room else histogram(self._session, self._task, free, within=domain.rows),
            within=domain.name if self._limited else "",
            closest=ClosestDomain(domain.name, domain.tier, self._limit, missing, room),
        )

    def _places(self, domain: Domain, free: Floats) -> list[Place]:
        """The nodes of the domain on which resources must be released or added for the missing pods."""
        inside = np.zeros(len(self._session.nodes), dtype=bool)
        inside[domain.rows] = True
        missing, needed = self._missing(), list[tuple[TaskClass, int]]()
        for cls, count in tasks_by_class(self._runs):
            if missing > 0:
                needed.append((cls, min(count, missing)))
                missing -= count
        return nearest_places(self._session, self._job, needed, inside, free)

    @property
    def _limited(self) -> bool:
        """Whether the gang may not be placed on just any node."""
        return self._search.tree.top not in self._allowed

    def _sentence(self, domain: Domain, room: int, places: Sequence[Place], *, impossible: bool) -> str:
        pods = f"{room} of {self._missing()} pods{' were it empty' if impossible else ''}"
        takes = f"{'would take' if impossible else 'takes'} {pods}{short_on(self._session, places)}"
        what = "is large enough" if impossible else "has room"
        if self._limited:
            where = f"no domain of tier {self._limit} or lower {what} for {self._who()}: {domain.name} is closest, it"
        else:
            where = f"there is no room for {self._who()}: the whole cluster"
        return f"{where} {takes}"

    def _who(self) -> str:
        if self._sub is None:
            return "the gang"
        rule = self._job.rules[self._sub[0]]
        values = ", ".join(self._sub[1])
        return f"sub-group {rule.name!r}" + (f" ({values})" if values else "")
