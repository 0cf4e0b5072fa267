"""The kubelet's end of a command that runs inside a container: its streams as descriptors of the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import pty
import socket
import struct
import termios
from collections.abc import AsyncGenerator
from typing import Any

from vcbatch.interfaces.processes import ProcessStartError

STDOUT, STDERR = 1, 2
_CHUNK = 32 * 1024
_QUEUED = 4  # chunks of output that wait for the client; with more, the command blocks
_END_OF_INPUT = b"\x04"  # what a terminal's user types to end the input


def connect(*, stdin: bool, tty: bool) -> tuple[LocalSession, list[int]]:
    """A session, and the descriptors that the supervisor needs for it: the caller closes them once sent."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.setblocking(False)
    if tty:
        master, slave = pty.openpty()
        given = [theirs.detach(), slave]
        return LocalSession(control, source=master if stdin else -1, outputs={STDOUT: master}, terminal=master), given
    if stdin:
        read_end, source = os.pipe2(os.O_CLOEXEC)
    else:
        read_end, source = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1
    stdout, stdout_write = os.pipe2(os.O_CLOEXEC)
    stderr, stderr_write = os.pipe2(os.O_CLOEXEC)
    given = [theirs.detach(), read_end, stdout_write, stderr_write]
    return LocalSession(control, source=source, outputs={STDOUT: stdout, STDERR: stderr}), given


class LocalSession:
    """A `Session` on pipes, or on a terminal of its own."""

    def __init__(self, control: socket.socket, *, source: int, outputs: dict[int, int], terminal: int = -1) -> None:
        self._control = control
        self._source = source
        self._outputs = outputs
        self._terminal = terminal
        self._exit: asyncio.Task[int] | None = None
        self._closed = False
        for descriptor in {source, *outputs.values()} - {-1}:
            os.set_blocking(descriptor, False)

    async def started(self) -> None:
        """Returns once the command runs; raises `ProcessStartError`."""
        reply = await self._hear()
        if reply is None:
            raise ProcessStartError(128, "the container supervisor has ended")
        if "error" in reply:
            raise ProcessStartError(int(reply["exit_code"]), str(reply["error"]))
        self._exit = asyncio.create_task(self._await_exit(), name="exit of a command")

    async def output(self) -> AsyncGenerator[tuple[int, bytes]]:
        queue: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(_QUEUED)

        async def pump(stream: int, descriptor: int) -> None:
            while chunk := await self._read(descriptor):
                await queue.put((stream, chunk))

        async def pump_all() -> None:
            await asyncio.gather(*(pump(stream, fd) for stream, fd in self._outputs.items()))
            await queue.put(None)

        pumping = asyncio.create_task(pump_all(), name="output of a command")
        try:
            while (piece := await queue.get()) is not None:
                yield piece
        finally:
            pumping.cancel()
            await asyncio.gather(pumping, return_exceptions=True)

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self._source < 0 or self._closed:
                raise BrokenPipeError(errno.EPIPE, "the command's standard input is closed")
            try:
                view = view[os.write(self._source, view) :]
            except BlockingIOError:
                await self._until_writable(self._source)

    def close_input(self) -> None:
        if self._source < 0:
            return
        if self._terminal >= 0:
            with contextlib.suppress(OSError):
                os.write(self._terminal, _END_OF_INPUT)
        else:
            os.close(self._source)
        self._source = -1

    def resize(self, *, columns: int, rows: int) -> None:
        if self._terminal >= 0 and not self._closed:
            set_window(self._terminal, columns=columns, rows=rows)

    async def exit_code(self) -> int:
        assert self._exit is not None  # noqa: S101
        return await asyncio.shield(self._exit)

    def end(self) -> None:
        with contextlib.suppress(OSError):  # ended, or closed
            self._control.shutdown(socket.SHUT_WR)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._exit is not None:
            self._exit.cancel()
            await asyncio.gather(self._exit, return_exceptions=True)
        self._control.close()
        for descriptor in {self._source, *self._outputs.values()} - {-1}:
            os.close(descriptor)
        self._source, self._outputs, self._terminal = -1, {}, -1

    # Descriptors -----------------------------------------------------------------------------------------------------

    async def _await_exit(self) -> int:
        reply = await self._hear()
        return 137 if reply is None else int(reply["exit_code"])

    async def _hear(self) -> dict[str, Any] | None:
        try:
            message = await asyncio.get_running_loop().sock_recv(self._control, 65536)
        except ConnectionError:
            message = b""
        return json.loads(message) if message else None

    async def _read(self, descriptor: int) -> bytes:
        """The next chunk, or b"" at the end: all processes have closed the stream, or the command has ended and nothing
        more can be read now (processes that it left running may keep the stream open)."""
        assert self._exit is not None  # noqa: S101
        while True:
            ended = self._exit.done()
            try:
                return os.read(descriptor, _CHUNK)
            except BlockingIOError:
                if ended:
                    return b""
                await self._until_readable(descriptor, self._exit)
            except OSError as error:
                if error.errno != errno.EIO:  # a terminal that no process has open any more
                    raise
                return b""

    async def _until_readable(self, descriptor: int, ended: asyncio.Future[int]) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, _resolve, ready)
        try:
            await asyncio.wait((ready, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            loop.remove_reader(descriptor)

    async def _until_writable(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_writer(descriptor, _resolve, ready)
        try:
            await ready
        finally:
            loop.remove_writer(descriptor)


def set_window(descriptor: int, *, columns: int, rows: int) -> None:
    """Set the size of a terminal, and notify the programs on it."""
    with contextlib.suppress(OSError):
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
