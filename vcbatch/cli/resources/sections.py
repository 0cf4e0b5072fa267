"""The parts of a description of one object: name-value lines, titled sections, events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from vcbatch.api.quantity import Quantity
from vcbatch.cli.base.fields import NONE, moment, name_of, number, text
from vcbatch.cli.base.output import age
from vcbatch.cli.base.table import Cell, Row, table
from vcbatch.cli.base.terminal import Terminal, Tone, cells, wrap
from vcbatch.cli.resources.columns import Column, fit_of, shown_columns

Json = dict[str, Any]

_WIDTH: Final = 80
_EVENTS_SHOWN: Final = 15
_ABOUT: Final = ("involvedObject",)


def facts(pairs: Iterable[tuple[str, str | Cell]], terminal: Terminal) -> str:
    """One line for each name with its value, without those that have no value. Long values continue below."""
    kept = [(name, value if isinstance(value, Cell) else Cell(value)) for name, value in pairs]
    kept = [(name, value) for name, value in kept if value.text]
    margin = max((cells(name) for name, _ in kept), default=0) + 2
    lines: list[str] = []
    for name, value in kept:
        wrapped = wrap(value.text, width_of(terminal) - margin)
        start = f"{name}:" + " " * (margin - cells(name) - 1)
        lines += [start + terminal.paint(wrapped[0], value.tone) if wrapped else start.rstrip()]
        lines += [" " * margin + terminal.paint(line, value.tone) for line in wrapped[1:]]
    return "\n".join(lines)


def width_of(terminal: Terminal) -> int:
    """The width of running text: the terminal's, or 80 for a file or a pipe."""
    return terminal.width or _WIDTH


def section(title: str, body: str, terminal: Terminal) -> str:
    """A body below its title; empty where there is no body."""
    return f"{terminal.paint(title, Tone.STRONG)}\n{body}" if body else ""


def document(parts: Iterable[str]) -> str:
    """The parts that aren't empty, a blank line between them."""
    return "\n\n".join(part for part in parts if part)


def quantities_text(resources: Mapping[str, Quantity]) -> str:
    """`cpu 4, memory 8Gi`, without zero quantities."""
    return ", ".join(f"{name} {quantity.format()}" for name, quantity in sorted(resources.items()) if quantity)


def moment_text(when: datetime | None, now: datetime) -> str:
    """`2026-11-22 19:46:43 UTC (3m ago)`, or `in` for a time to come; empty for None."""
    if when is None:
        return ""
    how_long = f"in {age(now, when)}" if when > now else f"{age(when, now)} ago"
    return f"{when:%Y-%m-%d %H:%M:%S} UTC ({how_long})"


def labels_text(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def events_text(events: Sequence[Json], terminal: Terminal, *, now: datetime) -> str:
    """The latest events, the oldest first, each message in full."""
    ordered = sorted(events, key=lambda event: (_seen(event) or now, _written(event)))
    shown = ordered[-_EVENTS_SHOWN:]
    rows: list[Row] = [("AGE", "TYPE", "REASON", "ABOUT")]
    for event in shown:
        kind = text(event, "type")
        about = "/".join(filter(None, (text(event, *_ABOUT, "kind").lower(), text(event, *_ABOUT, "name"))))
        rows.append(
            (_when(event, now), Cell(kind, Tone.WAITING if kind == "Warning" else None), text(event, "reason"), about)
        )
    if not shown:
        return f"  {NONE}"
    header, *lines = table(rows, indent="  ", terminal=terminal).split("\n")
    out = [header]
    for line, event in zip(lines, shown, strict=True):
        out.append(line)
        out += wrap(text(event, "message"), width_of(terminal), indent=" " * 6, hang=" " * 6)
    if len(ordered) > len(shown):
        out.insert(0, f"  last {len(shown)} of {len(ordered)}")
    return "\n".join(out)


def objects_table(
    columns: Sequence[Column],
    objects: Sequence[Json],
    terminal: Terminal,
    *,
    now: datetime,
    most: int = 20,
    more: str = "",
) -> str:
    """Objects sorted by name as an indented table of at most `most` lines, followed by `more`, the command that
    lists all."""
    if not objects:
        return ""
    narrow = shown_columns(columns, wide=False, namespaces=False)
    shown = sorted(objects, key=name_of)[:most]
    rows: list[Row] = [[column.name for column in narrow]]
    rows += [[column.cell(obj, now) for column in narrow] for obj in shown]
    lines = table(rows, indent="  ", terminal=terminal, **fit_of(narrow))
    hidden = len(objects) - len(shown)
    return f"{lines}\n  ... and {hidden} more{f': {more}' if more else ''}" if hidden else lines


def _seen(event: Json) -> datetime | None:
    return (
        moment(event, "series", "lastObservedTime")
        or moment(event, "lastTimestamp")
        or moment(event, "eventTime")
        or moment(event, "metadata", "creationTimestamp")
    )


def _written(event: Json) -> int:
    """The order of events of the same second, from the resourceVersion; 0 where it isn't a number."""
    version = text(event, "metadata", "resourceVersion")
    return int(version) if version.isascii() and version.isdigit() else 0


def _when(event: Json, now: datetime) -> str:
    seen = _seen(event)
    if seen is None:
        return "?"
    times = max(number(event, "count"), number(event, "series", "count"))
    return f"{age(seen, now)} (x{times})" if times > 1 else age(seen, now)
