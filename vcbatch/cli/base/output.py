"""Output of the commands: results on stdout, everything else on stderr, colour only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from vcbatch.api.duration import human
from vcbatch.cli.base.terminal import Tone, terminal_of


class CliError(Exception):
    """A command can't do its work. `hint` says what the user can do about it."""

    def __init__(self, message: str, *, hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code


def complain(error: CliError) -> None:
    note(f"{terminal_of(sys.stderr).paint('error:', Tone.BAD)} {error}")
    if error.hint:
        note(f"  {error.hint}")


def say(text: str = "", *, end: str = "\n") -> None:
    """Print a result. Characters that the terminal's encoding lacks are printed as question marks."""
    try:
        sys.stdout.write(text + end)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        sys.stdout.write((text + end).encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def note(text: str) -> None:
    """Print a message that isn't a result, to stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def deliver(files: Mapping[str, str], directory: Path | None) -> None:
    """Print YAML files as one stream, or write them to `directory` where one is given. Raises `CliError`."""
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
    """The age in kubectl's format: `45s`, `3m12s`, `5h`, `2d`; never negative."""
    return human(max(now - since, timedelta()))
