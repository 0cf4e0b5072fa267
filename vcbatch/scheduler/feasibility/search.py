"""A bounded search for a placement of a gang on empty nodes: exact if it ends within its steps.

Pods are placed group by group, those with the least choice first, and each pod of a group on no earlier node than the
pod before. Of nodes that are equal in all relevant properties one is tried, and at most as many as there are pods are
kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.feasibility.problem import Domains, Even, Problem
from vcbatch.scheduler.model.resources import EPS

MOST_NODES = 2048
"""With more different nodes than this nothing is searched."""
_REMEMBERED_NODES = 64
"""Dead ends are cached if there are at most this many different nodes."""
_DEEPEST = 400
"""The most pods: each is a level of the recursion."""


class OutOfStepsError(Exception):
    """The search ran out of steps."""


def placeable(problem: Problem, steps: int) -> tuple[bool | None, int]:
    """Whether there is a placement, None if the steps didn't suffice; and how many steps are left. A step is one pod
    tried on one node."""
    total = sum(group.count for group in problem.groups)
    nodes = _nodes_that_matter(problem, total)
    if len(nodes) > MOST_NODES or total > _DEEPEST:
        return None, steps
    search = _Search(problem, nodes, steps)
    try:
        return search.found(), search.steps
    except OutOfStepsError:
        return None, 0


def _nodes_that_matter(problem: Problem, pods: int) -> list[tuple[int, int]]:
    """The rows of nodes that take some pod, those with the least use and capacity first, each with the number of its
    kind; at most as many of a kind as there are pods."""
    useful = np.flatnonzero(np.any([group.most > 0 for group in problem.groups], axis=0))
    columns = [problem.capacity, np.array([group.most for group in problem.groups])]
    columns += [_kind_of_domain(domains)[None, :] for domains in _topologies(problem)]
    table = np.ascontiguousarray(np.concatenate(columns).T)[useful]
    kinds, inverse = np.unique(table, axis=0, return_inverse=True)
    first = problem.capacity.shape[0]
    uses = (kinds[:, first : first + len(problem.groups)] > 0).sum(axis=1)
    rank = np.lexsort((*kinds[:, :first].T[::-1], uses))
    place = np.empty(len(kinds), dtype=np.intp)
    place[rank] = np.arange(len(kinds))
    out: list[tuple[int, int]] = []
    taken = [0] * len(kinds)
    for kind, row in sorted(zip(place[inverse.reshape(-1)].tolist(), useful.tolist(), strict=True)):
        if taken[kind] < pods:
            taken[kind] += 1
            out.append((row, kind))
    return out


def _topologies(problem: Problem) -> list[Domains]:
    return [rule.domains for rules in (problem.together, problem.apart, problem.even) for rule in rules]


def _kind_of_domain(domains: Domains) -> Domains:
    """The same numbers, but with one number for all domains of a single node, which are equivalent."""
    inside = domains >= 0
    sizes = np.bincount(domains[inside], minlength=1)
    return np.where(inside & (sizes[np.maximum(domains, 0)] == 1), -2, domains)


class _Search:
    def __init__(self, problem: Problem, nodes: Sequence[tuple[int, int]], steps: int) -> None:
        self.steps = steps
        self._problem = problem
        rows = [row for row, _ in nodes]
        self._kinds = [kind for _, kind in nodes]
        groups = problem.groups
        self._order = sorted(range(len(groups)), key=lambda g: (_choice(problem, g), -float(groups[g].request.sum())))
        self._asked = [[(int(r), float(group.request[r])) for r in np.flatnonzero(group.request)] for group in groups]
        self._left = (problem.capacity[:, rows] + EPS).T.tolist()
        self._most = [group.most[rows].tolist() for group in groups]
        self._on = [[0] * len(groups) for _ in rows]
        """By node, how many pods of each group are on it."""
        self._placed = [0] * len(groups)
        self._together = [(rule.groups, rule.domains[rows].tolist()) for rule in problem.together]
        self._apart = [(rule.one, rule.other, rule.domains[rows].tolist()) for rule in problem.apart]
        self._even = [
            _Evenness(rule, rule.domains[rows].tolist(), sum(groups[g].count for g in rule.counted))
            for rule in problem.even
        ]
        self._bound = [*self._together, *((frozenset((one, other)), at) for one, other, at in self._apart)]
        self._inside: list[dict[int, list[int]]] = [{} for _ in (*problem.together, *problem.apart)]
        """By rule and domain, how many pods of each group are in it."""
        self._remembers = len(rows) <= _REMEMBERED_NODES
        self._dead: set[tuple[object, ...]] = set()

    def found(self) -> bool:
        return self._from(0, 0, 0)

    def _from(self, position: int, placed: int, first: int) -> bool:
        """Whether a placement is reached by placing more pods of the group at this position of the order, on this node
        or a later one, and then pods of the groups after it."""
        if self._met():
            return True
        while position < len(self._order) and placed == self._problem.groups[self._order[position]].count:
            position, placed, first = position + 1, 0, 0
        if position == len(self._order) or not self._enough_left(position, placed):
            return False
        key = (position, placed, first, *map(tuple, self._on)) if self._remembers else ()
        if key in self._dead:
            return False
        g = self._order[position]
        tried: set[tuple[int, ...]] = set()
        for node in range(first, len(self._kinds)):
            alike = (self._kinds[node], *self._on[node])
            if alike in tried:
                continue
            tried.add(alike)
            if self._step() and self._takes(g, node):
                self._move(g, node, 1)
                if self._from(position, placed + 1, node):
                    return True
                self._move(g, node, -1)
        if position + 1 < len(self._order) and self._from(position + 1, 0, 0):
            return True
        if self._remembers:
            self._dead.add(key)
        return False

    def _step(self) -> bool:
        self.steps -= 1
        if self.steps < 0:
            raise OutOfStepsError
        return True

    def _enough_left(self, position: int, placed: int) -> bool:
        """Whether the pods that haven't been tried yet could suffice."""
        groups, order = self._problem.groups, self._order
        rest = [0] * len(groups)
        for at in range(position, len(order)):
            rest[order[at]] = groups[order[at]].count - (placed if at == position else 0)
        within = [count + more for count, more in zip(self._placed, rest, strict=True)]
        return self._suffice(within)

    def _suffice(self, counts: Sequence[int]) -> bool:
        problem = self._problem
        if sum(counts) < problem.least:
            return False
        for role, least in problem.roles.items():
            if sum(n for n, group in zip(counts, problem.groups, strict=True) if group.role == role) < least:
                return False
        return all(
            sum(1 for groups in parts.groups if sum(counts[g] for g in groups) >= parts.size) >= parts.least
            for parts in problem.parts
        )

    def _met(self) -> bool:
        return self._suffice(self._placed) and all(even.met() for even in self._even)

    def _takes(self, g: int, node: int) -> bool:
        if self._on[node][g] >= self._most[g][node]:
            return False
        left = self._left[node]
        if any(amount > left[r] for r, amount in self._asked[g]):
            return False
        for (groups, domains), inside in zip(self._together, self._inside, strict=False):
            if g in groups and (domains[node] < 0 or any(d != domains[node] and sum(inside[d]) for d in inside)):
                return False
        for (one, other, domains), inside in zip(self._apart, self._inside[len(self._together) :], strict=True):
            if g not in (one, other) or domains[node] < 0:
                continue
            there = inside.get(domains[node])
            if there is not None and there[other if g == one else one]:
                return False
        return all(even.takes(g, node) for even in self._even)

    def _move(self, g: int, node: int, step: int) -> None:
        self._on[node][g] += step
        self._placed[g] += step
        left = self._left[node]
        for r, amount in self._asked[g]:
            left[r] -= step * amount
        for (groups, domains), inside in zip(self._bound, self._inside, strict=True):
            if g in groups:
                inside.setdefault(domains[node], [0] * len(self._placed))[g] += step
        for even in self._even:
            even.move(g, node, step)


