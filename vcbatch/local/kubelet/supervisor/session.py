"""One command inside a running container, for a client that is connected with its streams.

The kubelet has the other end of a control socket: it receives `{}` (started) or `{"error": TEXT, "exit_code": N}`, and
at the end `{"exit_code": N}`. When it closes the socket, the command and everything it has started are ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket

from . import syscalls as sys_
from .command import StartError, exit_code_of, launch

_PATIENCE_MS = 2000  # between terminating an abandoned command and killing it


def serve(request: dict, descriptors: list[int]) -> None:
    """Start a command inside the container whose first process is `request["pid"]`, and stay until it has ended.
    `descriptors`: a file with its specification, the control socket, then the command's input, output and error, or its
    terminal alone."""
    control = socket.socket(fileno=descriptors[1])
    try:
        session = _Session(request, read_spec(descriptors[0]), control)
        session.start(descriptors[2:])
    except StartError as error:
        _report(control, {"error": str(error), "exit_code": error.exit_code})
        return
    except Exception as error:
        _report(control, {"error": str(error) or type(error).__name__, "exit_code": 128})
        return
    _report(control, {})
    session.follow()


class _Session:
    def __init__(self, request: dict, spec: dict, control: socket.socket) -> None:
        self._request = request
        self._control = control
        self._main = 0
        self._status: int | None = None
        self._spec = spec
        self._alone = self._spec["namespaces"]["pid"]
        self._container = _open_process(request["init"], request["start_time"])
        # Opened before the container's own file system replaces it: pids are the host's here.
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        self._wakeup, wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(wakeup_write, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def start(self, streams: list[int]) -> None:
        pid = self._request["pid"]
        with contextlib.suppress(OSError, AttributeError):
            os.sched_setaffinity(0, os.sched_getaffinity(pid))
        if self._spec["namespaces"]["mount"]:
            join(pid, self._spec["namespaces"])
        if not self._alone:
            # Processes that the command leaves behind are ended by this process, with the container.
            sys_.prctl(sys_.PR_SET_CHILD_SUBREAPER, 1)
        if len(streams) == 1:
            self._main = launch(self._spec, stdin=streams[0], stdout=streams[0], stderr=streams[0], terminal=True)
        else:
            self._main = launch(self._spec, stdin=streams[0], stdout=streams[1], stderr=streams[2])
        for stream in streams:
            os.close(stream)

    def follow(self) -> None:
        """Wait until the command has ended, and without a PID namespace also the processes that it left in the
        container."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._container, self._wakeup):
            poll.register(descriptor, select.POLLIN)
        patience: int | None = None
        others = True
        while self._status is None or (others and not self._alone):
            events = poll.poll(patience)
            if not events:
                self._kill(signal.SIGKILL)
                patience = _PATIENCE_MS
            for descriptor, _ in events:
                if descriptor == self._wakeup:
                    os.read(self._wakeup, 512)
                    others = self._reap()
                elif descriptor == self._container:
                    poll.unregister(descriptor)
                    self._kill(signal.SIGKILL)
                    patience = _PATIENCE_MS
                else:
                    poll.unregister(descriptor)
                    if self._status is None:
                        self._kill(signal.SIGHUP)
                        patience = _PATIENCE_MS

    def _reap(self) -> bool:
        """Reap processes. Returns whether any is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main:
                self._status = status
                _report(self._control, {"exit_code": exit_code_of(status)})

    def _kill(self, number: int) -> None:
        for pid in [*self._descendants(os.getpid()), *((self._main,) if self._status is None else ())]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _descendants(self, pid: int) -> list[int]:
        found: list[int] = []
        pending = [pid]
        while pending:
            parent = pending.pop()
            try:
                fd = os.open(f"{parent}/task/{parent}/children", os.O_RDONLY, dir_fd=self._proc)
            except OSError:
                continue
            with os.fdopen(fd, encoding="ascii") as file:
                children = [int(child) for child in file.read().split()]
            found += children
            pending += children
        return found


def read_spec(descriptor: int) -> dict:
    """The specification in a passed file; closes it."""
    os.lseek(descriptor, 0, os.SEEK_SET)  # the kubelet's write left it at the end
    with os.fdopen(descriptor, "rb") as file:
        return json.load(file)


def _open_process(pid: int, started: int) -> int:
    """A descriptor that becomes readable when the process ends; raises `StartError` where it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            same = int(file.read().rpartition(")")[2].split()[19]) == started
    except OSError as error:
        raise StartError(128, f"the container has ended: {error.strerror}") from error
    if not same:
        raise StartError(128, "the container has ended")
    return descriptor


def _report(control: socket.socket, message: dict) -> None:
    with contextlib.suppress(OSError):  # the client has disconnected
        control.send(json.dumps(message).encode())


def join(pid: int, namespaces: dict) -> None:
    """Enter the namespaces of a process of a container; the PID namespace applies to the next child."""
    kinds = [("user", sys_.CLONE_NEWUSER)] if namespaces["user"] else []
    kinds += [("uts", sys_.CLONE_NEWUTS), ("pid", sys_.CLONE_NEWPID), ("mnt", sys_.CLONE_NEWNS)]
    if not namespaces["pid"]:
        kinds.remove(("pid", sys_.CLONE_NEWPID))
    opened = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), kind) for name, kind in kinds]
    for fd, kind in opened:
        sys_.setns(fd, kind)
        os.close(fd)
