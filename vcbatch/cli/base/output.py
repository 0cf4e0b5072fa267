"""Output of the commands: results on stdout, everything else on stderr, colour only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from vcbatch.api.duration import human
from vcbatch.cli.base.terminal import Tone, terminal_of


class CliError(Exception):
    """A command can't do what it was asked. `hint` says what the user can do about it."""

    def __init__(self, message: str, *, hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code


def complain(error: CliError) -> None:
    note(f"{terminal_of(sys.stderr).paint('error:', Tone.BAD)} {error}")
    if error.hint:
        note(f"  {error.hint}")


def say(text: str = "", *, end: str = "\n") -> None:
    """A result. What the terminal's encoding doesn't have is shown as a question mark."""
    try:
        sys.stdout.write(text + end)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        sys.stdout.write((text + end).encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def note(text: str) -> None:
    """Chatter: not a result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def deliver(files: Mapping[str, str], directory: Path | None) -> None:
    """Print YAML files as one stream or, where a directory is given, write them there. Raises `CliError`."""
    if directory is None:
        say("---\n".join(files.values()), end="")
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"can't write to {directory}: {error.strerror}") from error
    note(f"{len(files)} files written to {directory}")


def age(since: datetime, now: datetime) -> str:
    """How long ago, as kubectl says it: `45s`, `3m12s`, `5h`, `2d`; nothing is younger than now."""
    return human(max(now - since, timedelta()))
