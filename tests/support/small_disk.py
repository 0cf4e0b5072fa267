"""A file system of a few megabytes that a test can fill."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[Path]:
    """Mount one at `folder`, which is created; skips the test where mounting isn't permitted."""
    folder.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can't be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Use all remaining space in a file, which is returned."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass
    assert shutil.disk_usage(disk).free == 0
    return filler
