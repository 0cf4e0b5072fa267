"""What queues are given: their own deserved, guarantee and capability, and what of it counts among the others.

Shapes are [Q, R], queues by the index of their tree, amounts in the units of `resources`. An amount that isn't named is
told from one that is zero by the masks.
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
    """What the specs say, as far as there are such resources."""

    deserved: Matrix
    deserved_named: Masks
    guarantee: Matrix
    capability: Matrix
    limited: Masks
    """Where `capability` limits: what it names, save cpu and memory of zero."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts: `most` is what a queue may hold at all (real capability, infinite where nothing limits it),
    `deserved` what it may ask back from others, where `deserved_named`."""

    most: Matrix
    deserved: Matrix
    deserved_named: Masks
    guarantee: Matrix


def quotas_of(tree: QueueTree, dims: Dimensions) -> Quotas:
    """The specs as arrays."""
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
    """Queues beside each other on a cluster of `total` [R]: each may hold what the others' guarantees leave."""
    open_to_all = np.maximum(total - quotas.guarantee.sum(axis=0), 0.0)
    most = np.minimum(open_to_all + quotas.guarantee, np.where(quotas.limited, quotas.capability, np.inf))
    offered = np.where(total > 0, most, np.inf)
    deserved = np.maximum(np.minimum(quotas.deserved, offered), quotas.guarantee)
    return Limits(most, deserved, quotas.deserved_named | (quotas.guarantee > 0), quotas.guarantee)


def tree_limits(tree: QueueTree, quotas: Quotas) -> Limits:
    """Queues below each other, from the root down: what a parent may hold less its children's guarantees is open to
    each of them beside its own guarantee; a capability that isn't given is the parent's.

    The root may hold anything that its spec doesn't limit; it guarantees and deserves what its children do. A queue
    without a place may hold nothing, and keeps what it deserves.
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
    """Which rows have an amount of anything but pods; [Q]."""
    there: Masks = amounts >= EPS
    there[:, PODS] = False
    return np.asarray(there.any(axis=1))
