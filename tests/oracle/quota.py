"""Queue quotas, implemented from the documentation in plain Python: one queue, one resource, one task at a time.

Quantities are integers by resource name: millicores of cpu, bytes of memory, thousandths of anything else. A missing
name differs from a quantity of zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

Amounts = dict[str, float]
NATIVE = ("cpu", "memory")
ROOT = "root"
EPS = 0.1


@dataclass
class Gang:
    """A gang: its current usage, its admission quantity if it has one, and whether it was admitted."""

    held: list[Amounts] = field(default_factory=list)
    minimum: Amounts | None = None
    admitted: bool = False


@dataclass
class Spec:
    """One queue, as its object describes it."""

    parent: str = ""
    priority: int = 0
    deserved: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)
    capability: Amounts = field(default_factory=dict)
    gangs: list[Gang] = field(default_factory=list)


class Quota:
    """The rules of the capacity plugin for a cluster with these resources."""

    def __init__(self, queues: dict[str, Spec], total: Amounts, *, hierarchy: bool, levels: int = 0) -> None:
        self.queues = {**queues}
        if hierarchy:
            self.queues.setdefault(ROOT, Spec())
        self.total = total
        self.hierarchy = hierarchy
        self.levels = levels if hierarchy else 0
        self.names = sorted({*total, *NATIVE} | {n for q in queues.values() for n in (*q.deserved, *q.capability)})

    # The tree

    def chain(self, queue: str) -> list[str]:
        if not self.hierarchy or queue == ROOT:
            return [queue]
        return [queue, *self.chain(self.queues[queue].parent or ROOT)]

    def children(self, queue: str) -> list[str]:
        return [n for n, spec in self.queues.items() if n != ROOT and self.hierarchy and (spec.parent or ROOT) == queue]

    def below(self, queue: str) -> list[str]:
        return [queue, *(n for child in self.children(queue) for n in self.below(child))]

    # Limits

    def guarantee(self, queue: str, name: str) -> float:
        if self.hierarchy and queue == ROOT and self.children(ROOT):
            return sum(self.guarantee(child, name) for child in self.children(ROOT))
        return self.queues[queue].guarantee.get(name, 0)

    def capability(self, queue: str, name: str) -> float:
        own = self.queues[queue].capability
        if name in own and not (name in NATIVE and own[name] <= 0):
            return own[name]
        if not self.hierarchy or queue == ROOT:
            return inf
        return self.capability(self.queues[queue].parent or ROOT, name)

    def most(self, queue: str, name: str) -> float:
        if not self.hierarchy:
            promised = sum(spec.guarantee.get(name, 0) for spec in self.queues.values())
            rest = max(self.total.get(name, 0) - promised, 0)
            return min(rest + self.guarantee(queue, name), self.capability(queue, name))
        if queue == ROOT:
            return self.capability(ROOT, name)
        parent = self.queues[queue].parent or ROOT
        promised = sum(self.guarantee(sibling, name) for sibling in self.children(parent))
        rest = max(self.most(parent, name) - promised, 0)
        return min(rest + self.guarantee(queue, name), self.capability(queue, name))

    def deserved(self, queue: str) -> Amounts:
        if self.hierarchy and queue == ROOT and self.children(ROOT):
            out: Amounts = {}
            for child in self.children(ROOT):
                for name, amount in self.deserved(child).items():
                    out[name] = out.get(name, 0) + amount
            return out
        out = {**self.queues[queue].deserved}
        if not self.hierarchy:
            out = {n: min(a, self.most(queue, n)) if n in self.total else a for n, a in out.items()}
        for name, amount in self.queues[queue].guarantee.items():
            if amount > 0:  # zero means no guarantee, as if it were missing
                out[name] = max(out.get(name, 0), amount)
        return out

    # Usage

    def held(self, queue: str, name: str) -> float:
        return sum(t.get(name, 0) for q in self.below(queue) for g in self.queues[q].gangs for t in g.held)

    def share(self, queue: str) -> float:
        deserved = self.deserved(queue)
        if all(amount < EPS for amount in deserved.values()):
            return 1.0
        return max(self.held(queue, n) / amount for n, amount in deserved.items() if amount >= EPS)

    def has_deserved(self, queue: str) -> bool:
        return any(amount >= EPS for amount in self.deserved(queue).values())

    # Decisions

    def before(self, one: str, other: str, age: dict[str, int]) -> bool:
        """Whether the first queue is served before the other; `age` breaks ties."""
        a, b = self.queues[one], self.queues[other]
        if a.priority != b.priority:
            return a.priority > b.priority
        if self.hierarchy:
            if bool(self.children(one)) != bool(self.children(other)):
                return not self.children(one)
            if self.children(one):
                return age[one] < age[other]
            mine, theirs = self.chain(one)[::-1], self.chain(other)[::-1]
            at = next(i for i in range(len(mine)) if mine[i] != theirs[i])
            one, other = mine[at], theirs[at]
        if self.share(one) != self.share(other):
            return self.share(one) < self.share(other)
        if self.has_deserved(one) != self.has_deserved(other):
            return self.has_deserved(one)
        return age[one] < age[other]

    def allocatable(self, queue: str, request: Amounts) -> bool:
        """Whether one more task may be placed."""
        if self.children(queue):
            return False
        return all(
            self.held(q, n) + amount <= self.most(q, n)
            for q in self.chain(queue)
            for n, amount in request.items()
            if amount > 0
        )

    def enqueueable(self, queue: str, minimum: Amounts) -> bool:
        if self.children(queue):
            return False
        for q in self.chain(queue):
            for name, amount in minimum.items():
                wanted = amount + self.held(q, name) + self._inqueue(q, name) - self._elastic(q, name)
                if amount > 0 and wanted > self.most(q, name):
                    return False
        return True

    def _inqueue(self, queue: str, name: str) -> float:
        gangs = [g for q in self.below(queue) for g in self.queues[q].gangs if g.admitted and g.minimum is not None]
        return sum(max((g.minimum or {}).get(name, 0) - sum(t.get(name, 0) for t in g.held), 0) for g in gangs)

    def _elastic(self, queue: str, name: str) -> float:
        gangs = [g for q in self.below(queue) for g in self.queues[q].gangs]
        return sum(max(sum(t.get(name, 0) for t in g.held) - (g.minimum or {}).get(name, 0), 0) for g in gangs)

    def preemptive(self, queue: str, request: Amounts) -> bool:
        if self.children(queue):
            return False
        asked = [n for n, amount in request.items() if amount > 0]
        if any(self.held(queue, n) + request[n] > self.most(queue, n) for n in asked):
            return False
        chain = [queue, *[q for q in self.chain(queue)[1 : self.levels + 1] if q != ROOT]]
        return any(self.held(q, n) + request[n] < self.deserved(q).get(n, 0) + EPS for q in chain for n in asked)

    def victims(self, queue: str, request: Amounts, candidates: Sequence[tuple[str, Amounts]]) -> list[int]:
        """The indexes of candidates, each a queue and the task's requests, that may be evicted for a task of
        `queue`."""
        running = {q: {n: self.held(q, n) for n in self.names} for q in self.queues}
        out: list[int] = []
        for index, (of, task) in enumerate(candidates):
            if not any(task.get(n, 0) > 0 and amount > 0 for n, amount in request.items()):
                continue
            if any(running[of][n] - task.get(n, 0) < self.guarantee(of, n) for n in self.names):
                continue
            above = self._ancestors(of)
            ours = self._ancestors(queue)
            if self._lent(of, task):
                related = set(above.values()) & set(ours.values())
                if related and self._lent(queue, request):
                    continue
            elif not self._beyond(of, task, running):
                continue
            checked = [q for level, q in above.items() if ours.get(level) != q]
            if all(self._lent(q, task) or self._beyond(q, task, running) for q in checked):
                out.append(index)
                for q in (of, *checked):
                    for name, amount in task.items():
                        running[q][name] -= amount
        return out

    def victims_of_gang(self, candidates: Sequence[tuple[str, Amounts]]) -> list[int]:
        """The indexes of candidates that may be evicted for a whole gang of another queue, whatever its requests
        are."""
        running = {q: {n: self.held(q, n) for n in self.names} for q in self.queues}
        out: list[int] = []
        for index, (of, task) in enumerate(candidates):
            if any(running[of][n] - task.get(n, 0) < self.guarantee(of, n) for n in self.names):
                continue
            if self._lent(of, task) or self._beyond(of, task, running):
                out.append(index)
                for name, amount in task.items():
                    running[of][name] -= amount
        return out

    def _ancestors(self, queue: str) -> dict[int, str]:
        """The ancestors by level, as far up as they count, without the root."""
        return {level: q for level, q in enumerate(self.chain(queue)) if 1 <= level <= self.levels and q != ROOT}

    def _lent(self, queue: str, amounts: Amounts) -> bool:
        """Whether the queue has no deserved share of any of these resources."""
        return not any(a >= EPS and self.deserved(queue).get(n, 0) >= EPS for n, a in amounts.items())

    def _beyond(self, queue: str, task: Amounts, running: dict[str, Amounts]) -> bool:
        deserved = self.deserved(queue)
        return any(
            amount > 0 and n in deserved and (n not in NATIVE or deserved[n] >= EPS) and running[queue][n] > deserved[n]
            for n, amount in task.items()
        )
