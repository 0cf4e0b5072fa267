"""Properties of an output: its width, whether it supports colours, and the width of text on it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TextIO

ELLIPSIS: Final = "…"


class Tone(StrEnum):
    """The meaning of a coloured word. Only base colours, which terminals show readably on dark and light
    backgrounds."""

    GOOD = "32"
    BAD = "31"
    WAITING = "33"
    STRONG = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """`width` in cells, None for a file or a pipe, where nothing is cut. `unicode`: whether block characters can be
    encoded."""

    width: int | None = None
    colour: bool = False
    unicode: bool = True

    def paint(self, text: str, tone: Tone | None) -> str:
        """The text in the colour of its tone, where colours are on."""
        return f"\x1b[{tone}m{text}\x1b[0m" if tone is not None and self.colour and text else text


PLAIN: Final = Terminal()
"""No colours, unlimited width."""


def terminal_of(stream: TextIO | None = None) -> Terminal:
    """The properties of `stream` (default: stdout). NO_COLOR and a dumb terminal disable colours (no-color.org);
    COLUMNS overrides the width of a terminal."""
    out: TextIO = sys.stdout if stream is None else stream
    unicode = (getattr(out, "encoding", "") or "").lower().replace("-", "").startswith("utf")
    if not out.isatty():
        return Terminal(unicode=unicode)
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return Terminal(width=_width(out), colour=colour, unicode=unicode)


def _width(stream: TextIO) -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def cells(text: str) -> int:
    """The number of terminal cells of the text: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` cells, with an ellipsis where it is longer."""
    if cells(text) <= width:
        return text
    if width < 1:
        return ""
    if text.isascii():
        return text[: width - 1].rstrip() + ELLIPSIS
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1).rstrip() + ELLIPSIS


def cut_middle(text: str, width: int) -> str:
    """The text in at most `width` cells, with an ellipsis for its middle where it is longer: names of the same program
    often differ only at their end."""
    if cells(text) <= width:
        return text
    tail = max(width - 1, 0) // 2
    while tail and cells(text[-tail:]) > (width - 1) // 2:
        tail -= 1  # wide characters
    return cut(text, width - tail).removesuffix(ELLIPSIS) + ELLIPSIS + text[-tail:] if tail else cut(text, width)


def clean(text: str) -> str:
    """One line without control characters, which text such as a pod's termination message may contain."""
    if text.isascii() and text.isprintable():
        return text
    return " ".join("".join(_harmless(letter) for letter in text).split()) if not text.isprintable() else text


def _harmless(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}"


def wrap(text: str, width: int, *, indent: str = "", hang: str = "") -> list[str]:
    """The text in lines of at most `width` cells, broken at spaces; a longer word has a line of its own. The first line
    begins with `indent`, the others with `hang`."""
    lines: list[str] = []
    line = indent
    empty = True
    for word in clean(text).split():
        longer = line + word if empty else f"{line} {word}"
        if not empty and cells(longer) > width:
            lines.append(line)
            line, empty = hang + word, False
        else:
            line, empty = longer, False
    return lines if empty else [*lines, line]
