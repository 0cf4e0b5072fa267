"""A stand-in for the base image, of Debian's packages: the same release of Python and, as there, pip, a shell, dpkg's
database and programs with set-user-ID bits. And the wheels that an image on it is built from."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.image import sandbox
from tests.image.sandbox import Bind
from tests.support import debian
from tests.support.caches import digest, made_once

REPOSITORY = Path(__file__).parents[2]
NAME = "docker.io/library/python:3.13-slim"
_PYTHON = "python3.13"
_PACKAGES = (
    _PYTHON, "python3-pip-whl", "libstdc++6", "ca-certificates", "netbase", "tzdata",
    "base-files", "bash", "coreutils", "dash", "dpkg", "findutils", "grep", "mount", "passwd", "sed", "tar",
)  # fmt: skip
_VERSION = "1"
"""Changes with `_prepare`."""
_PASSED_ON = ("PIP_", "SSL_", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_TRUSTED = "/etc/ssl/certs"


def root() -> Path:
    """The base's root file system."""
    return debian.root("base", _PACKAGES, _prepare, _VERSION)


def _prepare(root: Path) -> None:
    """Do what the packages' scripts would, and lay Python out as the official image does."""
    share = root / "usr/share"
    for name in ("man", "locale", "lintian", "info"):
        shutil.rmtree(share / name, ignore_errors=True)
    for file in (share / "doc").rglob("*"):
        if file.is_file() and file.name != "copyright":
            file.unlink()
    trusted = root / _TRUSTED.lstrip("/") / "ca-certificates.crt"
    trusted.parent.mkdir(parents=True, exist_ok=True)
    authorities = sorted((share / "ca-certificates").rglob("*.crt"))
    trusted.write_text("".join(file.read_text(encoding="utf-8") for file in authorities), encoding="utf-8")
    local = root / "usr/local"
    (local / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3", _PYTHON):
        (local / "bin" / name).symlink_to(f"/usr/bin/{_PYTHON}")
    packages = local / "lib" / _PYTHON / "dist-packages"
    packages.mkdir(parents=True, exist_ok=True)
    (wheel,) = (share / "python-wheels").glob("pip-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(packages)
    shutil.rmtree(share / "python-wheels")


def wheels(requirements: Sequence[str], constraints: bytes) -> Path:
    """A folder with the wheels of `requirements` and all that they need, as pip in the base chooses them, so that a
    build needs no network. Raises `SandboxError` where they can't be had."""
    base = root()

    def fetch(folder: Path) -> None:
        wanted = folder.parent / "wanted"
        wanted.mkdir()
        (wanted / "constraints.txt").write_bytes(constraints)
        (wanted / "requirements.txt").write_text("\n".join(requirements) + "\n", encoding="utf-8")
        command = ["python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
        chosen = ["--only-binary=:all:", "-c", "/wanted/constraints.txt", "-r", "/wanted/requirements.txt"]
        machine = [Path(name) for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", _TRUSTED)]
        sandbox.run(
            base,
            [*command, "--dest", "/wheels", *chosen],
            binds=[
                Bind(folder, "/wheels", writable=True),
                Bind(wanted, "/wanted"),
                *(Bind(path, str(path)) for path in machine if path.exists()),
            ],
            network=True,
            env={key: value for key, value in os.environ.items() if key.startswith(_PASSED_ON)},
        )

    return made_once("wheels", digest([base.parent.name, constraints, *requirements]), fetch)
