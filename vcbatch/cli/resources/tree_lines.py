"""The branches of a text tree."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.cli.base.terminal import Terminal


def branch(lasts: Sequence[bool], terminal: Terminal) -> tuple[str, str]:
    """The prefixes of an entry and of further lines below it. `lasts`: whether it, and each ancestor below the root, is
    the last among its siblings."""
    joint, end, through = ("├─ ", "└─ ", "│  ") if terminal.unicode else ("|- ", "`- ", "|  ")
    if not lasts:
        return "", ""
    above = "".join("   " if last else through for last in lasts[:-1])
    return above + (end if lasts[-1] else joint), above + ("   " if lasts[-1] else through)
