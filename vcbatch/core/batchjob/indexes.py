"""Sets of completion indexes, stored and written as ranges: a Job may have up to 2 × 10⁹ of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

_MOST_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Indexes:
    """Ascending inclusive ranges, not adjacent to each other."""

    ranges: tuple[tuple[int, int], ...] = field(default=())

    @classmethod
    def parse(cls, text: str, *, below: int) -> Self:
        """Parse text such as `0,2-4`; indexes from `below` on are dropped. Invalid ranges are skipped, since any client
        can write a status."""
        found: list[tuple[int, int]] = []
        for part in text.split(","):
            first, dash, last = part.partition("-")
            start, end = _number(first), _number(last if dash else first)
            if start is not None and end is not None and start < below:
                found.append((start, min(end, below - 1)))
        return cls(_merged(found))

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Self:
        return cls(_merged([(index, index) for index in indexes]))

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes(_merged([*self.ranges, *other.ranges]))

    def __contains__(self, index: int) -> bool:
        place = bisect_left(self.ranges, index, key=lambda each: each[1])
        return place < len(self.ranges) and self.ranges[place][0] <= index

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __str__(self) -> str:
        """As Kubernetes writes them: two neighbours as `0,1`, three as `0-2`."""
        return ",".join(_written(first, last) for first, last in self.ranges)

    def shared(self, other: Indexes) -> int:
        """The number of indexes in both sets."""
        return len(self) + len(other) - len(self | other)

    def missing(self, below: int) -> Iterator[int]:
        """The indexes smaller than `below` that aren't in the set, ascending."""
        candidate = 0
        for first, last in (*self.ranges, (below, below)):
            yield from range(candidate, min(first, below))
            candidate = max(candidate, last + 1)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _merged(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(each for each in ranges if each[0] <= each[1]):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _written(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}{',' if last == first + 1 else '-'}{last}"
