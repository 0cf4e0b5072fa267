"""The best nodes for the next tasks of one class: exact greedy choice, kept up to date while others change nodes.

The score of a node with 0, 1, 2 … more tasks of a class depends on that node only, so it is computed for all nodes and
several depths at once. The node of a task is then the one with the best head; as long as no other view changes nodes,
the nodes of many tasks are found together (`merged`), whichever gangs the tasks belong to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.framework.placing.lookahead import Stacks, greatest, merged
from vcbatch.scheduler.framework.placing.static_nodes import StaticNodes
from vcbatch.scheduler.framework.plugin import Floats, Leaning, Normalise, Preference, Rows
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.resources import Mask

if TYPE_CHECKING:
    from vcbatch.scheduler.framework.placing.placement import Placer

NO: Final = -np.inf
"""The head of a node that takes no task."""
DEPTH: Final = 8
"""For how many tasks per node scores are computed at once."""
_BULK: Final = 16
"""The number of tasks from which on their nodes are found together."""
_UNDISTURBED: Final = 2
"""The number of turns without other changes of nodes after which also the nodes of fewer tasks are found together; 0 if
only tasks of the class are to come."""
_AHEAD: Final = (64, 1 << 14)
"""For how many tasks nodes are found ahead: where others may change nodes first, and at most."""
_FURTHER: Final = 4
"""The factor by which that number grows if no node changed in the meantime."""
_DEEPER: Final = 8
"""The factor by which more scores are computed of nodes whose known ones don't suffice."""


class _Bank:
    """Scores and slots of a class by the quantities on a node. Nodes of one type pass through the same few states, so
    most nodes that changed have a state that was scored before on another node."""

    MOST = 1 << 14
    """The most states that are kept, which limits the cost in a cluster in which no two nodes are equal."""

    __slots__ = ("_cls", "_known", "_placer", "_slots", "_table")

    def __init__(self, placer: Placer, cls: TaskClass) -> None:
        self._placer = placer
        self._cls = cls
        self._known: dict[bytes, int] = {}
        self._table: Floats = np.zeros((DEPTH, 64))
        self._slots: Floats = np.zeros(64)

    def read(self, rows: Rows, placed: int = 0) -> tuple[Floats, Floats]:
        """Scores [D, M] and slots [M] of these nodes, filters aside, with `placed` more tasks that are being placed
        there."""
        states = self._states(rows, placed)
        if len(self._known) + len(states) > self.MOST:
            self._known.clear()
        places = [self._known.get(state, -1) for state in states]
        if -1 in places:
            fresh = {state: row for state, row, place in zip(states, rows, places, strict=True) if place < 0}
            self._learn(list(fresh), np.array(list(fresh.values()), dtype=np.intp), placed)
            places = [self._known[state] for state in states]
        return self._table[:, places], self._slots[places]

    def _states(self, rows: Rows, placed: int) -> list[bytes]:
        nodes = self._placer.nodes
        load = nodes.load.take(rows, axis=1)
        if placed:
            load[: len(self._cls.placed)] += placed * self._cls.placed
        parts = [nodes.alloc.take(rows, axis=1), load]
        if self._placer.releases:
            parts.append(nodes.releasing.take(rows, axis=1))
        if nodes.leaving is not None:
            parts.append(nodes.leaving.take(rows, axis=1))
        amounts = np.concatenate(parts).T
        width, data = 8 * amounts.shape[1], amounts.tobytes()
        return [data[at : at + width] for at in range(0, len(data), width)]

    def _learn(self, states: list[bytes], rows: Rows, placed: int) -> None:
        count = len(self._known)
        while count + len(states) > len(self._slots):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)], axis=1)
            self._slots = np.concatenate([self._slots, np.zeros_like(self._slots)])
        here = slice(count, count + len(states))
        self._table[:, here], self._slots[here] = self._placer.score(self._cls, None, rows, placed, promising=False)
        self._known.update((state, count + i) for i, state in enumerate(states))


