"""Preemption that tries several nodes and chooses the one with the least important victims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vcbatch.scheduler.actions.relief import Relief, Terms
from vcbatch.scheduler.framework.arguments import Arguments
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.resources import EPS

_SHIFT = 1 << 31
"""Makes every priority positive, so that more victims never weigh less."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A node on which the task fits once these pods have ended."""

    row: int
    victims: Sequence[Task]


class DryRun(Relief):
    """Among the first nodes by name that evictions could make fit, chooses the one whose highest victim priority is the
    lowest, then with the least sum of priorities, the fewest victims, and those that started last (kube-scheduler's
    rule). A node that fits without evictions is preferred to any other."""

    def __init__(self, session: Session, terms: Terms, given: Arguments) -> None:
        super().__init__(session, terms)
        share: int = given["minCandidateNodesPercentage"]
        least: int = given["minCandidateNodesAbsolute"]
        most: int = given["maxCandidateNodesAbsolute"]
        count = len(session.nodes)
        self._tries = max(1, min(max(count * share // 100, least), most, max(count, 1)))

    def find(self, statement: Statement, task: Task) -> bool:
        if task.cls.unsupported or task.job is None or task.job.queue is None:
            return False
        coupled = self.session.coupled([task])
        found: list[_Found] = []
        for row in self._rows(task):
            victims = self._dry_run(statement, task, row, coupled=coupled)
            if victims is None:
                continue
            found.append(_Found(row, victims))
            if not victims or len(found) >= self._tries:
                break
        if not found:
            return False
        best = min(found, key=_cost)
        for victim in best.victims:
            self.evict(statement, victim, task)
        self.promise(statement, task, best.row, nominated=bool(best.victims))
        return True

    def _rows(self, task: Task) -> Iterator[int]:
        """The rows of nodes on which the task fits already, then of the others, each by name."""
        rows = np.flatnonzero(self.open(task))
        free = (self.session.nodes.future()[task.cls.needed][:, rows] - task.cls.need > -EPS).all(axis=0)
        for row in (*rows[free], *rows[~free]):
            yield int(row)

    def _dry_run(self, statement: Statement, task: Task, row: int, *, coupled: bool) -> list[Task] | None:
        """The victims that the task would need on this node, with all evictions rolled back; None if it doesn't fit
        even then."""
        if self.fits(task, row, coupled=coupled):
            return []
        mark = statement.mark()
        fits = False
        evicted: list[Task] = []
        left = self.victims(task, row).may_go
        while left and not fits:
            if self.evict(statement, left[0], task):
                evicted.append(left[0])
                fits = self.fits(task, row, coupled=coupled)
            left = self.reordered(left[1:], task)
        kept = self._needed(statement, task, row, evicted, coupled=coupled) if fits else None
        statement.take_back(mark)
        return kept

    def _needed(
        self, statement: Statement, task: Task, row: int, evicted: Sequence[Task], *, coupled: bool
    ) -> list[Task]:
        """Roll back the evictions that aren't needed, those of highest priority first, and return the other victims.
        All of `evicted` are evicted when this is called."""
        spared: set[str] = set()
        for victim in sorted(evicted, key=lambda t: (-t.priority, t.creation, t.uid)):
            if statement.spare(victim, lambda: self.fits(task, row, coupled=coupled)):
                spared.add(victim.uid)
        return [victim for victim in evicted if victim.uid not in spared]


def _cost(found: _Found) -> tuple[object, ...]:
    if not found.victims:
        return (0,)
    highest = max(victim.priority for victim in found.victims)
    total = sum(victim.priority + _SHIFT for victim in found.victims)
    started = min(v.pod.status.start_time or v.creation for v in found.victims if v.priority == highest)
    return (1, highest, total, len(found.victims), _Later(started), found.row)


class _Later(str):
    """A time that sorts later times first."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)
