"""The exclusive cpus of a node that a container would get, as chosen by the kubelet's cpu and topology managers.

A hint is a set of NUMA nodes with enough free cpus for a container; it is preferred if no smaller set of the node's
NUMA nodes has enough cpus, free or not. The policy decides which hints are admitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple

MOST_CPUS = 8192
MOST_NUMA_NODES = 8
"""The kubelet's own limit: hints are all sets of NUMA nodes."""

Cpus = frozenset[int]


class TopologyPolicy(StrEnum):
    """The kubelet's topology manager policies."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE = "single-numa-node"


class Place(NamedTuple):
    """The location of a cpu."""

    numa: int
    socket: int
    core: int


class Hint(NamedTuple):
    """NUMA nodes in ascending order; all of the node's if there is no particular requirement."""

    numa: tuple[int, ...]
    preferred: bool


def parse_cpus(text: str) -> Cpus:
    """`0-3,8` as numbers. Raises ValueError for anything else, and for more than `MOST_CPUS`."""
    found: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        low = int(first)
        high = int(last) if dash else low
        if not 0 <= low <= high < MOST_CPUS:
            raise ValueError(f"{part!r} is no range of cpus below {MOST_CPUS}")
        found.update(range(low, high + 1))
    return frozenset(found)


@dataclass(frozen=True)
class Layout:
    """The cpus of a node. Equal layouts are interchangeable as cache keys."""

    places: tuple[tuple[int, Place], ...]
    reserved: int = 0
    """How many cpus the kubelet reserves for the system: the first by topology."""

    @staticmethod
    def of(places: Mapping[int, Place], reserved: int = 0) -> Layout:
        """Raises ValueError if there are no cpus, or more NUMA nodes than the kubelet supports."""
        layout = Layout(tuple(sorted(places.items())), reserved)
        if not places or len(layout.numa_nodes()) > MOST_NUMA_NODES:
            raise ValueError(f"a node has between 1 and {MOST_NUMA_NODES} NUMA nodes")
        return layout

    def numa_nodes(self) -> tuple[int, ...]:
        """The numbers of its NUMA nodes, ascending."""
        return tuple(sorted({place.numa for _, place in self.places}))

    def within(self, numa: Collection[int]) -> Cpus:
        """The cpus of these NUMA nodes."""
        return frozenset(cpu for cpu, place in self.places if place.numa in numa)

    def unreserved(self, free: Cpus) -> Cpus:
        """The free cpus that aren't reserved for the system."""
        known = frozenset(cpu for cpu, _ in self.places)
        kept = take(self, known, min(self.reserved, len(known))) or frozenset()
        return free & known - kept


def take(layout: Layout, free: Cpus, count: int) -> Cpus | None:
    """`count` of the free cpus, None if there are fewer: whole sockets first, then whole cores, those in the fullest
    sockets first, then single threads, near those taken and where the fewest are left."""
    if len(free) < count:
        return None
    taker = _Taker(layout, free, count)
    taker.groups(_socket)
    taker.groups(_core)
    taker.threads()
    return frozenset(taker.taken)


def _socket(place: Place) -> tuple[int, ...]:
    return (place.socket,)


def _core(place: Place) -> tuple[int, ...]:
    return place.socket, place.core


class _Taker:
    """Takes cpus in several ways, until there are enough."""

    def __init__(self, layout: Layout, free: Cpus, count: int) -> None:
        self._places = dict(layout.places)
        self._free = set(free)
        self._left = count
        self.taken: set[int] = set()

    def _pick(self, cpus: Iterable[int]) -> None:
        chosen = set(cpus)
        self.taken |= chosen
        self._free -= chosen
        self._left -= len(chosen)

    def _in_sockets(self, cpus: Iterable[int]) -> Counter[int]:
        return Counter(self._places[cpu].socket for cpu in cpus)

    def groups(self, key: Callable[[Place], tuple[int, ...]]) -> None:
        """Take whole groups, as long as they are needed."""
        size = Counter(key(place) for place in self._places.values())
        free = Counter(key(self._places[cpu]) for cpu in self._free)
        in_sockets = self._in_sockets(self._free)
        whole = sorted((g for g in free if free[g] == size[g]), key=lambda g: (len(g) > 1 and in_sockets[g[0]], g))
        for group in whole:
            if self._left >= size[group]:
                self._pick(cpu for cpu in list(self._free) if key(self._places[cpu]) == group)

    def threads(self) -> None:
        """Take single cpus, as many as are still needed."""
        while self._left > 0:
            near, left = self._in_sockets(self.taken), self._in_sockets(self._free)
            in_core = Counter(_core(self._places[cpu]) for cpu in self._free)
            at = ((cpu, self._places[cpu]) for cpu in self._free)
            self._pick([min((-near[p.socket], left[p.socket], in_core[_core(p)], *_core(p), cpu) for cpu, p in at)[-1]])


def hints(layout: Layout, free: Cpus, count: int) -> list[Hint]:
    """Every set of NUMA nodes with that many free cpus."""
    nodes = layout.numa_nodes()
    there = Counter(place.numa for _, place in layout.places)
    places = dict(layout.places)
    unused = Counter(places[cpu].numa for cpu in free)
    least = len(nodes)
    found: list[tuple[int, ...]] = []
    for size in range(1, len(nodes) + 1):
        for chosen in combinations(nodes, size):
            if sum(there[n] for n in chosen) >= count:
                least = min(least, size)
            if sum(unused[n] for n in chosen) >= count:
                found.append(chosen)
    return [Hint(chosen, len(chosen) == least) for chosen in found]


def merged(layout: Layout, found: Sequence[Hint] | None, policy: TopologyPolicy) -> tuple[Hint, bool]:
    """The best hint, and whether the policy admits it. `found` is None if the container needs no exclusive cpus."""
    everywhere = layout.numa_nodes()
    if policy is TopologyPolicy.NONE:
        return Hint(everywhere, preferred=False), True
    if found is None:
        return Hint(everywhere, preferred=True), True
    if policy is TopologyPolicy.SINGLE:
        found = [hint for hint in found if hint.preferred and len(hint.numa) == 1]
    candidates = [*found, Hint(everywhere, preferred=False)]
    best = min(candidates, key=lambda hint: (not hint.preferred, len(hint.numa), _bits(hint.numa)))
    return best, best.preferred or policy is TopologyPolicy.BEST_EFFORT


def _bits(numa: Iterable[int]) -> int:
    return sum(1 << n for n in numa)


def assign(layout: Layout, free: Cpus, counts: Sequence[int], policy: TopologyPolicy) -> Cpus | None:
    """The cpus that the containers of a pod would get, which need these numbers (0: no exclusive cpus); None if the
    policy doesn't admit the pod. A container for which too few are left gets none."""
    free = layout.unreserved(free)
    given: frozenset[int] = frozenset()
    for count in counts:
        hint, admitted = merged(layout, hints(layout, free, count) if count else None, policy)
        if not admitted:
            return None
        if count:
            aligned = free & layout.within(hint.numa)
            first = take(layout, aligned, min(count, len(aligned))) or frozenset()
            rest = take(layout, free - first, count - len(first))
            got = first | rest if rest is not None else frozenset[int]()
            given |= got
            free -= got
    return given
