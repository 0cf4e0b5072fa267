"""Sets of pod indices, written as ranges: `0-3,7`. A thousand healthy pods take five characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MOST_DIGITS: Final = 10
"""The digits of an int32, the type of `replicas`."""


def parse_indices(text: str, *, below: int) -> set[int]:
    """The indices smaller than `below`; invalid parts are skipped, since any client can write a status."""
    indices: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        start, end = _index(first), _index(last if dash else first)
        if start is not None and end is not None:
            indices.update(range(start, min(end + 1, below)))
    return indices


def _index(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def format_indices(indices: Iterable[int]) -> str:
    """The indices as ranges, ascending."""
    ranges: list[str] = []
    first = last = -2
    for index in sorted(indices):
        if index == last + 1:
            last = index
            continue
        if first >= 0:
            ranges.append(_format_range(first, last))
        first = last = index
    if first >= 0:
        ranges.append(_format_range(first, last))
    return ",".join(ranges)


def _format_range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
