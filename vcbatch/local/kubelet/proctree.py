"""Reading and signalling process trees through /proc, safe against reused pids."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of a tree; `start_time` in clock ticks since boot."""

    pid: int
    start_time: int


def start_time(pid: int) -> int | None:
    """Start time of the process, in clock ticks since boot; None where there is none, or a zombie."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])


def is_alive(pid: int, started: int) -> bool:
    return start_time(pid) == started


def send(pid: int, started: int, number: int) -> bool:
    """Send a signal to the process if its start time still matches; returns whether it was sent."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):
        descriptor = -1
    try:
        if not is_alive(pid, started):
            return False
        if descriptor >= 0:
            _send_by_descriptor(descriptor, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return False
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return True


def _send_by_descriptor(descriptor: int, number: int) -> None:

    signal.pidfd_send_signal(descriptor, number)


def children(pid: int) -> Iterator[int]:
    """Pids of the direct children of a process, oldest first."""
    try:
        threads = list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return
    for thread in threads:
        try:
            text = (thread / "children").read_text()
        except FileNotFoundError:
            if thread.exists():  # a kernel without CONFIG_PROC_CHILDREN
                yield from _children_by_scan(pid)
                return
            continue
        except OSError:
            continue
        yield from (int(child) for child in text.split())


def _children_by_scan(pid: int) -> Iterator[int]:
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            yield int(entry.name)


def descendants(pid: int) -> list[Process]:
    """Every process below `pid`, without itself."""
    found: list[Process] = []
    pending = list(children(pid))
    while pending:
        child = pending.pop()
        started = start_time(child)
        if started is not None:
            found.append(Process(pid=child, start_time=started))
        pending.extend(children(child))
    return found


def resident_bytes(pid: int) -> int:
    """Memory in bytes of the tree below `pid`, without the process itself. Pages that several processes share count
    once per process that maps them; see `proportional_bytes` for the exact and more expensive value."""
    total = 0
    for process in descendants(pid):
        try:
            total += int((_PROC / str(process.pid) / "statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            continue
    return total


def proportional_bytes(pid: int) -> int:
    """Memory in bytes of the tree below `pid`, each shared page divided among those that map it."""
    total = 0
    for process in descendants(pid):
        try:
            text = (_PROC / str(process.pid) / "smaps_rollup").read_text()
        except OSError:
            continue
        total += next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)
    return total


def environment(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty where it can't be read."""
    try:
        text = (_PROC / str(pid) / "environ").read_bytes().decode(errors="surrogateescape")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)
