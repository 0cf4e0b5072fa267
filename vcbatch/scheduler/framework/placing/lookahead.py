"""Greedy choice of many items at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.resources import Mask

Counts = npt.NDArray[np.intp]


@dataclass(slots=True)
class Stacks:
    """C stacks of items, of which only the top one can be taken.

    Attributes:
        names: their numbers, [C].
        values: items from the top down, `-inf` below the last; [D, C].
        known: how many items are known, [C].
        more: whether there are unknown items below these, [C].
    """

    names: Rows
    values: Floats
    known: Counts
    more: Mask

    def without(self, names: Rows) -> Stacks:
        """The stacks other than the named ones."""
        others = ~np.isin(self.names, names)
        return Stacks(self.names[others], self.values[:, others], self.known[others], self.more[others])


def merged(piles: Sequence[Stacks], most: int) -> tuple[Rows, int]:
    """The stacks from which items are taken one by one, at most `most`, and how many of these are certain: after that
    an item that isn't known might be better.

    Each time the best top item is taken, among equals that of the stack with the smallest number. An item that is
    better than one above it is taken right after that one; so stacks are ordered by the least item met so far, and one
    sort replaces the walk: by that, then by stack, then from top to bottom. The numbers of a single pile ascend.
    """
    least = [np.minimum.accumulate(pile.values, axis=0).ravel(order="F") for pile in piles]  # stack by stack
    enough = max(_nth(np.concatenate(least), most), _LEAST)
    found = [_items(pile, values, enough) for pile, values in zip(piles, least, strict=True)]
    values, names, lasts = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(-values, kind="stable") if len(piles) == 1 else np.lexsort((names, -values))
    order = order[:most]
    last = lasts[order]
    return names[order], int(last.argmax()) + 1 if last.any() else len(order)


def _items(pile: Stacks, values: Floats, enough: float) -> tuple[Floats, Rows, Mask]:
    """The items with at least this value, stack by stack and each from the top down: their values, the numbers of their
    stacks, and whether each is the last known one of a stack with more below."""
    items = np.flatnonzero(values >= enough)
    stacks, depths = np.divmod(items, len(pile.values))
    return values[items], pile.names[stacks], pile.more[stacks] & (depths == pile.known[stacks] - 1)


def greatest(values: Floats, most: int) -> Rows:
    """The indexes of the greatest values, ascending, at most `most`; of equal values the first ones, and none that is
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
    """The `most`-th greatest value; `-inf` if there are no more values than that."""
    at = len(values) - most
    return float(np.partition(values, at)[at]) if at > 0 else -np.inf
