"""Programs that a test starts, and that never outlive it.

Each runs in a process group of its own and writes to a log file. A guard holds the list of groups behind a pipe: when
the test process ends, however it ends, the pipe closes and the guard kills what is left.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_GUARD = """
import os, shutil, signal, sys, time
groups, folders = set(), []
for line in sys.stdin:
    sign, what = line[0], line[1:-1]
    if sign == "/":
        folders.append(what)
    else:
        (groups.add if sign == "+" else groups.discard)(int(what))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
for folder in folders:
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)  # a cgroup goes once its processes are gone
        if not os.path.exists(folder):
            break
        time.sleep(0.05)
"""


class ProgramEnded(AssertionError):
    """A program ended that should be running; the message carries the end of its log."""


class Guard:
    """Kills the registered process groups, and removes the registered folders, once this process is gone."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _GUARD], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def add(self, group: int) -> None:
        self._report(f"+{group}\n")

    def discard(self, group: int) -> None:
        self._report(f"-{group}\n")

    def remove(self, folder: Path) -> None:
        """See to it that the folder goes in the end."""
        self._report(f"/{folder}\n")

    def close(self) -> None:
        """Kill and remove what is still registered, and end the guard."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _report(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()


class Program:
    """One program: started, watched, stopped, started again, with everything it said kept in one log."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        guard: Guard,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self._guard = guard
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert not self.running, f"{self.name} is running already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self._env, cwd=self._cwd, start_new_session=True,
            )  # fmt: skip
        self._guard.add(self._process.pid)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """A signal to the program and its children."""
        os.killpg(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, as a machine that loses its power."""
        self.stop(number=signal.SIGKILL)

    def stop(self, *, number: signal.Signals = signal.SIGTERM, timeout: float = 30.0) -> int:
        """End it and return its exit status (negative: the signal); killed where it takes longer than `timeout`."""
        process = self._process
        if process is None:
            return 0
        if process.poll() is None:
            self.send(number)
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.send(signal.SIGKILL)
                process.wait()
        self._guard.discard(process.pid)
        self._process = None
        return process.returncode

    def restart(self) -> None:
        self.kill()
        self.start()

    def wait_ended(self, timeout: float = 120.0) -> int:
        """The exit status, once it has ended by itself."""
        assert self._process is not None
        code = self._process.wait(timeout)
        self._guard.discard(self._process.pid)
        self._process = None
        return code

    def said(self) -> str:
        """Everything in its log."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def check(self) -> None:
        """Raises `ProgramEnded` where it doesn't run."""
        if not self.running:
            code = self._process.returncode if self._process else None
            raise ProgramEnded(f"{self.name} ended with {code}:\n{self.said()[-3000:]}")

    def listens(self, port: int) -> bool:
        """Whether it has opened that port of its loopback interface; raises `ProgramEnded` where it doesn't run."""
        self.check()
        network = Path(f"/proc/{self.pid}/ns/net")
        if network.exists() and not network.samefile("/proc/self/ns/net"):
            return port in _listening(self.pid)
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", port)) == 0


_TCP_LISTEN = "0A"


def _listening(pid: int) -> set[int]:
    """The TCP ports that somebody listens on in the network namespace of that process."""
    tables = (Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii") for name in ("tcp", "tcp6"))
    lines = [line.split() for table in tables for line in table.splitlines()]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == _TCP_LISTEN}


def wait_until(what: str, condition: Callable[[], object], *, timeout: float = 120.0, pause: float = 0.05) -> None:
    """Look again until it holds. For what happens outside this process and announces itself to nobody."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() >= end:
            raise AssertionError(f"{what}: not within {timeout:.0f} s")
        time.sleep(pause)
