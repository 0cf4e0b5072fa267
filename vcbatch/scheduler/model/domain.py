"""Network topology domains, and the purposes of searching them."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from vcbatch.scheduler.model.columns import Rows


class Domain(NamedTuple):
    """A HyperNode as a set of nodes to place pods on: its number in the tree and the rows of its nodes, ascending."""

    number: int
    name: str
    tier: int
    rows: Rows


class Purpose(Enum):
    """The purpose of a search for domains."""

    ALLOCATE = auto()
    """To place pods on resources that are free or being released; lowest tiers first."""
    EVICT = auto()
    """To place pods after evictions; highest tiers first, because they leave more choice of victims."""
