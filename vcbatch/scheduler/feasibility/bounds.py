"""Necessary conditions of every placement of a gang: if one fails, there is no placement. Only sums over nodes and
domains, so that they are cheap on clusters of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vcbatch.scheduler.feasibility.problem import Domains, Even, Problem
from vcbatch.scheduler.model.columns import Floats
from vcbatch.scheduler.model.resources import EPS, Mask


def ruled_out(problem: Problem) -> bool:
    """Whether the sums alone exclude every placement."""
    return all(_Scope(problem, nodes).ruled_out() for nodes in _scopes(problem))


def _scopes(problem: Problem) -> Iterator[Mask]:
    """The sets of nodes that the gang can be placed on as a whole: those of each domain if all of it must be in one."""
    everybody = frozenset(range(len(problem.groups)))
    whole = next((rule for rule in problem.together if rule.groups == everybody), None)
    if whole is None:
        yield np.ones(problem.capacity.shape[1], dtype=bool)
        return
    for domain in np.unique(whole.domains[whole.domains >= 0]):
        yield whole.domains == domain


class _Scope:
    """The problem on some of the nodes."""

    def __init__(self, problem: Problem, nodes: Mask) -> None:
        self._problem = problem
        self._nodes = nodes
        self._slots = [np.where(nodes, np.minimum(group.most, group.count), 0.0) for group in problem.groups]
        self._reach = [self._reached(g) for g in range(len(problem.groups))]
        """By group, an upper bound of its pods that can be placed."""

    def ruled_out(self) -> bool:
        problem, reach = self._problem, self._reach
        total = sum(reach)
        if total < problem.least or any(total - lost < problem.least for lost in self._lost_to_each_other()):
            return True
        for role, least in problem.roles.items():
            if sum(reach[g] for g, group in enumerate(problem.groups) if group.role == role) < least:
                return True
        for parts in problem.parts:
            whole = sum(1 for groups in parts.groups if sum(reach[g] for g in groups) >= parts.size)
            if whole < parts.least:
                return True
        return any(self._too_much(groups, total) for groups in self._closed_sets())

    def _reached(self, g: int) -> float:
        problem, own = self._problem, self._slots[g]
        found = own.sum()
        for rule in problem.together:
            if g in rule.groups:
                found = min(found, _by_domain(rule.domains, own).max(initial=0.0))
        for rule in problem.apart:
            if rule.one == rule.other == g:
                inside = _by_domain(rule.domains, own)
                found = min(found, np.minimum(inside, 1.0).sum() + own[rule.domains < 0].sum())
        for rule in problem.even:
            if g in rule.groups:
                inside = _by_domain(rule.domains, own)
                found = min(found, np.minimum(inside, self._fewest(rule) + rule.max_skew).sum())
        return float(min(found, problem.groups[g].count))

    def _fewest(self, rule: Even) -> float:
        """An upper bound of the number of selected pods in the domain with the fewest."""
        present = np.unique(rule.domains[rule.domains >= 0])
        if len(present) < max(rule.min_domains, 1):
            return 0.0
        size = int(present.max()) + 1
        inside = np.zeros(size)
        count = 0
        for g in rule.counted:
            inside += np.minimum(_by_domain(rule.domains, self._slots[g], size), self._problem.groups[g].count)
            count += self._problem.groups[g].count
        return min(float(inside[present].min()), float(count // len(present)))

    def _lost_to_each_other(self) -> Iterator[float]:
        """How many pods that can be placed alone can't be placed together: groups that all have anti-affinity to each
        other and to themselves in the same domains have one pod per domain."""
        rules = self._problem.apart
        by_topology: dict[bytes, tuple[Domains, set[frozenset[int]]]] = {}
        for rule in rules:
            _, pairs = by_topology.setdefault(rule.domains.tobytes(), (rule.domains, set()))
            pairs.add(frozenset((rule.one, rule.other)))
        for domains, pairs in by_topology.values():
            alone = sorted(g for pair in pairs if len(pair) == 1 for g in pair)
            for first in alone:
                clique = [first]
                for g in alone:
                    if g != first and all(frozenset((g, other)) in pairs for other in clique):
                        clique.append(g)
                there = sum((self._slots[g] for g in clique), start=np.zeros(len(domains)))
                if there[domains < 0].any():
                    continue
                room = float(np.minimum(_by_domain(domains, there), 1.0).sum())
                yield max(sum(self._reach[g] for g in clique) - room, 0.0)

    def _closed_sets(self) -> Iterator[list[int]]:
        """Sets of groups that share their nodes: for each group, all groups whose nodes are among its own."""
        there = [slots > 0 for slots in self._slots]
        seen: set[tuple[int, ...]] = set()
        everybody = list(range(len(there)))
        candidates = [[h for h in everybody if not (there[h] & ~there[g]).any()] for g in everybody]
        for groups in (everybody, *candidates):
            if tuple(groups) not in seen:
                seen.add(tuple(groups))
                yield groups

    def _too_much(self, groups: Sequence[int], total: float) -> bool:
        """Whether the needed pods of these groups request more of some resource than their nodes have."""
        problem = self._problem
        needed = problem.least - (total - sum(self._reach[g] for g in groups))
        if needed <= 0:
            return False
        nodes = np.zeros(len(self._nodes), dtype=bool)
        for g in groups:
            nodes |= self._slots[g] > 0
        room = problem.capacity[:, nodes].sum(axis=1)
        counts = np.array([self._reach[g] for g in groups])
        requests = np.array([problem.groups[g].request for g in groups])
        for r in np.flatnonzero(requests.any(axis=0)):
            order = np.argsort(requests[:, r], kind="stable")
            taken = np.diff(np.minimum(np.cumsum(counts[order]), needed), prepend=0.0)
            if float((taken * requests[order, r]).sum()) > float(room[r]) + EPS:
                return True
        return False


def _by_domain(domains: Domains, values: Floats, size: int = 0) -> Floats:
    """The sums in each domain of values by node."""
    inside = domains >= 0
    return np.bincount(domains[inside], weights=values[inside], minlength=size).astype(np.float64)
