"""A gang as a feasibility problem: groups of equal pods, and their constraints on each other.

Constraints that involve pods outside of the gang are left out wherever these could help the gang: an affinity to such
pods, and a spread constraint that selects them. So the problem is never stricter than the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vcbatch.scheduler.feasibility.device_columns import DeviceColumns
from vcbatch.scheduler.feasibility.empty_nodes import EmptyNodes, ports_conflict
from vcbatch.scheduler.feasibility.problem import Apart, Domains, Even, Group, Parts, Problem, Together, slots
from vcbatch.scheduler.framework.plugin import Eligible, PodRule
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.gang_counts import enforced_roles
from vcbatch.scheduler.model.network_topology import NetworkTopology
from vcbatch.scheduler.model.objects import ALLOCATED_STATUSES, Job, Task, TaskStatus
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.sub_gangs import SubKey
from vcbatch.scheduler.model.terms import PodTerm, Spread
from vcbatch.scheduler.topology.domain_search import DomainSearch

_MEMBERS = ALLOCATED_STATUSES | {TaskStatus.PENDING, TaskStatus.PIPELINED}
"""Statuses of pods that the gang has or waits for."""


class _Kind(NamedTuple):
    """The properties that equal pods of a gang share; `labels` only if pods of the gang have inter-pod terms, `uid`
    only for a pod with device claims of its own."""

    cls: int
    role: str
    sub: SubKey | None
    labels: tuple[tuple[str, str], ...]
    uid: str


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that decides whether a gang fits empty nodes, except the nodes: gangs with equal keys have the same
    result.

    Attributes:
        samples: one pod of each group.
        counts: how many pods of each group there are.
        foreign: by rule about other pods, whether it selects pods outside of the gang.
        lasting: whether nothing but the gang and the nodes affects the result.
    """

    key: tuple[object, ...]
    samples: Sequence[Task]
    counts: Sequence[int]
    least: int
    roles: Mapping[str, int]
    foreign: Mapping[tuple[PodTerm, ...], bool]
    lasting: bool


def shape_of(session: Session, job: Job) -> Shape | None:
    """The gang's shape; None if it isn't known, because the gang lacks pods, or some have gates and may still
    change."""
    tasks = [task for task in job.tasks.values() if task.status in _MEMBERS]
    if any(task.gated or task.cls.unsupported for task in tasks):
        return None
    done = job.counts[TaskStatus.SUCCEEDED]
    least = max(job.min_member - done, 0) if session.judges_readiness else 1
    if len(tasks) < max(least, 1):
        return None
    coupled = any(task.cls.inter_pod.any for task in tasks)
    kinds: dict[_Kind, list[Task]] = {}
    for task in tasks:
        labels = tuple(sorted(task.labels.items())) if coupled else ()
        uid = task.uid if task.cls.spec.resource_claims else ""
        kinds.setdefault(_Kind(task.cls.id, task.role, task.sub, labels, uid), []).append(task)
    foreign = _foreign(session, tasks) if coupled else {}
    roles = enforced_roles(job) if session.judges_readiness else {}
    finished = {role: job.roles[role][TaskStatus.SUCCEEDED] for role in roles if role in job.roles}
    roles = {role: minimum - finished.get(role, 0) for role, minimum in roles.items()}
    counts = {kind: len(members) for kind, members in kinds.items()}
    key = (
        frozenset(counts.items()),
        least,
        frozenset(roles.items()),
        job.topology,
        job.rules,
        frozenset(foreign.items()),
        job.key.partition("/")[0] if coupled else "",
    )
    lasting = not foreign and not any(kind.uid for kind in kinds)
    return Shape(key, [members[0] for members in kinds.values()], list(counts.values()), least, roles, foreign, lasting)


def _foreign(session: Session, tasks: Sequence[Task]) -> dict[tuple[PodTerm, ...], bool]:
    """By rule of the gang's pods about others, whether it selects pods on nodes outside of the gang."""
    index = session.state.inter_pod
    placed = [task for task in tasks if task.node]
    out: dict[tuple[PodTerm, ...], bool] = {}
    for cls in {task.cls for task in tasks}:
        rules = cls.inter_pod
        asked = [rules.affinity] if rules.affinity else []
        for terms in (*asked, *((spread.term,) for spread in rules.spreads if spread.hard)):
            own = sum(1 for task in placed if all(index.means(term, task) for term in terms))
            out[terms] = index.total(terms) > own
    return out


