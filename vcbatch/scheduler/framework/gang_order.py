"""The reverse order of many gangs, of which few are consumed: only those are sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Job
from vcbatch.scheduler.model.resources import Mask

_row = attrgetter("row")


class GangKey(NamedTuple):
    """A plugin's sort key of gangs: of one gang, and where the plugin supports it of many, by their rows in the job
    table."""

    one: Callable[[Job], Any]
    many: Callable[[Rows], Floats | None]

    @staticmethod
    def of(plugin: Plugin) -> GangKey:
        one, many = (_definer(type(plugin), method) for method in ("job_key", "job_keys"))
        return GangKey(plugin.job_key, plugin.job_keys if issubclass(many, one) else _unknown)


@dataclass(frozen=True, slots=True)
class Gangs:
    """Gangs with their rows in the job table; both [K]."""

    jobs: Sequence[Job]
    rows: Rows

    @staticmethod
    def of(jobs: Iterable[Job]) -> Gangs:
        found = list(jobs)
        return Gangs(found, np.fromiter(map(_row, found), dtype=np.intp, count=len(found)))

    def where(self, mask: Mask) -> Gangs:
        """The gangs for which the mask, [K], is true."""
        return self if mask.all() else Gangs(list(compress(self.jobs, mask.tolist())), self.rows[mask])


def last_first(gangs: Gangs, keys: Sequence[GangKey]) -> Iterator[Job]:
    """The gangs by the plugins' keys, then by creation and UID, the greatest first. A key is computed only for gangs
    that tie in the keys before it, and only when they may be next."""
    return _LastFirst(gangs, [*keys, *_LAST]).among(np.arange(len(gangs.jobs), dtype=np.intp), 0)


def _unknown(rows: Rows) -> None:
    return None


_LAST = [GangKey(attrgetter(name), _unknown) for name in ("creation", "uid", "key")]


class _LastFirst:
    """Gangs by their positions among the given ones, keys by their number."""

    def __init__(self, gangs: Gangs, keys: Sequence[GangKey]) -> None:
        self._jobs = gangs.jobs
        self._keys = keys
        self._rows = gangs.rows
        self._columns: dict[int, Floats | None] = {}

    def among(self, places: Rows, key: int) -> Iterator[Job]:
        """The gangs at these positions, which tie in all keys before this one."""
        if len(places) < 2 or key == len(self._keys):
            yield from (self._jobs[place] for place in places.tolist())
            return
        column = self._column(key)
        equals = self._asked(places, self._keys[key].one) if column is None else _split(places, column[places])
        for some in equals:
            yield from self.among(some, key + 1)

    def _column(self, key: int) -> Floats | None:
        if key not in self._columns:
            self._columns[key] = self._keys[key].many(self._rows)
        return self._columns[key]

    def _asked(self, places: Rows, key: Callable[[Job], Any]) -> Iterator[Rows]:
        there = places.tolist()
        values = list(map(key, map(self._jobs.__getitem__, there)))
        distinct = set(values)
        if len(distinct) == 1:
            yield places
        elif len(distinct) == len(values):
            yield from places[sorted(range(len(values)), key=values.__getitem__, reverse=True)][:, None]
        else:
            equal: dict[Any, list[int]] = {value: [] for value in distinct}
            for value, place in zip(values, there, strict=True):
                equal[value].append(place)
            for value in sorted(distinct, reverse=True):
                yield np.array(equal[value], dtype=np.intp)


def _split(places: Rows, values: Floats) -> Iterator[Rows]:
    """The positions grouped by equal value, the greatest value first."""
    if values.min() == values.max():
        yield places
        return
    order = np.argsort(-values, kind="stable")
    places, values = places[order], values[order]
    start = 0
    for end in [*(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(places)]:
        yield places[start:end]
        start = end


def _definer(plugin: type[Plugin], method: str) -> type[Any]:
    """The class that defines the method for the plugin."""
    return next(cls for cls in plugin.__mro__ if method in vars(cls))