class View:
    """The heads of one class on some nodes: the score of the next task on each, and `-inf` where it can't be placed.

    `table[d, n]` is the score with d more tasks than when the column was computed, `slots[n]` how many fitted then, and
    `at[n]` how many were placed since. Columns that others changed are recomputed on the next use.
    """

    __slots__ = (
        "_ahead",
        "_horizon",
        "_next",
        "_patience",
        "_turns",
        "at",
        "bank",
        "base",
        "bonus",
        "cls",
        "cursor",
        "head",
        "placer",
        "promising",
        "rows",
        "slots",
        "static",
        "table",
    )

    def __init__(self, placer: Placer, cls: TaskClass, static: StaticNodes, rows: Rows, *, promising: bool) -> None:
        self.placer = placer
        self.cls = cls
        self.static = static
        self.rows = rows
        self.promising = promising
        self.bank = _Bank(placer, cls) if placer.plugins.by_amounts and not cls.ports and not promising else None
        self.cursor = len(placer.log)
        self.table, self.slots = self._column(rows, 0)
        self.at: npt.NDArray[np.intp] = np.zeros(len(rows), dtype=np.intp)
        self.base: Floats = self.table[0].copy()
        self.head: Floats = self.base
        self.bonus: Floats | None = None
        self._ahead: list[int] = []
        self._next = 0
        self._start_over()
        self._prefer()

    def take(self, count: int) -> list[int]:
        """Choose nodes for up to `count` tasks, in placement order; fewer if there are no more slots. The caller places
        the tasks before the view is used again."""
        self._refresh()
        taken = self._ahead[self._next : self._next + count]
        self._next += len(taken)
        if len(taken) < count:
            self._settle(taken)
            if count < _BULK and self._turns < self._patience:
                self._step(count - len(taken), taken)
            else:
                self._leap(count - len(taken), taken)
        self._turns += 1
        return [int(self.rows[i]) for i in taken] if len(self.rows) != len(self.placer.nodes) else taken

    def known(self, count: int) -> list[int] | None:
        """What `take` would return, for a view of all nodes, if it is known without computation; else None."""
        self._refresh()
        end = self._next + count
        if end > len(self._ahead):
            return None
        taken, self._next = self._ahead[self._next : end], end
        return taken

    def take_leaning(self, count: int, leaning: Leaning) -> list[int]:
        """`take` with scores that change with each placement."""
        self._refresh()
        self._settle(())
        taken: list[int] = []
        for _ in range(count):
            candidates = self.base != NO
            if not candidates.any():
                break
            best = int((self.head + leaning.points(self.rows, candidates)).argmax())
            taken.append(best)
            self._fill(best, taken)
            leaning.placed(int(self.rows[best]))
        return [int(self.rows[i]) for i in taken]

    def _start_over(self) -> None:
        """Reset how far ahead nodes are found: as far as possible if no other class is to be placed."""
        alone = self.placer.expects_only(self.cls, least=_BULK)
        self._horizon = _AHEAD[1 if alone else 0]
        self._patience = 0 if alone else _UNDISTURBED
        self._turns = 0

    # One after the other ---------------------------------------------------------------------------------------------

    def _step(self, count: int, taken: list[int]) -> None:
        """Take up to `count` more nodes, finding the best each time."""
        best, value, after = 0, NO, NO
        for _ in range(count):
            if value == NO or after < value:  # else the node is still the first of the best
                best = int(self.head.argmax())
                value = float(self.head[best])
                if value == NO:
                    return
            else:
                value = after
            taken.append(best)
            self._fill(best, taken)
            after = float(self.head[best])

    def _fill(self, best: int, taken: list[int]) -> None:
        """Advance the head of this node by one task, the last one in `taken`."""
        step = int(self.at[best]) + 1
        if step >= self.slots[best]:
            score = NO
        else:
            if step == DEPTH:
                column, slots = self._deeper(self.rows[best : best + 1], taken.count(best))
                self.table[:, best], self.slots[best] = column[:, 0], slots[0]
                step = 0
            score = float(self.table[step, best])
        self.at[best] = step
        self.base[best] = score
        if self.bonus is not None:
            if score == NO:
                self._prefer()
            else:
                self.head[best] = score + self.bonus[best]

    # Many at once ----------------------------------------------------------------------------------------------------

    def _leap(self, count: int, taken: list[int]) -> None:
        """Take up to `count` more nodes, and keep the nodes found beyond these for later calls."""
        while count:
            self._ahead = self._next_places(count, taken)
            self._next = min(count, len(self._ahead))
            if not self._next:
                return
            taken += self._ahead[: self._next]
            count -= self._next
            if count:
                self._settle(taken)
        self._horizon = min(_FURTHER * self._horizon, _AHEAD[1])

    def _next_places(self, count: int, taken: list[int]) -> list[int]:
        """The nodes of the next tasks, usually `count` or more, in placement order; empty if no node takes one. The
        tasks `taken` are being placed."""
        expected = self.placer.expected(self.cls)
        most = max(count, min(self._horizon, expected) if expected > 0 else self._horizon)
        nodes = greatest(self.head, most)
        if not len(nodes):
            return []
        piles = [self._stacks(nodes)]
        places, certain = merged(piles, most)
        depth = DEPTH
        while certain < len(places) // 2 or certain < min(count, len(places)):
            depth = min(_DEEPER * depth, most)
            deeper = self._dig(piles, places, depth, taken)
            piles = [pile.without(deeper.names) for pile in piles] + [deeper]
            places, certain = merged(piles, most)
        return self._while_preferred(places[:certain])

    def _stacks(self, nodes: Rows) -> Stacks:
        """The scores of these nodes with 0, 1, 2 … more tasks, as far as they are computed."""
        steps = self.at[nodes]
        index = steps + np.arange(DEPTH)[:, None]
        values = self.table[np.minimum(index, DEPTH - 1), nodes]
        values[index >= DEPTH] = NO
        if self.bonus is not None:
            values += self.bonus[nodes]
        return Stacks(nodes, values, DEPTH - steps, self.slots[nodes] > DEPTH)

    def _dig(self, piles: Sequence[Stacks], places: Rows, depth: int, taken: Sequence[int]) -> Stacks:
        """The stacks whose known items don't suffice for these nodes, with up to `depth` items."""
        times = np.bincount(places, minlength=len(self.rows))
        short = [pile.names[pile.more & (times[pile.names] >= pile.known)] for pile in piles]
        groups = list(_by_count(np.concatenate(short), taken))
        depth = int(min(depth, max(self.slots[nodes].max() for _, nodes in groups)))
        parts: list[Floats] = []
        slots: list[Floats] = []
        for placed, nodes in groups:
            values, left = self.placer.score(
                self.cls, self.static.mask, self.rows[nodes], placed, promising=self.promising, depth=depth
            )
            parts.append(values if self.bonus is None else values + self.bonus[nodes])
            slots.append(left)
        names = np.concatenate([nodes for _, nodes in groups])
        known = np.full(len(names), depth, dtype=np.intp)
        return Stacks(names, np.concatenate(parts, axis=1), known, np.concatenate(slots) > depth)

    def _while_preferred(self, places: Rows) -> list[int]:
        """These nodes up to the first after which the preferences, which are normalised over the nodes that still have
        slots, change."""
        if self.bonus is not None:
            nodes, last, counts = np.unique(places[::-1], return_index=True, return_counts=True)
            full = counts >= self.slots[nodes] - self.at[nodes]
            if full.any():
                after = self.base != NO
                after[nodes[full]] = False
                bonus = bonus_of(self.static.preferences, self.rows, after) if after.any() else None
                if bonus is None or not np.array_equal(bonus[after], self.bonus[after]):
                    places = places[: len(places) - int(last[full].max())]
        return places.tolist()

    def _settle(self, taken: Sequence[int]) -> None:
        """Update the heads for the nodes that were returned of those found ahead, and drop the others. The tasks
        `taken` are still being placed."""
        given, self._ahead, self._next = self._ahead[: self._next], [], 0
        if not given:
            return
        counts = np.bincount(given, minlength=len(self.rows))
        nodes = np.flatnonzero(counts)
        self.at[nodes] += counts[nodes]
        for placed, which in _by_count(nodes[(self.at[nodes] >= DEPTH) & (self.at[nodes] < self.slots[nodes])], taken):
            self.table[:, which], self.slots[which] = self._deeper(self.rows[which], placed)
            self.at[which] = 0
        steps = self.at[nodes]
        full = steps >= self.slots[nodes]
        heads = np.where(full, NO, self.table[np.minimum(steps, DEPTH - 1), nodes])
        self.base[nodes] = heads
        if self.bonus is not None:
            if full.any():
                self._prefer()
            else:
                self.head[nodes] = heads + self.bonus[nodes]

    def _deeper(self, rows: Rows, placed: int) -> tuple[Floats, Floats]:
        """The columns of nodes that were taken to the end of their columns, `placed` times in this call."""
        return self._column(rows, placed) if self.bank is None else self.bank.read(rows, placed)

    def _refresh(self) -> None:
        log = self.placer.log
        if self.cursor == len(log):
            return
        stale: set[int] = set()
        for view, rows in log[self.cursor :]:
            if view is not self:
                stale.update(rows)
        self.cursor = len(log)
        if not stale:
            return
        self._settle(())
        self._start_over()
        rows = np.fromiter(stale, dtype=np.intp, count=len(stale))
        if self.bank is None:
            columns, slots = self._column(rows, 0)
        else:
            columns, slots = self.bank.read(rows)
            if not self.static.admits_all:
                refused = ~self.static.mask[rows]
                columns[:, refused], slots[refused] = NO, 0.0
        self.table[:, rows] = columns
        self.slots[rows] = slots
        self.at[rows] = 0
        self.base[rows] = columns[0]
        self._prefer()

    def _prefer(self) -> None:
        """Add the preferences, normalised over the nodes with a slot."""
        if not self.static.preferences:
            return
        open_ = self.base != NO
        self.bonus = bonus_of(self.static.preferences, self.rows, open_) if open_.any() else None
        self.head = self.base if self.bonus is None else self.base + self.bonus

    def _column(self, rows: Rows, placed: int) -> tuple[Floats, Floats]:
        """Scores at all depths of some nodes with `placed` tasks being placed there, [D, M], and the slots left beyond
        those, [M]."""
        return self.placer.score(self.cls, self.static.mask, rows, placed, promising=self.promising)


