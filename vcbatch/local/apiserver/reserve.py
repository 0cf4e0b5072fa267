"""Disk space reserved for deletions: a file that is removed when the disk is full, so that a user can still delete
objects, and created again once there is space."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

NAME = "reserve"
"""The file's name in the state directory."""

SIZE = 4 * 1024 * 1024
_SPARE = 1024 * 1024
"""Bytes that have to be free in addition to the reserve when it is taken: it never takes the last of them."""


class Reserve:
    """The reserve of one state directory."""

    def __init__(self, directory: Path, *, size: int = SIZE) -> None:
        self._path = directory / NAME
        self._size = size
        self._held = False
        self.given_up = False
        """Whether it was released because the disk is full, and hasn't been taken again."""

    def take(self) -> bool:
        """Take the reserve; returns whether it is taken now. Where the disk is too full nothing changes."""
        if self._held:
            return True
        try:
            if self._path.exists() and self._path.stat().st_size == self._size:
                self._held = True
            elif self._has_room():
                self._fill()
        except OSError:
            with suppress(OSError):
                self._path.unlink()
        if self._held:
            self.given_up = False
        return self._held

    def give_up(self) -> bool:
        """Release its space for the current write; returns whether there was any."""
        if not self._held:
            return False
        with suppress(FileNotFoundError):
            self._path.unlink()
        self._held = False
        self.given_up = True
        return True

    def _has_room(self) -> bool:
        return free_bytes(self._path.parent) >= self._size + _SPARE

    def _fill(self) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, self._size)
            else:
                os.write(descriptor, bytes(self._size))
        finally:
            os.close(descriptor)
        self._held = True


def free_bytes(directory: Path) -> int:
    """Bytes that this user may still write there; 0 where that isn't known."""
    with suppress(OSError):
        found = os.statvfs(directory)
        return found.f_bavail * found.f_frsize
    return 0


def give_up_reserve(directory: Path) -> bool:
    """The same for a server that isn't running, so that it can start on a full disk."""
    with suppress(FileNotFoundError):
        (directory / NAME).unlink()
        return True
    return False
