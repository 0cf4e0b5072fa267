"""A socket with one deadline for all its operations.

A socket's own timeout restarts with each read, so a server that sends a byte now and then could delay a command
indefinitely.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Callable


class TimedSocket:
    """The methods of a connected socket that `http.client` uses. `deadline` is a time of `monotonic`, in seconds; an
    operation that isn't done by then raises `TimeoutError`."""

    def __init__(self, sock: socket.socket, *, deadline: float, monotonic: Callable[[], float]) -> None:
        self.deadline = deadline
        self._sock = sock
        self._monotonic = monotonic
        self._readers = 0
        self._closed = False

    def sendall(self, data: bytes) -> None:
        self.hurry()
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        if mode != "rb":
            raise ValueError(f"a timed socket is read by makefile('rb'), not {mode!r}")
        self._readers += 1
        return io.BufferedReader(_Reader(self, self._sock), 64 * 1024)

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        """Close the connection. It stays open until the responses that are still read have been closed too, as with a
        plain socket."""
        self._closed = True
        self.release()

    def release(self, *, readers: int = 0) -> None:
        self._readers -= readers
        if self._closed and self._readers <= 0:
            self._sock.close()

    def hurry(self) -> None:
        """Limit the next operation to the remaining time."""
        left = self.deadline - self._monotonic()
        if left <= 0:
            raise TimeoutError("the server took too long to answer")
        self._sock.settimeout(left)


class _Reader(io.RawIOBase):
    def __init__(self, timed: TimedSocket, sock: socket.socket) -> None:
        self._timed = timed
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        self._timed.hurry()
        return self._sock.recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._timed.release(readers=1)
