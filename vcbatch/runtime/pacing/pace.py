"""Limits how often something is done for one object when events come by the hundred.

A gang's pods start together and end together, each with an event of its own. The work that follows (a reconcile, a
write of counts) is done soon after a quiet time, and at doubling intervals while the events continue: the cost of a
gang then grows with the logarithm of the time it takes, and not with its size.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_REMEMBERED = 16_384


class Pace(Generic[K]):
    """Intervals between acts by key, in seconds: `first` after a quiet time, then twice the last one, at most `limit`.

    Times are passed in, from any clock; a clock that was set back counts as a quiet time. With too many keys, those
    acted on longest ago are dropped.
    """

    def __init__(self, *, first: float, limit: float) -> None:
        self._first = first
        self._limit = limit
        self._acts: OrderedDict[K, tuple[float, float]] = OrderedDict()  # last act, and interval after it

    def wait(self, key: K, *, now: float) -> float:
        """Seconds until the next act is due; 0 where it is."""
        last, distance = self._acts.get(key, (now, 0.0))
        return max(0.0, last + distance - now) if now >= last else 0.0

    def acted(self, key: K, *, now: float) -> None:
        """Record an act at `now`: the interval to the next one doubles, or restarts at `first` after a quiet time."""
        last, distance = self._acts.get(key, (now, 0.0))
        quiet = not distance or now < last or now - last >= 2 * distance
        self._acts[key] = (now, self._first if quiet else min(2 * distance, self._limit))
        self._acts.move_to_end(key)
        if len(self._acts) > _REMEMBERED:
            self._acts.popitem(last=False)
