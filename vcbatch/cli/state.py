"""The state directory of `vcbatch up`: what is where, who runs on it, and the lock that keeps it to one."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vcbatch.cli.output import CliError


@dataclass(frozen=True, slots=True)
class Server:
    """A running `vcbatch up`. The kernel gives pids out again, so the start time belongs to it."""

    pid: int
    start_time: int

    def alive(self) -> bool:
        return start_time_of(self.pid) == self.start_time


def default_state_dir() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or ""
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return root / "vcbatch"


def start_time_of(pid: int) -> int | None:
    """When the process started, in clock ticks since boot (elsewhere than on Linux: in 1/100 s since the epoch); None
    where there is none, or nothing but a zombie."""
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


class StateDir:
    """One state directory. Everything in it is the user's alone (0700)."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.kubeconfig = self.path / "kubeconfig"
        self.log = self.path / "log"
        self.kubelet = self.path / "kubelet"
        self._pid = self.path / "pid"
        self._lock: IO[bytes] | None = None

    def exists(self) -> bool:
        return self.path.is_dir()

    def create(self) -> None:
        """Raises `CliError` where it can't be made, or is somebody else's."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = self.path.stat().st_uid
            if owner != os.getuid():
                raise CliError(f"the state directory {self.path} belongs to another user (uid {owner})")
            self.path.chmod(0o700)
        except OSError as error:
            raise CliError(f"the state directory {self.path} can't be used: {error.strerror}") from error

    def running(self) -> Server | None:
        """Who runs on it, if anybody does."""
        try:
            pid, start_time = (int(part) for part in self._pid.read_text().split())
        except (OSError, ValueError):
            return None
        server = Server(pid, start_time)
        return server if server.alive() else None

    def claim(self) -> None:
        """Make it ours until this process ends. Raises `CliError` where another runs on it, or nothing can be written
        there."""
        try:
            self._claim()
        except OSError as error:
            self.release()
            raise CliError(f"the state directory {self.path} can't be used: {error.strerror}") from error

    def _claim(self) -> None:
        lock = (self.path / "up.lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            other = self.running()
            who = f" (pid {other.pid})" if other else ""
            raise CliError(
                f"vcbatch is already running on {self.path}{who}",
                hint="Stop it with `vcbatch down`, or start another with --state-dir DIR.",
            ) from None
        self._lock = lock
        pid = os.getpid()
        temporary = self._pid.with_suffix(".new")
        temporary.write_text(f"{pid} {start_time_of(pid)}\n")
        temporary.replace(self._pid)

    def release(self) -> None:
        """Nobody runs on it any more, if it was us."""
        if self._lock is None:
            return
        with suppress(FileNotFoundError):
            self._pid.unlink()
        self._lock.close()
        self._lock = None

    def forget(self) -> None:
        """Take away what a server that is gone left about itself."""
        if self.running() is None:
            with suppress(FileNotFoundError):
                self._pid.unlink()
