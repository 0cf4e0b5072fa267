"""Limits for the clients of a listener: the number of connections, the time of their requests, and whether they
read."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

STALL_SECONDS: Final = 30.0
"""Seconds that a client may leave sent data unread: some 4 KB/s are enough to keep the connection."""
SESSION_STALL_SECONDS: Final = 4 * 3600.0
"""The same for streams that a user may pause on a terminal: logs and sessions. Source:
`streaming-connection-idle-timeout` of Kubernetes' kubelet."""
WRITE_BUFFER: Final = 64 * 1024
"""Bytes queued for a client from which on no more is written to it."""


def most_connections(wanted: int) -> int:
    """At most `wanted` connections, and no more than half of the files that this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, max(soft // 2, 16))


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of one connection; times in seconds, sizes in bytes."""

    head_seconds: float = 15.0
    """From the first byte of a request, or from the connection, until its head is complete."""
    head_bytes: int = 1024 * 1024
    """The size of request line and headers together, as `http.Server.MaxHeaderBytes` of Kubernetes' API server."""
    headers: int = 1000
    pipelined: int = 64
    """Requests that wait for the response to another one of the same connection."""
    discarded_bytes: int = 4 * 1024 * 1024
    """The part of an unwanted body that is read and dropped, so that the client receives the response."""
    discarded_seconds: float = 5.0
    handshake_seconds: float = 10.0
    body_seconds: float = 30.0
    stall_seconds: float = STALL_SECONDS
    connections: int = 5000
    anonymous_idle_seconds: float | None = 10.0
    """Seconds that a connection stays open that has sent no request with credentials and isn't in use. Where there are
    too many, the oldest of these is closed. None: no request has credentials."""


class ConnectionCount:
    """The open connections of a listener, handshakes included, and their limit.

    `make_room` is called where there are too many; it returns True where it has closed one that isn't needed.
    """

    def __init__(self, most: int, *, make_room: Callable[[], bool] = lambda: False) -> None:
        self.most = most
        self.make_room = make_room
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def __len__(self) -> int:
        return len(self._open)

    def admits(self) -> bool:
        return len(self._open) < self.most or self.make_room()

    def add(self, connection: socket.socket) -> None:
        self._open.add(connection)

    def remove(self, connection: socket.socket) -> None:
        self._open.discard(connection)


class LimitedListener(socket.socket):
    """A listening socket that closes new connections at once where there are too many."""

    count: ConnectionCount

    @classmethod
    def of(cls, listener: socket.socket, count: ConnectionCount) -> LimitedListener:
        """Replaces `listener`, taking over its descriptor."""
        limited = cls(listener.family, listener.type, listener.proto, fileno=listener.detach())
        limited.setblocking(False)
        limited.count = count
        return limited

    def accept(self) -> tuple[socket.socket, Any]:
        """As of any socket. Raises `ConnectionAbortedError`, which asyncio expects, for a connection above the
        limit."""
        connection, address = super().accept()
        if not self.count.admits():
            connection.close()
            raise ConnectionAbortedError
        counted = _Counted(connection.family, connection.type, connection.proto, fileno=connection.detach())
        counted.count = self.count
        self.count.add(counted)
        return counted, address


class _Counted(socket.socket):
    """An accepted connection, counted until it is closed."""

    count: ConnectionCount

    def close(self) -> None:
        self.count.remove(self)
        super().close()


@dataclass(slots=True)
class SlowReader:
    """Closes the connection of a client that reads nothing for `seconds` while data is queued for it.

    A protocol calls it in `pause_writing`, `resume_writing` and `connection_lost`.
    """

    transport: asyncio.Transport
    seconds: float = STALL_SECONDS
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)
    _waiting: int = field(default=0, init=False)

    def paused(self) -> None:
        if self._timer is None:
            self._watch()

    def resumed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def allow(self, seconds: float) -> None:
        """Change the limit, in seconds."""
        self.seconds = seconds
        if self._timer is not None:
            self.resumed()
            self._watch()

    def _watch(self) -> None:
        self._waiting = self.transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(self.seconds, self._check)

    def _check(self) -> None:
        self._timer = None
        if self.transport.get_write_buffer_size() < self._waiting:
            self._watch()
        else:
            reset(self.transport)


def reset(transport: asyncio.Transport) -> None:
    """Close a connection and drop unread data, which the system would keep for minutes."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
