"""Network topology domains: the HyperNodes of the cluster as a tree over the rows of the node table.

The tree is rebuilt only when a HyperNode or the names and labels of nodes changed; the nodes that a selector matches
are cached (`vcbatch.api.topology`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from vcbatch.api.names import CLUSTER_TOP_HYPERNODE
from vcbatch.api.reasons import HyperNodeReason
from vcbatch.api.scheduling import HyperNodeView
from vcbatch.api.topology import Place, Topology
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.domain import Domain
from vcbatch.scheduler.model.objects import NodeInfo
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_MEMORY: Final = "domains"
_NONE: Final = -1
_FATAL: Final = (HyperNodeReason.CYCLE, HyperNodeReason.SEVERAL_PARENTS, HyperNodeReason.TIER_ORDER)
"""Errors because of which HyperNodes form no tree. A member that doesn't exist (yet) isn't one."""


@dataclass(frozen=True, slots=True)
class TreeError:
    """Why the HyperNodes form no tree, with the first one by name that shows it."""

    hyper_node: str
    message: str


class Domains:
    """The tree. Domains are numbered by tier and name; the last is the whole cluster, the parent of all that have none.

    Attributes:
        names: by number.
        tiers: by number, [D]; the whole cluster has one more than the highest.
        parent: the number of the parent domain, [D]; -1 for the whole cluster.
        rows: by domain, the rows of its nodes, ascending.
        leaf: by node, its lowest domain, [N].
        levels: the existing tiers, ascending, that of the whole cluster included.
        within: by level and node, the domain, -1 if there is none, [T, N].
        lineage: by level and domain, the domain that is its ancestor or itself, -1 if there is none, [T, D].
        tier_names: the lowest tier with each name.
        error: why it is no tree; the other attributes are valid only if this is None.
    """

    def __init__(self, places: Mapping[str, Place], tier_names: Mapping[str, int], infos: Sequence[NodeInfo]) -> None:
        ordered = sorted(places, key=lambda name: (places[name].tier, name))
        top = len(ordered)
        self.names: list[str] = [*ordered, CLUSTER_TOP_HYPERNODE]
        tiers = [places[name].tier for name in ordered]
        self.tiers: npt.NDArray[np.int64] = np.array([*tiers, max(tiers, default=0) + 1], dtype=np.int64)
        self.index: Mapping[str, int] = {name: i for i, name in enumerate(self.names)}
        self.parent: Rows = np.full(top + 1, top, dtype=np.intp)
        self.parent[top] = _NONE
        self.error = _flaw_of(places, ordered)
        for name in ordered if self.error is None else ():
            for child in places[name].children:
                self.parent[self.index[child]] = self.index[name]
        row_of = {info.name: row for row, info in enumerate(infos)}
        self.rows: list[Rows] = [
            np.array(sorted(row_of[n] for n in places[name].nodes if n in row_of), dtype=np.intp) for name in ordered
        ]
        self.rows.append(np.arange(len(infos), dtype=np.intp))
        self.levels: list[int] = sorted({int(tier) for tier in self.tiers})
        self.tier_names = tier_names
        self._paths: dict[int, Rows] = {}
        self.leaf: Rows = np.full(len(infos), top, dtype=np.intp)
        self.within: Rows = np.full((len(self.levels), len(infos)), _NONE, dtype=np.intp)
        self.error = self.error or self._laid()
        self.lineage: Rows = self._lineage()
        self._first, self._last = self._numbered()

    def _laid(self) -> TreeError | None:
        """Set the domain of each node at each level; returns an error if a node is in two branches."""
        level = {tier: i for i, tier in enumerate(self.levels)}
        highest = np.full(self.leaf.shape, _NONE, dtype=np.intp)
        for d in range(self.top + 1):
            rows = self.rows[d]
            below = highest[rows]
            astray = (below != _NONE) & (self.parent[below] != d)
            if astray.any() and d != self.top:
                node = int(rows[int(astray.argmax())])
                other = self.names[int(highest[node])]
                return TreeError(self.names[d], f"one of its nodes is in {other} as well, which is not below it")
            self.leaf[rows[below == _NONE]] = d
            self.within[level[int(self.tiers[d])], rows] = d
            highest[rows] = d
        return None

    def _lineage(self) -> Rows:
        level = {tier: i for i, tier in enumerate(self.levels)}
        lineage: Rows = np.full((len(self.levels), len(self)), _NONE, dtype=np.intp)
        for index in range(self.top, -1, -1):  # parents have higher numbers than their children
            if index != self.top:
                lineage[:, index] = lineage[:, self.parent[index]]
            lineage[level[int(self.tiers[index])], index] = index
        return lineage

    def __len__(self) -> int:
        return len(self.names)

    @property
    def top(self) -> int:
        """The number of the whole cluster."""
        return len(self.names) - 1

    def domain(self, index: int) -> Domain:
        return Domain(index, self.names[index], int(self.tiers[index]), self.rows[index])

    def path(self, index: int) -> Iterator[int]:
        """The domain and its ancestors, upwards."""
        while index != _NONE:
            yield index
            index = int(self.parent[index])

    def meet(self, one: int, other: int) -> int:
        """The lowest common ancestor of both, or one of them."""
        above = set(self.path(one))
        return next(index for index in self.path(other) if index in above)

    def around(self, rows: Sequence[int]) -> int | None:
        """The lowest domain that has all these nodes; None without nodes."""
        if not len(rows):
            return None
        leaves = np.unique(self.leaf[np.asarray(rows, dtype=np.intp)])
        index = int(leaves[0])
        for leaf in leaves[1:]:
            index = self.meet(index, int(leaf))
        return index

    def highest(self, index: int, tier: int) -> int | None:
        """The highest ancestor up to this tier, or the domain itself; None if its own tier is higher."""
        found = None
        for above in self.path(index):
            if self.tiers[above] > tier:
                break
            found = above
        return found

    def below(self, root: int, tier: int) -> npt.NDArray[np.intp]:
        """The root and its descendants up to this tier, in the order of their numbers."""
        return np.flatnonzero(self._inside(root) & (self.tiers <= tier))

    def is_leaf(self, index: int) -> bool:
        """Whether the domain has no child domains."""
        return not (self.parent == index).any()

    def meeting_tiers(self, index: int) -> npt.NDArray[np.int64]:
        """The tier of the lowest common ancestor of each domain and this one, [D]."""
        tiers = np.full(len(self), int(self.tiers[self.top]), dtype=np.int64)
        for above in reversed(list(self.path(index))):
            tiers[self._inside(above)] = self.tiers[above]
        return tiers

    def _inside(self, root: int) -> npt.NDArray[np.bool_]:
        """Whether each domain is the root or its descendant, [D]."""
        return (self._first >= self._first[root]) & (self._first < self._last[root])

    def _numbered(self) -> tuple[Rows, Rows]:
        """Preorder numbers, so that the descendants of a domain follow it, and the number after the last descendant,
        [D]."""
        sizes = np.ones(len(self), dtype=np.intp)
        for index in range(self.top):  # children have lower numbers than their parents
            sizes[self.parent[index]] += sizes[index]
        first = np.zeros(len(self), dtype=np.intp)
        free = first + 1
        for index in range(self.top - 1, -1, -1):
            parent = self.parent[index]
            first[index] = free[parent]
            free[index] = first[index] + 1
            free[parent] += sizes[index]
        return first, first + sizes

    def sums(self, values: Floats) -> Floats:
        """The sum in each domain, [D], of values per node, [N]."""
        total = np.zeros(len(self))
        for domains in self.within:
            there = domains != _NONE
            total += np.bincount(domains[there], weights=values[there], minlength=len(self))
        return total

    def add(self, sums: Floats, rows: Rows, more: Floats) -> None:
        """Add the increases of the values of these nodes, [len(rows)] or [K, len(rows)], to the sums, [D] or [K, D]."""
        for i, row in enumerate(rows):
            sums[..., self.around_row(int(row))] += more[..., i, None]

    def around_row(self, row: int) -> Rows:
        """The domains of a node, from the lowest up."""
        leaf = int(self.leaf[row])
        known = self._paths.get(leaf)
        if known is None:
            known = self._paths[leaf] = np.array(list(self.path(leaf)), dtype=np.intp)
        return known


def _flaw_of(places: Mapping[str, Place], ordered: Sequence[str]) -> TreeError | None:
    for name in sorted(ordered):
        for flaw in places[name].flaws:
            if flaw.reason in _FATAL:
                return TreeError(name, flaw.message)
    return None


class _Keeper:
    """The tree of a snapshot, and the inputs that it was built from."""

    def __init__(self) -> None:
        self._topology = Topology()
        self._views: dict[str, HyperNodeView] = {}
        self._nodes: dict[str, dict[str, str]] = {}
        self._made_at: tuple[int, int] | None = None
        self._tree: Domains | None = None

    def tree(self, state: Snapshot) -> Domains:
        at = (state.facts.stamp(HyperNodeView), state.static_stamp)
        if self._tree is None or at != self._made_at:
            self._tree = self._read(state)
            self._made_at = at
        return self._tree

    def _read(self, state: Snapshot) -> Domains:
        views = state.facts.of(HyperNodeView)
        infos = state.nodes.infos
        self._read_nodes(infos if views else ())
        for name in self._views.keys() - views.keys():
            self._topology.remove_hyper_node(name)
        for name, view in views.items():
            if self._views.get(name) is not view:
                self._topology.set_hyper_node(name, view.spec)
        self._views = dict(views)
        tier_names: dict[str, int] = {}
        for view in views.values():
            name, tier = view.spec.tier_name, view.spec.tier
            if name:
                tier_names[name] = min(tier, tier_names.get(name, tier))
        return Domains(self._topology.places(), tier_names, infos)

    def _read_nodes(self, infos: Sequence[NodeInfo]) -> None:
        present = {info.name: info.labels for info in infos}
        for name in self._nodes.keys() - present.keys():
            self._topology.remove_node(name)
        for name, labels in present.items():
            if self._nodes.get(name) is not labels:
                self._topology.set_node(name, labels)
        self._nodes = present


def domains_of(state: Snapshot) -> Domains:
    """The tree of the snapshot. Valid for the whole cycle, because nodes and HyperNodes don't change in one."""
    keeper: _Keeper | None = state.memory.get(_MEMORY)
    if keeper is None:
        keeper = state.memory[_MEMORY] = _Keeper()
    return keeper.tree(state)


def changed_rows(log: Sequence[tuple[object, Sequence[int]]], cursor: int) -> Rows:
    """The rows of the nodes that the placer's log names from `cursor` on, each once, ascending."""
    return np.array(sorted({int(row) for _, rows in log[cursor:] for row in rows}), dtype=np.intp)
