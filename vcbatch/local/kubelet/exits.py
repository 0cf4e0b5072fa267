"""The recorded exit of a container: written by its init process, read by the kubelet."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from vcbatch.interfaces.processes import UNKNOWN_EXIT_CODE, ProcessExit
from vcbatch.local.kubelet.supervisor import reserved
from vcbatch.local.kubelet.supervisor.main import boot_id


def reserve(record: Path) -> None:
    """Reserve the disk space of all records that are written while the container runs. Raises `OSError` where there
    isn't enough."""
    for name in (reserved.EXIT, reserved.KILL, reserved.OOM):
        reserved.reserve(str(record / name))
    reserved.reserve(str(record / reserved.REFERENCE), {"boot_id": boot_id()})


def note_kill(record: Path) -> None:
    """Record a kill before it happens: an init process that is killed can't record its own exit."""
    with contextlib.suppress(OSError):
        descriptor = os.open(record / reserved.KILL, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            reserved.put(descriptor, {"at": time.time()}, sync=False)
        finally:
            os.close(descriptor)


def exit_of(record: Path) -> ProcessExit:
    """The recorded exit; else, if the kubelet killed the container, that; else the exit is unknown."""
    found = read_exit(record)
    if found is not None:
        return found
    killed = reserved.read(str(record / reserved.KILL))
    if killed is not None:
        return ProcessExit(exit_code=128 + signal.SIGKILL, signal=signal.SIGKILL, finished_at=killed["at"])
    return ProcessExit(exit_code=UNKNOWN_EXIT_CODE, finished_at=_last_change(record), unknown=True)


def read_exit(record: Path) -> ProcessExit | None:
    document = reserved.read(str(record / reserved.EXIT))
    if document is None:
        return None
    return ProcessExit(
        exit_code=document["exit_code"],
        signal=document.get("signal"),
        finished_at=document["finished_at"],
        start_error=document.get("error", ""),
    )


def _last_change(record: Path) -> float:
    with contextlib.suppress(OSError):
        return (record / "log").stat().st_mtime
    return 0.0
