"""Reading containers' logs: the requested part, and new lines while following."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from vcbatch.interfaces.clock import Clock
from vcbatch.local.kubelet import records

_POLL_SECONDS = 0.1
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The query of a pod's `log` subresource. None means that a parameter isn't set."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    since_time: datetime | None = None
    limit_bytes: int | None = None


async def read(
    record: Path, options: LogOptions, *, clock: Clock, has_ended: Callable[[], bool]
) -> AsyncGenerator[bytes]:
    """The log of one run, whole lines at a time. With `follow`, it ends once `has_ended` returns True and all is
    read."""
    left = options.limit_bytes
    async for line in _lines(record, options, clock, has_ended):
        if left is None:
            yield line
            continue
        if left <= 0:
            return
        yield line[:left]
        left -= len(line)


async def _lines(
    record: Path, options: LogOptions, clock: Clock, has_ended: Callable[[], bool]
) -> AsyncIterator[bytes]:
    wanted = _Since(_since(options, clock))
    render = _Renderer(options.timestamps)
    reader = _Reader(record)
    try:
        past: Iterator[bytes] = (line for line in reader.drain() if wanted(line))
        if options.tail_lines is not None:
            past = _tail(past, options.tail_lines)
        batch: list[bytes] = []
        size = 0
        for line in past:
            batch.append(render(line))
            size += len(line)
            if size >= _CHUNK:
                yield b"".join(batch)
                batch, size = [], 0
        if batch:
            yield b"".join(batch)
        while options.follow:
            ended = has_ended()
            text = b"".join(render(line) for line in reader.drain() if wanted(line))
            if text:
                yield text
            elif ended:
                return
            else:
                await clock.sleep(_POLL_SECONDS)
    finally:
        reader.close()


def last_lines(record: Path, *, lines: int, size: int) -> str:
    """The end of a log: at most so many lines and bytes (for a termination message)."""
    reader, render = _Reader(record, only_current=True), _Renderer(timestamps=False)
    try:
        kept = deque(reader.drain(), maxlen=lines)
    except OSError:
        return ""
    finally:
        reader.close()
    return b"".join(render(line) for line in kept)[-size:].decode(errors="replace")


class _Reader:
    """Reads the files of a log in order, across rotations: a file that was read to its end and has a successor is left
    for it."""

    def __init__(self, record: Path, *, only_current: bool = False) -> None:
        self._record = record
        self._pending = b""
        older = [] if only_current else sorted(record.glob("log.*"), key=_age, reverse=True)
        self._queue = deque([*older, record / "log"])
        self._fd = -1
        self._complete = False

    def drain(self) -> Iterator[bytes]:
        """Every complete line that has been written so far, in the log's own format; then the note of the exit record
        about output that is missing at the end."""
        # Read before the log: everything that was logged before the exit record is then included.
        missing = None if self._complete else records.output_lost_at_the_end(self._record)
        yield from self._written()
        if missing is not None:
            self._complete = True
            yield missing

    def _written(self) -> Iterator[bytes]:
        while True:
            if self._fd < 0 and not self._open_next():
                return
            chunk = os.read(self._fd, _CHUNK)
            if not chunk:
                if not self._advance():
                    return
                continue
            lines = (self._pending + chunk).split(b"\n")
            self._pending = lines.pop()
            yield from lines

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open_next(self) -> bool:
        while self._queue:
            try:
                self._fd = os.open(self._queue.popleft(), os.O_RDONLY)
            except FileNotFoundError:
                continue
            return True
        return False

    def _advance(self) -> bool:
        """At the end of the open file, switch to the next one, if there is one now."""
        if self._queue:
            self.close()
            return self._open_next()
        try:
            current = (self._record / "log").stat()
        except FileNotFoundError:
            return False
        if current.st_ino == os.fstat(self._fd).st_ino:
            return False
        # Rotated meanwhile: the open file was renamed; continue with the one after it.
        held = os.fstat(self._fd).st_ino
        newer = sorted(self._record.glob("log.*"), key=_age, reverse=True)
        inodes = [path.stat().st_ino for path in newer]
        after = newer[inodes.index(held) + 1 :] if held in inodes else newer
        self._queue = deque([*after, self._record / "log"])
        self.close()
        return self._open_next()


def _age(path: Path) -> int:
    suffix = path.name.rpartition(".")[2]
    return int(suffix) if suffix.isdigit() else 0


def _since(options: LogOptions, clock: Clock) -> bytes:
    moment = options.since_time
    if options.since_seconds is not None:
        moment = clock.now() - timedelta(seconds=options.since_seconds)
    return b"" if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%f").encode()


def _is_part(line: bytes) -> bool:
    """Whether the line continues in the next entry."""
    return line.split(b" ", 3)[2:3] == [b"P"]


def _tail(entries: Iterator[bytes], count: int) -> Iterator[bytes]:
    """The entries of the last `count` lines."""
    kept: deque[list[bytes]] = deque(maxlen=count)
    begins = True
    for entry in entries:
        if begins:
            kept.append([])
        if kept:
            kept[-1].append(entry)
        begins = not _is_part(entry)
    return (entry for line in kept for entry in line)


class _Since:
    """Returns which entries are of lines that started at a time or later: a line in several entries has the time of the
    first."""

    def __init__(self, since: bytes) -> None:
        self._since = since
        self._begins = self._wanted = True

    def __call__(self, entry: bytes) -> bool:
        if not self._since:
            return True
        if self._begins:
            # Times are written in UTC with a fixed number of digits: they compare as text.
            self._wanted = entry[: len(self._since)] >= self._since
        self._begins = not _is_part(entry)
        return self._wanted


class _Renderer:
    """Converts lines of the log's own format for clients: of a line in several entries only the first has its time."""

    def __init__(self, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._begins = True

    def __call__(self, line: bytes) -> bytes:
        stamp, _, kind, text = (*line.split(b" ", 3), b"", b"", b"")[:4]
        if self._timestamps and self._begins:
            text = stamp + b" " + text
        self._begins = kind != b"P"
        return text + b"\n" if self._begins else text
