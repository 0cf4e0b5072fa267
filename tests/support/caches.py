"""Directories that are built once per machine, whose names contain a digest of their inputs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

_KEPT_SECONDS = 24 * 3600
_USED = ".used"


def cache() -> Path:
    """The cache directory of vcbatch's tests, created if needed."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vcbatch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def digest(parts: Iterable[str | bytes]) -> str:
    """A short name for these parts in this order."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()[:16]


def tree_digest(root: Path, names: Iterable[str]) -> str:
    """A digest of these files and directories below `root`: names, modes and contents, without compiled modules."""
    parts: list[str | bytes] = []
    for name in sorted(names):
        top = root / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and path.suffix != ".pyc":
                parts += [f"{path.relative_to(root)} {path.stat().st_mode & 0o111:o}", path.read_bytes()]
    return digest(parts)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold a lock on that file, which is created with its directory if needed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def alone(name: str) -> AbstractContextManager[None]:
    """Hold the machine-wide lock of that name."""
    return locked(cache() / "locks" / name)


def made_once(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """The directory `kind/key` of the cache; `make` fills it if it doesn't exist, one process at a time.

    When one is built, directories of the same kind that weren't used for a day are removed.
    """
    base = cache() / kind
    base.mkdir(parents=True, exist_ok=True)
    folder = base / key
    if not folder.is_dir():
        with alone(f"{kind.replace('/', '-')}-{key}"):
            if not folder.is_dir():
                with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=base) as unfinished:
                    content = Path(unfinished) / "content"
                    content.mkdir()
                    make(content)
                    content.rename(folder)
                _remove_unused(base, keep=folder)
    (folder / _USED).touch()
    return folder


def _remove_unused(base: Path, *, keep: Path) -> None:
    for folder in base.iterdir():
        used = folder / _USED
        moment = used if used.exists() else folder
        if folder != keep and moment.stat().st_mtime < time.time() - _KEPT_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
