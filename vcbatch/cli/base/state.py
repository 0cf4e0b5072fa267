"""The state directory of `vcbatch up`: its files, the server that runs on it, and the lock that allows only one."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.state_ownership import is_own, is_unused, make_own
from vcbatch.local.files import replace_file
from vcbatch.runtime.client.local_server import (
    Server,
    default_state_dir,
    kubeconfig_of,
    pid_file_of,
    running_server,
    start_time_of,
)

__all__ = ["Server", "StateDir", "default_state_dir", "start_time_of"]


class StateDir:
    """One state directory. Only its user has access (0700)."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.kubeconfig = kubeconfig_of(self.path)
        self.log = self.path / "log"
        self.kept_logs = self.path / "logs"
        self.kubelet = self.path / "kubelet"
        self.scheduler = self.path / "scheduler.json"
        self.accounting = self.path / "accounting.db"
        self._pid = pid_file_of(self.path)
        self._lock: IO[bytes] | None = None

    def exists(self) -> bool:
        return self.path.is_dir()

    def create(self) -> None:
        """Create the directory. Raises `CliError` where it can't be created or isn't a state directory."""
        try:
            make_own(self.path)
        except OSError as error:
            raise CliError(f"the state directory {self.path} can't be used: {error.strerror}") from error

    def require_own(self) -> None:
        """Raises `CliError` for an existing directory that isn't a state directory of vcbatch."""
        try:
            if is_own(self.path) or is_unused(self.path):
                return
        except OSError as error:
            raise CliError(f"the state directory {self.path} can't be read: {error.strerror}") from error
        raise CliError(f"{self.path} is not a vcbatch state directory; it was left unchanged")

    def running(self) -> Server | None:
        """The server that runs on the directory, or None."""
        return running_server(self.path)

    def claim(self) -> None:
        """Lock the directory until this process ends. Raises `CliError` where another server runs on it, or it isn't
        writable."""
        try:
            try:
                self._claim()
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self._give_up_reserve():
                    raise
                self._claim()
        except OSError as error:
            self.release()
            raise CliError(f"the state directory {self.path} can't be used: {error.strerror}") from error

    def _give_up_reserve(self) -> bool:
        """On a full disk: use the space that is reserved for deletions, so that the server starts and objects can be
        deleted."""
        from vcbatch.local.apiserver.reserve import give_up_reserve

        self.release()
        return give_up_reserve(self.path)

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
                hint="Stop it with `vcbatch down`, or start another server with --state-dir DIR.",
            ) from None
        self._lock = lock
        pid = os.getpid()
        replace_file(self._pid, f"{pid} {start_time_of(pid)}\n".encode(), durable=False)

    def release(self) -> None:
        """Unlock the directory, if this process has locked it."""
        if self._lock is None:
            return
        with suppress(FileNotFoundError):
            self._pid.unlink()
        self._lock.close()
        self._lock = None

    def forget(self) -> None:
        """Delete the files that a stopped server left about itself."""
        if self.running() is None:
            with suppress(FileNotFoundError):
                self._pid.unlink()
