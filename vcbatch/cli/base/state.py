"""The state directory of `vcbatch up`: what is where, who runs on it, and the lock that keeps it to one."""

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
    """One state directory. Everything in it is the user's alone (0700)."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.kubeconfig = kubeconfig_of(self.path)
        self.log = self.path / "log"
        self.kubelet = self.path / "kubelet"
        self.scheduler = self.path / "scheduler.json"
        self._pid = pid_file_of(self.path)
        self._lock: IO[bytes] | None = None

    def exists(self) -> bool:
        return self.path.is_dir()

    def create(self) -> None:
        """Raises `CliError` where it can't be made, or isn't ours."""
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
        """Who runs on it, if anybody does."""
        return running_server(self.path)

    def claim(self) -> None:
        """Make it ours until this process ends. Raises `CliError` where another runs on it, or nothing can be written
        there."""
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
        """On a full disk: start in the space that is kept for deletions, so that something can be deleted."""
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
