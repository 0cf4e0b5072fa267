"""Places pods near each other in the network, and packs network topology domains, so that large ones stay free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import DomainRequest, Leaning, Plugin
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Job
from vcbatch.scheduler.model.resources import CPU, MEMORY, Mask, Vector
from vcbatch.scheduler.model.sub_gangs import SubKey
from vcbatch.scheduler.topology.domain_search import DomainSearch
from vcbatch.scheduler.topology.domains import Domains, changed_rows

_WEIGHT = "weight"
_BINPACK = "hypernode.binpack"
_RESOURCES = f"{_BINPACK}.resources"
_NORMAL = f"{_BINPACK}.normal-pod.enable"
_FADING = f"{_BINPACK}.normal-pod.fading"
_BEST_FIT = "hypernode.best-fit.enable"
_MOST_EVICTED = "hypernode.gradient.evict.max-hypernodes"
_DEFAULT = 1


class NetworkTopologyAware(Plugin):
    """Scores domains by their utilization with the gang, nodes by their distance to the gang's other pods, and the
    nodes for gangs without a topology by the utilization of the domains around them.

    The utilization of a domain is the weighted mean over the resources that are requested and have a weight, 0 if one
    of them would be exceeded.
    """

    ARGUMENTS = ArgumentSpec(
        named={
            _WEIGHT: Argument(default=_DEFAULT, minimum=0),
            f"{_BINPACK}.cpu": Argument(default=_DEFAULT),
            f"{_BINPACK}.memory": Argument(default=_DEFAULT),
            _RESOURCES: Argument(default=""),
            _NORMAL: Argument(default=True),
            _FADING: Argument(default=0.8, minimum=0),
            _MOST_EVICTED: Argument(default=8, minimum=1),
            _BEST_FIT: Argument(default=False),
        },
        prefixed={f"{_RESOURCES}.": Argument(default=_DEFAULT)},
    )

    def open(self, session: Handle) -> None:
        self._session = session
        self._points = 100.0 * int(self.arguments[_WEIGHT])
        self._weights: dict[int, int] = {
            CPU: self._read(f"{_BINPACK}.cpu"),
            MEMORY: self._read(f"{_BINPACK}.memory"),
        }
        for name in str(self.arguments[_RESOURCES]).split(","):
            column = session.dims.column(name.strip())
            if column is not None:
                self._weights[column] = self._read(f"{_RESOURCES}.{name.strip()}")
        self._fullness: Fullness | None = None

    def _read(self, argument: str) -> int:
        given = int(self.arguments.get(argument, _DEFAULT))
        return given if given >= 0 else _DEFAULT

    @property
    def fullness(self) -> Fullness:
        """The present utilization of the domains."""
        if self._fullness is None:
            self._fullness = Fullness(self._session, self._weights)
        return self._fullness

    # Network topology domains

    def domain_order(
        self, job: Job, sub: SubKey | None, groups: Sequence[Rows], *, evicting: bool
    ) -> Sequence[Rows] | None:
        """For evictions, wide domains first, and at most `hypernode.gradient.evict.max-hypernodes` of them; otherwise
        no opinion."""
        if not evicting:
            return None
        left = int(self.arguments[_MOST_EVICTED])
        order: list[Rows] = []
        for group in reversed(groups):
            if left > 0:
                order.append(group[:left])
                left -= len(order[-1])
        return order

    def domain_scores(self, request: DomainRequest, domains: Rows) -> Floats | None:
        """The domain of the highest utilization first, or with `best-fit` the one with the fewest slots to spare; among
        equals the one with most of the gang's tasks."""
        if self.arguments[_BEST_FIT]:
            scores = 1.0 / (1.0 + np.maximum(request.spare[domains], 0.0))
        else:
            scores = self.fullness.after(request.amount)[domains]
        share = self._share(request.job, request.sub)
        if share is not None and len(domains):
            scores = scores + np.where(scores == scores.max(), share[domains], 0.0)
        return self._points * scores

    def _share(self, job: Job, sub: SubKey | None) -> Floats | None:
        """The part of the gang's tasks that is in each domain, [D]; None while none is placed."""
        rows = self._session.shared(DomainSearch).rows_held(job, sub)
        if not rows:
            return None
        counts = np.bincount(rows, minlength=len(self._session.nodes)).astype(np.float64)
        return self._session.shared(DomainSearch).tree.sums(counts) / _size(job, sub)

    # Nodes

    def leaning(self, job: Job, sub: SubKey | None, cls: TaskClass, domain: int | None) -> Leaning | None:
        search = self._session.shared(DomainSearch)
        if not self._points or search.tree.error is not None or len(search.tree) == 1:
            return None
        if job.bound_to_domains:
            if domain is not None and search.tree.is_leaf(domain):
                return None
            rows = search.rows_held(job, sub)
            return Nearness(search.tree, rows or (), size=_size(job, sub), points=self._points)
        if not self.arguments[_NORMAL]:
            return None
        return Filling(self.fullness.packing(cls), fading=float(self.arguments[_FADING]), points=self._points)


