"""Detects whether the database lacks writes that were committed to it.

The newest committed resourceVersion is kept in a file of its own beside the database. A database that ends before it
has lost writes: its write-ahead log was cut off when the machine crashed, an old copy was restored, or the file was
deleted. Such a range of resource versions is recorded, because other state depends on it: a pod that was created in it
may still run, although the database doesn't have it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from vcbatch.local.files import replace_file

_VERSION_FILE = "newest-version"
_LOSSES_FILE = "losses.json"
_DIGITS = 20
_NEWEST_POSSIBLE = 2**53  # no server reaches it: a larger value is corrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Writes that were committed and are lost: those with a resourceVersion above `after`, up to `through`."""

    after: int
    through: int

    def __contains__(self, version: int) -> bool:
        return self.after < version <= self.through

    def __str__(self) -> str:
        if self.after <= 1:
            return f"the database is empty, and {self.through} writes had been committed to it: all of them are lost"
        return (
            f"the database ends at resourceVersion {self.after}, and {self.through} had been committed: whatever was "
            "created, changed or deleted after it is lost"
        )


class NewestVersion:
    """The newest committed resourceVersion. Written in place with every commit, which needs no disk space and no
    waiting: it reaches the disk when the system writes it."""

    def __init__(self, directory: Path) -> None:
        """Raises `OSError`."""
        path = directory / _VERSION_FILE
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.known = _number(os.pread(self._fd, _DIGITS, 0))
        """Its value when this process started; 0 where there was none."""
        if not self.known:
            self.note(0)

    def note(self, version: int) -> None:
        with suppress(OSError):
            os.pwrite(self._fd, f"{version:0{_DIGITS}}\n".encode(), 0)

    def sync(self) -> None:
        with suppress(OSError):
            os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def _number(data: bytes) -> int:
    text = data.decode(errors="replace").strip()
    number = int(text) if text.isascii() and text.isdigit() else 0
    return number if number <= _NEWEST_POSSIBLE else 0


def read_losses(directory: Path) -> Sequence[Loss]:
    """The losses that were detected in this state directory and not yet removed by `forget_losses`."""
    try:
        document = json.loads((directory / _LOSSES_FILE).read_bytes())
        return [Loss(after=int(entry["after"]), through=int(entry["through"])) for entry in document]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def add_loss(directory: Path, loss: Loss) -> Sequence[Loss]:
    """Record a loss, before anything depends on it; returns all. Raises `OSError`."""
    losses = [*(known for known in read_losses(directory) if known != loss), loss]
    replace_file(directory / _LOSSES_FILE, json.dumps([asdict(each) for each in losses]).encode())
    return losses


def forget_losses(directory: Path) -> None:
    """Remove the record, once no process is left that was started before."""
    with suppress(FileNotFoundError):
        (directory / _LOSSES_FILE).unlink()


def is_lost(version: int, losses: Iterable[Loss]) -> bool:
    """Whether a write with this resourceVersion is lost."""
    return any(version in loss for loss in losses)