class GangProblem:
    """Builds the problem of one gang."""

    def __init__(self, session: Session, nodes: EmptyNodes, job: Job, shape: Shape) -> None:
        self._session = session
        self._nodes = nodes
        self._job = job
        self._shape = shape
        self._index = session.state.inter_pod
        rules = frozenset[PodRule]().union(*(plugin.pod_rules for plugin in session.placer.plugins.filters))
        self._affinity = PodRule.AFFINITY in rules
        self._spread = PodRule.SPREAD in rules

    def problem(self) -> Problem:
        shape = self._shape
        even = list(self._even()) if self._spread else []
        groups: list[Group] = []
        devices = DeviceColumns(self._session, self._nodes, shape.samples)
        for task, count in zip(shape.samples, shape.counts, strict=True):
            request = devices.request(task)
            most = np.minimum(self._nodes.most(self._session, task), count)
            if len(request) > len(task.cls.request):
                most = np.minimum(most, slots(devices.capacity, request))
            for key in self._labels_needed(task):
                most = np.where(self._domains(key) >= 0, most, 0.0)
            most = np.where(self._kept_off(task), 0.0, most) if self._affinity else most
            groups.append(Group(count, request, most, task.role))
        return Problem(
            capacity=devices.capacity,
            groups=groups,
            least=shape.least,
            roles=shape.roles,
            together=list(self._together()),
            apart=list(self._apart()),
            even=even,
            parts=list(self._parts()) if self._session.judges_readiness else [],
        )

    def _domains(self, key: str) -> Domains:
        return self._index.domains(key)

    def _labels_needed(self, task: Task) -> Iterator[str]:
        """The labels that a node must have for the pod's affinity and spread constraints."""
        rules = task.cls.inter_pod
        if self._affinity:
            yield from (term.topology_key for term in rules.affinity)
        if self._spread:
            yield from (spread.term.topology_key for spread in rules.spreads if spread.hard)

    def _meaning(self, term: PodTerm) -> frozenset[int]:
        """The groups that the term selects."""
        return frozenset(g for g, task in enumerate(self._shape.samples) if self._index.means(term, task))

    # Network topology ------------------------------------------------------------------------------------------------

    def _together(self) -> Iterator[Together]:
        job, samples = self._job, self._shape.samples
        search = self._session.shared(DomainSearch)
        if job.topology is not None and job.topology.bounded and search.misfit(job) is None:
            yield Together(frozenset(range(len(samples))), self._of_tier(search.limit(job)))
        for sub in {task.sub for task in samples if task.sub is not None}:
            topology: NetworkTopology | None = job.rules[sub[0]].topology
            if topology is not None and topology.bounded and search.misfit(job) is None:
                groups = frozenset(g for g, task in enumerate(samples) if task.sub == sub)
                yield Together(groups, self._of_tier(search.limit(job, sub)))
        if self._affinity:
            yield from self._near()

    def _of_tier(self, tier: int) -> Domains:
        """By node, its highest domain up to this tier, -1 without one."""
        tree = self._session.shared(DomainSearch).tree
        domains: Domains = np.full(len(self._session.nodes), -1, dtype=np.intp)
        for level, within in zip(tree.levels, tree.within, strict=True):  # lowest tiers first
            if level <= tier:
                domains = np.where(within >= 0, within, domains)
        return domains

    # Other pods ------------------------------------------------------------------------------------------------------

    def _near(self) -> Iterator[Together]:
        """Pods with an affinity to their own kind are all in one domain, if every pod that matches the terms has them
        too and no pods outside of the gang match."""
        samples = self._shape.samples
        for terms in dict.fromkeys(task.cls.inter_pod.affinity for task in samples):
            if not terms or self._shape.foreign[terms]:
                continue
            having = frozenset(g for g, task in enumerate(samples) if task.cls.inter_pod.affinity == terms)
            matching = frozenset(range(len(samples))).intersection(*map(self._meaning, terms))
            if matching == having:
                yield from (Together(having, self._domains(term.topology_key)) for term in terms)

    def _apart(self) -> Iterator[Apart]:
        samples = self._shape.samples
        rows = np.arange(len(self._session.nodes), dtype=np.intp)
        for one, task in enumerate(samples):
            for other in range(one, len(samples)) if task.cls.ports and self._nodes.ports_count else ():
                if ports_conflict(task.cls, samples[other].cls):
                    yield Apart(one, other, rows)
            for term in task.cls.inter_pod.anti_affinity if self._affinity else ():
                for other in self._meaning(term):
                    yield Apart(one, other, self._domains(term.topology_key))

    def _even(self) -> Iterator[Even]:
        """Spread constraints of pods that they select themselves, and that select no pods outside of the gang."""
        samples = self._shape.samples
        alike: dict[tuple[Spread, bytes], list[int]] = {}
        domains: dict[bytes, Domains] = {}
        for g, task in enumerate(samples):
            for spread in task.cls.inter_pod.spreads:
                if spread.hard and not self._shape.foreign[spread.term,] and self._index.means(spread.term, task):
                    counted = self._counted(task, spread)
                    domains[counted.tobytes()] = counted
                    alike.setdefault((spread, counted.tobytes()), []).append(g)
        for (spread, key), groups in alike.items():
            yield Even(
                groups=frozenset(groups),
                counted=self._meaning(spread.term),
                domains=domains[key],
                max_skew=spread.max_skew,
                min_domains=spread.min_domains,
            )

    def _counted(self, task: Task, spread: Spread) -> Domains:
        """The domains of the constraint, on the nodes that count for it."""
        static = self._session.placer.static(task.cls)
        lasting = [rejection._replace(nodes=rejection.lasting) for rejection in static.rejections]
        counts = Eligible(lasting, len(self._session.nodes)).nodes(
            affinity=spread.honor_affinity, taints=spread.honor_taints
        )
        for other in task.cls.inter_pod.spreads:
            if other.hard:
                counts = counts & (self._domains(other.term.topology_key) >= 0)
        return np.where(counts, self._domains(spread.term.topology_key), -1)

    def _kept_off(self, task: Task) -> Mask:
        """The nodes excluded by anti-affinity with pods that stay, the pod's own or theirs."""
        means, refused = self._index.means, np.zeros(len(self._session.nodes), dtype=bool)
        for there, row in self._nodes.staying:
            terms = [term for term in task.cls.inter_pod.anti_affinity if means(term, there)]
            terms += [term for term in there.cls.inter_pod.anti_affinity if means(term, task)]
            for term in terms:
                domains = self._domains(term.topology_key)
                refused |= (domains >= 0) & (domains == domains[row])
        return refused

    # Sub-gangs -------------------------------------------------------------------------------------------------------

    def _parts(self) -> Iterator[Parts]:
        samples = self._shape.samples
        for position, rule in enumerate(self._job.rules):
            if rule.least:
                subs = sorted({task.sub for task in samples if task.sub is not None and task.sub[0] == position})
                groups = [frozenset(g for g, task in enumerate(samples) if task.sub == sub) for sub in subs]
                yield Parts(rule.size, rule.least, groups)
