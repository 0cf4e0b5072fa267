"""The budget of a cycle, in steps, for searching placements of gangs that the first pass found none for.

A step is one choice of a node for one task. Its time grows with the number of nodes, so the number of steps is smaller
in larger clusters. Steps are counted and not timed, so that the same snapshot gives the same result.
"""

from __future__ import annotations

from typing import Final

from vcbatch.scheduler.model.objects import Job

_LEAST, _MOST, _NODE_STEPS = 128, 512, 100_000
_GANGS_OF_A_CYCLE: Final = 2
"""A cycle has the steps of that many searches."""
MOST_SEARCHES: Final = 8
"""How often a gang whose search ended without a result is searched for again, from another task each time, although
nothing changed."""


def steps_of_search(nodes: int) -> int:
    """How many steps the search for one gang has on a cluster of that many nodes."""
    return max(_LEAST, min(_MOST, _NODE_STEPS // max(nodes, 1)))


class Searches:
    """The searches of one cycle: the steps that are left, and the gangs whose search failed."""

    def __init__(self, nodes: int) -> None:
        self.full = steps_of_search(nodes)
        """The steps of one search."""
        self._left = _GANGS_OF_A_CYCLE * self.full
        self._stamps: dict[str, object] = {}
        self._unanswered: set[str] = set()
        self._postponed: set[str] = set()

    def begin(self, job: Job, stamp: object) -> bool:
        """Reserve the steps of one search. False if there is none to make: a search for the gang failed in the same
        state, which `stamp` represents, or too few steps are left and a later cycle searches."""
        if job.searched == stamp:
            return False
        if self._left < self.full:
            self._postponed.add(job.key)
            return False
        self._left -= self.full
        self._stamps.setdefault(job.key, stamp)
        return True

    def end(self, job: Job, *, left: int, answered: bool) -> None:
        """Return the steps that are left. `answered`: whether a placement was found or excluded."""
        self._left += max(left, 0)
        if not answered:
            self._unanswered.add(job.key)

    def again(self, job: Job) -> bool:
        """Called at the end of the cycle: whether the gang, which didn't start, is searched for again although nothing
        changed."""
        if job.key in self._postponed:
            return True
        if job.key in self._unanswered and job.searches < MOST_SEARCHES:
            job.searches += 1
            return True
        job.searches = 0
        job.searched = self._stamps.get(job.key, job.searched)
        return False
