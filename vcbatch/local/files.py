"""Writes small files atomically: after a crash, also of the machine, a file has its old content or the new one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Replace a file, or create it. With `durable` the content has reached the disk when this returns. Raises
    `OSError`; nothing has changed then, and nothing is left behind. One process writes a file at a time: it has the
    lock of the state directory."""
    temporary = path.with_name(f".{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()  # of a process that crashed here
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Flush the names in a directory to the disk, where its file system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
