"""The problem of placing a gang on empty nodes, in numbers alone: no pods, nodes or scheduler configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.columns import Floats
from vcbatch.scheduler.model.resources import EPS, Matrix, Vector

Domains = npt.NDArray[np.intp]
"""The number of each node's domain in some topology, [N]; -1 if it is in none."""


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of the gang that are alike.

    Attributes:
        count: how many there are.
        request: what one takes of a node, [R].
        most: how many a node takes that has no other pod on it, filters included; [N].
        role: the role whose minimum they count for.
    """

    count: int
    request: Vector
    most: Floats
    role: str = ""


@dataclass(frozen=True, slots=True)
class Together:
    """All pods of these groups are in one domain; on a node without a domain there is none of them."""

    groups: frozenset[int]
    domains: Domains


@dataclass(frozen=True, slots=True)
class Apart:
    """No domain has a pod of both groups, and where they are the same group, no two of it. A node without a domain
    isn't limited."""

    one: int
    other: int
    domains: Domains


@dataclass(frozen=True, slots=True)
class Even:
    """No domain has more than `max_skew` more pods of the groups than the domain with the fewest pods of the groups
    `counted`. These are all that the spread constraint selects, `groups` those among them that have it. Where there are
    fewer than `min_domains` domains, the fewest count as none. Nodes without a domain count for nothing."""

    groups: frozenset[int]
    counted: frozenset[int]
    domains: Domains
    max_skew: int
    min_domains: int = 1


@dataclass(frozen=True, slots=True)
class Parts:
    """At least `least` of the gangs inside the gang, each named by its groups, have `size` pods or more."""

    size: int
    least: int
    groups: Sequence[frozenset[int]]


@dataclass(frozen=True, slots=True)
class Problem:
    """Place at least `least` pods, and at least as many of each role as `roles` says.

    Attributes:
        capacity: what the nodes offer, [R, N]; infinite where that isn't known yet.
    """

    capacity: Matrix
    groups: Sequence[Group]
    least: int
    roles: Mapping[str, int] = field(default_factory=dict[str, int])
    together: Sequence[Together] = ()
    apart: Sequence[Apart] = ()
    even: Sequence[Even] = ()
    parts: Sequence[Parts] = ()

    @property
    def coupled(self) -> bool:
        """Whether the placement of one pod affects others in any other way than by the quantities on its node."""
        return bool(self.together or self.apart or self.even)


def slots(capacity: Matrix, request: Vector) -> Floats:
    """How many such requests fit on each node alone; [N]."""
    asked = np.flatnonzero(request > 0)
    found: Floats = np.zeros(capacity.shape[1]) + np.inf
    if len(asked):
        found = ((capacity[asked] + EPS) / request[asked, None]).min(axis=0)
    return np.floor(np.maximum(found, 0.0))
