"""The network topology domains that a gang may be placed in, the lowest tiers first, and how much of it fits by count.

Counts combine slots, resources and filters of each node, summed over the nodes of a domain: a domain in which too few
pods of a gang have a slot can't hold it, in whatever order they are placed. Callers try to place the gang in the
remaining domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.framework.plugin import DomainRequest
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats
from vcbatch.scheduler.model.domain import Domain, Purpose
from vcbatch.scheduler.model.gang_counts import PLACED, members_of_sub, whole_subs
from vcbatch.scheduler.model.network_topology import NetworkTopology
from vcbatch.scheduler.model.objects import ALLOCATED_STATUSES, STATUSES, Job, Run, TaskStatus
from vcbatch.scheduler.model.resources import EPS, Mask
from vcbatch.scheduler.model.sub_gangs import SubKey
from vcbatch.scheduler.topology.domains import Domains, changed_rows, domains_of

Numbers = npt.NDArray[np.intp]
"""Domains by number."""
_HELD = (*ALLOCATED_STATUSES, TaskStatus.PIPELINED)
_NOBODY = (0,) * STATUSES
MANY = float(1 << 40)
"""More slots than any gang has pods, and finite, so that sums stay finite."""


class Room(Enum):
    """Which slots are counted."""

    FREE = auto()
    """Those that are free now."""
    FUTURE = auto()
    """Those that are free once terminating pods have ended."""
    EMPTY = auto()
    """Those of the nodes without any pods."""


class Candidate(NamedTuple):
    """A domain with enough slots by count: `now`, or once terminating pods have ended."""

    domain: Domain
    now: bool
    score: float


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why the gang has no allowed domains: `hyper_node` names the HyperNode at which they form no tree, and is empty if
    the gang names a tier that doesn't exist."""

    hyper_node: str
    message: str


def domains_for(
    session: Session, job: Job, purpose: Purpose, *, sub: SubKey | None = None, within: Domain | None = None
) -> list[list[Domain]]:
    """The domains in which the gang, or its sub-gang `sub`, may be placed and by count could start: groups of one tier
    each, in the order in which they are tried, sorted by name. A gang with placed pods stays within the highest domain
    around these that its topology allows. Without a topology the only domain is the whole cluster (or `within`); the
    result is empty if there is none, or if the HyperNodes form no tree."""
    search = session.shared(DomainSearch)
    if search.misfit(job) is not None:
        return []
    groups = search.groups(job, purpose, sub=sub, within=within)
    return [[search.tree.domain(int(index)) for index in group] for group in groups]


