"""What queues hold while a cycle goes on, against what they may: plain numbers, as each change is a small one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from vcbatch.scheduler.framework.plugin import UNLIMITED
from vcbatch.scheduler.model.resources import EPS, PODS, Matrix
from vcbatch.scheduler.queues.quotas import Limits, anything
from vcbatch.scheduler.queues.tree import QueueTree

Amounts = Sequence[float]
"""One amount per resource."""


class Excess(NamedTuple):
    """A queue, by index, that would hold more than it may, and the columns in which it would."""

    queue: int
    columns: list[int]


class PlainLimits:
    """Limits as plain numbers, and what follows from them alone: the same as long as no queue changes.

    Attributes:
        most, deserved, guarantee: as in `Limits`; `named` is its `deserved_named`.
        has_deserved: whether a queue deserves anything but pods.
        weighed: what a queue deserves, with its column, where that is anything.
        bounded: the queue and those above it of which something is limited, nearest first.
        ranks: decide between queues of the same share.
    """

    __slots__ = ("bounded", "deserved", "guarantee", "has_deserved", "most", "named", "ranks", "weighed")

    def __init__(self, tree: QueueTree, limits: Limits, ranks: Sequence[float]) -> None:
        self.most: list[list[float]] = limits.most.tolist()
        self.deserved: list[list[float]] = limits.deserved.tolist()
        self.guarantee: list[list[float]] = limits.guarantee.tolist()
        self.named: list[list[bool]] = limits.deserved_named.tolist()
        self.has_deserved: list[bool] = anything(limits.deserved).tolist()
        self.weighed = [[(r, d) for r, d in enumerate(row) if d >= EPS] for row in self.deserved]
        limited = [any(m != math.inf for m in row) for row in self.most]
        self.bounded = [tuple(q for q in chain if limited[q]) for chain in tree.chains]
        self.ranks = ranks


class QueueUsage:
    """Queues by the index of their tree; what a queue holds, those below it hold with it.

    Attributes:
        held: what placed and promised tasks take.
        kept: the room that is reserved for pods whose gates were opened.
        inqueue, elastic: as in `QueueDemand`; `inqueue` grows with admissions.
        most, deserved, guarantee: the limits.
    """

    __slots__ = (
        "_limits",
        "_standings",
        "deserved",
        "elastic",
        "guarantee",
        "held",
        "inqueue",
        "kept",
        "most",
        "named",
        "tree",
    )

    def __init__(
        self, tree: QueueTree, limits: PlainLimits, *, allocated: Matrix, inqueue: Matrix, elastic: Matrix
    ) -> None:
        """`allocated`, `inqueue` and `elastic` are those of `QueueDemand` with what is below each queue, [Q, R]."""
        self.tree = tree
        self.held: list[list[float]] = allocated.tolist()
        self.kept: list[list[float]] | None = None
        self.inqueue: list[list[float]] = inqueue.tolist()
        self.elastic: list[list[float]] = elastic.tolist()
        self._limits = limits
        self.most, self.deserved = limits.most, limits.deserved
        self.guarantee, self.named = limits.guarantee, limits.named
        self._standings: dict[int, tuple[float, float, float]] = {}

    def move(self, index: int, amounts: Amounts, count: int) -> None:
        """Tasks of this size came to the queue, or left it (negative)."""
        for q in self.tree.chains[index]:
            held = self.held[q]
            for r, amount in enumerate(amounts):
                held[r] += count * amount
            self._standings.pop(q, None)

    def record(self, index: int, column: int, amount: float) -> None:
        """One queue holds so much of a resource that tasks don't ask for themselves (devices by claim)."""
        self.held[index][column] = amount
        self._standings.pop(index, None)

    def keep(self, index: int, amounts: Amounts, count: int) -> None:
        """Reserve room for tasks of this size, or give it back (negative)."""
        if self.kept is None:
            self.kept = [[0.0] * len(amounts) for _ in self.held]
        for q in self.tree.chains[index]:
            kept = self.kept[q]
            for r, amount in enumerate(amounts):
                kept[r] += count * amount

    def admit(self, index: int, amounts: Amounts) -> None:
        """A gang was admitted that is to get this much."""
        for q in self.tree.chains[index]:
            inqueue = self.inqueue[q]
            for r, amount in enumerate(amounts):
                inqueue[r] += amount

    def share(self, index: int) -> float:
        """The largest part that the queue holds of anything it deserves; 1 where it deserves nothing."""
        if not self._limits.has_deserved[index]:
            return 1.0
        held = self.held[index]
        return max(0.0, *[held[r] / d for r, d in self._limits.weighed[index]])

    def standing(self, index: int) -> tuple[float, float, float]:
        """Sorts queues beside each other, the one to be served first: by share, those that deserve something, age."""
        known = self._standings.get(index)
        if known is None:
            limits = self._limits
            lacking = float(not limits.has_deserved[index])
            known = self._standings[index] = (self.share(index), lacking, limits.ranks[index])
        return known

    def room(self, index: int, request: Amounts, own: Amounts | None = None) -> int:
        """How many tasks of this size the queue and all above it may still take. `own` is the part of what is kept that
        the tasks may use themselves. Amounts are compared without tolerance."""
        left = UNLIMITED
        needs = [(r, need) for r, need in enumerate(request) if need > 0 and r != PODS]
        for q in self._limits.bounded[index]:
            most, held = self.most[q], self.held[q]
            for r, need in needs:
                limit = most[r]
                if limit == math.inf:
                    continue
                taken = held[r] if self.kept is None else self._taken(q, r, own)
                count = math.floor((limit - taken) / need)
                if taken + count * need > limit:  # the division rounded up
                    count -= 1
                if count < left:
                    left = count
        return max(left, 0)

    def tightest(self, index: int, request: Amounts) -> int:
        """Of the queue and those above it the one with the least room for this request; of equals the one furthest up,
        from which the others have their limit."""
        return min(reversed(self._limits.bounded[index]), key=lambda q: self._room_alone(q, request), default=index)

    def _room_alone(self, q: int, request: Amounts) -> float:
        most = self.most[q]
        return min(
            ((most[r] - self._taken(q, r, None)) / n for r, n in enumerate(request) if n > 0 and r != PODS),
            default=math.inf,
        )

    def _taken(self, q: int, r: int, own: Amounts | None) -> float:
        taken = self.held[q][r]
        if self.kept is not None:
            taken += self.kept[q][r] - (0.0 if own is None else own[r])
        return taken

    def left_to_admit(self, q: int, r: int) -> float:
        """What of a resource gangs may still be admitted for in one queue."""
        return self.most[q][r] - self.held[q][r] - self.inqueue[q][r] + self.elastic[q][r]

    def excess(self, index: int, minimum: Amounts) -> Excess | None:
        """Of this queue and those above that couldn't hold a gang of this minimum with all that is admitted, the one
        with the least left, of equals the one furthest up. Elastic members count as gone, since they can be had back.
        """
        found: list[Excess] = []
        for q in self._limits.bounded[index]:
            most, held, inqueue, elastic = self.most[q], self.held[q], self.inqueue[q], self.elastic[q]
            over = [
                r
                for r, asked in enumerate(minimum)
                if asked > 0 and r != PODS and asked + held[r] + inqueue[r] - elastic[r] > most[r]
            ]
            if over:
                found.append(Excess(q, over))
        return min(
            reversed(found),
            key=lambda excess: min(self.left_to_admit(excess.queue, r) / minimum[r] for r in excess.columns),
            default=None,
        )

    def fits_alone(self, index: int, request: Amounts) -> bool:
        """Whether the queue, whatever is above it, may hold this much more."""
        held, most = self.held[index], self.most[index]
        return all(held[r] + n <= most[r] for r, n in enumerate(request) if n > 0 and r != PODS)

    def deserves(self, index: int, request: Amounts) -> bool:
        """Whether with this request the queue would hold no more than it deserves of some resource asked for."""
        held, deserved = self.held[index], self.deserved[index]
        for r, need in enumerate(request):
            if need <= 0 or r == PODS:
                continue
            after = held[r] + need
            if after < EPS and deserved[r] < EPS:
                continue
            if after < deserved[r] + EPS:
                return True
        return False

    def stamp(self, index: int) -> tuple[object, ...]:
        """Equal as long as `room` is."""
        held = tuple([tuple(self.held[q]) for q in self._limits.bounded[index]])
        return held if self.kept is None else (held, tuple([tuple(self.kept[q]) for q in self._limits.bounded[index]]))
