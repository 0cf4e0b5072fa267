"""Hierarchical dominant resource fairness: dominant shares over the tree that the annotations of queues describe.

`volcano.sh/hierarchy` is a path (`root/eng/dev`), `volcano.sh/hierarchy-weights` a weight for each of its parts
(`1/2/3`). Inner nodes are groups of queues, the last part is the queue's own, below it are its gangs. Where queues
disagree on the weight of a group, the first queue by name decides.

The model is that of Bhattacharya et al. (SoCC 2013): the allocations of children are scaled to the smallest dominant
share among those with unmet demand, so that a child which got much of a resource that no other child demands isn't
penalized for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from vcbatch.api import names
from vcbatch.scheduler.model.objects import Job, Queue
from vcbatch.scheduler.model.resources import Mask, Matrix, Vector
from vcbatch.scheduler.queues.tree import ROOT_QUEUE

_Rows = npt.NDArray[np.intp]
_key = attrgetter("key")
_name = attrgetter("name")


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a queue in the tree: its path below the root, and the weight of each part. `error` describes an
    error of its annotations; such a queue is a child of the root with weight 1."""

    parts: tuple[str, ...]
    weights: tuple[float, ...]
    error: str = ""


def place_of(queue: Queue) -> Place:
    """The position by the queue's annotations; without them it is a child of the root with weight 1. A weight that is
    below 1 or isn't a number counts as 1; there must be as many weights as the path has parts."""
    notes = queue.view.metadata.annotations or {}
    path, weights = notes.get(names.HIERARCHY, ""), notes.get(names.HIERARCHY_WEIGHTS, "")
    own = Place((queue.name,), (1.0,))
    if not path:
        return own
    parts = path.split("/")
    if parts[0] != ROOT_QUEUE or len(parts) < 2 or not all(parts):
        what = f"{names.HIERARCHY} must be a path that starts with {ROOT_QUEUE}/, got {path!r}"
        return Place(own.parts, own.weights, f"queue {queue.name}: {what}")
    given = weights.split("/") if weights else ["1"] * len(parts)
    if len(given) != len(parts):
        what = f"{names.HIERARCHY_WEIGHTS} must have {len(parts)} weights, one for each part of {path!r}"
        return Place(own.parts, own.weights, f"queue {queue.name}: {what}, got {weights!r}")
    return Place(tuple(parts[1:]), tuple(_weight(text) for text in given[1:]))


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 1.0 <= weight < float("inf") else 1.0


class _Node:
    """A group of queues, or a queue with its gangs. `rows` are those of the gangs; `stale` if quantities below it
    changed since its own were computed."""

    __slots__ = ("allocated", "children", "rows", "saturated", "share", "stale", "weight")

    def __init__(self, weight: float, width: int) -> None:
        self.weight = weight
        self.children: dict[str, _Node] = {}
        self.rows: _Rows = np.zeros(0, dtype=np.intp)
        self.allocated: Vector = np.zeros(width)
        self.share = 0.0
        self.saturated = False
        self.stale = True


class SharesTree:
    """The shares of all groups and queues. Quantities are of the D resources that the cluster has.

    A node is recomputed if something below it changed; all nodes are if a resource is exhausted or available again.
    """

    def __init__(self, *, total: Vector, held: Matrix, request: Matrix, queues: Iterable[Queue]) -> None:
        """`held` and `request` are [J, D] by the rows of gangs; the former is changed in place by `move`."""
        self._total = total
        self._held = held
        self._request = request
        self._root = _Node(1.0, len(total))
        self._paths: dict[str, list[_Node]] = {}
        self.errors: dict[str, str] = {}
        self._allocated: Vector = np.zeros(len(total))
        for queue in sorted(queues, key=_name):
            self._plant(queue)
        self._wanted = self._demanding()

    def _plant(self, queue: Queue) -> None:
        place = place_of(queue)
        if place.error:
            self.errors[queue.name] = place.error
        node, path = self._root, [self._root]
        for part, weight in zip(place.parts, place.weights, strict=True):
            child = node.children.get(part)
            if child is None:
                child = node.children[part] = _Node(weight, len(self._total))
            node = child
            path.append(node)
        self._paths[queue.name] = path
        jobs: Sequence[Job] = sorted(queue.jobs.values(), key=_key)
        rows = np.array([job.row for job in jobs], dtype=np.intp)
        node.rows = np.concatenate([node.rows, rows])
        self._allocated += self._held[rows].sum(axis=0)

    def _demanding(self) -> Mask:
        """Which resources aren't exhausted; [D]."""
        return np.asarray(self._allocated < self._total)

    def move(self, job: Job, amounts: Vector) -> None:
        """Add the quantities, [D], to the gang's allocation; negative ones reduce it."""
        if job.queue is None:
            return
        self._held[job.row] += amounts
        self._allocated += amounts
        for node in self._paths[job.queue.name]:
            node.stale = True
        wanted = self._demanding()
        if (wanted != self._wanted).any():
            self._wanted = wanted
            self._age(self._root)

    def _age(self, node: _Node) -> None:
        node.stale = True
        for child in node.children.values():
            self._age(child)

    def standing(self, queue: str) -> tuple[float, ...]:
        """A sort key of queues, the first to be served being the lowest: for each part of the path, whether it has no
        unmet demand, and the share divided by the weight."""
        self._refresh(self._root)
        return tuple([v for n in self._paths[queue][1:] for v in (float(n.saturated), n.share / n.weight)])

    def before(self, one: str, other: str) -> bool:
        """Whether the first queue precedes the other, by the parts of the path that both have."""
        mine, theirs = self.standing(one), self.standing(other)
        common = min(len(mine), len(theirs))
        return mine[:common] < theirs[:common]

    def _refresh(self, node: _Node) -> None:
        if not node.stale:
            return
        for child in node.children.values():
            self._refresh(child)
        below = list(node.children.values())
        held, request = self._held[node.rows], self._request[node.rows]
        has = (held != 0) & (request != 0) & (held >= request)
        sated = (has | (~self._wanted & (request != 0))).any(axis=1)
        held = np.concatenate([held, *[child.allocated[None] for child in below]])
        sated = np.concatenate([sated, np.array([child.saturated for child in below], dtype=bool)])
        shares = (held / self._total).max(axis=1, initial=0.0)
        counted = shares > 0
        least = float(shares[counted & ~sated].min(initial=1.0))
        scale = np.where(sated, 1.0, least / np.where(counted, shares, 1.0))
        node.allocated = (held * np.where(counted, scale, 0.0)[:, None]).sum(axis=0)
        node.share = float((node.allocated / self._total).max(initial=0.0))
        node.saturated = bool(sated.all())  # without gangs there is no demand
        node.stale = False
