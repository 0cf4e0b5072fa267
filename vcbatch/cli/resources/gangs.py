"""Gangs as lines of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from vcbatch.cli.base.fields import NONE
from vcbatch.cli.base.output import age
from vcbatch.cli.base.table import Row, table
from vcbatch.cli.base.terminal import Terminal
from vcbatch.cli.resources.sections import quantities_text
from vcbatch.core.waiting import Gang


def gangs_table(
    gangs: Sequence[Gang],
    terminal: Terminal,
    *,
    queue: str,
    now: datetime,
    most: int,
    last: bool = False,
    why: Mapping[str, str] | None = None,
) -> str:
    """At most `most` gangs: the first, or with `last` the last ones. Empty where there are none. The queue column is
    present where one of them is in another queue than `queue`, priorities where they differ. PODS are the running pods,
    or for a pending gang the pods that must start together. `why` gives by UID the reason for which a gang is ahead."""
    if not gangs:
        return ""
    shown = gangs[-most:] if last else gangs[:most]
    header = ("JOB", "QUEUE", "PHASE", "PODS", "PRIORITY", "AGE", "REASON", "REQUESTS")
    why = why or {}
    rows: list[Row] = [header]
    for gang in shown:
        since = age(gang.created, now) if gang.created is not None else NONE
        needs = quantities_text(gang.asks) or NONE
        reason = why.get(gang.uid, "")
        pods = str(gang.runs if gang.holds else gang.pods)
        rows.append((gang.key, gang.queue, gang.phase, pods, str(gang.priority), since, reason, needs))
    left_out = {"QUEUE"} if all(gang.queue == queue for gang in shown) else set[str]()
    left_out |= {"PRIORITY"} if len({gang.priority for gang in shown}) == 1 else set[str]()
    left_out |= set() if why else {"REASON"}
    kept = [at for at, title in enumerate(header) if title not in left_out]
    right = [at for at, column in enumerate(kept) if header[column] in ("PODS", "PRIORITY")]
    rows = [[row[at] for at in kept] for row in rows]
    text = table(rows, indent="  ", terminal=terminal, right=right, flexible=[len(kept) - 1])
    return f"{text}\n  ... and {len(gangs) - len(shown)} more" if len(gangs) > len(shown) else text
