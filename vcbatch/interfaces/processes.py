"""The processes interface: how the kubelet starts, observes and ends the processes of containers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """A mount: `source` on the host appears at the absolute path `target` inside the container."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """The complete specification of one container that is to be started.

    `record` is an existing directory that outlives this program. It keeps the container's pid, start time, log and exit
    status, so that the next program can adopt the container and read its exit code. The log is the file `log` in it,
    with older parts in `log.1`, `log.2` and so on.
    """

    record: Path
    argv: Sequence[str]
    env: Mapping[str, str]
    working_dir: str
    hostname: str
    mounts: Sequence[BindMount] = field(default=())
    cpus: Sequence[int] = field(default=())  # the CPUs that it may run on; all if empty
    log_max_bytes: int = 10 * 1024 * 1024  # size of one log file
    log_max_files: int = 5
    umask: int = 0o022
    stdin: bool = False  # whether standard input is the named pipe `stdin` in `record`; otherwise it is empty


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRef:
    """The first process of a started container. A pid alone isn't enough, since the kernel reuses pids."""

    pid: int
    start_time: int  # clock ticks since boot, from /proc/PID/stat
    record: Path


UNKNOWN_EXIT_CODE = 255
"""The exit code of a container whose end was not observed, as containerd reports it (`unknownExitCode`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How a container ended: `exit_code` is 128 + signal where a signal ended its command, and `UNKNOWN_EXIT_CODE`
    where `unknown` is set."""

    exit_code: int
    signal: int | None = None
    finished_at: float = 0.0  # seconds since the epoch
    start_error: str = ""  # why the command could not be started; "" if it was
    unknown: bool = False  # it has ended and left no exit status


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of a command that was run inside a container; exit code 124 is a timeout."""

    exit_code: int
    output: str = ""


class ProcessStartError(Exception):
    """A container's command couldn't be started; `exit_code` is 127 (not found), 126 (not executable) or 128."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Session(Protocol):
    """The streams of a command in a container, or of the container itself, while a client is attached."""

    def output(self) -> AsyncGenerator[tuple[int, bytes]]:
        """The output in pieces, each with its stream (1 standard output, 2 standard error), until the command has
        ended. A caller that stops reading earlier must close the generator before the session."""
        ...

    async def write(self, data: bytes) -> None:
        """Write to standard input. Returns once the data is accepted; raises `OSError` where the command doesn't read
        any more."""
        ...

    def close_input(self) -> None: ...

    def resize(self, *, columns: int, rows: int) -> None:
        """Set the window size of the terminal; does nothing without a terminal."""
        ...

    async def exit_code(self) -> int:
        """Wait for the end and return the exit code, 128 + signal where a signal ended the command."""
        ...

    def end(self) -> None:
        """End the command that was started for this session; its output and exit code can still be read."""
        ...

    async def close(self) -> None:
        """End the session and close its streams. May be called twice."""
        ...


class Processes(Protocol):
    """Starts, adopts, signals and reaps containers. A container is its whole process tree."""

    async def start(self, spec: ProcessSpec) -> ProcessRef:
        """Start the container; returns once its command runs. Raises `ProcessStartError` where it can't be started, and
        `OSError` where it may succeed later, above all when the disk is full."""
        ...

    async def adopt(self, record: Path) -> ProcessRef | ProcessExit | None:
        """The container that a previous program started: running, ended in the meantime, or None where it never
        started."""
        ...

    async def wait(self, ref: ProcessRef) -> ProcessExit:
        """Returns once no process of the container's tree is left."""
        ...

    async def signal(self, ref: ProcessRef, number: int) -> None:
        """Signal the container's command; SIGKILL ends the whole tree. No effect on a container that has ended."""
        ...

    async def run_in(
        self, ref: ProcessRef, *, argv: Sequence[str], env: Mapping[str, str], working_dir: str, timeout: float
    ) -> CommandResult:
        """Run a command inside a running container (exec probes and hooks) for at most `timeout` seconds."""
        ...

    async def open_session(
        self, ref: ProcessRef, *, argv: Sequence[str], env: Mapping[str, str], working_dir: str, stdin: bool, tty: bool
    ) -> Session:
        """Start a command inside a running container, with its streams or a terminal attached to the session. It ends
        with the session and with the container. Raises `ProcessStartError`."""
        ...

    async def run_on(
        self, ref: ProcessRef, *, argv: Sequence[str], env: Mapping[str, str], working_dir: str, streams: Sequence[int]
    ) -> None:
        """Start a command inside a running container on descriptors of another program, which has the other ends: a
        sequenced-packet socket, and standard input, output and error. On the socket `{}` or `{"error": TEXT,
        "exit_code": N}` reports whether the command was started, and `{"exit_code": N}` how it ended. It ends with that
        socket, and with the container. The caller closes the descriptors. Raises `ProcessStartError`."""
        ...

    def exceeds_memory(self, ref: ProcessRef, limit: int) -> bool:
        """Whether the container's tree uses more than `limit` bytes of memory now, with shared pages counted once."""
        ...

    async def close(self) -> None:
        """Release all containers without ending them."""
        ...