def _choice(problem: Problem, g: int) -> float:
    group = problem.groups[g]
    return float(np.minimum(group.most, group.count).sum()) / group.count


class _Evenness:
    """One spread constraint, and how many pods are in each domain."""

    def __init__(self, rule: Even, domains: Sequence[int], pods: int) -> None:
        """`pods` is the number of pods that the constraint selects."""
        self._rule = rule
        self._domains = domains
        present = {int(d) for d in np.unique(rule.domains[rule.domains >= 0])}
        self._own = dict.fromkeys(present, 0)
        self._all = dict.fromkeys(present, 0)
        self._counts = len(present) >= max(rule.min_domains, 1)
        """Whether the lowest count may be above zero."""
        self._most = rule.max_skew + (pods // len(present) if self._counts else 0)

    def move(self, g: int, node: int, step: int) -> None:
        domain = self._domains[node]
        if domain >= 0 and g in self._rule.counted:
            self._all[domain] += step
            if g in self._rule.groups:
                self._own[domain] += step

    def takes(self, g: int, node: int) -> bool:
        """Whether the node has a domain that counts the pod, and the domain's limit allows it however the others are
        placed."""
        if g not in self._rule.groups:
            return True
        domain = self._domains[node]
        return domain >= 0 and self._own[domain] < self._most

    def met(self) -> bool:
        fewest = min(self._all.values(), default=0) if self._counts else 0
        return all(count <= fewest + self._rule.max_skew for count in self._own.values())
