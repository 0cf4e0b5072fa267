"""Where tasks go: exact greedy placement of many identical tasks.

The result is that of placing one task after the other on the node with the highest score, the first by name among
equals, re-scoring after each. What a node would score with 0, 1, 2 … more tasks of a class depends on that node only,
so it is computed for all nodes and several depths in one go, and placing a task is one look for the best head.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.classes import TaskClass
from vcbatch.scheduler.columns import Columns, Depths
from vcbatch.scheduler.model import Task
from vcbatch.scheduler.plugins.base import Floats, Normalise, Preference, Rows
from vcbatch.scheduler.resources import EPS, Mask
from vcbatch.scheduler.state import ClusterState
from vcbatch.scheduler.static_nodes import PluginSet, StaticCache, StaticNodes

_NO = -np.inf


class _Bank:
    """Scores and slots of a class by the amounts on a node. Nodes of one make go through the same few states, so most
    nodes that changed have been scored before, as another one."""

    MOST = 1 << 14
    """States kept, so that a cluster in which no two nodes are alike costs no more than this."""

    __slots__ = ("_cls", "_known", "_placer", "_slots", "_table")

    def __init__(self, placer: Placer, cls: TaskClass) -> None:
        self._placer = placer
        self._cls = cls
        self._known: dict[bytes, int] = {}
        self._table: Floats = np.zeros((Placer.DEPTH, 64))
        self._slots: Floats = np.zeros(64)

    def read(self, rows: Rows) -> tuple[Floats, Floats]:
        """Scores [D, M] and slots [M] of these nodes, their filters aside."""
        states = self._states(rows)
        if len(self._known) + len(states) > self.MOST:
            self._known.clear()
        places = [self._known.get(state, -1) for state in states]
        if -1 in places:
            fresh = {state: row for state, row, place in zip(states, rows, places, strict=True) if place < 0}
            self._learn(list(fresh), np.array(list(fresh.values()), dtype=np.intp))
            places = [self._known[state] for state in states]
        return self._table[:, places], self._slots[places]

    def _states(self, rows: Rows) -> list[bytes]:
        nodes = self._placer.nodes
        parts = [nodes.alloc.take(rows, axis=1), nodes.load.take(rows, axis=1)]
        if self._placer.releases:
            parts.append(nodes.releasing.take(rows, axis=1))
        amounts = np.concatenate(parts).T
        width, data = 8 * amounts.shape[1], amounts.tobytes()
        return [data[at : at + width] for at in range(0, len(data), width)]

    def _learn(self, states: list[bytes], rows: Rows) -> None:
        count = len(self._known)
        while count + len(states) > len(self._slots):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)], axis=1)
            self._slots = np.concatenate([self._slots, np.zeros_like(self._slots)])
        here = slice(count, count + len(states))
        self._table[:, here], self._slots[here] = self._placer.score(self._cls, None, rows, 0, promising=False)
        self._known.update((state, count + i) for i, state in enumerate(states))


class _View:
    """The heads of one class over some nodes: what the next task would score on each, and `-inf` where it can't go.

    `table[d, n]` is the score with d more tasks than when the column was computed, `slots[n]` how many fitted then,
    and `at[n]` how many were placed since. Columns that others changed are computed again on the next use.
    """

    __slots__ = (
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
        self._prefer()

    def take(self, count: int) -> list[int]:
        """Choose nodes for up to `count` tasks, in placing order; fewer when there is no room. The caller places them
        before the view is used again."""
        self._refresh()
        taken: list[int] = []
        depth = len(self.table)
        base, at, table = self.base, self.at, self.table
        best, value, after = 0, _NO, _NO
        for _ in range(count):
            if value == _NO or after < value:  # else the node is still the first of the best
                best = int(self.head.argmax())
                value = float(self.head[best])
                if value == _NO:
                    break
            else:
                value = after
            taken.append(best)
            step = int(at[best]) + 1
            if step >= self.slots[best]:
                score = _NO
            else:
                if step == depth:
                    column, slots = self._column(self.rows[best : best + 1], taken.count(best))
                    table[:, best], self.slots[best] = column[:, 0], slots[0]
                    step = 0
                score = table[step, best]
            at[best] = step
            base[best] = score
            if self.bonus is not None:
                if score == _NO:
                    self._prefer()
                else:
                    self.head[best] = score + self.bonus[best]
            after = float(self.head[best])
        return [int(self.rows[i]) for i in taken] if len(self.rows) != len(self.placer.nodes) else taken

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
        rows = np.fromiter(stale, dtype=np.intp, count=len(stale))
        if self.bank is None:
            columns, slots = self._column(rows, 0)
        else:
            columns, slots = self.bank.read(rows)
            if not self.static.admits_all:
                refused = ~self.static.mask[rows]
                columns[:, refused], slots[refused] = _NO, 0.0
        self.table[:, rows] = columns
        self.slots[rows] = slots
        self.at[rows] = 0
        self.base[rows] = columns[0]
        self._prefer()

    def _prefer(self) -> None:
        """Add the preferences, normalised over the nodes where a task could go now."""
        if not self.static.preferences:
            return
        open_ = self.base != _NO
        self.bonus = _bonus(self.static.preferences, self.rows, open_) if open_.any() else None
        self.head = self.base if self.bonus is None else self.base + self.bonus

    def _column(self, rows: Rows, placed: int) -> tuple[Floats, Floats]:
        """Scores at all depths of some nodes, `placed` tasks being on their way there, [D, M], and how many tasks
        they take beyond those, [M]."""
        return self.placer.score(self.cls, self.static.mask, rows, placed, promising=self.promising)


def _bonus(preferences: Sequence[Preference], rows: Rows, candidates: Mask) -> Floats | None:
    """The weighted sum of preferences for these rows; None where it is the same for every candidate."""
    total: Floats | None = None
    for preference in preferences:
        raw = preference.raw[rows]
        if (raw == raw[0]).all():
            continue
        part = preference.weight * normalised(raw, candidates, preference.normalise)
        total = part if total is None else total + part
    return total


def normalised(raw: Floats, candidates: Mask, how: Normalise) -> Floats:
    """Raw points as 0 to 100 over the candidates (kube-scheduler's DefaultNormalizeScore)."""
    if how is Normalise.NONE:
        return raw
    most = float(raw[candidates].max())
    if most == 0:
        return np.full(len(raw), 0.0 if how is Normalise.MAX else 100.0)
    scaled = np.floor(raw * 100.0 / most)
    return scaled if how is Normalise.MAX else 100.0 - scaled


class Placer:
    """Chooses nodes for tasks on the picture as it is; what it chose is placed by the caller.

    `log` has which nodes were changed by which view, so that each view re-scores no more than what others changed.
    """

    DEPTH = 8

    def __init__(self, state: ClusterState, plugins: PluginSet, cache: StaticCache) -> None:
        self.state = state
        self.nodes = state.nodes
        self.plugins = plugins
        self.log: list[tuple[_View | None, Sequence[int]]] = []
        self._cache = cache
        self._views: dict[int, _View] = {}
        self._all = np.arange(len(self.nodes), dtype=np.intp)
        self._depths: dict[tuple[int, int, int], Depths] = {}
        self._releasing: Rows | None = None

    def static(self, cls: TaskClass) -> StaticNodes:
        return self._cache.of(
            cls.profile,
            stamp=self.state.static_stamp,
            volumes=self.state.volumes.stamp,
            scorers=self.plugins,
            count=len(self.nodes),
        )

    def on_idle(self, cls: TaskClass, count: int) -> list[int]:
        """Nodes for up to `count` tasks on what is free and not promised."""
        if not len(self.nodes):
            return []
        view = self._views.get(cls.id)
        if view is None:
            view = self._views[cls.id] = _View(self, cls, self.static(cls), self._all, promising=False)
        rows = view.take(count)
        if rows:
            self.log.append((view, rows))
        return rows

    def on_releasing(self, cls: TaskClass, count: int) -> list[int]:
        """Nodes for up to `count` tasks on what will be free once ending pods are gone. Only for tasks that
        `on_idle` found nothing for."""
        rows = self._releasing_rows()
        if not len(rows):
            return []
        taken = _View(self, cls, self.static(cls), rows, promising=True).take(count)
        if taken:
            self.log.append((None, taken))
        return taken

    def one(self, task: Task) -> tuple[int, bool] | None:
        """The node for one task whose place depends on other pods, and whether it is free now; None where there is
        none."""
        cls = task.cls
        static = self.static(cls)
        allowed = static.mask.copy()
        for plugin in self.plugins.pickers:
            for rejection in plugin.task_rejections(task, static.rejections):
                allowed &= ~rejection.nodes
        for promising in (False, True):
            rows = np.flatnonzero(allowed)
            if promising:
                rows = np.intersect1d(rows, self._releasing_rows())
            if not len(rows):
                continue
            heads = self.score(cls, static.mask, rows, 0, promising=promising, depth=1)[0][0]
            open_ = heads != _NO
            if not open_.any():
                continue
            rows, heads = rows[open_], heads[open_]
            bonus = _bonus(static.preferences, rows, np.ones(len(rows), dtype=bool))
            if bonus is not None:
                heads = heads + bonus
            for plugin in self.plugins.pickers:
                points = plugin.task_scores(task, rows, static.rejections)
                if points is not None:
                    heads = heads + points
            best = int(rows[int(heads.argmax())])
            self.log.append((None, (best,)))
            return best, not promising
        return None

    @property
    def releases(self) -> bool:
        """Whether anything is being released."""
        return len(self._releasing_rows()) > 0

    def couples(self, task: Task) -> bool:
        return any(plugin.couples(task) for plugin in self.plugins.pickers)

    def returned(self, rows: Sequence[int]) -> None:
        """Tasks were taken back from these nodes."""
        self.log.append((None, rows))

    def score(
        self,
        cls: TaskClass,
        admitted: Mask | None,
        rows: Rows,
        placed: int,
        *,
        promising: bool,
        depth: int = DEPTH,
    ) -> tuple[Floats, Floats]:
        """Scores [D, M] of the D tasks after `placed` ones, `-inf` where one doesn't fit, and the slots [M] that are
        left after those. `admitted`, [N], has the nodes that pass the filters, None where that doesn't matter."""
        depths = self._depths.get((cls.id, placed, depth))
        if depths is None:
            depths = self._depths[cls.id, placed, depth] = Depths(self.nodes, cls, placed, depth)
        columns = Columns(self.nodes, cls, rows, depths, promising=promising)
        total: Floats = np.zeros(columns.shape)
        for plugin in self.plugins.scorers:
            points = plugin.scores(cls, columns)
            if points is not None:
                total += points
        slots = self._slots(cls, admitted, columns, promising=promising)
        np.putmask(total, depths.column >= slots, _NO)
        return total, slots - placed

    def _slots(self, cls: TaskClass, admitted: Mask | None, columns: Columns, *, promising: bool) -> Floats:
        """How many tasks of the class each node takes; [M]. Resources don't limit tasks that ask for none."""
        rows = columns.rows
        slots = np.full(len(rows), np.inf) if admitted is None else np.where(admitted[rows], np.inf, 0.0)
        if not cls.best_effort:
            slots = np.minimum(slots, self._fitting(cls, columns, promising=promising))
        for plugin in self.plugins.cappers:
            for cap in plugin.caps(cls, rows):
                slots = np.minimum(slots, cap.slots)
        return slots

    def _fitting(self, cls: TaskClass, columns: Columns, *, promising: bool) -> Floats:
        """How many tasks each node's resources are enough for; [M]. A node that is overdrawn in a resource takes no
        task at all, asked for or not."""
        needed = cls.needed
        free = columns.unpromised(needed)
        if self.releases:
            releasing = self.nodes.releasing[needed[:, None], columns.rows]
            free += releasing if promising else np.minimum(releasing, columns.promised(needed))
        need = cls.need
        if cls.needs_all:
            return np.floor((free + EPS) / need).min(axis=0)
        asked = np.where(need > 0, need, 1.0)
        slots = np.where(need > 0, np.floor((free + EPS) / asked), np.where(free > -EPS, np.inf, 0.0))
        return slots.min(axis=0)

    def _releasing_rows(self) -> Rows:
        if self._releasing is None:
            self._releasing = np.flatnonzero(self.nodes.releasing.any(axis=0))
        return self._releasing
