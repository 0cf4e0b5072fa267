"""Cards that are cut into fixed parts (MIG): which ways of cutting there are, and which part a request gets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """So many parts of a card with so much memory each, in MiB."""

    name: str
    memory: int
    count: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """One way to cut a card: parts are counted through, from 0."""

    group: str
    parts: tuple[Part, ...]

    def places(self) -> Iterator[tuple[int, Part]]:
        """Every part with its number."""
        number = 0
        for part in self.parts:
            for _ in range(part.count):
                yield number, part
                number += 1

    def memory(self, place: int) -> int:
        """The memory of the part of that number; 0 where there is none."""
        return next((part.memory for number, part in self.places() if number == place), 0)


Place = tuple[str, int]
"""A part in use: the group of its geometry, and its number."""


def pick(geometries: Sequence[Geometry], taken: Collection[Place], memory: int) -> Place | None:
    """The smallest free part with so much memory. A card that is in use is cut in one way already; else the first way
    that has such a part."""
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
    """The UUID of a part, as the device plugin reads it."""
    return f"{uuid}[{place[0]}-{place[1]}]"


def decoded(text: str) -> tuple[str, Place | None]:
    """The card's UUID and the part of it that a UUID means."""
    uuid, bracket, rest = text.partition("[")
    group, dash, number = rest.rstrip("]").rpartition("-")
    if not bracket or not dash or not number.isdecimal():
        return text, None
    return uuid, (group, int(number))
