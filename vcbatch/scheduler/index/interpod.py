"""Pod affinity, anti-affinity and topology spread: exact, one pod at a time, on per-node counts.

Counts are kept per term in use and updated as pods are added to nodes and removed, so that a repeated check reads no
pods. Rules: kube-scheduler's InterPodAffinity and PodTopologySpread plugins (1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.objects import NodeInfo, Task, TaskStatus
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.selectors import Labels
from vcbatch.scheduler.model.terms import PodTerm

Counts = npt.NDArray[np.float64]
Domains = npt.NDArray[np.intp]

EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"

REQUIRED_AFFINITY_WEIGHT = 1
"""The weight of an existing pod's required affinity in a node's score (kube-scheduler's hardPodAffinityWeight)."""


class EligibleNodes(Protocol):
    """The nodes that pass the task's node affinity, or taints, or both."""

    def __call__(self, *, affinity: bool, taints: bool) -> Mask: ...


class _Counter:
    """The number of matching pods on each node; `leaving` says whether terminating pods count, `by_namespace` whether
    the match depends on labels of namespaces."""

    __slots__ = ("by_namespace", "counts", "leaving", "match")

    def __init__(self, match: Callable[[Task], bool], counts: Counts, *, leaving: bool, by_namespace: bool) -> None:
        self.match = match
        self.counts = counts
        self.leaving = leaving
        self.by_namespace = by_namespace


class InterPodIndex:
    """Per-node counts for the terms in use. `infos` is the node table's list, by row."""

    def __init__(self) -> None:
        self._infos: list[NodeInfo] = []
        self._counters: dict[tuple[tuple[PodTerm, ...], bool], _Counter] = {}
        self._holders: dict[TaskClass, Counts] = {}
        self._domains: dict[str, tuple[Domains, int]] = {}
        self._namespaces: Mapping[str, Labels] = {}

    def set_namespaces(self, labels: Mapping[str, Labels]) -> None:
        """Set the labels of namespaces; counts that depend on them are recomputed on the next use."""
        self._namespaces = labels
        self._counters = {key: held for key, held in self._counters.items() if not held.by_namespace}

    def means(self, term: PodTerm, task: Task) -> bool:
        """Whether the term selects the task."""
        return term.matches(task.namespace, task.labels, self._namespaces)

    def relay(self, infos: list[NodeInfo]) -> None:
        """The node table was rearranged, or labels of nodes changed: counts are recomputed on the next use."""
        self._infos = infos
        self._counters.clear()
        self._domains.clear()
        self._holders = {}
        for info in infos:
            for task in info.tasks.values():
                if task.cls.inter_pod.any:
                    self._holder(task.cls)[info.row] += 1

    @property
    def active(self) -> bool:
        """Whether any pod on a node has inter-pod terms."""
        return bool(self._holders)

    @property
    def counting(self) -> bool:
        """Whether matches of some term are counted."""
        return bool(self._counters)

    def moved(self, task: Task, row: int, step: int) -> None:
        """A task was added to (`step` 1) or removed from (-1) the node at `row`, with its present status."""
        if task.cls.inter_pod.any:
            counts = self._holder(task.cls)
            counts[row] += step
            if step < 0 and not counts.any():
                del self._holders[task.cls]
        for counter in self._counters.values():
            if (counter.leaving or task.status is not TaskStatus.RELEASING) and counter.match(task):
                counter.counts[row] += step

    def couples(self, task: Task) -> bool:
        """Whether the nodes that this task may use, or their scores, depend on the pods on them."""
        if task.cls.inter_pod.any:
            return True
        return any(self.means(term, task) for cls in self._holders for term in _all_terms(cls))

    def total(self, terms: tuple[PodTerm, ...]) -> int:
        """How many pods on nodes all the terms select."""
        return int(self._count(terms).sum())

    def domains(self, key: str) -> Domains:
        """The number of each node's domain under a topology key, -1 without the label; [N]."""
        return self._domain(key)[0]

    def affinity_rejections(self, task: Task) -> list[tuple[str, Mask]]:
        """The nodes that affinity and anti-affinity reject, of the task and of existing pods, with the reason; in
        kube-scheduler's order, since a node counts for the first reason."""
        rules = task.cls.inter_pod
        out: list[tuple[str, Mask]] = []
        if rules.affinity:
            out.append((AFFINITY, self._affinity(task)))
        out += [
            (ANTI_AFFINITY, self._in_domains(term.topology_key, self._matching(term))) for term in rules.anti_affinity
        ]
        existing = self._existing_anti_affinity(task)
        if existing is not None:
            out.append((EXISTING_ANTI_AFFINITY, existing))
        return out

    def affinity_score(self, task: Task) -> Counts | None:
        """The sum of weights of preferred terms, the task's own and those of existing pods, and of the latter's
        required affinity; None if there are no such terms. Not normalised; shape [N]."""
        total: Counts | None = None
        for weight, term in task.cls.inter_pod.preferred:
            total = self._added(total, term.topology_key, self._matching(term), weight)
        for cls, holders in self._holders.items():
            for weight, term in cls.inter_pod.preferred:
                if self.means(term, task):
                    total = self._added(total, term.topology_key, holders, weight)
            for term in cls.inter_pod.affinity:
                if self.means(term, task):
                    total = self._added(total, term.topology_key, holders, REQUIRED_AFFINITY_WEIGHT)
        return total

    def spread_score(self, task: Task, candidates: Domains, eligible: EligibleNodes) -> tuple[Counts, Mask] | None:
        """The spread penalty of each candidate row and which of them lack a topology label, or None if the task has no
        soft constraint. Not normalised; the lower the better."""
        soft = [s for s in task.cls.inter_pod.spreads if not s.hard]
        if not soft:
            return None
        labelled = np.ones(len(self._infos), dtype=bool)
        for spread in soft:
            labelled &= self._domain(spread.term.topology_key)[0] >= 0
        total = np.zeros(len(candidates))
        for spread in soft:
            ids, count = self._domain(spread.term.topology_key)
            counted = labelled & eligible(affinity=spread.honor_affinity, taints=spread.honor_taints)
            matching = np.where(counted, self._matching(spread.term, leaving=False), 0.0)
            per_domain = np.bincount(ids[labelled], weights=matching[labelled], minlength=max(count, 1))
            present = np.unique(ids[candidates][labelled[candidates]])
            at = per_domain[np.maximum(ids[candidates], 0)]
            total += at * np.log(len(present) + 2) + (spread.max_skew - 1)
        return np.floor(total + 0.5), ~labelled[candidates]

    def _holder(self, cls: TaskClass) -> Counts:
        counts = self._holders.get(cls)
        if counts is None:
            counts = self._holders[cls] = np.zeros(len(self._infos))
        return counts

    def _count(self, terms: tuple[PodTerm, ...], *, leaving: bool = True) -> Counts:
        """Per node, the number of pods that all the terms select."""
        known = self._counters.get((terms, leaving))
        if known is None:

            def match(task: Task) -> bool:
                return all(self.means(term, task) for term in terms)

            counts = np.zeros(len(self._infos))
            for info in self._infos:
                for task in info.tasks.values():
                    if (leaving or task.status is not TaskStatus.RELEASING) and match(task):
                        counts[info.row] += 1
            by_namespace = any(term.by_label is not None for term in terms)
            known = _Counter(match, counts, leaving=leaving, by_namespace=by_namespace)
            self._counters[terms, leaving] = known
        return known.counts

    def _matching(self, term: PodTerm, *, leaving: bool = True) -> Counts:
        return self._count((term,), leaving=leaving)

    def _domain(self, key: str) -> tuple[Domains, int]:
        """The number of each node's domain under a topology key, -1 without the label, and the number of domains."""
        known = self._domains.get(key)
        if known is None:
            numbers: dict[str, int] = {}
            ids = np.full(len(self._infos), -1, dtype=np.intp)
            for info in self._infos:
                value = info.labels.get(key)
                if value is not None:
                    ids[info.row] = numbers.setdefault(value, len(numbers))
            known = self._domains[key] = (ids, len(numbers))
        return known

    def _per_node(self, key: str, counts: Counts) -> Counts:
        """For each node the sum of `counts` over its domain; 0 without the label."""
        ids, domains = self._domain(key)
        labelled = ids >= 0
        sums = np.bincount(ids[labelled], weights=counts[labelled], minlength=domains + 1)
        return np.where(labelled, sums[np.maximum(ids, 0)], 0.0)

    def _in_domains(self, key: str, counts: Counts) -> Mask:
        return self._per_node(key, counts) > 0

    def _added(self, total: Counts | None, key: str, counts: Counts, weight: int) -> Counts:
        part = weight * self._per_node(key, counts)
        return part if total is None else total + part

    def _existing_anti_affinity(self, task: Task) -> Mask | None:
        refused: Mask | None = None
        for cls, holders in self._holders.items():
            for term in cls.inter_pod.anti_affinity:
                if self.means(term, task):
                    here = self._in_domains(term.topology_key, holders)
                    refused = here if refused is None else refused | here
        return refused

    def _affinity(self, task: Task) -> Mask:
        """The nodes rejected by required affinity. Each term's domain must have a pod that matches all terms. If no
        such pod is in a domain of any term, the first pod of a group that matches its own terms may use any node that
        has the labels."""
        terms = task.cls.inter_pod.affinity
        counts = self._count(terms)
        refused = np.zeros(len(self._infos), dtype=bool)
        near = any(self._per_node(term.topology_key, counts).any() for term in terms)
        first = not near and all(self.means(term, task) for term in terms)
        for term in terms:
            refused |= self._domain(term.topology_key)[0] < 0
            if not first:
                refused |= self._per_node(term.topology_key, counts) <= 0
        return refused

    def spread_rejections(self, task: Task, eligible: EligibleNodes) -> Iterable[tuple[str, Mask]]:
        """The nodes that hard spread constraints reject, with the reason. `eligible` returns the nodes over which
        domains are counted."""
        hard = [s for s in task.cls.inter_pod.spreads if s.hard]
        labelled = np.ones(len(self._infos), dtype=bool)
        for spread in hard:
            labelled &= self._domain(spread.term.topology_key)[0] >= 0
        for spread in hard:
            ids, count = self._domain(spread.term.topology_key)
            yield SPREAD_LABEL, ids < 0
            counted = labelled & eligible(affinity=spread.honor_affinity, taints=spread.honor_taints)
            matching = self._matching(spread.term, leaving=False)
            per_domain = np.bincount(ids[counted], weights=matching[counted], minlength=count)
            present = np.unique(ids[counted])
            least = float(per_domain[present].min()) if len(present) >= max(spread.min_domains, 1) else 0.0
            own = 1 if self.means(spread.term, task) else 0
            skew = per_domain[np.maximum(ids, 0)] + own - least if count else np.zeros(len(ids))
            yield SPREAD, (ids >= 0) & (skew > spread.max_skew)


def _all_terms(cls: TaskClass) -> Iterable[PodTerm]:
    rules = cls.inter_pod
    yield from rules.anti_affinity
    yield from rules.affinity
    for _, term in rules.preferred:
        yield term
