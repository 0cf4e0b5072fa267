"""Gangs as lines of a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from vcbatch.cli.output import age
from vcbatch.cli.resources.blocks import amounts
from vcbatch.cli.resources.fields import NONE
from vcbatch.cli.table import Row, table
from vcbatch.cli.terminal import Terminal
from vcbatch.core.waiting import Gang


def gangs_table(gangs: Sequence[Gang], terminal: Terminal, *, now: datetime, most: int, last: bool = False) -> str:
    """At most so many of them: the first, or the `last` ones. Empty where there are none."""
    if not gangs:
        return ""
    shown = gangs[-most:] if last else gangs[:most]
    rows: list[Row] = [("JOB", "QUEUE", "PHASE", "PODS", "PRIORITY", "AGE", "MINIMUM NEEDS")]
    for gang in shown:
        since = age(gang.created, now) if gang.created is not None else NONE
        needs = amounts(gang.asks) or NONE
        rows.append((gang.key, gang.queue, gang.phase, str(gang.pods), str(gang.priority), since, needs))
    text = table(rows, indent="  ", terminal=terminal, right=(3, 4), flexible=[6])
    return f"{text}\n  ... and {len(gangs) - len(shown)} more" if len(gangs) > len(shown) else text