def _by_count(nodes: Rows, taken: Sequence[int]) -> Iterator[tuple[int, Rows]]:
    """The nodes grouped by how often they were taken."""
    if not taken:
        if len(nodes):
            yield 0, nodes
        return
    times = Counter(taken)
    by_count: dict[int, list[int]] = {}
    for node in nodes.tolist():
        by_count.setdefault(times[node], []).append(node)
    for count in sorted(by_count):
        yield count, np.array(by_count[count], dtype=np.intp)


def bonus_of(preferences: Sequence[Preference], rows: Rows, candidates: Mask) -> Floats | None:
    """The weighted sum of the preferences for these rows; None if it is the same for every candidate."""
    total: Floats | None = None
    for preference in preferences:
        raw = preference.raw[rows]
        if (raw == raw[0]).all():
            continue
        part = preference.weight * normalised(raw, candidates, preference.normalise)
        total = part if total is None else total + part
    return total


def normalised(raw: Floats, candidates: Mask, how: Normalise) -> Floats:
    """Raw scores scaled to 0 to 100 over the candidates (kube-scheduler's DefaultNormalizeScore)."""
    if how is Normalise.NONE:
        return raw
    most = float(raw[candidates].max())
    if most == 0:
        return np.full(len(raw), 0.0 if how is Normalise.MAX else 100.0)
    scaled = np.floor(raw * 100.0 / most)
    return scaled if how is Normalise.MAX else 100.0 - scaled
