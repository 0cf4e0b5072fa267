"""Shares the cluster between queues by quota: the deserved share, guarantee and capability in the specs of queues.

With `enableHierarchy` queues form a tree, in which the usage of a queue counts in all its ancestors, and the limits of
all of them apply. Queues may borrow what others leave, up to their capability; the others may reclaim what they
deserve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vcbatch.scheduler.feasibility.judge import Judge
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import (
    UNLIMITED,
    EvictionKind,
    GangEviction,
    Ledger,
    OrderTerm,
    Plugin,
    Verdict,
    Vote,
)
from vcbatch.scheduler.index.victims import Candidates
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.figures import Amount
from vcbatch.scheduler.model.objects import Job, Queue, Task
from vcbatch.scheduler.model.resources import EPS, PODS, Mask, Matrix, Vector
from vcbatch.scheduler.model.result import Shortage, WaitReason
from vcbatch.scheduler.plugins.capacity_devices import DeviceQuotas
from vcbatch.scheduler.plugins.capacity_victims import Victims
from vcbatch.scheduler.queues.amounts import shown_names
from vcbatch.scheduler.queues.gates import reserving
from vcbatch.scheduler.queues.quotas import Limits, anything, flat_limits, quotas_of, tree_limits
from vcbatch.scheduler.queues.remedies import raise_limit
from vcbatch.scheduler.queues.tree import QueueTree
from vcbatch.scheduler.queues.usage import Excess, PlainLimits, QueueUsage
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_MEMORY = "capacity"
_DEVICES = "capacity.DynamicResourceAllocationEnable"
_DEVICE_CAPACITY = "capacity.DRAConsumableCapacityEnable"


class Capacity(Plugin):
    """Orders queues by priority, then by the ratio of used to deserved, the smaller share first."""

    ARGUMENTS = ArgumentSpec(
        named={
            "ancestorReclaimLevel": Argument(default=0, minimum=0),
            _DEVICES: Argument(default=False),
            _DEVICE_CAPACITY: Argument(default=False),
        },
    )
    HIERARCHICAL = True
    TELLS_IMPOSSIBLE = True
    SHARES_PLACES = True

    def open(self, session: Handle) -> None:
        state = session.state
        self._session = session
        layout = _layout(state, session.total, hierarchical=self.hierarchical)
        tree = layout.tree
        self._layout = layout
        self._tree = tree
        self._index, self._heads, self._paths = layout.index, layout.heads, layout.paths
        self._dims = session.dims
        self._state = session.state
        self._table = state.jobs_table
        self._levels = int(self.arguments["ancestorReclaimLevel"]) if self.hierarchical else 0
        demand = state.demand.by_queue(tree.rows)
        own = np.concatenate([demand.allocated, demand.inqueue, demand.elastic], axis=1)
        allocated, inqueue, elastic = np.split(tree.upwards(tree.by_index(own)), 3, axis=1)
        self._usage = QueueUsage(tree, layout.plain, allocated=allocated, inqueue=inqueue, elastic=elastic)
        self._kept: dict[str, dict[int, _Kept]] = {}
        if state.queue_gates:
            self._keep_room(state)
        self._quotas = self._device_quotas(session)
        amounts = None if self._quotas is None else self._quotas.amounts
        self._victims = Victims(self._usage, levels=self._levels, amounts=amounts)
        self.barring = self._quotas is not None

    def _device_quotas(self, session: Handle) -> DeviceQuotas | None:
        """The quotas of devices by ResourceClaim; None if the scheduler configuration doesn't enable them."""
        capacity = bool(self.arguments[_DEVICE_CAPACITY])
        if not self.arguments[_DEVICES] and not capacity:
            return None
        quotas = DeviceQuotas(session, self._tree, capacity=capacity)
        for i, name in enumerate(self._tree.names):
            for column, amount in quotas.columns(name):
                self._usage.record(i, column, amount)
        return quotas

    def close(self, session: Handle) -> None:
        """Record shares, limits and usage of queues; pipelined tasks count as used, as they do throughout the cycle."""
        layout, measured = self._layout, session.measured
        names = layout.names
        deserved = layout.limits.deserved
        # Lists have no columns if there are no queues.
        held, inqueue = (np.array(rows).reshape(deserved.shape) for rows in (self._usage.held, self._usage.inqueue))
        parts = np.divide(held, deserved, out=np.zeros_like(held), where=deserved >= EPS)
        shares = np.where(anything(deserved), parts.max(axis=1, initial=0.0), 1.0)
        measured.shares = (names, shares, shares > 1)
        measured.amounts[Amount.DESERVED] = (names, layout.limits.deserved)
        measured.amounts[Amount.REAL_CAPACITY] = (names, layout.limits.most)
        measured.amounts[Amount.CAPACITY] = (names, layout.capability)
        measured.amounts[Amount.INQUEUE] = (names, inqueue)

    # Order -----------------------------------------------------------------------------------------------------------

    def queue_key(self, queue: Queue) -> tuple[float, ...]:
        """With a hierarchy two queues compare by those of their ancestors, or themselves, that are siblings: the
        smaller share first, among equals the older one."""
        i = self._at(queue)
        key: tuple[float, ...] = self._heads[i]
        for q in self._paths[i]:
            key += self._usage.standing(q)
        return key

    def queue_terms(self, queue: Queue) -> Sequence[OrderTerm]:
        terms = [OrderTerm("priority", -1), OrderTerm("no queues below it", 0)]
        for q in self._paths[self._at(queue)]:
            of = "" if self._tree.names[q] == queue.name else self._tree.names[q]
            terms += [OrderTerm("share", of=of), OrderTerm("it deserves something", 0, of), OrderTerm("older", 0, of)]
        return terms

    def queue_kin(self, queue: Queue) -> tuple[object, int]:
        """The queues with the same ancestors."""
        head, above = self._heads[self._at(queue)], self._paths[self._at(queue)][:-1]
        return (head, above), len(head) + sum(len(self._usage.standing(q)) for q in above)

    def victim_queue_key(self, victim: Queue, preemptor: Queue) -> tuple[float, ...]:
        """The closest relatives lose pods first."""
        if not self.hierarchical:
            return ()
        return (-float(self._tree.common_depth(self._at(victim), self._at(preemptor))),)

    def _at(self, queue: Queue) -> int:
        return self._index[queue.row]

    # Admission -------------------------------------------------------------------------------------------------------

    def queue_error(self, queue: Queue) -> str | None:
        error = self._tree.error(queue)
        return None if error is None else error.sentence

    def enqueueable(self, job: Job) -> Verdict:
        queue = job.queue
        if queue is None or not job.queue_takes:
            text = "its queue doesn't exist" if queue is None else f"queue {queue.name} is {queue.view.status.state}"
            return Verdict(Vote.REJECT, text, WaitReason.QUEUE_NOT_OPEN if queue else WaitReason.QUEUE_MISSING)
        error = self._tree.error(queue)
        if error is not None:
            return Verdict(Vote.REJECT, error.sentence, WaitReason.QUEUE_INVALID)
        refused = self._quotas.refusal(job) if self._quotas is not None else None
        if refused is not None:
            return refused
        if not self._table.has_minimum[job.row]:
            return Verdict(Vote.PERMIT)
        minimum: list[float] = self._table.minimum[job.row].tolist()
        excess = self._usage.excess(self._at(queue), minimum)
        return Verdict(Vote.PERMIT) if excess is None else self._refusal(excess, minimum)

    def _refusal(self, excess: Excess, minimum: Sequence[float]) -> Verdict:
        dims, q = self._dims, excess.queue
        short: list[Shortage] = []
        parts: list[str] = []
        for r in excess.columns:
            most = self._usage.most[q][r]
            left = max(self._usage.left_to_admit(q, r), 0.0)
            asked, available = dims.format(r, minimum[r]), dims.format(r, left)
            short.append(Shortage(dims.names[r], asked, available, dims.format(r, minimum[r] - left)))
            parts.append(f"{dims.names[r]}: {asked} asked, {available} left of {dims.format(r, most)}")
        names = ", ".join(f"insufficient {s.resource}" for s in short)
        growing = self._session.shared(Judge).nodes.growing
        ever = self._layout.capability[q].tolist() if growing else self._usage.most[q]
        never = any(minimum[r] > ever[r] for r in excess.columns)
        text = f"queue resource quota insufficient: {names} ({'; '.join(parts)} in queue {self._tree.names[q]})"
        reason, name = WaitReason.IMPOSSIBLE if never else WaitReason.QUEUE_LIMIT, self._tree.names[q]
        return Verdict(Vote.REJECT, text, reason, short, f"queue/{name}", raise_limit(self._state, name, short))

    def enqueued(self, job: Job) -> None:
        self.count_admission(job, 1)
        if self._quotas is not None:
            self._quotas.admitted(job)

    def count_admission(self, job: Job, sign: int) -> None:
        if job.queue is not None and self._table.has_minimum[job.row]:
            self._usage.admit(self._at(job.queue), (sign * self._table.admission(job.row)).tolist())

    def admission_key(self, job: Job) -> object:
        return None if self._quotas is None else self._quotas.wanted(job)

    def admission_needed(self, job: Job) -> bool:
        return self._quotas is not None and bool(self._quotas.wanted(job))

    # Capacity -------------------------------------------------------------------------------------------------------

    def room(self, queue: Queue, request: Vector) -> int:
        if not queue.open or self._tree.error(queue) is not None:
            return 0
        return self._usage.room(self._at(queue), request.tolist())

    def room_of(self, job: Job, request: Vector) -> int:
        queue = job.queue
        if queue is None:
            return UNLIMITED
        if not job.queue_takes or self._tree.error(queue) is not None:
            return 0
        if job.key not in self._kept:
            return self._usage.room(self._at(queue), request.tolist())
        own = np.zeros(len(request))
        for kept in self._kept[job.key].values():
            own += kept.rest * kept.cls.request
        return self._usage.room(self._at(queue), request.tolist(), own.tolist())

    def _keep_room(self, state: Snapshot) -> None:
        for key, classes in reserving(state).items():
            for cls, count in classes.values():
                self.reserve(state.jobs[key], cls, count)

    def reserve(self, job: Job, cls: TaskClass, count: int) -> None:
        if job.queue is not None:
            kept = self._kept.setdefault(job.key, {}).setdefault(cls.id, _Kept(cls))
            before = kept.rest
            kept.wanted += count
            self._usage.keep(self._at(job.queue), cls.amounts, kept.rest - before)

    def ledger(self, queue: Queue, request: Vector) -> Ledger | None:
        i = self._usage.tightest(self._at(queue), request.tolist())
        held, most = np.array(self._usage.held[i]), np.array(self._usage.most[i])
        if self._usage.kept is not None:
            held += self._usage.kept[i]
        return Ledger(held, most, word="allowed", queue=self._tree.names[i], ever=most)

    def barred(self, task: Task) -> Verdict | None:
        return None if self._quotas is None else self._quotas.barred(task)

    def limit_stamp(self, queue: Queue) -> object:
        return (queue.open, self._usage.stamp(self._at(queue)))

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        if job.queue is None:
            return
        i = self._at(job.queue)
        self._usage.move(i, cls.amounts, count)
        if self._quotas is not None and self._quotas.concern(cls):
            for q in self._tree.chains[i]:
                for column, amount in self._quotas.columns(self._tree.names[q]):
                    self._usage.record(q, column, amount)
        kept = self._kept[job.key].get(cls.id) if job.key in self._kept else None
        if kept is not None:
            before = kept.rest
            kept.placed += count
            self._usage.keep(i, cls.amounts, kept.rest - before)

    # Victims ---------------------------------------------------------------------------------------------------------

    def preemptive(self, queue: Queue, request: Vector) -> bool:
        """Whether the queue stays within its capability with the request, and within its deserved share of some
        requested resource; with `ancestorReclaimLevel` that share may be the one of an ancestor up to that many levels
        above."""
        if not queue.open or self._tree.error(queue) is not None:
            return False
        i, amounts = self._at(queue), request.tolist()
        if not self._usage.fits_alone(i, amounts):
            return False
        chain = self._tree.chains[i]
        deserving = (i, *chain[1 : min(self._levels + 1, len(chain) - 1)])
        return any(self._usage.deserves(q, amounts) for q in deserving)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        queue = reclaimer.job.queue if reclaimer.job is not None else None
        return [] if queue is None else self._victims.for_task(self._at(queue), self._amounts(reclaimer), candidates)

    def _amounts(self, task: Task) -> Sequence[float]:
        return task.cls.amounts if self._quotas is None else self._quotas.amounts(task)

    def possible_victims(self, kind: EvictionKind, job: Job, cls: TaskClass, candidates: Candidates) -> Mask | None:
        if kind is EvictionKind.PREEMPT or self._quotas is not None:
            return None
        return self._victims.possible(cls.request, self._table.queue[candidates.jobs], candidates)

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> Sequence[Task] | None:
        if eviction.kind is EvictionKind.PREEMPT or self._session.beyond_shares:
            return candidates
        return self._victims.for_gang(candidates)

    def share_left(self, queue: Queue, victims: Sequence[Task]) -> Sequence[Shortage]:
        """Counts the resources of which the queue uses more than its deserved share and would use less than it without
        the victims."""
        if len(self._victims.for_gang(victims)) == len(victims):
            return ()
        i, dims = self._at(queue), self._dims
        found: list[Shortage] = []
        for r, amount in enumerate(np.sum([self._amounts(task) for task in victims], axis=0).tolist()):
            has, deserves = self._usage.held[i][r], self._usage.deserved[i][r]
            if r != PODS and amount > 0 and deserves >= EPS and has > deserves > has - amount:
                left = has - amount
                short = dims.format(r, deserves - left)
                found.append(Shortage(dims.names[r], dims.format(r, deserves), dims.format(r, left), short))
        return found