class DomainSearch:
    """The domain search of one cycle; counts are cached and follow placements."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.tree: Domains = domains_of(session.state)
        self._slots: dict[tuple[int, Room], _Slots] = {}

    def misfit(self, job: Job) -> Misfit | None:
        """Why gangs with a topology, or this one, have no allowed domains; None if they have."""
        error = self.tree.error
        if error is not None:
            return Misfit(error.hyper_node, f"HyperNode {error.hyper_node} doesn't fit into a tree: {error.message}")
        for topology in (job.topology, *(rule.topology for rule in job.rules)):
            if topology is None or not topology.bounded or topology.tier is not None:
                continue
            if topology.tier_name not in self.tree.tier_names:
                return Misfit("", f"no HyperNode has the tier name {topology.tier_name!r}")
        return None

    # Allowed domains -------------------------------------------------------------------------------------------------

    def limit(self, job: Job, sub: SubKey | None = None) -> int:
        """The highest tier that the gang, or its sub-gang, may span."""
        top = int(self.tree.tiers[self.tree.top])
        whole = self._tier(job.topology, top)
        return whole if sub is None else self._tier(job.rules[sub[0]].topology, whole)

    def _tier(self, topology: NetworkTopology | None, top: int) -> int:
        if topology is None or not topology.bounded:
            return top
        return self.tree.tier_names[topology.tier_name] if topology.tier is None else topology.tier

    def allocated(self, job: Job, sub: SubKey | None = None) -> int | None:
        """The lowest domain around the placed pods of the gang, or of its sub-gang; None while none is placed. If their
        nodes don't exist, the domain that the PodGroup records."""
        rows = self.rows_held(job, sub)
        if rows is None:
            return None
        return self.tree.around(rows) if rows else self.tree.index.get(job.domain)

    def rows_held(self, job: Job, sub: SubKey | None = None) -> list[int] | None:
        """The rows of the nodes of the placed pods of the gang, or of its sub-gang, one per pod, without nodes that
        don't exist. None while none is placed."""
        counts = job.counts if sub is None else job.subs.get(sub, _NOBODY)
        if not any(counts[status] for status in _HELD):
            return None
        row_of = self._session.state.row_of
        held = (t for t in job.tasks.values() if t.status in _HELD and (sub is None or t.sub == sub))
        return [row for row in map(row_of, held) if row >= 0]

    def allowed(self, job: Job, sub: SubKey | None = None, within: int | None = None) -> Numbers:
        """The domains that the topology allows, counts aside."""
        tree = self.tree
        root = tree.top if within is None else within
        topology = job.topology if sub is None else job.rules[sub[0]].topology
        if topology is None:
            return np.array([root], dtype=np.intp)
        limit = self.limit(job, sub)
        held = self.allocated(job, sub)
        if held is not None:
            around = tree.highest(held, limit)
            if around is None:
                return np.zeros(0, dtype=np.intp)
            if around not in tree.path(root):
                if root not in tree.path(around):
                    return np.zeros(0, dtype=np.intp)
                root = around
        return tree.below(root, limit)

    def groups(
        self, job: Job, purpose: Purpose, *, sub: SubKey | None = None, within: Domain | None = None
    ) -> list[Numbers]:
        """As `domains_for`, by number."""
        domains = self.allowed(job, sub, None if within is None else within.number)
        if len(domains):
            domains = domains[self.could_hold(job, domains, _ROOMS[purpose], sub=sub)]
        tiers = self.tree.tiers[domains]
        found = [domains[tiers == tier] for tier in np.unique(tiers)]
        return self._session.domain_order(job, sub, found, purpose)

    def ranked(self, job: Job, group: Numbers, *, sub: SubKey | None = None) -> Iterator[Candidate]:
        """Candidates of one tier, the best first: those with enough free slots before those that will have them, then
        by the plugins' scores, then by name."""
        free = self.could_hold(job, group, Room.FREE, sub=sub)
        points = self._session.domain_scores(self.request(job, sub), group)
        for i in np.lexsort((group, -points, ~free)):  # numbers follow the names
            yield Candidate(self.tree.domain(int(group[i])), bool(free[i]), float(points[i]))

    def request(self, job: Job, sub: SubKey | None = None) -> DomainRequest:
        """The request of the missing tasks, the first ones in task order, and the slots of each domain beyond them."""
        runs = self._session.runs(job) if sub is None else self._runs(job, sub)
        missing = self.missing(job) if sub is None else self.missing_of(job, sub)
        amount = np.zeros(len(self._session.dims))
        spare = np.full(len(self.tree), MANY)
        left = missing
        taken: dict[int, tuple[TaskClass, int]] = {}
        for cls, count in ((run.cls, pending(run)) for run in runs):
            count = min(count, left)
            left -= count
            if count:
                amount += count * cls.request
                taken[cls.id] = (cls, taken.get(cls.id, (cls, 0))[1] + count)
        for cls, count in taken.values():
            spare = np.minimum(spare, self.slots(cls, Room.FUTURE) - count)
        return DomainRequest(job, sub, missing - left, amount, spare)

    # Counts ----------------------------------------------------------------------------------------------------------

    def could_hold(self, job: Job, domains: Numbers, room: Room, *, sub: SubKey | None = None) -> Mask:
        """Whether each of the domains has slots for the pods that are still needed; [len(domains)]."""
        if sub is not None:
            return self.placeable(self._runs(job, sub), room)[domains] >= self.missing_of(job, sub)
        enough = self.placeable(self._session.runs(job), room)[domains] >= self.missing(job)
        for position, rule in enumerate(job.rules if self._session.judges_readiness else ()):
            lacking = rule.least - whole_subs(job, position, PLACED)
            if lacking > 0:
                subs = sorted({run.sub for run in self._session.runs(job) if run.sub and run.sub[0] == position})
                whole = sum((self._holds_sub(job, key, domains, room) for key in subs), start=np.zeros(len(domains)))
                enough &= whole >= lacking
        return enough

    def _holds_sub(self, job: Job, key: SubKey, domains: Numbers, room: Room) -> Floats:
        """1 for each domain in which the sub-gang could become complete, in a domain that its own topology allows; else
        0."""
        if members_of_sub(job, key, PLACED) >= job.rules[key[0]].size:
            return np.zeros(len(domains))
        if job.rules[key[0]].topology is None:
            return self.could_hold(job, domains, room, sub=key).astype(np.float64)
        own = self.allowed(job, key)
        own = own[self.could_hold(job, own, room, sub=key)] if len(own) else own
        holding = {above for index in own for above in self.tree.path(int(index))}
        return np.array([float(int(index) in holding) for index in domains])

    def missing(self, job: Job) -> int:
        """The least number of pods that the gang needs before it can start; 1 if it only grows."""
        return self._session.tasks_until_ready(job, "")

    def missing_of(self, job: Job, key: SubKey) -> int:
        """How many pods the sub-gang lacks of its size; at least 1."""
        return max(job.rules[key[0]].size - members_of_sub(job, key, PLACED), 1)

    def _runs(self, job: Job, sub: SubKey) -> list[Run]:
        return [run for run in self._session.runs(job) if run.sub == sub]

    def placeable(self, runs: Sequence[Run], room: Room) -> Floats:
        """How many of the pending tasks have a slot in each domain, each class counted alone; [D]."""
        total = np.zeros(len(self.tree))
        for cls, count in tasks_by_class(runs):
            total += np.minimum(self.slots(cls, room), count)
        return total

    def slots(self, cls: TaskClass, room: Room) -> Floats:
        """How many tasks of the class each domain has slots for; [D]."""
        known = self._slots.get((cls.id, room))
        if known is None:
            known = self._slots[cls.id, room] = _Slots(self._session, self.tree, cls, room)
        return known.by_domain()


