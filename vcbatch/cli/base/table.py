"""Tables as kubectl prints them, with columns three spaces apart, measured in terminal cells rather than characters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from vcbatch.cli.base.terminal import PLAIN, Terminal, Tone, cells, clean, cut

GAP: Final = 3
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
        indent: str = "",
    ) -> None:
        """`right`: right-aligned columns. `flexible`: columns that are cut, the last one first, where the terminal
        isn't wide enough. If its width is unknown or cutting isn't enough, the table is wider than the terminal."""
        self._terminal = terminal
        self._right = frozenset(right)
        self._flexible = frozenset(flexible)
        self._indent = indent
        columns = range(len(rows[0])) if rows else range(0)
        self._widths = [max(cells(_text(row[column])) for row in rows) for column in columns]
        self._fit()

    def _fit(self) -> None:
        if self._terminal.width is None or not self._widths:
            return
        width = self._terminal.width - cells(self._indent)
        excess = sum(self._widths) + GAP * (len(self._widths) - 1) - width
        for column in sorted(self._flexible, reverse=True):
            if excess <= 0:
                return
            less = max(min(self._widths[column], _NARROWEST), self._widths[column] - excess)
            excess -= self._widths[column] - less
            self._widths[column] = less

    def line(self, row: Row) -> str:
        """One row. A cell that is longer than its column shifts the rest of its line."""
        parts: list[str] = []
        for column, (cell, width) in enumerate(zip(row, self._widths, strict=True)):
            text = _text(cell)
            if column in self._flexible and self._terminal.width is not None:
                text = cut(text, width)
            blank = " " * max(width - cells(text), 0)
            painted = self._terminal.paint(text, cell.tone) if isinstance(cell, Cell) else text
            parts.append(blank + painted if column in self._right else painted + blank)
        return (self._indent + (" " * GAP).join(parts)).rstrip()


def table(
    rows: Sequence[Row],
    *,
    indent: str = "",
    terminal: Terminal = PLAIN,
    right: Collection[int] = (),
    flexible: Collection[int] = (),
) -> str:
    """The rows, the first being the header, as lines. For the arguments see `Layout`."""
    layout = Layout(rows, terminal=terminal, right=right, flexible=flexible, indent=indent)
    return "\n".join(layout.line(row) for row in rows)


def _text(cell: str | Cell) -> str:
    return clean(cell.text if isinstance(cell, Cell) else cell)
