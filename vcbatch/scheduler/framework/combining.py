"""Rules that combine the results of several plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from vcbatch.scheduler.framework.plugin import Leaning, Plugin, Vote
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.resources import Mask

Tiered = list[list[Plugin]]


def has_opinion(plugin: Plugin, method: str) -> bool:
    """Whether the plugin overrides the method."""
    return overrides(type(plugin), method)


@cache
def overrides(cls: type[Plugin], method: str) -> bool:
    """Whether plugins of the class override the method."""
    return getattr(cls, method) is not getattr(Plugin, method)


def agreed(tiers: Sequence[Sequence[Plugin]], ask: Callable[[Plugin], Sequence[Task] | None]) -> list[Task]:
    """The victims of the first tier that has any, on which its plugins agree. A plugin that returns an empty list ends
    its tier without victims; where the victims of two plugins have no pod in common, the next plugin of the tier starts
    over (Volcano's intersection)."""
    for tier in tiers:
        named: list[Task] = []
        for plugin in tier:
            found = ask(plugin)
            if found is None:
                continue
            if not found:
                named = []
                break
            also = {task.uid for task in found}
            named = [task for task in named if task.uid in also] if named else list(found)
        if named:
            return named
    return []


def counted(tiers: Tiered, vote: Callable[[Plugin], Vote]) -> Plugin | None:
    """The plugin that rejects, or None. A tier with a permit and no rejection decides; if every plugin abstains, the
    result is a permit."""
    for tier in tiers:
        permitted = False
        for plugin in tier:
            answer = vote(plugin)
            if answer is Vote.REJECT:
                return plugin
            permitted = permitted or answer is Vote.PERMIT
        if permitted:
            return None
    return None


class Leanings:
    """The sum of several plugins' leanings."""

    def __init__(self, leanings: Sequence[Leaning]) -> None:
        self._leanings = leanings

    def points(self, rows: Rows, candidates: Mask) -> Floats:
        total: Floats = np.zeros(len(rows))
        for leaning in self._leanings:
            total += leaning.points(rows, candidates)
        return total

    def placed(self, row: int) -> None:
        for leaning in self._leanings:
            leaning.placed(row)
