"""A socket whose every step must be done by one deadline.

A socket's own timeout starts anew with each read, so a server that sends a byte now and then could hold a command for
ever.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Callable


class TimedSocket:
    """As much of a connected socket as `http.client` uses. `deadline` is in the seconds of `monotonic`; what isn't
    done by then raises `TimeoutError`."""

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
        """The connection ends once the answers that are still read have been closed too, as with a plain socket."""
        self._closed = True
        self.release()

    def release(self, *, readers: int = 0) -> None:
        self._readers -= readers
        if self._closed and self._readers <= 0:
            self._sock.close()

    def hurry(self) -> None:
        """Give the next step what is left of the time."""
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
