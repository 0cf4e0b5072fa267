"""A container's log: one line of text per line of output, with its time, in files of bounded size.

The format is the container runtime interface's: `<RFC 3339 time> stdout F <text>`, with `P` for a part of a line that
is longer than 16 KiB or overwritten by carriage returns. (Source: Kubernetes, `pkg/kubelet/kuberuntime/logs`.)

Output that can't be written is lost, and the program continues. In its place the log has one line with the quantity and
the reason, written as soon as the disk has space again.
"""

from __future__ import annotations

import os
import time

MAX_LINE = 16 * 1024
REDRAWING_SECONDS = 0.1
"""Seconds between two entries for a line that is overwritten repeatedly; each is a part of a line."""
_FULL = b" stdout F "
_PART = b" stdout P "
_STAMP = len("2006-01-02T15:04:05.000000000Z")
_HEAD = _STAMP + len(_FULL)


class Lost:
    """Output that is missing in the log: `lines` counts those that lost their end."""

    def __init__(self) -> None:
        self.size = 0
        self.lines = 0
        self.why = ""

    def __bool__(self) -> bool:
        return bool(self.size or self.lines)

    def add(self, entry: bytes, why: str) -> None:
        """Count a log entry that wasn't written."""
        whole = entry[_STAMP:_HEAD] == _FULL
        self.size += len(entry) - _HEAD - (0 if whole else 1)
        self.lines += whole
        self.why = why

    def document(self) -> dict:
        return {"bytes": self.size, "lines": self.lines, "why": self.why}


def lost_entry(stamp: bytes, lost: dict) -> bytes:
    """The log entry in place of missing output."""
    size, lines = lost["bytes"], lost["lines"]
    what = f"{size} byte{'' if size == 1 else 's'} of output in {lines} line{'' if lines == 1 else 's'}"
    verb = "is" if size == 1 else "are"
    return stamp + _FULL + f"[vcbatch: {what} {verb} missing here: {lost['why']}]\n".encode()


class LogFile:
    """Appends output to `name` inside the directory `dir_fd`; at `max_bytes` the file becomes `name.1`, and so on up to
    `max_files` files in all. A full disk loses log lines and never ends the program."""

    def __init__(self, *, dir_fd: int, name: str, max_bytes: int, max_files: int) -> None:
        self._dir_fd = dir_fd
        self._name = name
        self._max_bytes = max_bytes
        self._max_files = max(1, max_files)
        self._pending = b""
        self._next_redrawing = 0.0
        self._unfinished = b""  # the rest of a partly written entry
        self._lost = Lost()
        self._why = ""
        self._fd = self._open(name)
        self._size = os.fstat(self._fd).st_size

    def write(self, chunk: bytes) -> None:
        """Append complete lines; keep the text after the last line break until the rest of its line arrives."""
        lines = (self._pending + chunk).split(b"\n")
        self._pending = lines.pop()
        stamp = _stamp()
        full, part = stamp + _FULL, stamp + _PART
        out: list[bytes] = []
        for line in lines:
            while len(line) > MAX_LINE:
                out.append(part + line[:MAX_LINE] + b"\n")
                line = line[MAX_LINE:]
            out.append(full + line + b"\n")
        while len(self._pending) > MAX_LINE:
            out.append(part + self._pending[:MAX_LINE] + b"\n")
            self._pending = self._pending[MAX_LINE:]
        # The last character may be half of a line break.
        redrawn = self._pending.rfind(b"\r", 1, -1)
        if redrawn > 0 and time.monotonic() >= self._next_redrawing:
            # A progress bar: clients that follow the log get its updates long before its line ends.
            out.append(part + self._pending[:redrawn] + b"\n")
            self._pending = self._pending[redrawn:]
            self._next_redrawing = time.monotonic() + REDRAWING_SECONDS
        if out:
            self._append(out)

    def close(self) -> dict | None:
        """Write the remaining text. Returns what is missing at the end of the log, where the disk was too full to write
        that in it."""
        if self._pending:
            self._append([_stamp() + _FULL + self._pending + b"\n"])
            self._pending = b""
        self._append([])
        os.close(self._fd)
        return self._lost.document() if self._lost else None

    def _append(self, entries: list[bytes]) -> None:
        data = b"".join(entries)
        self._rotate_if_due(len(data))
        if self._unfinished:
            self._unfinished = self._unfinished[self._put(self._unfinished) :]
        if self._lost and not self._unfinished:
            mark = lost_entry(_stamp(), self._lost.document())
            written = self._put(mark)
            if written:
                self._lost, self._unfinished = Lost(), mark[written:]
        written = 0 if self._unfinished or self._lost else self._put(data)
        if written < len(data):
            self._note_rest(entries, written)

    def _put(self, data: bytes) -> int:
        """Write as much as fits on the disk: one that is nearly full takes a part. Returns the number of bytes."""
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:] if written else data)
        except OSError as error:
            self._why = error.strerror or str(error)
        self._size += written
        return written

    def _note_rest(self, entries: list[bytes], written: int) -> None:
        """Only the first `written` bytes of these entries were written: the rest of a partly written entry is kept to
        be written first, and the others are counted as lost."""
        for entry in entries:
            if written >= len(entry):
                written -= len(entry)
            elif written > 0:
                self._unfinished, written = entry[written:], 0
            else:
                self._lost.add(entry, self._why)

    def _rotate_if_due(self, more: int) -> None:
        if self._size and self._size + more > self._max_bytes:
            try:
                self._rotate()
            except OSError as error:
                self._why = error.strerror or str(error)  # continue in the current file

    def _rotate(self) -> None:
        # The new file first: it is the only step that needs disk space.
        fresh = f".{self._name}.new"
        fd = self._open(fresh, truncate=True)
        for index in range(self._max_files - 1, 0, -1):
            newer = f"{self._name}.{index - 1}" if index > 1 else self._name
            self._rename(newer, f"{self._name}.{index}")
        self._rename(fresh, self._name)
        os.close(self._fd)
        self._fd = fd
        self._size = 0

    def _rename(self, source: str, target: str) -> None:
        try:
            os.replace(source, target, src_dir_fd=self._dir_fd, dst_dir_fd=self._dir_fd)
        except FileNotFoundError:
            return

    def _open(self, name: str, *, truncate: bool = False) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if truncate else 0)
        return os.open(name, flags, 0o600, dir_fd=self._dir_fd)


def _stamp() -> bytes:
    nanoseconds = time.time_ns()
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z".encode()
