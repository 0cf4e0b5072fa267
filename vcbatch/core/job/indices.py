"""Sets of pod indices, written as ranges: `0-3,7`. A thousand healthy pods take five characters."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indices(text: str, *, below: int) -> set[int]:
    """The indices smaller than `below`; parts that are no range are skipped, since a status is anybody's to write."""
    indices: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isascii() and first.isdigit():
            end = int(last) if last.isascii() and last.isdigit() else int(first)
            indices.update(range(int(first), min(end + 1, below)))
    return indices


def format_indices(indices: Iterable[int]) -> str:
    """The ranges, ascending."""
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
