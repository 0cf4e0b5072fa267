"""Whether the database has all that was ever committed to it, and what it lacks.

Beside the database, in a file of its own, is the newest resourceVersion that was committed. A database that ends before
it has lost writes: its write-ahead log was cut off when the machine went down, an old copy was put back, or the file is
gone. Such a range of resource versions is kept on record, because other things go by it: a pod that was made in it may
still run, although the database doesn't know it.
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
_NEWEST_POSSIBLE = 2**53  # no server lives so long: what says more is damaged


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
    """The newest resourceVersion that was committed. Written in place with every commit, which needs no disk space and
    no waiting: it reaches the disk as soon as the system writes it."""

    def __init__(self, directory: Path) -> None:
        """Raises `OSError`."""
        path = directory / _VERSION_FILE
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.known = _number(os.pread(self._fd, _DIGITS, 0))
        """What it was when this process began; 0 where nobody has written one."""
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
    """Those that were noticed in this state directory and not yet settled by `forget_losses`."""
    try:
        document = json.loads((directory / _LOSSES_FILE).read_bytes())
        return [Loss(after=int(entry["after"]), through=int(entry["through"])) for entry in document]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def add_loss(directory: Path, loss: Loss) -> Sequence[Loss]:
    """Put one more on record, before anything goes by it; returns all. Raises `OSError`."""
    losses = [*(known for known in read_losses(directory) if known != loss), loss]
    replace_file(directory / _LOSSES_FILE, json.dumps([asdict(each) for each in losses]).encode())
    return losses


def forget_losses(directory: Path) -> None:
    """Nothing goes by them any more: no process is left that was started before."""
    with suppress(FileNotFoundError):
        (directory / _LOSSES_FILE).unlink()


def is_lost(version: int, losses: Iterable[Loss]) -> bool:
    """Whether what was written with this resourceVersion is lost."""
    return any(version in loss for loss in losses)
