"""Shares the cluster between queues by weight: work-conserving, between guarantee and capability.

The deserved shares are recomputed each cycle by water filling over the requests of queues, so the other queues get what
an idle queue leaves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.feasibility.judge import Judge
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import UNLIMITED, EvictionKind, Ledger, OrderTerm, Plugin, Verdict, Vote
from vcbatch.scheduler.index.victims import Candidates
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.figures import Amount
from vcbatch.scheduler.model.objects import Job, Queue, Task
from vcbatch.scheduler.model.resources import CPU, EPS, MEMORY, PODS, Mask, Matrix, Vector, exceeding
from vcbatch.scheduler.model.result import Shortage, WaitReason
from vcbatch.scheduler.queues.remedies import raise_limit
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_MEMORY = "proportion"
_MOST_ROUNDS = 1000
"""Water filling converges geometrically: after that many rounds the rest is below any unit."""


def real_capability(
    *, total: Vector, guarantees: Vector, guarantee: Vector | None, capability: Vector | None, named: Vector | None
) -> Vector:
    """The limit of a queue: what the others' guarantees leave, and at most its own capability.

    A resource that the capability doesn't name isn't limited by it; nor are cpu and memory if it is zero.
    """
    most = np.maximum(total - guarantees, 0.0)
    if guarantee is not None:
        most = most + guarantee
    if capability is None or named is None:
        return most
    limited = named.astype(bool)
    limited[[CPU, MEMORY]] &= capability[[CPU, MEMORY]] > 0
    return np.where(limited, np.minimum(most, capability), most)


def water_fill(*, total: Vector, weights: Vector, request: Matrix, most: Matrix, guarantee: Matrix) -> Matrix:
    """The deserved shares of Q queues, shape [Q, R].

    In rounds, the remaining resources are divided by weight among the queues that aren't met; each gets at most its
    request and its limit, and at least its guarantee. A queue is met when it has its whole request, or when a round
    gave it nothing.
    """
    deserved: Matrix = np.zeros_like(request)
    unmet: npt.NDArray[np.bool_] = np.ones(len(weights), dtype=bool)
    remaining = total.copy()
    for _ in range(_MOST_ROUNDS):
        weight = float(weights[unmet].sum())
        if weight == 0:
            break
        before = deserved.copy()
        offered = deserved + remaining * (weights / weight)[:, None]
        offered = np.maximum(np.minimum(np.minimum(offered, most), request), guarantee)
        deserved = np.where(unmet[:, None], offered, deserved)
        satisfied = ((request < deserved) | (np.abs(request - deserved) < EPS)).all(axis=1)
        stuck = (deserved == before).all(axis=1)
        given = (deserved - before)[unmet].sum(axis=0)
        unmet &= ~(satisfied | stuck)
        rest = np.maximum(remaining - given, 0.0)
        unchanged = bool((rest == remaining).all())
        remaining = rest
        amounts = remaining < EPS
        amounts[PODS] = True
        if unchanged or bool(amounts.all()):
            break
    return deserved


_name = attrgetter("name")


@dataclass(frozen=True, slots=True)
class _Standing:
    """Values that stay the same while no queue and no node changes.

    Attributes:
        guarantee, most: by row of a queue, [Q, R].
        by_name: the rows of the queues in the order of their names.
        capability: as in the specs, infinite where not given; [Q, R].
        names: by row, empty where there is no queue.
    """

    guarantee: Matrix
    most: Matrix
    by_name: list[int]
    capability: Matrix
    names: list[str]


def _standing(state: Snapshot, total: Vector) -> _Standing:
    stamp = (state.queues_stamp, total.tobytes())
    known = state.memory.get(_MEMORY)
    if known is not None and known[0] == stamp:
        return known[1]
    queues = sorted(state.queues.values(), key=_name)
    shape = (1 + max((q.row for q in queues), default=-1), len(total))
    guarantee, most, capability = np.zeros(shape), np.zeros(shape), np.full(shape, np.inf)
    names = [""] * shape[0]
    for queue in queues:
        if queue.guarantee is not None:
            guarantee[queue.row] = queue.guarantee
    guarantees = guarantee.sum(axis=0)
    for queue in queues:
        names[queue.row] = queue.name
        if queue.capability is not None and queue.capability_named is not None:
            limited = queue.capability_named.copy()
            limited[[CPU, MEMORY]] &= queue.capability[[CPU, MEMORY]] > 0
            capability[queue.row] = np.where(limited, queue.capability, np.inf)
        most[queue.row] = real_capability(
            total=total,
            guarantees=guarantees,
            guarantee=queue.guarantee,
            capability=queue.capability,
            named=None if queue.capability_named is None else queue.capability_named.astype(np.float64),
        )
    made = _Standing(guarantee, most, [queue.row for queue in queues], capability, names)
    state.memory[_MEMORY] = (stamp, made)
    return made


class Proportion(Plugin):
    """Orders queues by priority, then the smaller share first; a queue that uses its deserved share gets no more."""

    TELLS_IMPOSSIBLE = True

    VICTIMS_BY_STANDING = True

    def open(self, session: Handle) -> None:
        self._session = session
        self._table = session.state.jobs_table
        self._dims = session.dims
        self._state = session.state
        standing = _standing(session.state, session.total)
        rows, r = standing.most.shape
        self._standing = standing
        guarantee, self._most = standing.guarantee, standing.most
        weights = np.zeros(rows)
        for queue in session.state.queues.values():
            if queue.jobs:
                weights[queue.row] = queue.weight
        demand = session.state.demand.by_queue(rows)
        request = demand.allocated + demand.pending
        # By name, not by row: a floating-point sum depends on its order, and rows depend on which queue was observed
        # first.
        active = [row for row in standing.by_name if weights[row] > 0]
        self._deserved: Matrix = np.zeros((rows, r))
        self._deserved[active] = water_fill(
            total=session.total,
            weights=weights[active],
            request=request[active],
            most=self._most[active],
            guarantee=guarantee[active],
        )
        self._inqueue, self._elastic = demand.inqueue, demand.elastic
        self._held: list[list[float]] = demand.allocated.tolist()
        self._limits: list[list[float]] = self._deserved.tolist()
        self._shares: dict[int, float] = {}

    def close(self, session: Handle) -> None:
        """Record deserved shares, limits and usage of queues."""
        deserved, names = self._deserved, self._standing.names
        held = np.array(self._held).reshape(deserved.shape)  # a list has no columns if there are no queues
        weighed = deserved >= EPS
        parts = np.divide(held, deserved, out=np.zeros_like(held), where=weighed)
        below = (held < deserved) & (deserved - held >= EPS)
        overused = np.logical_and(weighed.any(axis=1), ~below.any(axis=1))
        measured = session.measured
        measured.shares = (names, parts.max(axis=1, initial=0.0), overused)
        measured.amounts[Amount.DESERVED] = (names, deserved)
        measured.amounts[Amount.REAL_CAPACITY] = (names, self._most)
        measured.amounts[Amount.CAPACITY] = (names, self._standing.capability)
        measured.amounts[Amount.INQUEUE] = (names, self._inqueue)

    def preemptive(self, queue: Queue, request: Vector) -> bool:
        """Whether the queue stays within its deserved share with the request."""
        return self.room(queue, request) > 0

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        """Pods of queues that use, without the pods before them, more than they deserve of some resource."""
        left: dict[int, list[float]] = {}
        out: list[Task] = []
        for task in candidates:
            queue = None if task.job is None else task.job.queue
            if queue is None:
                continue
            held = left.get(queue.row) or self._held[queue.row]
            if not _exceeds(held, self._limits[queue.row]):
                continue
            out.append(task)
            left[queue.row] = [h - a for h, a in zip(held, task.cls.amounts, strict=True)]
        return out

    def possible_victims(self, kind: EvictionKind, job: Job, cls: TaskClass, candidates: Candidates) -> Mask | None:
        if kind is EvictionKind.PREEMPT:
            return None
        over = [_exceeds(held, limit) for held, limit in zip(self._held, self._limits, strict=True)]
        queues = self._table.queue[candidates.jobs]
        return np.array([*over, False], dtype=bool)[queues]

    def queue_key(self, queue: Queue) -> tuple[float, ...]:
        return (-queue.view.spec.priority, self._share(queue.row))

    def queue_terms(self, queue: Queue) -> Sequence[OrderTerm]:
        return (OrderTerm("priority", -1), OrderTerm("share"))

    def _share(self, row: int) -> float:
        known = self._shares.get(row)
        if known is None:
            parts = [h / d for h, d in zip(self._held[row], self._limits[row], strict=True) if d >= EPS]
            known = self._shares[row] = max(0.0, *parts) if parts else 0.0
        return known

    def overused(self, queue: Queue) -> str | None:
        """Why the queue is overused: it uses its deserved share of every resource, within the tolerance."""
        held, deserved = self._held[queue.row], self._limits[queue.row]
        for h, d in zip(held, deserved, strict=True):  # called once for each gang
            if h < d and d - h >= EPS:
                return None
        columns = [r for r, d in enumerate(deserved) if d >= EPS and r != PODS]
        return f"queue {queue.name} has all it deserves: {self._account(queue.row, columns)}"

    def room(self, queue: Queue, request: Vector) -> int:
        return self._room(queue, request) if queue.open else 0

    def room_of(self, job: Job, request: Vector) -> int:
        if job.queue is None:
            return UNLIMITED
        return self._room(job.queue, request) if job.queue_takes else 0

    def _room(self, queue: Queue, request: Vector) -> int:
        left = UNLIMITED
        held, limits = self._held[queue.row], self._limits[queue.row]
        for r, need in enumerate(request.tolist()):
            if need <= 0 or r == PODS:
                continue
            count = math.floor((limits[r] - held[r]) / need)
            if held[r] + count * need > limits[r]:  # the division rounded up
                count -= 1
            left = min(left, max(count, 0))
        return left

    def ledger(self, queue: Queue, request: Vector) -> Ledger | None:
        return Ledger(np.array(self._held[queue.row]), self._deserved[queue.row], ever=self._most[queue.row])

    def limit_stamp(self, queue: Queue) -> object:
        return (queue.open, tuple(self._limits[queue.row]), tuple(self._held[queue.row]))

    def _account(self, row: int, columns: list[int]) -> str:
        return ", ".join(
            f"{self._dims.names[r]} allocated {self._dims.format(r, self._held[row][r])} "
            f"of {self._dims.format(r, math.floor(self._limits[row][r]))} deserved"
            for r in columns
        )

    def enqueueable(self, job: Job) -> Verdict:
        queue = job.queue
        if queue is None or not job.queue_takes:
            state = "missing" if queue is None else queue.view.status.state
            text = f"queue {'' if queue is None else queue.name} is {state}"
            return Verdict(Vote.REJECT, text, WaitReason.QUEUE_NOT_OPEN)
        if not self._table.has_minimum[job.row]:
            return Verdict(Vote.PERMIT)
        minimum, q = self._table.minimum[job.row], queue.row
        wanted = minimum + np.array(self._held[q]) + self._inqueue[q] - self._elastic[q]
        over = exceeding(wanted, self._most[q], minimum)
        if not over:
            return Verdict(Vote.PERMIT)
        growing = self._session.shared(Judge).nodes.growing
        never = exceeding(minimum, (self._standing.capability if growing else self._most)[q], minimum)
        dims, left = self._dims, np.maximum(self._most[q] - wanted + minimum, 0.0)
        short = [
            Shortage(
                dims.names[i],
                dims.format(i, float(minimum[i])),
                dims.format(i, float(left[i])),
                dims.format(i, float(minimum[i] - left[i])),
            )
            for i in over
        ]
        names = ", ".join(f"insufficient {self._dims.names[i]}" for i in over)
        numbers = "; ".join(
            f"{self._dims.names[i]}: {self._dims.format(i, float(minimum[i]))} asked, "
            f"{self._dims.format(i, float(left[i]))} left of "
            f"{self._dims.format(i, float(self._most[q][i]))}"
            for i in over
        )
        message = f"queue resource quota insufficient: {names} ({numbers} in queue {queue.name})"
        reason = WaitReason.IMPOSSIBLE if never else WaitReason.QUEUE_LIMIT
        more = raise_limit(self._state, queue.name, short)
        return Verdict(Vote.REJECT, message, reason, short, f"queue/{queue.name}", more)

    def admission_key(self, job: Job) -> object:
        return None

    def enqueued(self, job: Job) -> None:
        self.count_admission(job, 1)

    def count_admission(self, job: Job, sign: int) -> None:
        if job.queue is not None:
            self._inqueue[job.queue.row] += sign * self._table.admission(job.row)

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        if job.queue is not None:
            held = self._held[job.queue.row]
            for r, amount in enumerate(cls.amounts):
                held[r] += count * amount
            self._shares.pop(job.queue.row, None)


def _exceeds(held: list[float], deserved: list[float]) -> bool:
    """Whether more is used than deserved of some resource, beyond the tolerance."""
    return any(h > d and h - d >= EPS for h, d in zip(held, deserved, strict=True))
