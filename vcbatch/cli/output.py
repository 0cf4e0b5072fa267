"""How the commands speak: results on stdout, everything else on stderr, colour only where somebody looks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path


class CliError(Exception):
    """A command can't do what it was asked. `hint` says what the user can do about it."""

    def __init__(self, message: str, *, hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code


def complain(error: CliError) -> None:
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    label = "\x1b[31merror:\x1b[0m" if colour else "error:"
    note(f"{label} {error}")
    if error.hint:
        note(f"  {error.hint}")


def say(text: str = "", *, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def note(text: str) -> None:
    """Chatter: not a result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def deliver(files: Mapping[str, str], folder: Path | None) -> None:
    """Say YAML files as one stream or, where a folder is given, write them there. Raises `CliError`."""
    if folder is None:
        say("---\n".join(files.values()), end="")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"can't write to {folder}: {error.strerror}") from error
    note(f"{len(files)} files written to {folder}")


def age(since: datetime, now: datetime) -> str:
    """How long ago, as kubectl says it: `45s`, `3m12s`, `5h`, `2d`."""
    seconds = max(0, int((now - since) / timedelta(seconds=1)))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    return f"{hours}h" if hours < 48 else f"{days}d"


def table(rows: list[tuple[str, ...]], *, indent: str = "") -> str:
    """Columns three spaces apart, as kubectl prints them; the first row is the header."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(indent + line for line in lines)
