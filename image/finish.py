"""The last step of the image, run as root in it: remove pip, take set-user-ID bits away, name the user.

Everything here is what the base image brings and no component uses. Run as `finish.py UID`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

_PRIVILEGED = stat.S_ISUID | stat.S_ISGID


def remove_pip() -> None:
    """Remove pip from this interpreter, and the copy of it that `ensurepip` would install."""
    try:
        distribution = importlib.metadata.distribution("pip")
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        files = [Path(str(distribution.locate_file(file))).resolve() for file in distribution.files or ()]
        for file in files:
            file.unlink(missing_ok=True)
    for name in ("pip", "ensurepip"):
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            shutil.rmtree(folder)


def privileged(root: Path) -> Iterator[Path]:
    """Files of this file system that run with the rights of their owner or group."""
    device = root.stat().st_dev
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if Path(folder, name).lstat().st_dev == device]
        for name in files:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and mode & _PRIVILEGED:
                yield path


def name_user(etc: Path, uid: int) -> None:
    """Add the user and its group to `etc` where they aren't there: what asks for the user's name gets an answer."""
    for file, line in (
        (etc / "passwd", f"vcbatch:x:{uid}:{uid}:vcbatch:/tmp:/usr/sbin/nologin\n"),
        (etc / "group", f"vcbatch:x:{uid}:\n"),
    ):
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if not any(entry.startswith("vcbatch:") or f":x:{uid}:" in entry for entry in text.splitlines()):
            file.write_text(text + line, encoding="utf-8")


def main(uid: int) -> int:
    remove_pip()
    for path in privileged(Path("/")):
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_PRIVILEGED)
    name_user(Path("/etc"), uid)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
