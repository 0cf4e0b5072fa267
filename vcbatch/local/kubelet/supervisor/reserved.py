"""Small records whose disk space is reserved before a container starts, so that they can be written even on a full
disk: in particular the container's exit.

A reserved file is one block of JSON padded with blanks. It is overwritten in place, which needs no new block on file
systems that don't copy on write. A file of blanks alone has no content yet.
"""

from __future__ import annotations

import errno
import json
import os
import time

SIZE = 4096
"""Bytes of a reserved file: the block size of the usual file systems. A reader never sees a partly written page."""

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""The system's errors where a disk, or a user's quota of it, is full."""

EXIT = "exit.json"
"""The container's exit."""
KILL = "kill.json"
"""Records that the kubelet is about to kill the container."""
OOM = "oom.json"
"""Records that the container is killed because of its memory limit."""
REFERENCE = "pid.json"
"""The container's first process."""

_LONGEST_TEXT = 1024  # characters of a message in a record: at most four bytes each, and some are escaped
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


def reserve(path: str, document: dict | None = None) -> None:
    """Create the file with all its space, with `document` or empty. Raises `OSError`."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write(fd, document)
    finally:
        os.close(fd)


def put(fd: int, document: dict, *, sync: bool = True) -> None:
    """Replace the content of a reserved file, and with `sync` wait for the disk. Raises `OSError`."""
    _write(fd, document)
    if sync:
        try:
            os.fdatasync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system without that feature
                raise


def put_patiently(fd: int, document: dict, *, seconds: float) -> bool:
    """`put`, retried for that many seconds while the disk is full; returns whether it was written."""
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            put(fd, document)
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        else:
            return True


def read(path: str) -> dict | None:
    """The content of a reserved file; None where it is missing, empty or incomplete. Raises `OSError` where it can't be
    read."""
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read())
    except (FileNotFoundError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _write(fd: int, document: dict | None) -> None:
    data = b"" if document is None else _encode(document)
    if os.pwrite(fd, data.ljust(SIZE), 0) < SIZE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _encode(document: dict) -> bytes:
    limit = _LONGEST_TEXT
    while True:
        cut = {key: value[:limit] if isinstance(value, str) else value for key, value in document.items()}
        data = json.dumps(cut, ensure_ascii=False).encode(errors="replace")
        if len(data) <= SIZE:
            return data
        limit //= 2
