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
    """Equal pods of the gang.

    Attributes:
        count: the number of pods.
        request: the request of one pod, [R].
        most: how many of them a node takes without other pods, filters included; [N].
        role: the role whose minimum they count for.
    """

    count: int
    request: Vector
    most: Floats
    role: str = ""


@dataclass(frozen=True, slots=True)
class Together:
    """All pods of these groups are in one domain; none is on a node without a domain."""

    groups: frozenset[int]
    domains: Domains


@dataclass(frozen=True, slots=True)
class Apart:
    """No domain has a pod of both groups, or two pods of it if they are the same group. A node without a domain isn't
    limited."""

    one: int
    other: int
    domains: Domains


@dataclass(frozen=True, slots=True)
class Even:
    """No domain has more than `max_skew` more pods of `groups` than the domain with the fewest pods of `counted`.
    `counted` are all groups that the spread constraint selects, `groups` those among them that have it. With fewer than
    `min_domains` domains, the fewest count as zero. Nodes without a domain don't count."""

    groups: frozenset[int]
    counted: frozenset[int]
    domains: Domains
    max_skew: int
    min_domains: int = 1


@dataclass(frozen=True, slots=True)
class Parts:
    """At least `least` of the sub-gangs, each given by its groups, have `size` pods or more."""

    size: int
    least: int
    groups: Sequence[frozenset[int]]


@dataclass(frozen=True, slots=True)
class Problem:
    """Place at least `least` pods, and of each role at least as many as `roles` requires.

    Attributes:
        capacity: the capacity of the nodes, [R, N]; infinite where it isn't known yet.
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
