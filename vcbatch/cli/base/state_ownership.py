"""Recognizes state directories of vcbatch. No other directory is written to, chmodded, or has files deleted."""

from __future__ import annotations

import binascii
import os
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path

from vcbatch.cli.base.output import CliError

MARKER = "vcbatch-state"
"""The file that marks a state directory."""

_TEXT = "State directory of `vcbatch up`. To stop its server, run `vcbatch down`.\n"
_HINT = "Pass a new or empty directory with --state-dir."
# Versions before the marker left these files. Other programs may use the same names, so the content decides.
_OLD_LOCK = "up.lock"
_OLD_DATABASE = "state.db"
_OLD_AUTHORITY = Path("pki") / "ca.crt"
_DATABASE_HEADER = b"SQLite format 3\0"
_AUTHORITY_NAME = b"vcbatch-ca"
_LARGEST_CERTIFICATE = 64 * 1024


def make_own(path: Path) -> None:
    """Create the directory, or take an empty one, and mark it; an existing state directory stays as it is. Its mode
    becomes 0700. Any other directory is left unchanged.

    Raises:
        CliError: it isn't a directory that may be used.
        OSError: it can't be created or marked.
    """
    if path.is_symlink() and path.lstat().st_uid not in (os.getuid(), 0):
        raise CliError(f"the state directory {path} is a symbolic link of another user (uid {path.lstat().st_uid})")
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise CliError(f"the state directory {path} is not a directory") from None
        _check(path)
    _mark(path)
    if stat.S_IMODE(path.stat().st_mode) != 0o700:
        path.chmod(0o700)


def is_own(path: Path) -> bool:
    """Whether an existing directory has the marker of its owner, or the database and the certificate authority of a
    version before the marker. Raises `OSError` where it can't be read."""
    owner = path.stat().st_uid
    marker = path / MARKER
    with suppress(FileNotFoundError):
        found = marker.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_uid == owner:
            return marker.read_text(errors="replace") == _TEXT
    return _is_of_an_old_version(path)


def _is_of_an_old_version(path: Path) -> bool:
    if not (path / _OLD_LOCK).is_file() or _start_of(path / _OLD_DATABASE, len(_DATABASE_HEADER)) != _DATABASE_HEADER:
        return False
    pem = _start_of(path / _OLD_AUTHORITY, _LARGEST_CERTIFICATE).decode("ascii", errors="replace")
    lines = [line for line in pem.splitlines() if not line.startswith("-----")]
    try:
        return _AUTHORITY_NAME in binascii.a2b_base64("".join(lines))
    except ValueError:
        return False


def _start_of(path: Path, size: int) -> bytes:
    """The first bytes of a regular file; empty where there is none."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(size)


def is_unused(path: Path) -> bool:
    """Whether the directory is empty, or has only a marker whose writing was interrupted."""
    return [entry.name for entry in islice(path.iterdir(), 2)] in ([], [MARKER])


def _check(path: Path) -> None:
    """Raises `CliError` unless the existing directory is a state directory of this user, or empty and usable as one."""
    found = path.stat()
    if found.st_uid != os.getuid():
        raise CliError(f"the state directory {path} belongs to another user (uid {found.st_uid})")
    unchanged = "it was left unchanged"
    if is_own(path):
        if found.st_mode & stat.S_IWOTH:
            import shlex  # commands that only need the path don't need it

            hint = f"Check its contents, then restrict access: chmod 700 {shlex.quote(str(path))}"
            raise CliError(f"the state directory {path} is world-writable; {unchanged}", hint=hint)
        return
    if path.resolve() in (Path("/"), Path.home().resolve()):
        raise CliError(f"{path} is not usable as a state directory; {unchanged}", hint=_HINT)
    if not is_unused(path):
        names = sorted(entry.name for entry in islice(path.iterdir(), 100))
        some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise CliError(f"{path} is not a vcbatch state directory: it contains other files ({some}); {unchanged}",
                       hint=_HINT)  # fmt: skip
    if found.st_mode & (stat.S_IWOTH | stat.S_ISVTX):
        raise CliError(f"{path} can't be a state directory: it is writable by other users; {unchanged}", hint=_HINT)


def _mark(path: Path) -> None:
    """Write the marker atomically: after an interrupted start the directory still counts as unused."""
    marker = path / MARKER
    with suppress(OSError):
        if marker.read_text() == _TEXT:
            return
    with suppress(FileNotFoundError):
        marker.unlink()
    descriptor = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(_TEXT)
    except OSError:
        marker.unlink()
        raise
