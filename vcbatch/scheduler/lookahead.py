"""Greedy choice of many items at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.columns import Floats, Rows
from vcbatch.scheduler.resources import Mask

Counts = npt.NDArray[np.intp]


@dataclass(slots=True)
class Stacks:
    """C stacks of items, of which only the top one can be taken.

    Attributes:
        names: their numbers, [C].
        values: items from the top down, `-inf` below the last; [D, C].
        known: how many items are known, [C].
        more: whether there are others below these, [C].
    """

    names: Rows
    values: Floats
    known: Counts
    more: Mask

    def without(self, names: Rows) -> Stacks:
        """The others."""
        others = ~np.isin(self.names, names)
        return Stacks(self.names[others], self.values[:, others], self.known[others], self.more[others])


def merged(piles: Sequence[Stacks], most: int) -> tuple[Rows, int]:
    """From which stack items are taken one by one, at most so many, and up to where that is certain: afterwards an item
    that isn't known might be better.

    Each time the best top item is taken, of equals that of the stack with the smallest number. An item that is better
    than one above it is taken right after that one; so stacks go in the order of the least item met so far, and one
    sort replaces the walk: by that, then by stack, then from top to bottom.
    """
    least = [np.minimum.accumulate(pile.values, axis=0) for pile in piles]
    values = np.concatenate([one.ravel() for one in least])
    names = np.concatenate([np.broadcast_to(pile.names, pile.values.shape).ravel() for pile in piles])
    lasts = np.concatenate(
        [(pile.more & (np.arange(len(pile.values))[:, None] == pile.known - 1)).ravel() for pile in piles]
    )
    items = np.flatnonzero(values >= max(_nth(values, most), _LEAST))
    items = items[np.lexsort((names[items], -values[items]))[:most]]
    last = lasts[items]
    return names[items], int(last.argmax()) + 1 if last.any() else len(items)


def greatest(values: Floats, most: int) -> Rows:
    """Where the greatest values are, in ascending order, at most so many; of equal ones the first, and none that is
    `-inf`."""
    least = _nth(values, most)
    if least < _LEAST:
        return np.flatnonzero(values >= _LEAST)
    above = values > least
    equal = np.flatnonzero(values == least)[: most - np.count_nonzero(above)]
    above[equal] = True
    return np.flatnonzero(above)


_LEAST = np.finfo(np.float64).min


def _nth(values: Floats, most: int) -> float:
    """The least of so many greatest values; `-inf` where there are no more."""
    at = len(values) - most
    return float(np.partition(values, at)[at]) if at > 0 else -np.inf
