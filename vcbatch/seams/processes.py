"""The processes seam: how the kubelet starts, watches and ends what runs in containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """`source` on the host appears at `target` inside the container."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """One container to run: everything that is settled before it starts.

    `record` is a directory that outlives this program: its pid, start time and exit status are kept there, so that
    a process can be adopted, with its exit code, by the next program.
    """

    record: Path
    argv: Sequence[str]
    env: Mapping[str, str]
    working_dir: str
    stdout: Path
    hostname: str
    hosts_file: Path
    mounts: Sequence[BindMount] = field(default=())
    cpus: Sequence[int] = field(default=())
    memory_limit: int | None = None  # bytes of resident memory, over the whole process tree


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRef:
    """A started process: pid alone is not enough, since the kernel gives pids out again."""

    pid: int
    start_time: int  # clock ticks since boot, from /proc/PID/stat
    record: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How it ended: `exit_code` is 128 + signal where a signal ended it."""

    exit_code: int
    signal: int | None = None
    reason: str = ""  # "OOMKilled", or "" where the code says it all
    finished_at: float = 0.0  # seconds since the epoch


class Processes(Protocol):
    """Starts, adopts, signals and reaps processes; a container's whole process tree counts as one."""

    async def start(self, spec: ProcessSpec) -> ProcessRef:
        """Raises `OSError` where the command can't be started at all."""
        ...

    async def adopt(self, record: Path) -> ProcessRef | ProcessExit | None:
        """What a former program left: still running, ended meanwhile, or nothing known."""
        ...

    async def wait(self, ref: ProcessRef) -> ProcessExit: ...

    async def signal(self, ref: ProcessRef, signal: int) -> None:
        """To the main process; with SIGKILL the whole tree is ended."""
        ...
