"""The server that `vcbatch up` runs on this machine: its state directory, and whether it runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Server:
    """A running `vcbatch up`. The kernel reuses pids, so the start time is part of its identity."""

    pid: int
    start_time: int

    def alive(self) -> bool:
        return start_time_of(self.pid) == self.start_time


def default_state_dir() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or ""
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return root / "vcbatch"


def start_time_of(pid: int) -> int | None:
    """Start time of the process, in clock ticks since boot (on other systems than Linux: in 1/100 s since the epoch);
    None where there is no process, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _start_time_elsewhere(pid)
    except (ProcessLookupError, PermissionError):
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])


def _start_time_elsewhere(pid: int) -> int | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else round(process.create_time() * 100)
    except psutil.Error:
        return None


def kubeconfig_of(state_dir: Path) -> Path:
    """The path of the kubeconfig that the server of a state directory writes."""
    return state_dir / "kubeconfig"


def pid_file_of(state_dir: Path) -> Path:
    return state_dir / "pid"


def running_server(state_dir: Path) -> Server | None:
    """The server that runs on a state directory; None where there is none."""
    try:
        pid, start_time = (int(part) for part in pid_file_of(state_dir).read_text().split())
    except (OSError, ValueError):
        return None
    server = Server(pid, start_time)
    return server if server.alive() else None
