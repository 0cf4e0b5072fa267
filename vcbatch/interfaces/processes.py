"""The processes interface: how the kubelet starts, watches and ends what runs in containers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """`source` on the host appears at the absolute path `target` inside the container."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """One container to run: everything that is settled before it starts.

    `record` is an existing directory that outlives this program: the container's pid, start time, log and exit status
    are kept there, so that it can be adopted, with its exit code, by the next program. The log is the file `log` in it,
    with older parts in `log.1`, `log.2` and so on.
    """

    record: Path
    argv: Sequence[str]
    env: Mapping[str, str]
    working_dir: str
    hostname: str
    mounts: Sequence[BindMount] = field(default=())
    cpus: Sequence[int] = field(default=())  # the processors it may run on; all when empty
    log_max_bytes: int = 10 * 1024 * 1024  # of one log file
    log_max_files: int = 5
    stdin: bool = False  # whether its standard input is the named pipe `stdin` in the record, else it is empty


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRef:
    """A started container's first process: a pid alone is not enough, since the kernel gives pids out again."""

    pid: int
    start_time: int  # clock ticks since boot, from /proc/PID/stat
    record: Path


UNKNOWN_EXIT_CODE = 255
"""The exit code of a container of which nobody knows how it ended, as containerd gives it (`unknownExitCode`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How a container ended: `exit_code` is 128 + signal where a signal ended its command, and `UNKNOWN_EXIT_CODE`
    where the end is `unknown`."""

    exit_code: int
    signal: int | None = None
    finished_at: float = 0.0  # seconds since the epoch
    start_error: str = ""  # why the command never ran; "" when it did
    unknown: bool = False  # it is gone and has left no exit status


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What one command that was run inside a container returned: 124 is a timeout."""

    exit_code: int
    output: str = ""


class ProcessStartError(Exception):
    """A container's command couldn't be started; `exit_code` is 127 (not found), 126 (not executable) or 128."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Session(Protocol):
    """The streams of a command in a container, or of the container itself, while somebody is connected with it."""

    def output(self) -> AsyncGenerator[tuple[int, bytes]]:
        """What it prints, each piece with its stream: 1 standard output, 2 standard error; until it has ended. Whoever
        stops reading earlier closes the generator before the session."""
        ...

    async def write(self, data: bytes) -> None:
        """To its standard input. Returns once taken; raises `OSError` where nobody reads any more."""
        ...

    def close_input(self) -> None: ...

    def resize(self, *, columns: int, rows: int) -> None:
        """The window behind its terminal has changed; nothing where it has none."""
        ...

    async def exit_code(self) -> int:
        """How it ended; waits until it has. 128 + signal where a signal ended it."""
        ...

    def end(self) -> None:
        """End what was started for this session; its output and exit code are still to be had."""
        ...

    async def close(self) -> None:
        """End it, and let go of its streams. May be called twice."""
        ...


class Processes(Protocol):
    """Starts, adopts, signals and reaps containers; a container's whole process tree counts as one."""

    async def start(self, spec: ProcessSpec) -> ProcessRef:
        """Returns once the command runs. Raises `ProcessStartError` where it can't be started, and `OSError` where it
        may be later: above all for want of disk space."""
        ...

    async def adopt(self, record: Path) -> ProcessRef | ProcessExit | None:
        """What a former program left: still running, ended meanwhile, or None where it never started."""
        ...

    async def wait(self, ref: ProcessRef) -> ProcessExit:
        """Returns once nothing of the container's tree is left."""
        ...

    async def signal(self, ref: ProcessRef, number: int) -> None:
        """To the container's command; SIGKILL ends the whole tree. A container that has ended is left alone."""
        ...

    async def run_in(
        self, ref: ProcessRef, *, argv: Sequence[str], env: Mapping[str, str], working_dir: str, timeout: float
    ) -> CommandResult:
        """Run a command inside a running container (exec probes and hooks), for at most `timeout` seconds."""
        ...

    async def open_session(
        self, ref: ProcessRef, *, argv: Sequence[str], env: Mapping[str, str], working_dir: str, stdin: bool, tty: bool
    ) -> Session:
        """Start a command inside a running container with its streams, or a terminal, connected to us. It ends with
        the session, and with the container. Raises `ProcessStartError`."""
        ...

    async def run_on(
        self, ref: ProcessRef, *, argv: Sequence[str], env: Mapping[str, str], working_dir: str, streams: Sequence[int]
    ) -> None:
        """Start a command inside a running container on the descriptors of somebody else, who holds the other ends: a
        sequenced-packet socket, on which `{}` or `{"error": TEXT, "exit_code": N}` says whether it was started and
        `{"exit_code": N}` how it ended, and its standard input, output and error. It ends with that socket, and with
        the container. The descriptors stay the caller's to close. Raises `ProcessStartError`."""
        ...

    def exceeds_memory(self, ref: ProcessRef, limit: int) -> bool:
        """Whether the container's tree holds more than `limit` bytes of memory now, shared pages counted once."""
        ...

    async def close(self) -> None:
        """Let go of everything that was started, without ending it."""
        ...
