"""Debian packages, downloaded with apt and unpacked in the cache. Nothing is installed, and no maintainer script runs.

`root` builds complete root file systems of Debian 13 on any machine: packages are unpacked with all dependencies,
including the C library. apt has a separate state directory and verifies signatures with Debian's keys. `programs`
provides single programs of the machine's own release, which use its libraries.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.support.caches import digest, made_once
from tests.support.lacking import lacks

SUITE = "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_FORMAT = "2"
"""Changes when packages are unpacked in another way."""
_MERGED = ("bin", "sbin", "lib", "lib64")

Prepare = Callable[[Path], None]


class DebianError(Exception):
    """Packages could not be downloaded or unpacked; the message has the end of apt's output."""


def missing() -> str:
    """What this machine lacks for Debian packages; empty where nothing is missing."""
    for program in ("apt-get", "dpkg", "dpkg-deb"):
        if shutil.which(program) is None:
            return f"{program} (packages of Debian are fetched with it)"
    if not KEYRING.exists():
        return f"{KEYRING} (package debian-archive-keyring)"
    return ""


def root(name: str, packages: Sequence[str], prepare: Prepare | None = None, version: str = "") -> Path:
    """A directory with `packages` and their dependencies, unpacked.

    `prepare` then changes it; `version` identifies its behaviour, so that a changed version causes a rebuild. Raises
    `DebianError`.
    """

    def make(folder: Path) -> None:
        apt = folder / "apt"
        try:
            _unpack(sorted(_fetched(apt, packages)), folder / "root")
        finally:
            shutil.rmtree(apt, ignore_errors=True)
        if prepare is not None:
            prepare(folder / "root")

    return made_once(f"debian/{name}", digest([_FORMAT, SUITE, version, *sorted(packages)]), make) / "root"


def programs(package: str, *names: str) -> list[Path]:
    """These programs of a package from apt's configured archive. Where it is unavailable the test is skipped, or fails
    in continuous integration."""

    def fetch(folder: Path) -> None:
        fetched = folder / "fetched"
        fetched.mkdir()
        _run(["apt-get", "-q", "-oAPT::Sandbox::User=root", "-oAcquire::Retries=3", "download", package], cwd=fetched)
        for archive in fetched.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(archive), str(folder)])
        shutil.rmtree(fetched)

    release = Path("/etc/os-release")
    try:
        made = made_once(f"debian/{package}", digest([package, release.read_text() if release.exists() else ""]), fetch)
    except (OSError, DebianError) as error:
        lacks(f"no Debian package {package}: {error}")
    return [made / "usr/bin" / name for name in names]


def _fetched(apt: Path, packages: Sequence[str]) -> Iterator[Path]:
    for name in ("lists/partial", "cache/archives/partial", "etc"):
        (apt / name).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "etc/sources.list").write_text(f"deb [signed-by={KEYRING}] {_archive()} {SUITE} main\n")
    options = {
        "Dir::Etc::sourcelist": apt / "etc/sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": apt,
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    command = ["apt-get", "-q", "-y", *(f"-o{key}={value}" for key, value in options.items())]
    _run([*command, "update"])
    _run([*command, "--no-install-recommends", "--download-only", "install", *packages])
    yield from (apt / "cache/archives").glob("*.deb")


def _archive() -> str:
    """The archive of this machine's own packages."""
    targets = _run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages"])
    for line in targets.splitlines():
        uri, _, component = line.rpartition(" ")
        if component == "main" and re.search(r"/debian/?$", uri):
            return uri
    raise DebianError("apt knows no archive of Debian (apt-get indextargets)")


def _unpack(archives: Sequence[Path], into: Path) -> None:
    for name in _MERGED:
        (into / "usr" / name).mkdir(parents=True)
        (into / name).symlink_to(f"usr/{name}")
    status = into / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    entries: list[str] = []
    for archive in archives:
        packed = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE)
        _run(["tar", "-x", "--keep-directory-symlink", "-C", str(into)], stdin=packed.stdout)
        if packed.wait():
            raise DebianError(f"{archive.name} can't be unpacked")
        control = _run(["dpkg-deb", "-f", str(archive)])
        head, _, rest = control.partition("\n")
        entries.append(f"{head}\nStatus: install ok installed\n{rest.strip()}\n")
    status.write_text("\n".join(entries), encoding="utf-8")
    for kind in ("passwd", "group"):
        if (names := into / f"usr/share/base-passwd/{kind}.master").exists():
            shutil.copyfile(names, into / "etc" / kind)
    for name in ("tmp", "var/tmp"):
        (into / name).mkdir(parents=True, exist_ok=True)
        (into / name).chmod(0o1777)
    for name in ("proc", "sys", "dev", "run", "root"):
        (into / name).mkdir(exist_ok=True)


def _run(command: Sequence[str], stdin: object = subprocess.DEVNULL, cwd: Path | None = None) -> str:
    done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False, cwd=cwd)  # type: ignore[call-overload]
    if done.returncode:
        raise DebianError(f"{' '.join(command[:1])} failed: {(done.stderr or done.stdout)[-2000:]}")
    return str(done.stdout)
