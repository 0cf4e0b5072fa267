"""The usage of queues against their limits during a cycle, as plain numbers, because each change concerns few of
them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from vcbatch.scheduler.framework.plugin import UNLIMITED
from vcbatch.scheduler.model.resources import EPS, PODS, Matrix
from vcbatch.scheduler.queues.quotas import Limits, anything
from vcbatch.scheduler.queues.tree import QueueTree

Amounts = Sequence[float]
"""One quantity per resource."""


class Excess(NamedTuple):
    """A queue, by index, that would exceed its limit, and the resource columns in which it would."""

    queue: int
    columns: list[int]


class PlainLimits:
    """Limits as plain numbers, and values derived from them alone. They are valid as long as no queue changes.

    Attributes:
        most, deserved, guarantee: as in `Limits`; `named` is its `deserved_named`.
        has_deserved: whether a queue deserves anything but pods.
        weighed: the resources of which a queue deserves any, as (column, quantity).
        bounded: the queue and its ancestors that have a limit of some resource, nearest first.
        ranks: order queues of the same share.
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
    """Usage of queues by the index of their tree; a queue's usage includes its descendants'.

    Attributes:
        held: requests of the tasks that are allocated or pipelined.
        kept: queue capacity that is reserved for pods whose gates were removed.
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
        """`allocated`, `inqueue` and `elastic` are those of `QueueDemand` including each queue's descendants, [Q,
        R]."""
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
        """Add `count` tasks of this request to the queue's usage and its ancestors'; a negative count removes them."""
        for q in self.tree.chains[index]:
            held = self.held[q]
            for r, amount in enumerate(amounts):
                held[r] += count * amount
            self._standings.pop(q, None)

    def record(self, index: int, column: int, amount: float) -> None:
        """Set one queue's usage of a resource that isn't part of task requests (devices by ResourceClaim)."""
        self.held[index][column] = amount
        self._standings.pop(index, None)

    def keep(self, index: int, amounts: Amounts, count: int) -> None:
        """Reserve queue capacity for `count` tasks of this request; a negative count releases it."""
        if self.kept is None:
            self.kept = [[0.0] * len(amounts) for _ in self.held]
        for q in self.tree.chains[index]:
            kept = self.kept[q]
            for r, amount in enumerate(amounts):
                kept[r] += count * amount

    def admit(self, index: int, amounts: Amounts) -> None:
        """Count an admitted gang whose minimum is `amounts`."""
        for q in self.tree.chains[index]:
            inqueue = self.inqueue[q]
            for r, amount in enumerate(amounts):
                inqueue[r] += amount

    def share(self, index: int) -> float:
        """The queue's share: the largest ratio of used to deserved of the resources that it deserves; 1 if it deserves
        none."""
        if not self._limits.has_deserved[index]:
            return 1.0
        held = self.held[index]
        return max(0.0, *[held[r] / d for r, d in self._limits.weighed[index]])

    def standing(self, index: int) -> tuple[float, float, float]:
        """A sort key among siblings, the queue to be served first being the lowest: share, queues with a deserved
        share, age."""
        known = self._standings.get(index)
        if known is None:
            limits = self._limits
            lacking = float(not limits.has_deserved[index])
            known = self._standings[index] = (self.share(index), lacking, limits.ranks[index])
        return known

    def room(self, index: int, request: Amounts, own: Amounts | None = None) -> int:
        """How many tasks of this request the queue and its ancestors have capacity for. `own` is the part of the
        reserved capacity that these tasks may use themselves. Quantities are compared without tolerance."""
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
        """The queue among this one and its ancestors with the least capacity for this request; among equals the
        topmost, whose limit the others inherit."""
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
        """How much of a resource gangs may still be admitted for in one queue."""
        return self.most[q][r] - self.held[q][r] - self.inqueue[q][r] + self.elastic[q][r]

    def excess(self, index: int, minimum: Amounts) -> Excess | None:
        """The first limit that a gang of this minimum would exceed with all that is admitted: of the queue and its
        ancestors the one with the least left, among equals the topmost; None if none is exceeded. Elastic members count
        as released, since they can be reclaimed."""
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
        """Whether the queue's own limit has capacity for this request, whatever its ancestors' limits are."""
        held, most = self.held[index], self.most[index]
        return all(held[r] + n <= most[r] for r, n in enumerate(request) if n > 0 and r != PODS)

    def deserves(self, index: int, request: Amounts) -> bool:
        """Whether with this request the queue would stay within its deserved share of at least one requested
        resource."""
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
        """A value that is equal as long as the results of `room` are."""
        held = tuple([tuple(self.held[q]) for q in self._limits.bounded[index]])
        return held if self.kept is None else (held, tuple([tuple(self.kept[q]) for q in self._limits.bounded[index]]))
