"""The quotas of queues: deserved, guarantee and capability of their specs, and the limits that follow in the hierarchy.

Shapes are [Q, R], queues by the index of their tree, quantities in the units of `resources`. Masks distinguish a
quantity that isn't given from one of zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vcbatch.api.scheduling import QueueSpecView
from vcbatch.scheduler.model.resources import CPU, EPS, MEMORY, PODS, Dimensions, Mask, Matrix, Vector
from vcbatch.scheduler.queues.tree import QueueTree

Masks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of the specs, for the resources that the cluster knows."""

    deserved: Matrix
    deserved_named: Masks
    guarantee: Matrix
    capability: Matrix
    limited: Masks
    """Where `capability` is a limit: the resources that it names, except cpu and memory of zero."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The effective limits: `most` is the real capability, the most that a queue may use (infinite where nothing limits
    it); `deserved` is the share that it may reclaim from others, where `deserved_named`."""

    most: Matrix
    deserved: Matrix
    deserved_named: Masks
    guarantee: Matrix


def quotas_of(tree: QueueTree, dims: Dimensions) -> Quotas:
    """The quotas of the specs as arrays."""
    shape = (len(tree), len(dims))
    deserved, guarantee, capability = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    deserved_named, limited = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for i, queue in enumerate(tree.queues):
        spec = QueueSpecView() if queue is None else queue.view.spec
        deserved[i], deserved_named[i] = _amounts(dims, spec.deserved)
        capability[i], limited[i] = _amounts(dims, spec.capability)
        guarantee[i], _ = _amounts(dims, spec.guarantee.resource if spec.guarantee else None)
    limited[:, [CPU, MEMORY]] &= capability[:, [CPU, MEMORY]] > 0
    return Quotas(deserved, deserved_named, guarantee, capability, limited)


def _amounts(dims: Dimensions, quantities: dict[str, str | int | float] | None) -> tuple[Vector, Mask]:
    amounts, named = np.zeros(len(dims)), np.zeros(len(dims), dtype=bool)
    for name, quantity in (quantities or {}).items():
        column = dims.column(name)
        if column is not None:
            amounts[column], named[column] = dims.amount(name, quantity), True
    return amounts, named


def flat_limits(quotas: Quotas, total: Vector) -> Limits:
    """Limits of queues without a hierarchy on a cluster of `total` [R]: each may use what the others' guarantees
    leave."""
    open_to_all = np.maximum(total - quotas.guarantee.sum(axis=0), 0.0)
    most = np.minimum(open_to_all + quotas.guarantee, np.where(quotas.limited, quotas.capability, np.inf))
    offered = np.where(total > 0, most, np.inf)
    deserved = np.maximum(np.minimum(quotas.deserved, offered), quotas.guarantee)
    return Limits(most, deserved, quotas.deserved_named | (quotas.guarantee > 0), quotas.guarantee)


def tree_limits(tree: QueueTree, quotas: Quotas) -> Limits:
    """Limits of queues in a hierarchy, computed from the root down: each child may use its own guarantee and the part
    of its parent's limit that isn't guaranteed to its siblings; a capability that isn't given is the parent's.

    The root may use anything that its spec doesn't limit; its guarantee and deserved share are the sums of its
    children's. A queue without a valid position in the tree has a limit of zero, and keeps its deserved share.
    """
    guarantee = quotas.guarantee.copy()
    deserved = np.maximum(quotas.deserved, guarantee)
    named = quotas.deserved_named | (guarantee > 0)
    capability = np.where(quotas.limited, quotas.capability, np.inf)
    most = np.where((tree.place & (tree.depth == 0))[:, None], capability, 0.0)
    promised = np.zeros_like(guarantee)
    children = np.flatnonzero(tree.parent >= 0)
    np.add.at(promised, tree.parent[children], guarantee[children])
    for depth in range(1, int(tree.depth.max(initial=0)) + 1):
        here = np.flatnonzero(tree.depth == depth)
        above = tree.parent[here]
        capability[here] = np.where(quotas.limited[here], quotas.capability[here], capability[above])
        rest = np.maximum(most[above] - promised[above], 0.0)
        most[here] = np.minimum(rest + guarantee[here], capability[here])
    for root in np.flatnonzero((tree.parent < 0) & tree.place & ~tree.leaf):
        below = tree.parent == root
        guarantee[root] = promised[root]
        deserved[root] = deserved[below].sum(axis=0)
        named[root] = named[below].any(axis=0)
    return Limits(most, deserved, named, guarantee)


def anything(amounts: Matrix) -> Masks:
    """Which rows have a quantity above zero of any resource but pods; [Q]."""
    there: Masks = amounts >= EPS
    there[:, PODS] = False
    return np.asarray(there.any(axis=1))
