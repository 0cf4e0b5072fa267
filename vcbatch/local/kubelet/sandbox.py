"""The isolation of containers on this machine: the modes are tried, best first."""

from __future__ import annotations

import ctypes.util
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Mode(StrEnum):
    """How pods resolve each other's names and access their volumes."""

    USERNS = "userns"
    """Mount, UTS and (where possible) PID namespaces: real host names, /etc/hosts and mount paths."""
    NSS = "nss"
    """Names by libnss_wrapper; volumes only where a symbolic link can replace the mount."""
    PLAIN = "plain"
    """Host names in the environment are replaced by addresses; volumes as in `nss`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces:
    """The Linux namespaces that a container gets. `user` is needed where vcbatch doesn't run as root."""

    mount: bool = False
    user: bool = False
    pid: bool = False

    def document(self) -> dict[str, bool]:
        return {"mount": self.mount, "user": self.user, "pid": self.pid}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """The chosen mode, the reason for it, and what it requires."""

    mode: Mode
    namespaces: Namespaces
    message: str
    nss_wrapper: Path | None = None


NSS_WRAPPER_VARIABLE = "VCBATCH_NSS_WRAPPER"


class SandboxUnavailableError(Exception):
    """The requested mode doesn't work on this machine."""


Probe = Callable[[Namespaces], Awaitable[bool]]


async def choose(*, wanted: Mode | None, probe: Probe) -> Sandbox:
    """The best mode that works here, or exactly the `wanted` one; raises `SandboxUnavailableError` where that doesn't
    work, and on systems other than Linux."""
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailableError(f"pods run as processes on Linux only, and this is {sys.platform}")
    if wanted in (None, Mode.USERNS):
        for candidate in _candidates():
            if await probe(candidate):
                return Sandbox(mode=Mode.USERNS, namespaces=candidate, message=_describe(candidate))
        if wanted is Mode.USERNS:
            raise SandboxUnavailableError(
                "mode userns: this machine doesn't let this user make mount namespaces (unshare is not permitted)"
            )
    if wanted in (None, Mode.NSS):
        library = find_nss_wrapper()
        if library is not None:
            message = "containers resolve pod names through libnss_wrapper; volumes need writable mount paths"
            return Sandbox(mode=Mode.NSS, namespaces=Namespaces(), message=message, nss_wrapper=library)
        if wanted is Mode.NSS:
            raise SandboxUnavailableError("mode nss: libnss_wrapper.so is not installed (Debian: libnss-wrapper)")
    message = "pod names in the environment are replaced by addresses; volumes need writable mount paths"
    return Sandbox(mode=Mode.PLAIN, namespaces=Namespaces(), message=message)


def _candidates() -> list[Namespaces]:
    # Root may not need a user namespace, and then can still change owners inside the container.
    users = [False, True] if os.geteuid() == 0 else [True]
    return [Namespaces(mount=True, user=user, pid=pid) for pid in (True, False) for user in users]


def _describe(namespaces: Namespaces) -> str:
    kinds = ["user"] if namespaces.user else []
    kinds += ["mount", "UTS"] + (["PID"] if namespaces.pid else [])
    return f"containers have {', '.join(kinds[:-1])} and {kinds[-1]} namespaces of their own"


def find_nss_wrapper() -> Path | None:
    """libnss_wrapper's shared library: the file that `VCBATCH_NSS_WRAPPER` names, else from the usual directories or
    the dynamic loader."""
    named = os.environ.get(NSS_WRAPPER_VARIABLE)
    if named:
        return Path(named) if Path(named).is_file() else None
    directories = [Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib"), *Path("/usr/lib").glob("*-linux-gnu")]
    for directory in directories:
        library = directory / "libnss_wrapper.so"
        if library.exists():
            return library
    name = ctypes.util.find_library("nss_wrapper")
    return Path(name) if name else None