@dataclass(slots=True)
class _Kept:
    """Queue capacity reserved for equal pods of a gang: for the number of pods `wanted`, minus those `placed` since."""

    cls: TaskClass
    wanted: int = 0
    placed: int = 0

    @property
    def rest(self) -> int:
        return max(self.wanted - max(self.placed, 0), 0)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The order of queues and their limits, as far as they stay the same while no queue changes.

    Attributes:
        index: by row of a queue.
        heads: by index, the numbers of the key before shares: priority, and that leaves come first.
        paths: by index, the queues whose shares decide, the topmost first.
        plain: the limits that usage is compared with, and the rank of each queue by age.
        capability: as in the specs, infinite where not given; [Q, R].
        names: by index, empty for a root that is no object.
    """

    tree: QueueTree
    limits: Limits
    index: list[int]
    heads: list[tuple[float, ...]]
    paths: list[tuple[int, ...]]
    plain: PlainLimits
    capability: Matrix
    names: list[str]


def _layout(state: Snapshot, total: Vector, *, hierarchical: bool) -> _Layout:
    stamp = (state.queues_stamp, hierarchical, len(total), b"" if hierarchical else total.tobytes())
    known = state.memory.get(_MEMORY)
    if known is not None and known[0] == stamp:
        return known[1]
    tree = QueueTree(state.queues, hierarchical=hierarchical)
    quotas = quotas_of(tree, state.dims)
    metas = [(q.view.metadata.creation_timestamp or "", q.view.metadata.uid) if q else ("", "") for q in tree.queues]
    ranks = [0.0] * len(tree)
    for rank, i in enumerate(sorted(range(len(tree)), key=lambda i: (metas[i], tree.names[i]))):
        ranks[i] = float(rank)
    priorities = [-float(q.view.spec.priority) if q else 0.0 for q in tree.queues]
    limits = tree_limits(tree, quotas) if hierarchical else flat_limits(quotas, total)
    made = _Layout(
        tree=tree,
        limits=limits,
        index=tree.index.tolist(),
        heads=[(p, float(not leaf)) for p, leaf in zip(priorities, tree.leaf.tolist(), strict=True)],
        paths=[tuple(reversed(chain[:-1])) if hierarchical else chain for chain in tree.chains],
        plain=PlainLimits(tree, limits, ranks),
        capability=np.where(quotas.limited, quotas.capability, np.inf),
        names=shown_names(tree),
    )
    state.memory[_MEMORY] = (stamp, made)
    return made
