"""The hierarchy of queues, and the queues whose position in it is invalid.

`spec.parent` names the parent queue; a queue without one is a child of `root`, which needn't exist as an object. An
invalid position affects the queue and its descendants alone; other queues are scheduled as if these didn't exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.objects import Queue
from vcbatch.scheduler.model.resources import Matrix

ROOT_QUEUE = "root"
Indexes = npt.NDArray[np.intp]

_NAMED = 3
"""How many queues a sentence names at most."""


class ErrorKind(StrEnum):
    """Why a queue's position in the hierarchy is invalid."""

    UNKNOWN_PARENT = "UnknownParent"
    """Its parent doesn't exist."""
    CYCLE = "Cycle"
    """The queue is its own ancestor."""
    BELOW_ERROR = "BelowError"
    """An ancestor's position is invalid."""
    NOT_LEAF = "NotLeaf"
    """The queue has children, so its own gangs wait; its children's don't."""


@dataclass(frozen=True, slots=True)
class QueueError:
    """Why no gang of this queue is admitted or placed. `culprits` are the missing parent, the queues of the cycle in
    order, the ancestor whose position is invalid, or the children."""

    kind: ErrorKind
    queue: str
    culprits: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The error and how to fix it."""
        match self.kind:
            case ErrorKind.UNKNOWN_PARENT:
                what = f"has the parent {self.culprits[0]}, which doesn't exist; create it or change spec.parent"
            case ErrorKind.CYCLE:
                what = f"is above itself ({_few(self.culprits, ' below ')}); change spec.parent of one of them"
            case ErrorKind.BELOW_ERROR:
                what = f"is below queue {self.culprits[0]}, which has no place in the tree of queues"
            case ErrorKind.NOT_LEAF:
                what = f"takes no gangs, as it has queues below it ({_few(self.culprits, ', ')}); use one of those"
            case _:
                assert_never(self.kind)
        return f"queue {self.queue} {what}"


def _few(queues: Sequence[str], between: str) -> str:
    more = f" and {len(queues) - _NAMED} more" if len(queues) > _NAMED else ""
    return between.join(queues[:_NAMED]) + more


class QueueTree:
    """Q queues by name order, `root` among them even where there is no such object.

    Attributes:
        names: by index.
        queues: by index, None for a root that is no object.
        parent: index of the parent queue, -1 for the root and where there is none; [Q].
        depth: number of ancestors, 0 for the root and for queues without a valid position; [Q].
        chains: by index, the queue and its ancestors, nearest first, the root last.
        leaf: whether the queue has no children; [Q].
        place: whether the queue's position is valid; [Q].
        index: by the row of a queue, its index; the last entry, which row -1 reads, is Q.
        errors: by name, of queues without a valid position.
    """

    def __init__(self, queues: Mapping[str, Queue], *, hierarchical: bool = True) -> None:
        """`hierarchical` False makes every queue a tree of its own: no root, no parents, no errors."""
        named = {*queues, ROOT_QUEUE} if hierarchical else set(queues)
        self.hierarchical = hierarchical
        self.names: list[str] = sorted(named)
        self._at = {name: i for i, name in enumerate(self.names)}
        self.queues: list[Queue | None] = [queues.get(name) for name in self.names]
        self.errors: dict[str, QueueError] = {}
        self.chains: list[tuple[int, ...]] = [(i,) for i in range(len(self.names))]
        if hierarchical:
            _Climb(self, {name: queue.view.spec.parent or ROOT_QUEUE for name, queue in queues.items()}).all()
        count = len(self.names)
        self.parent: Indexes = np.array([c[1] if len(c) > 1 else -1 for c in self.chains], dtype=np.intp)
        self.depth: Indexes = np.array([len(c) - 1 for c in self.chains], dtype=np.intp)
        self.place = np.array([name not in self.errors for name in self.names], dtype=bool)
        self.leaf = np.ones(count, dtype=bool)
        self.leaf[self.parent[self.parent >= 0]] = False
        self.index: Indexes = np.full(2 + max((q.row for q in queues.values()), default=-1), count, dtype=np.intp)
        for i, queue in enumerate(self.queues):
            if queue is not None:
                self.index[queue.row] = i
        levels = max((len(c) for c in self.chains), default=1)
        self._above: Indexes = np.full((levels, count), count, dtype=np.intp)
        for i, chain in enumerate(self.chains):
            self._above[: len(chain), i] = chain

    def __len__(self) -> int:
        return len(self.names)

    def at(self, name: str) -> int:
        """The index of the queue of this name. Raises KeyError if there is none."""
        return self._at[name]

    def upwards(self, own: Matrix) -> Matrix:
        """Sums over each queue and its descendants, of quantities [Q, R] by index."""
        out: Matrix = np.zeros((len(self) + 1, own.shape[1]))
        for above in self._above:
            np.add.at(out, above, own)
        return out[: len(self)]

    @property
    def rows(self) -> int:
        """The number of rows of queues, unused ones included."""
        return len(self.index) - 1

    def by_index(self, amounts: Matrix) -> Matrix:
        """Quantities [rows, R] by the row of a queue, as [Q, R]."""
        out: Matrix = np.zeros((len(self) + 1, amounts.shape[1]))
        out[self.index[:-1]] = amounts
        return out[: len(self)]

    def error(self, queue: Queue) -> QueueError | None:
        """Why gangs of this queue wait however much capacity is free; None if they don't."""
        known = self.errors.get(queue.name)
        if known is not None or not self.hierarchical:
            return known
        i = self._at[queue.name]
        if self.leaf[i]:
            return None
        below = tuple(self.names[int(j)] for j in np.flatnonzero(self.parent == i))
        return QueueError(ErrorKind.NOT_LEAF, queue.name, below)

    def common_depth(self, one: int, other: int) -> int:
        """The depth of the nearest queue that is an ancestor of both or one of them; -1 if there is none."""
        above = set(self.chains[one])
        return next((int(self.depth[i]) for i in self.chains[other] if i in above), -1)


class _Climb:
    """Finds the ancestors of every queue, or the error of its position."""

    def __init__(self, tree: QueueTree, parents: Mapping[str, str]) -> None:
        self._tree = tree
        self._parents = parents
        self._chains: dict[str, tuple[int, ...]] = {ROOT_QUEUE: (tree.at(ROOT_QUEUE),)}

    def all(self) -> None:
        for i, name in enumerate(self._tree.names):
            self._climb(name)
            self._tree.chains[i] = self._chains.get(name, (i,))

    def _climb(self, name: str) -> None:
        """Walk up to a queue whose ancestors or error are known, then set those of the queues on the way, the topmost
        first."""
        path: list[str] = []
        passed: set[str] = set()
        errors = self._tree.errors
        while name not in self._chains and name not in errors:
            if name in passed:
                loop = path[path.index(name) :]
                for at, member in enumerate(loop):
                    errors[member] = QueueError(ErrorKind.CYCLE, member, (*loop[at:], *loop[:at], member))
                break
            path.append(name)
            passed.add(name)
            parent = self._parents[name]
            if parent not in self._parents and parent != ROOT_QUEUE:
                errors[name] = QueueError(ErrorKind.UNKNOWN_PARENT, name, (parent,))
                break
            name = parent
        for queue in reversed(path):
            if queue in errors:
                continue
            parent = self._parents[queue]
            if parent in errors:
                above = errors[parent]
                origin = above.culprits[0] if above.kind is ErrorKind.BELOW_ERROR else parent
                errors[queue] = QueueError(ErrorKind.BELOW_ERROR, queue, (origin,))
            else:
                self._chains[queue] = (self._tree.at(queue), *self._chains[parent])
