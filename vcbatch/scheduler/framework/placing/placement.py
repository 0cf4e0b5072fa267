"""Exact greedy placement of many identical tasks.

The result is that of placing one task after the other on the node with the highest score, the first by name among
equals, re-scoring after each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.framework.placing.heads import DEPTH, NO, View, bonus_of
from vcbatch.scheduler.framework.placing.static_nodes import PluginSet, StaticCache, StaticNodes
from vcbatch.scheduler.framework.plugin import Floats, Leaning, Rejection, Rows
from vcbatch.scheduler.index.shards import OUTSIDE
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Columns, Depths
from vcbatch.scheduler.model.objects import Run, Task
from vcbatch.scheduler.model.resources import EPS, Mask
from vcbatch.scheduler.model.share import ShardingMode
from vcbatch.scheduler.snapshot.snapshot import Snapshot


class Placer:
    """Chooses nodes for tasks on the present snapshot; the caller places the tasks there.

    `log` records which view changed which nodes, so that each view re-scores only what others changed.
    """

    def __init__(self, state: Snapshot, plugins: PluginSet, cache: StaticCache) -> None:
        self.state = state
        self.nodes = state.nodes
        self.plugins = plugins
        self.log: list[tuple[View | None, Sequence[int]]] = []
        self._expected: Counter[int] = Counter()
        """By class id, the number of further tasks that are likely to need nodes. Only how far views compute ahead
        depends on it."""
        self._expected_in_all = 0
        self._cache = cache
        self._views: dict[int, View] = {}
        self._all = np.arange(len(self.nodes), dtype=np.intp)
        self._depths: dict[tuple[int, int, int], Depths] = {}
        self._releasing: Rows | None = None
        shard = state.shards.mask(state.nodes.infos, state.static_stamp)
        hard = state.shards.share.mode is ShardingMode.HARD
        self._always = (Rejection(OUTSIDE, ~shard, temporary=~shard),) if shard is not None and hard else ()
        self.groups: Sequence[Rows] | None = None
        """The rows of the nodes that are tried first, and of those that are tried after them; None if all are tried
        together."""
        if shard is not None and not hard:
            self.groups = (np.flatnonzero(shard), np.flatnonzero(~shard))

    def static(self, cls: TaskClass) -> StaticNodes:
        """The results of filters and preferences for pods of the class that depend on the nodes alone, not on pods."""
        return self._cache.of(
            cls.profile,
            stamp=self.state.static_stamp,
            volumes=self.state.volumes.stamp,
            scorers=self.plugins,
            count=len(self.nodes),
            always=self._always,
        )

    def release(self) -> None:
        """Drop the cached views, each of which refers back to this object."""
        vars(self).clear()

    def _grouped(self, within: Rows | None) -> Sequence[Rows | None]:
        """The rows of `within` (None: all) by group of nodes that are tried together, group after group."""
        if self.groups is None:
            return (within,)
        return self.groups if within is None else [np.intersect1d(group, within) for group in self.groups]

    def slots(self, cls: TaskClass, rows: Rows, *, promising: bool) -> Floats:
        """How many tasks of the class these nodes have slots for, filters included, on free resources or, with
        `promising`, also on those being released; [len(rows)]."""
        columns = Columns(self.nodes, cls, rows, self._depths_of(cls, 0, 1), promising=promising)
        return self._slots(cls, self.static(cls).mask, columns, promising=promising)

    def places(self, runs: Sequence[Run], rows: Rows, *, promising: bool) -> dict[int, tuple[int, float]]:
        """By class id, the number of tasks in these runs, and the number of slots that these nodes have for that class
        alone, as in `slots`."""
        classes = {run.cls.id: run.cls for run in runs}
        counts: Counter[int] = Counter()
        for run in runs:
            counts[run.cls.id] += len(run.tasks)
        return {
            number: (counts[number], float(self.slots(cls, rows, promising=promising).sum()))
            for number, cls in classes.items()
        }

    def on_idle(
        self, cls: TaskClass, count: int, *, within: Rows | None = None, leaning: Leaning | None = None
    ) -> list[int]:
        """Nodes for up to `count` tasks on free resources that no other task is pipelined on; only among the rows
        `within`, ascending, if given."""
        taken: list[int] = []
        for rows in self._grouped(within):
            if len(taken) < count:
                taken += self._on_idle(cls, count - len(taken), rows, leaning)
        return taken

    def known(self, cls: TaskClass, count: int) -> list[int] | None:
        """What `on_idle` would return for that many tasks on any node, if it is known without computation; else
        None."""
        view = self._views.get(cls.id)
        rows = None if view is None else view.known(count)
        if rows:
            self._chosen(view, cls, rows)
        return rows

    def _on_idle(self, cls: TaskClass, count: int, within: Rows | None, leaning: Leaning | None) -> list[int]:
        if not len(self.nodes) or (within is not None and not len(within)):
            return []
        if within is not None:
            taken = self._fresh(cls, within, count, leaning, promising=False)
            if taken:
                self.log.append((None, taken))
            return taken
        view = self._views.get(cls.id)
        if view is None:
            view = self._views[cls.id] = View(self, cls, self.static(cls), self._all, promising=False)
        rows = view.take(count) if leaning is None else view.take_leaning(count, leaning)
        if rows:
            self._chosen(view, cls, rows)
        return rows

    def expect(self, cls: TaskClass, count: int) -> None:
        """Note that `count` more tasks are likely to need nodes; fewer if it is negative."""
        self._expected[cls.id] += count
        self._expected_in_all += count

    def expected(self, cls: TaskClass) -> int:
        """For how many more tasks of the class nodes are likely to be needed; 0 or less if that isn't known."""
        return self._expected[cls.id]

    def expects_only(self, cls: TaskClass, *, least: int) -> bool:
        """Whether all tasks that are likely to come are of this class, and there are at least `least` of them."""
        return self._expected[cls.id] >= max(least, self._expected_in_all)

    def _chosen(self, view: View | None, cls: TaskClass, rows: Sequence[int]) -> None:
        self.log.append((view, rows))
        self.expect(cls, -len(rows))

    def on_releasing(
        self, cls: TaskClass, count: int, *, within: Rows | None = None, leaning: Leaning | None = None
    ) -> list[int]:
        """Nodes for up to `count` tasks on resources that terminating pods release, `within` as in `on_idle`. Only for
        tasks that `on_idle` found no node for."""
        taken: list[int] = []
        for rows in self._grouped(within):
            if len(taken) < count:
                taken += self._on_releasing(cls, count - len(taken), rows, leaning)
        return taken

    def _on_releasing(self, cls: TaskClass, count: int, within: Rows | None, leaning: Leaning | None) -> list[int]:
        rows = self._releasing_rows()
        if within is not None:
            rows = np.intersect1d(rows, within)
        if not len(rows):
            return []
        taken = self._fresh(cls, rows, count, leaning, promising=True)
        if taken:
            self.log.append((None, taken))
        return taken

    def _fresh(self, cls: TaskClass, rows: Rows, count: int, leaning: Leaning | None, *, promising: bool) -> list[int]:
        view = View(self, cls, self.static(cls), rows, promising=promising)
        return view.take(count) if leaning is None else view.take_leaning(count, leaning)

    def one(
        self, task: Task, *, only: int | None = None, within: Rows | None = None, leaning: Leaning | None = None
    ) -> tuple[int, bool] | None:
        """The node for one task whose placement depends on other pods, and whether it fits on free resources there;
        None if no node fits. `only` is the row of the only node to try, `within` are the rows of those to try."""
        cls = task.cls
        static = self.static(cls)
        allowed = static.mask.copy()
        if only is not None:
            allowed[:only] = allowed[only + 1 :] = False
        if within is not None:
            allowed &= np.isin(self._all, within)
        for plugin in self.plugins.refusers:
            for rejection in plugin.task_rejections(task, static.rejections):
                allowed &= ~rejection.nodes
        for promising in (False, True):
            asked = np.flatnonzero(allowed)
            if promising:
                asked = np.intersect1d(asked, self._releasing_rows())
            for rows in self._grouped(asked):
                best = None if rows is None else self._best(task, static, rows, leaning, promising=promising)
                if best is not None:
                    self.log.append((None, (best,)))
                    return best, not promising
        return None

    def _best(
        self, task: Task, static: StaticNodes, rows: Rows, leaning: Leaning | None, *, promising: bool
    ) -> int | None:
        """The best of these nodes that has a slot for the task; None if none has."""
        if not len(rows):
            return None
        heads = self.score(task.cls, static.mask, rows, 0, promising=promising, depth=1)[0][0]
        open_ = heads != NO
        if not open_.any():
            return None
        rows, heads = rows[open_], heads[open_]
        bonus = bonus_of(static.preferences, rows, np.ones(len(rows), dtype=bool))
        if bonus is not None:
            heads = heads + bonus
        for plugin in self.plugins.raters:
            points = plugin.task_scores(task, rows, static.rejections)
            if points is not None:
                heads = heads + points
        if leaning is not None:
            heads = heads + leaning.points(rows, np.ones(len(rows), dtype=bool))
        best = int(rows[int(heads.argmax())])
        if leaning is not None:
            leaning.placed(best)
        return best

    @property
    def releases(self) -> bool:
        """Whether any resources are being released."""
        return len(self._releasing_rows()) > 0

    def couples(self, task: Task) -> bool:
        return any(plugin.couples(task) for plugin in self.plugins.pickers)

    def returned(self, rows: Sequence[int]) -> None:
        """Note that placements on these nodes were rolled back."""
        self.log.append((None, rows))

    def points(self, cls: TaskClass, rows: Rows) -> Floats:
        """The score of a task of the class by the pods and resources on these nodes, whether or not it fits there;
        [M]."""
        depths = self._depths.get((cls.id, 0, 1))
        if depths is None:
            depths = self._depths[cls.id, 0, 1] = Depths(self.nodes, cls, 0, 1)
        columns = Columns(self.nodes, cls, rows, depths, promising=False)
        total: Floats = np.zeros(columns.shape)
        for plugin in self.plugins.scorers:
            scored = plugin.scores(cls, columns)
            if scored is not None:
                total += scored
        return total[0]

    def state_of(self, row: int) -> bytes:
        """All quantities of a node that scores depend on, as bytes."""
        nodes = self.nodes
        parts = [nodes.alloc[:, row], nodes.load[:, row], nodes.releasing[:, row]]
        if nodes.leaving is not None:
            parts.append(nodes.leaving[:, row])
        return b"".join(part.tobytes() for part in parts)

    def equal_state(self, row: int, rows: Rows) -> Mask:
        """Which of these nodes have the same quantities as the one at `row`, as by `state_of`; [len(rows)]."""
        nodes = self.nodes
        tables = [nodes.alloc, nodes.load, nodes.releasing, *([] if nodes.leaving is None else [nodes.leaving])]
        return np.logical_and.reduce([(table[:, rows] == table[:, [row]]).all(axis=0) for table in tables])

    def preferred(self, task: Task, rows: Rows, *, coupled: bool) -> Floats:
        """The scores to be added to `points`: preferences by properties of the nodes and, for coupled tasks, by the
        pods on them; normalised over these nodes, [M]."""
        static = self.static(task.cls)
        total: Floats = np.zeros(len(rows))
        bonus = bonus_of(static.preferences, rows, np.ones(len(rows), dtype=bool)) if len(rows) else None
        if bonus is not None:
            total += bonus
        for plugin in self.plugins.raters if coupled and len(rows) else ():
            scored = plugin.task_scores(task, rows, static.rejections)
            if scored is not None:
                total += scored
        return total

    def will_take(self, task: Task, row: int, *, coupled: bool) -> bool:
        """Whether the task fits on the node once all terminating pods there have ended, and passes the filters on the
        present snapshot."""
        room = self.nodes.future_of(row)[task.cls.needed]
        if not (task.cls.need[:, 0] < room + EPS).all():
            return False
        return self.admits(task, row, coupled=coupled)

    def admits(self, task: Task, row: int, *, coupled: bool) -> bool:
        """Whether the task passes the filters of the node, resources aside."""
        static = self.static(task.cls)
        if not static.mask[row]:
            return False
        rows = np.array([row], dtype=np.intp)
        if any(cap.slots[0] < 1 for plugin in self.plugins.cappers for cap in plugin.caps(task.cls, rows)):
            return False
        return not coupled or not any(
            rejection.nodes[row]
            for plugin in self.plugins.refusers
            for rejection in plugin.task_rejections(task, static.rejections)
        )

    def freed(self, rows: Sequence[int]) -> None:
        """Note that the resources being released on these nodes changed."""
        self._releasing = None
        self.returned(rows)

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
        left after those. `admitted`, [N], has the nodes that pass the filters; None skips the filters."""
        depths = self._depths_of(cls, placed, depth)
        columns = Columns(self.nodes, cls, rows, depths, promising=promising)
        total: Floats = np.zeros(columns.shape)
        for plugin in self.plugins.scorers:
            points = plugin.scores(cls, columns)
            if points is not None:
                total += points
        slots = self._slots(cls, admitted, columns, promising=promising)
        np.putmask(total, depths.column >= slots, NO)
        return total, slots - placed

    def _depths_of(self, cls: TaskClass, placed: int, depth: int) -> Depths:
        depths = self._depths.get((cls.id, placed, depth))
        if depths is None:
            depths = self._depths[cls.id, placed, depth] = Depths(self.nodes, cls, placed, depth)
        return depths

    def _slots(self, cls: TaskClass, admitted: Mask | None, columns: Columns, *, promising: bool) -> Floats:
        """How many tasks of the class each node has slots for; [M]. Resources don't limit best-effort tasks."""
        rows = columns.rows
        slots = np.full(len(rows), np.inf) if admitted is None else np.where(admitted[rows], np.inf, 0.0)
        if not cls.best_effort:
            slots = np.minimum(slots, self._fitting(cls, columns, promising=promising))
        for plugin in self.plugins.cappers:
            for cap in plugin.caps_later(cls, rows) if promising else plugin.caps(cls, rows):
                slots = np.minimum(slots, cap.slots)
        return slots

    def _fitting(self, cls: TaskClass, columns: Columns, *, promising: bool) -> Floats:
        """How many tasks each node's resources suffice for; [M]. A node that is overcommitted in a resource takes no
        task at all, whether or not the task requests that resource."""
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
