"""Records and usage as tables, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from vcbatch.api.duration import human
from vcbatch.cli.base.output import note, say
from vcbatch.cli.base.table import Cell, Row, table
from vcbatch.cli.base.terminal import Tone, terminal_of
from vcbatch.core.accounting import FIELDS, Attempt, AttemptState, Group, Usage, to_wire

Json = dict[str, Any]

FORMATS: Final = ("table", "wide", "csv", "json")
_NONE: Final = "<none>"
_HOUR: Final = 3600.0
_GIB: Final = 2**30
_TONES: Final = {
    AttemptState.RUNNING: Tone.GOOD,
    AttemptState.COMPLETED: Tone.GOOD,
    AttemptState.FAILED: Tone.BAD,
    AttemptState.UNKNOWN: Tone.BAD,
    AttemptState.PENDING: Tone.WAITING,
}


def print_attempts(found: Sequence[Attempt], output: str, *, now: float, namespaces: bool) -> None:
    """Print records. `namespaces`: the table has a column for them."""
    if output == "json":
        say(_json({"items": [to_wire(attempt) for attempt in found]}))
    elif output == "csv":
        say(_csv(FIELDS, [[_flat(value) for value in to_wire(attempt).values()] for attempt in found]), end="")
    elif not found:
        note("No records found.")
    else:
        rows = [_attempt_row(attempt, now, namespaces=namespaces, wide=output == "wide") for attempt in found]
        header = _attempt_header(namespaces=namespaces, wide=output == "wide")
        right = {position for position, name in enumerate(header) if name in _NUMBERS}
        flexible = {position for position, name in enumerate(header) if name in ("JOB", "USER", "QUEUE")}
        say(table([header, *rows], terminal=terminal_of(), right=right, flexible=flexible))


_NUMBERS: Final = frozenset(
    {"EXIT", "GPUS", "GPU-HOURS", "CPU-HOURS", "MEM-GIB-HOURS", "PODS", "ATTEMPTS", "ATTEMPT", "JOBS", "COMPLETED",
     "FAILED", "RESTARTS"}
)  # fmt: skip


def _attempt_header(*, namespaces: bool, wide: bool) -> list[str]:
    names = ["NAMESPACE"] if namespaces else []
    names += ["JOB", "USER", "QUEUE", "STATE", "EXIT", "GPUS", "ELAPSED", "WAITED", "GPU-HOURS"]
    if wide:
        names += ["CPU-HOURS", "MEM-GIB-HOURS", "ATTEMPT", "RESTARTS", "PODS", "NODES", "SUBMITTED", "ENDED", "REASON"]
    return names


def _attempt_row(attempt: Attempt, now: float, *, namespaces: bool, wide: bool) -> Row:
    row: list[str | Cell] = [attempt.namespace] if namespaces else []
    tone = next((tone for state, tone in _TONES.items() if state == attempt.state), None)
    row += [
        attempt.job,
        attempt.user or _NONE,
        attempt.queue,
        Cell(attempt.state, tone),
        "" if attempt.exit_code is None else str(attempt.exit_code),
        str(attempt.gpu_count),
        "" if attempt.started is None else _span(attempt.elapsed(now)),
        _span(attempt.waited(now)),
        _hours(attempt.gpu_seconds),
    ]
    if wide:
        more = attempt.node_count - 1
        nodes = f"{attempt.nodes[0]},+{more}" if more > 0 else next(iter(attempt.nodes), _NONE)
        row += [
            _hours(attempt.cpu_seconds),
            _hours(attempt.memory_byte_seconds / _GIB),
            str(attempt.attempt),
            str(attempt.restarts),
            str(attempt.pods),
            nodes,
            _moment(attempt.submitted),
            "" if attempt.ended is None else _moment(attempt.ended),
            attempt.reason or _NONE,
        ]
    return row


def print_usage(found: Sequence[Usage], by: Group, output: str) -> None:
    """Print sums."""
    if output == "json":
        say(_json({"by": str(by), "items": [_usage(usage, by) for usage in found]}))
    elif output == "csv":
        fields = list(_usage(Usage(key=""), by))
        say(_csv(fields, [[str(value) for value in _usage(usage, by).values()] for usage in found]), end="")
    elif not found:
        note("No records found.")
    else:
        header = [by.upper(), "GPU-HOURS", "CPU-HOURS", "MEM-GIB-HOURS", "JOBS", "ATTEMPTS", "FAILED", "MEAN WAIT"]
        if output == "wide":
            header.insert(6, "COMPLETED")
        rows = [_usage_row(usage, wide=output == "wide") for usage in found]
        right = {position for position, name in enumerate(header) if name in _NUMBERS}
        say(table([header, *rows], terminal=terminal_of(), right=right, flexible={0}))


def _usage_row(usage: Usage, *, wide: bool) -> Row:
    return [
        usage.key or _NONE,
        _hours(usage.gpu_seconds),
        _hours(usage.cpu_seconds),
        _hours(usage.memory_byte_seconds / _GIB),
        str(len(usage.jobs)),
        str(usage.attempts),
        *([str(usage.completed)] if wide else []),
        str(usage.failed),
        _span(usage.mean_wait),
    ]


def _usage(usage: Usage, by: Group) -> Json:
    return {
        str(by): usage.key,
        "gpuHours": round(usage.gpu_seconds / _HOUR, 6),
        "cpuHours": round(usage.cpu_seconds / _HOUR, 6),
        "memoryGiBHours": round(usage.memory_byte_seconds / _GIB / _HOUR, 6),
        "jobs": len(usage.jobs),
        "attempts": usage.attempts,
        "completed": usage.completed,
        "failed": usage.failed,
        "meanWaitSeconds": round(usage.mean_wait, 3),
    }


def _json(document: Json) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _flat(value: object) -> str:
    """A value in one cell: lists and maps with semicolons."""
    if isinstance(value, dict):
        return ";".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return ";".join(map(str, value))
    return "" if value is None else str(value)


def _hours(seconds: float) -> str:
    hours = seconds / _HOUR
    return f"{hours:.2f}" if hours < 1000 else f"{hours:.0f}"


def _span(seconds: float) -> str:
    return human(timedelta(seconds=seconds))


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
