"""A container's log: one line of text per line of output, with the time it came, in files of bounded size.

The format is the container runtime interface's: `<RFC 3339 time> stdout F <text>`, with `P` for a part of a line that
is longer than 16 KiB or drawn anew by carriage returns. (Source: Kubernetes, `pkg/kubelet/kuberuntime/logs`.)
"""

from __future__ import annotations

import os
import time

MAX_LINE = 16 * 1024
REDRAWING_SECONDS = 0.1
"""How often a line that is drawn anew again and again is written, as a part of a line."""


class LogFile:
    """Appends output to `name` inside the directory `dir_fd`; at `max_bytes` the file becomes `name.1`, and so on up to
    `max_files` files in all. A full disk costs log lines and never the program its life."""

    def __init__(self, *, dir_fd: int, name: str, max_bytes: int, max_files: int) -> None:
        self._dir_fd = dir_fd
        self._name = name
        self._max_bytes = max_bytes
        self._max_files = max(1, max_files)
        self._pending = b""
        self._next_redrawing = 0.0
        self._fd = self._open()
        self._size = os.fstat(self._fd).st_size

    def write(self, chunk: bytes) -> None:
        """Append whole lines; keep what follows the last line break until the rest of its line comes."""
        lines = (self._pending + chunk).split(b"\n")
        self._pending = lines.pop()
        stamp = _stamp()
        full = stamp + b" stdout F "
        part = stamp + b" stdout P "
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
            # A progress bar: whoever follows the log sees it move, long before its line ends.
            out.append(part + self._pending[:redrawn] + b"\n")
            self._pending = self._pending[redrawn:]
            self._next_redrawing = time.monotonic() + REDRAWING_SECONDS
        if out:
            self._append(b"".join(out))

    def close(self) -> None:
        if self._pending:
            self._append(_stamp() + b" stdout F " + self._pending + b"\n")
            self._pending = b""
        os.close(self._fd)

    def _append(self, data: bytes) -> None:
        try:
            if self._size and self._size + len(data) > self._max_bytes:
                self._rotate()
            self._size += os.write(self._fd, data)
        except OSError:
            # A full disk or a lost directory: the lines are gone, the program goes on.
            return

    def _rotate(self) -> None:
        for index in range(self._max_files - 1, 0, -1):
            older = f"{self._name}.{index}"
            newer = f"{self._name}.{index - 1}" if index > 1 else self._name
            try:
                os.replace(newer, older, src_dir_fd=self._dir_fd, dst_dir_fd=self._dir_fd)
            except FileNotFoundError:
                continue
        os.close(self._fd)
        self._fd = self._open(truncate=True)
        self._size = 0

    def _open(self, *, truncate: bool = False) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if truncate else 0)
        return os.open(self._name, flags, 0o600, dir_fd=self._dir_fd)


def _stamp() -> bytes:
    nanoseconds = time.time_ns()
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z".encode()
