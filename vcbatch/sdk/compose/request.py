"""A user's request to run a program, and parsers of its command-line values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from vcbatch.api.duration import MalformedDuration, parse_nanoseconds
from vcbatch.api.validate.job import MOST_PODS

if TYPE_CHECKING:
    from vcbatch.sdk.compose.notice import Notice


class CannotCompose(ValueError):
    """A request for which there is no job. `option` is the attribute of `JobRequest` that has to be changed."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


class Framework(StrEnum):
    """The rendezvous of a job's processes."""

    PYTORCH = "pytorch"
    TENSORFLOW = "tensorflow"
    MPI = "mpi"
    RAY = "ray"
    NONE = "none"


_ARRAY: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?(?:%(\d{1,9}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """Members that run the same program with an index each: `first`, `first + step`, … up to `last`. At most `parallel`
    of them run at the same time, or all (None)."""

    first: int
    last: int
    step: int = 1
    parallel: int | None = None

    @property
    def count(self) -> int:
        return (self.last - self.first) // self.step + 1

    @staticmethod
    def parse(text: str) -> Array:
        """Parse `0-99`, `0-99%10` (ten at a time), `1-9:2` (every second), `7`. Raises `CannotCompose`."""
        found = _ARRAY.fullmatch(text)
        if found is None:
            raise CannotCompose("array", f"invalid array {text!r} (e.g. 0-99, 0-99%10 or 1-9:2)")
        first, last, step, parallel = found.groups()
        made = Array(
            first=int(first),
            last=int(last or first),
            step=int(step) if step else 1,
            parallel=int(parallel) if parallel else None,
        )
        if made.last < made.first or made.step < 1 or made.parallel == 0:
            raise CannotCompose("array", f"empty array {text!r}: must be FIRST-LAST[:STEP][%AT_ONCE]")
        if made.count > MOST_PODS:
            raise CannotCompose("array", f"{text!r} has {made.count} members: must be at most {MOST_PODS}")
        return made


class VolumeKind(StrEnum):
    """The source of a volume's contents."""

    CLAIM = "claim"
    FOLDER = "folder"
    CONFIG_MAP = "configmap"
    SECRET = "secret"  # noqa: S105 - a kind, not a password


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume that is mounted at `path` of every container. `source` is a directory of the node, or the name of an
    object."""

    kind: VolumeKind
    source: str
    path: str
    read_only: bool = False

    @staticmethod
    def parse(text: str) -> Volume:
        """Parse `CLAIM:/path`, `/directory:/path`, `configmap/NAME:/path` or `secret/NAME:/path`, with an optional
        `:ro`. Raises `CannotCompose`."""
        parts = text.split(":")
        read_only = len(parts) == 3 and parts[2] == "ro"
        if len(parts) not in (2, 3) or (len(parts) == 3 and parts[2] not in ("ro", "rw")):
            raise CannotCompose("volumes", f"must be SOURCE:/path or SOURCE:/path:ro, got {text!r}")
        source, path = parts[:2]
        kind, slash, name = source.partition("/")
        if source.startswith("/"):
            found, name = VolumeKind.FOLDER, source
        elif slash and kind in (VolumeKind.CONFIG_MAP, VolumeKind.SECRET):
            found = VolumeKind(kind)
        else:
            found, name = VolumeKind.CLAIM, source
        if not name or not path.startswith("/") or (found is not VolumeKind.FOLDER and "/" in name):
            forms = "CLAIM:/path, /directory:/path, configmap/NAME:/path or secret/NAME:/path"
            raise CannotCompose("volumes", f"must be {forms}, got {text!r}")
        return Volume(kind=found, source=name, path=path, read_only=read_only)


_CLOCK: Final = re.compile(r"(?:(\d{1,4})-)?(\d{1,4}):([0-5]?\d)(?::([0-5]?\d))?", re.ASCII)
_DAYS: Final = re.compile(r"(\d{1,4})d(.*)", re.ASCII)


def time_limit_seconds(text: str) -> int:
    """A time limit in whole seconds, rounded up: `90s`, `2h30m`, `3d12h`, or in Slurm's format (`MM:SS`, `HH:MM:SS`,
    `D-HH:MM:SS`). Raises `CannotCompose`."""
    clock = _CLOCK.fullmatch(text)
    if clock is not None and (clock[1] is None or clock[4] is not None):
        days, first, second, third = (int(part) if part else 0 for part in clock.groups())
        if clock[4] is None:
            return _positive(first * 60 + second, text)
        return _positive(days * 86400 + first * 3600 + second * 60 + third, text)
    days_text = _DAYS.fullmatch(text)
    rest, days = (days_text[2] or "0", int(days_text[1])) if days_text else (text, 0)
    try:
        return _positive(days * 86400 - -parse_nanoseconds(rest) // 10**9, text)
    except MalformedDuration:
        raise CannotCompose("time_limit", f"invalid duration {text!r} (e.g. 90s, 2h30m, 3d or 12:00:00)") from None


def _positive(seconds: int, text: str) -> int:
    if seconds <= 0:
        raise CannotCompose("time_limit", f"invalid duration {text!r}: must be greater than zero")
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A program and its resources. Quantities are those of one node, which is one pod."""

    command: tuple[str, ...]
    """A program with its arguments. A first word that ends in `.py`, or `-m MODULE`, is run with `python`."""
    name: str = ""
    """The name of the job; where empty, the server generates one from the program's."""
    framework: Framework | None = None
    """None: PyTorch where a Python program has several processes, else no framework."""
    nodes: int = 1
    processes: int | None = None
    """The number on each node; None: one for each GPU, and one without GPUs."""
    gpus: int = 0
    cpus: str = ""
    memory: str = ""
    image: str = ""
    queue: str = ""
    priority_class: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    volumes: tuple[Volume, ...] = ()
    array: Array | None = None
    time_limit: int | None = None
    """The time limit in seconds."""
    signal: Notice | None = None
    """The signal before the end of a pod, and before the time limit."""
    max_retries: int = 0
    """How often the job is restarted after a failure of its own; in an array, how often each member is."""
    work_dir: str = ""
    python: str = "python"
    local: bool = False
    """Whether it runs as processes of this machine, without images."""
