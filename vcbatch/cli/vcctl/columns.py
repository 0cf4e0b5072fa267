"""Tables as Volcano prints them: every column, the last too, is padded to its width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vcbatch.cli.base.terminal import cells, clean

NOTHING = "No resources found"
"""The message in place of an empty table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column. It is at least `width` cells wide, `title_gap` wider than its title, and `gap` wider than its
    content."""

    title: str
    width: int = 0
    gap: int = 1
    title_gap: int | None = None

    def fit(self, longest: int) -> int:
        title_gap = self.gap if self.title_gap is None else self.title_gap
        return max(self.width, cells(self.title) + title_gap, longest + self.gap if longest else 0)


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[str | int]], *, unseen: Sequence[Sequence[str]] = ()
) -> str:
    """The titles and the rows, one line each. `unseen` rows count only for the widths of their (first) columns."""
    shown = [[clean(str(cell)) for cell in row] for row in rows]
    widths = [
        column.fit(max((cells(row[at]) for row in (*shown, *unseen) if at < len(row)), default=0))
        for at, column in enumerate(columns)
    ]
    lines = [[column.title for column in columns], *shown]
    return "\n".join("".join(_filled(cell, width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _filled(cell: str, width: int) -> str:
    return cell + " " * (width - cells(cell))