def _size(job: Job, sub: SubKey | None) -> int:
    return max(len(job.tasks) if sub is None else sum(job.subs.get(sub, ())), 1)


class Fullness:
    """The used and allocatable resources of each domain, of the resources with a weight.

    Only nodes that changed are read again. `used` and `alloc` are [K, D], for the K resources of `columns`, and
    `changes` has the domains whose `used` changed, change by change.
    """

    def __init__(self, session: Handle, weights: dict[int, int]) -> None:
        self.tree: Domains = session.shared(DomainSearch).tree
        self._session = session
        self.columns = np.array([r for r, weight in sorted(weights.items()) if weight], dtype=np.intp)
        self.weights: Floats = np.array([weights[int(r)] for r in self.columns], dtype=np.float64)
        self._cursor = len(session.placer.log)
        self._read: Floats = session.nodes.used[self.columns].copy()
        self.used: Floats = self._sums(self._read)
        self.alloc: Floats = self._sums(session.nodes.alloc[self.columns])
        self.changes: list[Rows] = []
        self._packings: dict[int, Packing] = {}

    def _sums(self, amounts: Floats) -> Floats:
        """The sums by domain, [K, D], of quantities per node, [K, N]."""
        return np.array([self.tree.sums(row) for row in amounts]).reshape(len(amounts), len(self.tree))

    def refresh(self) -> None:
        """Apply the placements since the last call."""
        log = self._session.placer.log
        if self._cursor == len(log):
            return
        rows = changed_rows(log, self._cursor)
        now = self._session.nodes.used[self.columns[:, None], rows]
        self.tree.add(self.used, rows, now - self._read[:, rows])
        self._read[:, rows] = now
        self.changes += [self.tree.around_row(int(row)) for row in rows]
        self._cursor = len(log)

    def after(self, amount: Vector) -> Floats:
        """The utilization of each domain with this request, [R], added; [D]."""
        self.refresh()
        return Packing(self, amount).full

    def packing(self, cls: TaskClass) -> Packing:
        """The utilization of each domain with a task of the class added; kept between calls."""
        self.refresh()
        known = self._packings.get(cls.id)
        if known is None:
            known = self._packings[cls.id] = Packing(self, cls.request)
        known.refresh()
        return known