_ROOMS = {Purpose.ALLOCATE: Room.FUTURE, Purpose.EVICT: Room.EMPTY}


def tasks_by_class(runs: Sequence[Run]) -> list[tuple[TaskClass, int]]:
    """The number of pending tasks of each class in the runs; classes that can't be placed are left out."""
    counts: dict[int, tuple[TaskClass, int]] = {}
    for run in runs:
        if not run.cls.unsupported:
            counts[run.cls.id] = (run.cls, counts.get(run.cls.id, (run.cls, 0))[1] + pending(run))
    return list(counts.values())


def pending(run: Run) -> int:
    """The number of pending tasks in the run."""
    return sum(1 for task in run.tasks if task.status is TaskStatus.PENDING)


class _Slots:
    """The slots of one class by node and by domain. Only changed nodes are recounted."""

    __slots__ = ("_by_domain", "_cls", "_cursor", "_room", "_session", "_slots", "_tree")

    def __init__(self, session: Session, tree: Domains, cls: TaskClass, room: Room) -> None:
        self._session = session
        self._tree = tree
        self._cls = cls
        self._room = room
        self._cursor = len(session.placer.log)
        self._slots = self._count(np.arange(len(session.nodes), dtype=np.intp))
        self._by_domain = tree.sums(self._slots)

    def by_domain(self) -> Floats:
        log = self._session.placer.log
        if self._cursor < len(log) and self._room is not Room.EMPTY:
            rows = changed_rows(log, self._cursor)
            now = self._count(rows)
            self._tree.add(self._by_domain, rows, now - self._slots[rows])
            self._slots[rows] = now
        self._cursor = len(log)
        return self._by_domain

    def _count(self, rows: Numbers) -> Floats:
        placer = self._session.placer
        if self._room is not Room.EMPTY:
            slots = placer.slots(self._cls, rows, promising=self._room is Room.FUTURE and placer.releases)
        else:
            need, needed = self._cls.need, self._cls.needed
            alloc = self._session.nodes.alloc[needed[:, None], rows]
            asked = np.where(need > 0, need, 1.0)
            fitting = np.where(need > 0, np.floor((alloc + EPS) / asked), np.inf)
            slots = np.where(placer.static(self._cls).mask[rows], fitting.min(axis=0, initial=np.inf), 0.0)
        return np.clip(slots, 0.0, MANY)
