"""A PostgreSQL server from Debian's package, for one test session; nothing is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.debian import programs
from tests.support.lacking import lacks
from tests.support.ports import free_port

_USER = "postgres"
_PASSWORD = "p@ss/word"


def _binaries(folder: Path) -> Path:
    """The folder with initdb and postgres: of the machine, else of Debian's package for its release, which is copied
    into `folder`: other users can't read the cache."""
    for installed in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (installed / "initdb").exists() and (installed / "postgres").exists():
            return installed
    version = _packaged_version()
    (unpacked,) = programs(f"postgresql-{version}", "")
    shutil.copytree(unpacked.parent, folder / "usr", symlinks=True)
    return folder / "usr/lib/postgresql" / version / "bin"


def _packaged_version() -> str:
    if shutil.which("apt-cache") is None:
        lacks("no PostgreSQL, and no apt to fetch Debian's package of it")
    done = subprocess.run(
        ["apt-cache", "search", "--names-only", "^postgresql-[0-9]+$"], capture_output=True, text=True, check=False
    )
    versions = (
        []
        if done.returncode
        else sorted(line.split()[0].removeprefix("postgresql-") for line in done.stdout.splitlines())
    )
    if not versions:
        lacks("no PostgreSQL, and no Debian package of it")
    return versions[-1]


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a new database, with a password. The test is skipped where there is no PostgreSQL; in continuous
    integration it fails."""
    folder = Path(tempfile.mkdtemp(prefix="vcbatch-postgres-"))
    as_user: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            owner = pwd.getpwnam("nobody")
        except KeyError:
            lacks("PostgreSQL doesn't run as root, and there is no user nobody")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_user = ["setpriv", "--reuid", "nobody", "--regid", str(owner.pw_gid), "--clear-groups"]
    try:
        binaries = _binaries(folder)
        secret = folder / "password"
        secret.write_text(_PASSWORD)
        secret.chmod(0o644)
        data, port = folder / "data", free_port()
        made = subprocess.run(
            [*as_user, str(binaries / "initdb"), "-D", str(data), "-U", _USER, "-A", "scram-sha-256",
             f"--pwfile={secret}", "--no-sync"],
            capture_output=True, text=True, check=False, cwd=folder,
        )  # fmt: skip
        if made.returncode:
            lacks(f"PostgreSQL can't be set up: {made.stderr[-500:]}")
        server = subprocess.Popen(
            [*as_user, str(binaries / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder), "-F",
             "-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=8MB"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
        )  # fmt: skip
        try:
            url = f"postgresql://{_USER}:p%40ss%2Fword@127.0.0.1:{port}/postgres"
            _await(url, server)
            yield url
        finally:
            server.terminate()
            server.wait(20)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    import time

    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            assert server.poll() is None, "PostgreSQL ended"
            assert time.monotonic() < deadline, "PostgreSQL doesn't start"
            time.sleep(0.1)
