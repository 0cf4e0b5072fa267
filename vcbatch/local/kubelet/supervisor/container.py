"""The init process of one container: starts its command, writes its log, and records its exit."""

from __future__ import annotations

import os
import select
import signal
import time

from .command import exit_code_of, launch
from .logfile import LogFile
from .reserved import EXIT, put_patiently

KILL_TREE = signal.SIGUSR2
"""The kubelet sends it to this process to end the container's whole tree with SIGKILL."""

CLOSE_INPUT = signal.SIGRTMIN
"""The kubelet sends it to this process to close the command's standard input, where `stdinOnce` is set."""

INPUT_PIPE = "stdin"
"""The named pipe in the record for the input of a container with `stdin: true`."""

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
_PATIENCE = 600.0
"""Seconds for which writing the exit record is retried on a full disk. The container counts as running until then, and
can be killed."""


class Container:
    """One container from its first process to its exit status.

    `alone` is True if this process is PID 1 of a PID namespace, so that every other process in it belongs to the
    container. Otherwise this process is the subreaper of the container's orphans.
    """

    def __init__(self, *, spec: dict, record_fd: int, alone: bool) -> None:
        self._spec = spec
        self._record_fd = record_fd
        self._exit_fd = open_exit(record_fd)
        self._alone = alone
        self._main = 0
        self._status: int | None = None
        self._ending = False  # a terminating signal was forwarded
        self._killing = False
        self._input_holder = -1
        self._wakeup, wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(wakeup_write, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        for number in (*_FORWARDED, KILL_TREE, CLOSE_INPUT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self._output, self._output_write = os.pipe2(os.O_CLOEXEC)

    def start(self) -> None:
        """Start the command; raises `StartError`."""
        stdin = self._open_input()
        try:
            self._main = launch(
                self._spec, stdin=stdin, stdout=self._output_write, stderr=self._output_write, ends_with_us=True
            )
        finally:
            os.close(stdin)
            os.close(self._output_write)

    def _open_input(self) -> int:
        """The command's standard input: /dev/null, or a pipe that stays open while no client is attached."""
        if not self._spec.get("stdin"):
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
        self._input_holder = os.open(INPUT_PIPE, flags, dir_fd=self._record_fd)
        return os.open(INPUT_PIPE, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._record_fd)

    def _close_input(self) -> None:
        if self._input_holder >= 0:
            os.close(self._input_holder)
            self._input_holder = -1

    def run(self) -> None:
        """Run until the container has ended: copy its output to the log, forward signals, reap its processes."""
        log = LogFile(
            dir_fd=self._record_fd,
            name="log",
            max_bytes=self._spec["log_max_bytes"],
            max_files=self._spec["log_max_files"],
        )
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        poll.register(self._output, select.POLLIN)
        others = True
        while self._status is None or (others and self._ending and not self._killing):
            for fd, _ in poll.poll():
                if fd == self._wakeup:
                    others = self._on_signals(os.read(fd, 512))
                elif not _copy(self._output, log):
                    poll.unregister(self._output)
        self._end_tree()
        os.set_blocking(self._output, False)
        while _copy(self._output, log):
            pass
        outcome = _outcome(self._status)
        missing = log.close()
        if missing is not None:
            outcome["log_lost"] = missing
        write_exit(self._exit_fd, outcome)

    def _on_signals(self, numbers: bytes) -> bool:
        """Handle signals. Returns whether any process of the container is left."""
        for number in set(numbers):
            if number == KILL_TREE:
                self._killing = True
                self._end_tree()
            elif number == CLOSE_INPUT:
                self._close_input()
            elif number in _FORWARDED:
                self._ending = True
                self._forward(number)
        return self._reap(os.WNOHANG)

    def _forward(self, number: int) -> None:
        # To the process group, so that the program behind `sh -c` gets it too: a shell doesn't forward signals.
        try:
            os.killpg(self._main, number)
        except ProcessLookupError:
            return

    def _reap(self, options: int) -> bool:
        while True:
            try:
                pid, status = os.waitpid(-1, options)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main:
                self._on_main_exit(status)

    def _on_main_exit(self, status: int) -> None:
        """The command has exited. If it was terminated, the processes that it started are terminated too, and waited
        for."""
        self._status = status
        if self._ending and not self._killing:
            # Recorded now: this process itself may be killed while it waits for the rest.
            write_exit(self._exit_fd, _outcome(status), patience=0.0)
            for other in self._others():
                _kill(other, signal.SIGTERM)

    def _others(self) -> list[int]:
        return [-1] if self._alone else _children()

    def _end_tree(self) -> None:
        """Send SIGKILL to everything that the container has started, daemons included, until nothing is left."""
        while True:
            for other in self._others():
                _kill(other, signal.SIGKILL)
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            if pid == self._main:
                self._status = status
            if self._status is not None and not self._reap(os.WNOHANG):
                return


def open_exit(record_fd: int) -> int:
    """The reserved exit record, opened so that it can be written even if its directory is removed."""
    return os.open(EXIT, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=record_fd)


def write_exit(exit_fd: int, outcome: dict, *, patience: float = _PATIENCE) -> bool:
    """Write the exit record, retrying for `patience` seconds while the disk is full; returns whether it was written."""
    return put_patiently(exit_fd, {**outcome, "finished_at": time.time()}, seconds=patience)


def _outcome(status: int | None) -> dict:
    if status is None:
        return {"exit_code": 137, "signal": int(signal.SIGKILL)}
    outcome: dict = {"exit_code": exit_code_of(status)}
    if os.WIFSIGNALED(status):
        outcome["signal"] = os.WTERMSIG(status)
    return outcome


def _copy(fd: int, log: LogFile) -> bool:
    try:
        chunk = os.read(fd, 65536)
    except BlockingIOError:
        return False
    if chunk:
        log.write(chunk)
    return bool(chunk)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return _children_by_scan()


def _children_by_scan() -> list[int]:
    me = os.getpid()
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == me:
            found.append(int(name))
    return found


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
