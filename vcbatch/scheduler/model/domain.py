"""A domain of the network, and what domains are looked for."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from vcbatch.scheduler.model.columns import Rows


class Domain(NamedTuple):
    """A HyperNode as a place to put pods: its number in the tree and the rows of its nodes, ascending."""

    number: int
    name: str
    tier: int
    rows: Rows


class Purpose(Enum):
    """What domains are looked for."""

    ALLOCATE = auto()
    """To place pods on what is free or being released; near ones first."""
    EVICT = auto()
    """To place pods once others are evicted; far ones first, as they leave more choice of victims."""