class Packing:
    """The utilization of domains with a request, [R], added: the weighted mean over the resources that are requested
    and have a weight, 0 if one would be exceeded; `full`, [D]."""

    def __init__(self, fullness: Fullness, amount: Vector) -> None:
        self.tree = fullness.tree
        self._fullness = fullness
        self._asked = np.flatnonzero(amount[fullness.columns] > 0)
        self.amount: Floats = amount[fullness.columns[self._asked], None]
        self._weights: Floats = fullness.weights[self._asked, None]
        self._total = float(self._weights.sum())
        self._seen = len(fullness.changes)
        self.full: Floats = self.of(np.arange(len(self.tree), dtype=np.intp))

    def refresh(self) -> None:
        changes = self._fullness.changes[self._seen :]
        if changes:
            domains = changes[0] if len(changes) == 1 else np.unique(np.concatenate(changes))
            self.full[domains] = self.of(domains)
            self._seen = len(self._fullness.changes)

    def of(self, domains: Rows, more: Floats | None = None) -> Floats:
        """The utilization of some domains with the request and `more` of the requested resources in them, [K,
        len(domains)]."""
        if not self._total:
            return np.zeros(len(domains))
        used = self._fullness.used[self._asked[:, None], domains] + self.amount
        if more is not None:
            used += more
        alloc = self._fullness.alloc[self._asked[:, None], domains]
        full: Floats = np.divide(used, alloc, out=np.zeros(used.shape), where=alloc > 0)
        within = (used <= alloc).all(axis=0)
        return np.where(within, (self._weights * full).sum(axis=0) / self._total, 0.0)


class Filling:
    """Scores for pods of gangs without a topology: nodes in domains of high utilization first, and nodes in no domain
    before all others.

    The score is the mean over the tiers of the utilization of the node's domain of that tier, 1 if it has none; each
    tier is weighted by `fading` to the power of its number less one.
    """

    def __init__(self, packing: Packing, *, fading: float, points: float) -> None:
        self._tree = tree = packing.tree
        self._packing = packing
        self._full: Floats = np.append(packing.full, 1.0)  # of no domain, number -1
        self._more: Floats | None = None
        weights = np.array([fading ** max(tier - 1, 0) for tier in tree.levels[:-1]])
        self._weights: Floats = (points * weights / weights.sum() if weights.sum() > 0 else weights)[:, None]
        self._now: Floats | None = None

    def points(self, rows: Rows, candidates: Mask) -> Floats:
        now = self._now
        if now is None:
            by_domain: Floats = (self._weights * self._full[self._tree.lineage[:-1]]).sum(axis=0)
            now = self._now = by_domain[self._tree.leaf]
        return now if len(rows) == len(now) else now[rows]

    def placed(self, row: int) -> None:
        domains = self._tree.around_row(row)
        if self._more is None:
            self._more = np.zeros((len(self._packing.amount), len(self._tree)))
        self._more[:, domains] += self._packing.amount
        self._full[domains] = self._packing.of(domains, self._more[:, domains])
        self._now = None


class Nearness:
    """Scores for pods of gangs with a topology: nodes near the gang's other pods first, by the tier at which a node's
    domain meets the domain around these; among the nearest those in domains with most of them."""

    def __init__(self, tree: Domains, held: Sequence[int], *, size: int, points: float) -> None:
        self._tree = tree
        self._size = size
        self._points = points
        self._around = tree.around(held)
        self._counts: Floats = np.bincount(tree.leaf[list(held)], minlength=len(tree)).astype(np.float64)
        self._near: Floats | None = None

    def points(self, rows: Rows, candidates: Mask) -> Floats:
        if self._around is None:
            return np.zeros(len(rows))
        if self._near is None:
            self._near = self._nearness(self._around)
        leaves = self._tree.leaf[rows]
        near = self._near[leaves]
        nearest = near == near[candidates].max()
        return self._points * (near + np.where(nearest, self._counts[leaves] / self._size, 0.0))

    def _nearness(self, around: int) -> Floats:
        """1 in the domain around the gang, and lower the higher the tier at which a domain meets it; [D]."""
        lowest, highest = self._tree.levels[0], self._tree.levels[-1]
        if lowest == highest:
            near = np.ones(len(self._tree))
        else:
            near = (highest - self._tree.meeting_tiers(around)) / (highest - lowest)
        near[around] = 1.0
        return near

    def placed(self, row: int) -> None:
        leaf = int(self._tree.leaf[row])
        self._counts[leaf] += 1
        around = leaf if self._around is None else self._tree.meet(self._around, leaf)
        if around != self._around:
            self._around, self._near = around, None
