"""The local end of a remote command: the terminal or the files that its streams are connected with."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import termios
import tty
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

_PIECE: Final = 64 * 1024


@contextmanager
def raw_terminal() -> Iterator[None]:
    """Set the terminal to raw mode: key presses, also Ctrl-C, are sent to the command at once. The previous mode is
    restored in any case, also where a signal ends the process."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    handlers = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        tty.setraw(fd)
        yield
    finally:
        with suppress(termios.error):  # the terminal may be closed
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def window() -> tuple[int, int]:
    """Columns and rows of the terminal."""
    try:
        size = os.get_terminal_size(sys.stdin.fileno())
    except OSError:
        return 80, 24
    return size.columns, size.lines


@contextmanager
def resized(notify: Callable[[], None]) -> Iterator[None]:
    """Call `notify` whenever the window is resized."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, notify)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


async def typed(fd: int) -> AsyncIterator[bytes]:
    """The data from a file descriptor, until its end."""
    if stat.S_ISREG(os.fstat(fd).st_mode):  # never blocks, and can't be polled
        while data := os.read(fd, _PIECE):
            yield data
            await asyncio.sleep(0)
        return
    loop = asyncio.get_running_loop()
    while True:
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(fd, _set, ready)
        try:
            await ready
        finally:
            loop.remove_reader(fd)
        try:
            data = os.read(fd, _PIECE)
        except OSError:  # the terminal is closed
            return
        if not data:
            return
        yield data


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def emit(fd: int, data: bytes) -> None:
    """Write all data, also to a slow non-blocking descriptor. Raises `BrokenPipeError`."""
    view = memoryview(data)
    while view:
        with suppress(BlockingIOError):
            view = view[os.write(fd, view) :]
