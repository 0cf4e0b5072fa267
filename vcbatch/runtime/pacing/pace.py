"""How often something about one object is worth doing, when reasons for it come by the hundred.

A gang's pods start together and end together, each with an event of its own. What follows (a look, a write of counts)
is done soon after a quiet time, and at doubling distances while the events go on: what a gang costs then grows with
the logarithm of how long it takes, and not with its size.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_REMEMBERED = 16_384


class Pace(Generic[K]):
    """Distances between acts by key, in seconds: `first` after a quiet time, then twice the last one, `limit` at most.

    Times are the caller's, of either clock; one that was set back counts as a quiet time. Of very many keys those are
    forgotten that were acted on longest ago.
    """

    def __init__(self, *, first: float, limit: float) -> None:
        self._first = first
        self._limit = limit
        self._acts: OrderedDict[K, tuple[float, float]] = OrderedDict()  # when it was last, and the distance from there

    def wait(self, key: K, *, now: float) -> float:
        """Seconds until the next act is due; 0 where it is."""
        last, distance = self._acts.get(key, (now, 0.0))
        return max(0.0, last + distance - now) if now >= last else 0.0

    def acted(self, key: K, *, now: float) -> None:
        """It was done at `now`: the distance to the next act doubles, or begins anew after a quiet time."""
        last, distance = self._acts.get(key, (now, 0.0))
        quiet = not distance or now < last or now - last >= 2 * distance
        self._acts[key] = (now, self._first if quiet else min(2 * distance, self._limit))
        self._acts.move_to_end(key)
        if len(self._acts) > _REMEMBERED:
            self._acts.popitem(last=False)
