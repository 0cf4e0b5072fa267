"""Cards that are partitioned (MIG): the possible geometries, and the partition for a request."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """`count` equal partitions of a card, with `memory` MiB each."""

    name: str
    memory: int
    count: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """One way to partition a card: partitions are numbered from 0."""

    group: str
    parts: tuple[Part, ...]

    def places(self) -> Iterator[tuple[int, Part]]:
        """Every partition with its number."""
        number = 0
        for part in self.parts:
            for _ in range(part.count):
                yield number, part
                number += 1

    def memory(self, place: int) -> int:
        """The memory of the partition with that number; 0 without one."""
        return next((part.memory for number, part in self.places() if number == place), 0)


Place = tuple[str, int]
"""A partition in use: the group of its geometry, and its number."""


def pick(geometries: Sequence[Geometry], taken: Collection[Place], memory: int) -> Place | None:
    """The smallest free partition with at least this memory. A card in use has its geometry already; otherwise the
    first geometry with such a partition is used."""
    groups = {group for group, _ in taken}
    for geometry in geometries:
        if groups and geometry.group not in groups:
            continue
        free = [(part.memory, number) for number, part in geometry.places() if (geometry.group, number) not in taken]
        fitting = [found for found in sorted(free) if found[0] >= memory]
        if fitting:
            return geometry.group, fitting[0][1]
    return None


def encoded(uuid: str, place: Place) -> str:
    """The UUID of a partition, in the device plugin's format."""
    return f"{uuid}[{place[0]}-{place[1]}]"


def decoded(text: str) -> tuple[str, Place | None]:
    """The card's UUID and the partition that a UUID denotes."""
    uuid, bracket, rest = text.partition("[")
    group, dash, number = rest.rstrip("]").rpartition("-")
    if not bracket or not dash or not number.isdecimal():
        return text, None
    return uuid, (group, int(number))
