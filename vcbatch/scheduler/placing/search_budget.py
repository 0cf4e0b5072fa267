"""How long a cycle searches for placements of gangs that the first pass found none for, in steps.

A step is one choice of a node for one task. Its time grows with the number of nodes, and so the number of steps falls.
They are counted, not timed, so that the same snapshot gives the same result.
"""

from __future__ import annotations

from typing import Final

_LEAST, _MOST, _NODE_STEPS = 128, 512, 100_000
_GANGS_OF_A_CYCLE: Final = 2
"""A cycle has the steps of so many searches."""
MOST_SEARCHES: Final = 8
"""How often a gang whose search ended without an answer is searched for again, from another task each time, though
nothing changed."""


def steps_of_search(nodes: int) -> int:
    """How many steps the search for one gang has on a cluster of so many nodes."""
    return max(_LEAST, min(_MOST, _NODE_STEPS // max(nodes, 1)))


def steps_of_cycle(nodes: int) -> int:
    """How many steps the searches of one cycle have together."""
    return _GANGS_OF_A_CYCLE * steps_of_search(nodes)
