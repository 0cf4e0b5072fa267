"""Attaching to a running container: its log output, and its standard input where it has one open."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from vcbatch.local.kubelet.session import STDOUT
from vcbatch.local.kubelet.supervisor.container import INPUT_PIPE

_RETRY_SECONDS = 0.02


class InputClosedError(Exception):
    """The container's standard input was closed."""


class Attachment:
    """A `Session` of the container itself: it ends with the container, and its end doesn't affect the container.

    `closed_input` is called when the client has closed the input of a container with `stdinOnce`.
    """

    def __init__(self, log: AsyncGenerator[bytes], *, source: int = -1, closed_input: Callable[[], None]) -> None:
        self._log = log
        self._source = source
        self._closed_input = closed_input

    async def output(self) -> AsyncGenerator[tuple[int, bytes]]:
        async with contextlib.aclosing(self._log) as chunks:
            async for chunk in chunks:
                yield STDOUT, chunk

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self._source < 0:
                raise BrokenPipeError(errno.EPIPE, "the container's standard input is closed")
            try:
                view = view[os.write(self._source, view) :]
            except BlockingIOError:
                await asyncio.sleep(_RETRY_SECONDS)

    def close_input(self) -> None:
        if self._source >= 0:
            os.close(self._source)
            self._source = -1
            self._closed_input()

    def resize(self, *, columns: int, rows: int) -> None:
        """Has no effect: containers have no terminal."""

    async def exit_code(self) -> int:
        """Always 0: attaching succeeds however the container ends; the pod's status has its exit code."""
        return 0

    def end(self) -> None:
        """Has no effect: nothing was started, and the session ends with the container."""

    async def close(self) -> None:
        self.close_input()


def open_input(record: Path) -> int:
    """A descriptor for writing to the standard input of a run; raises `InputClosedError`."""
    try:
        return os.open(record / INPUT_PIPE, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputClosedError("nobody reads it any more") from error


def forget_input(record: Path) -> None:
    """Remove the standard input of this run, so that no client can open it again."""
    with contextlib.suppress(FileNotFoundError):
        (record / INPUT_PIPE).unlink()
