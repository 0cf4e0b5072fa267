"""Tables as kubectl prints them, with columns three spaces apart, measured in terminal cells rather than characters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from vcbatch.cli.base.terminal import PLAIN, Terminal, Tone, cells, clean, cut, cut_middle

GAP: Final = 3
NARROW_GAP: Final = 2
"""The distance of columns in a table that is wider than its terminal, where the table allows it."""
_NARROWEST: Final = 12
"""The minimum width of a cut column in cells; less wouldn't be readable."""


class Cell(NamedTuple):
    """A cell with a tone. Plain text is a cell too."""

    text: str
    tone: Tone | None = None


Row = Sequence[str | Cell]


class Layout:
    """The column widths of a table. Later rows keep to them where they fit, as a watch needs."""

    def __init__(
        self,
        rows: Sequence[Row],
        *,
        terminal: Terminal = PLAIN,
        right: Collection[int] = (),
        flexible: Collection[int] = (),
        middle: Collection[int] = (),
        least: Mapping[int, int] | None = None,
        narrow_gap: bool = False,
        indent: str = "",
    ) -> None:
        """`right`: right-aligned columns. `flexible`: columns that are cut, the widest one first and of equal ones the
        last, where the terminal isn't wide enough; those in `middle` lose the middle of their text, others the end.
        `least`: minimum widths in cells, where they aren't the usual one. `narrow_gap`: whether the columns may be
        closer to each other then. If the width is unknown or cutting isn't enough, the table is wider than the
        terminal."""
        self._terminal = terminal
        self._right = frozenset(right)
        self._flexible = frozenset(flexible)
        self._middle = frozenset(middle)
        self._least = least or {}
        self._gap = GAP
        self._indent = indent
        columns = range(len(rows[0])) if rows else range(0)
        self._widths = [max(cells(_text(row[column])) for row in rows) for column in columns]
        self._fit(narrow_gap=narrow_gap)

    def _fit(self, *, narrow_gap: bool) -> None:
        if self._terminal.width is None or not self._widths:
            return
        width = self._terminal.width - cells(self._indent)
        gaps = len(self._widths) - 1
        excess = sum(self._widths) + GAP * gaps - width
        if excess > 0 and narrow_gap:
            self._gap = NARROW_GAP
            excess -= (GAP - NARROW_GAP) * gaps
        while excess > 0:
            wide = [column for column in self._flexible if self._widths[column] > self._narrowest(column)]
            if not wide:
                return
            self._widths[max(wide, key=lambda column: (self._widths[column], column))] -= 1
            excess -= 1

    def _narrowest(self, column: int) -> int:
        return self._least.get(column, _NARROWEST)

    def line(self, row: Row) -> str:
        """One row. A cell that is longer than its column shifts the rest of its line."""
        parts: list[str] = []
        for column, (cell, width) in enumerate(zip(row, self._widths, strict=True)):
            text = _text(cell)
            if column in self._flexible and self._terminal.width is not None:
                text = cut_middle(text, width) if column in self._middle else cut(text, width)
            blank = " " * max(width - cells(text), 0)
            painted = self._terminal.paint(text, cell.tone) if isinstance(cell, Cell) else text
            parts.append(blank + painted if column in self._right else painted + blank)
        return (self._indent + (" " * self._gap).join(parts)).rstrip()


def table(
    rows: Sequence[Row],
    *,
    indent: str = "",
    terminal: Terminal = PLAIN,
    right: Collection[int] = (),
    flexible: Collection[int] = (),
    middle: Collection[int] = (),
    least: Mapping[int, int] | None = None,
    narrow_gap: bool = False,
) -> str:
    """The rows, the first being the header, as lines. For the arguments see `Layout`."""
    layout = Layout(
        rows, terminal=terminal, right=right, flexible=flexible, middle=middle, least=least, narrow_gap=narrow_gap,
        indent=indent,
    )  # fmt: skip
    return "\n".join(layout.line(row) for row in rows)


def _text(cell: str | Cell) -> str:
    return clean(cell.text if isinstance(cell, Cell) else cell)
