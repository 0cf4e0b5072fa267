"""How the answers of several plugins become one."""

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
    """Whether the plugin answers anything of its own there."""
    return overrides(type(plugin), method)


@cache
def overrides(cls: type[Plugin], method: str) -> bool:
    """The same of all plugins of a class."""
    return getattr(cls, method) is not getattr(Plugin, method)


def agreed(tiers: Sequence[Sequence[Plugin]], ask: Callable[[Plugin], Sequence[Task] | None]) -> list[Task]:
    """The victims on which the plugins of the first tier that finds any agree. A plugin that finds none silences its
    tier; where two have nobody in common, the next plugin of the tier starts anew (Volcano's intersection)."""
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
    """Who rejects. A tier in which somebody permits and nobody rejects settles it; if nobody has an opinion, it's
    permitted."""
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
    """The leanings of several plugins, added up."""

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
