"""Programs from Debian packages, unpacked below the cache: nothing is installed, and no script of a package is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.image.caches import digest, made_once


def programs(package: str, *names: str) -> list[Path]:
    """These programs of a package, fetched once per machine from the archive that apt knows. Skips where that can't be
    had, but fails in continuous integration."""

    def fetch(folder: Path) -> None:
        fetched = folder / "fetched"
        fetched.mkdir()
        _run(["apt-get", "-q", "-oAPT::Sandbox::User=root", "-oAcquire::Retries=3", "download", package], fetched)
        for archive in fetched.glob("*.deb"):
            _run(["dpkg", "-x", archive.name, str(folder)], fetched)
        shutil.rmtree(fetched)

    try:
        root = made_once(f"debian/{package}", digest([package, _release()]), fetch)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        reason = f"no {package}: apt-get download and dpkg -x of the Debian package failed: {said.strip()[-500:]}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return [root / "usr/bin" / name for name in names]


def _release() -> str:
    """What this system is, since packages need its libraries."""
    return Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=True)
