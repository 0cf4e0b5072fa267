"""Findings as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from vcbatch.cli.base.terminal import Terminal, Tone, wrap
from vcbatch.cli.inventory.findings import Finding, Level

_TONES: Final = {Level.BLOCKER: Tone.BAD, Level.WARNING: Tone.WAITING, Level.OK: Tone.GOOD}
_WIDTH: Final = 120
_INDENT: Final = 9


def findings_text(found: Sequence[Finding], terminal: Terminal) -> str:
    """A section for each check, with its blockers first."""
    width = min(terminal.width or _WIDTH, _WIDTH)
    order = list(Level)
    lines: list[str] = []
    for check in dict.fromkeys(one.check for one in found):
        for one in sorted((one for one in found if one.check == check), key=lambda one: order.index(one.level)):
            word = terminal.paint(f"{one.level:<7}", _TONES[one.level])
            about = f"{one.check}: {one.subject}: " if one.subject else f"{one.check}: "
            first, *rest = wrap(about + one.message, width - _INDENT) or [""]
            lines.append(f"{word}  {first}")
            lines += (" " * _INDENT + line for line in rest)
            lines += wrap(one.todo, width, indent=" " * (_INDENT + 2), hang=" " * (_INDENT + 2))
    return "\n".join(lines)


def summary(found: Sequence[Finding]) -> str:
    """The numbers of findings: `1 blocker, 2 warnings, 7 ok`."""
    counts = Counter(one.level for one in found)
    blockers, warnings = counts[Level.BLOCKER], counts[Level.WARNING]
    return (
        f"{blockers} blocker{'' if blockers == 1 else 's'}, {warnings} warning{'' if warnings == 1 else 's'}, "
        f"{counts[Level.OK]} ok"
    )
