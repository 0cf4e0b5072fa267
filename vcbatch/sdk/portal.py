"""An event loop on a thread of its own, for callers without one, or with one that is busy (a notebook's)."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any, Generic, TypeVar

from vcbatch.sdk.errors import VcbatchError

T = TypeVar("T")
_AHEAD = 1000
"""The maximum of items that an iterator fetches in advance."""
_CLOSE_SECONDS = 5.0


class Portal:
    """Runs coroutines for other threads until it is closed or garbage-collected. Then it runs `last`."""

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._loop = _LoopThread()
        self._end = weakref.finalize(self, _end, self._loop, last)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result; it is cancelled where the caller is interrupted."""
        return self._loop.run(work)

    def iterate(self, items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """Yield the items of an async generator, which is closed with the iterator."""
        pump = _Pump(items)
        try:
            while batch := self._loop.run(pump.take()):
                yield from batch
        finally:
            self._loop.leave(pump.stop())

    def close(self) -> None:
        self._end()


def _end(loop: _LoopThread, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop.close(last())


class _LoopThread:
    """The thread, which starts when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            loop = self._running()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Run `last`, and end the thread."""
        with self._lock:
            self._closed, loop, thread = True, self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or self._process != os.getpid() or loop.is_closed():
            last.close()
            return
        future = asyncio.run_coroutine_threadsafe(_finally_stop(last), loop)
        if thread is not threading.current_thread():
            with suppress(Exception):
                future.result(_CLOSE_SECONDS)
            thread.join(_CLOSE_SECONDS)

    def leave(self, work: Coroutine[Any, Any, None]) -> None:
        """Schedule work for the end; the garbage collector may call this on any thread."""
        if self._closed or self._loop is None or self._process != os.getpid():
            work.close()
        elif self._thread is threading.current_thread():
            asyncio.run_coroutine_threadsafe(work, self._loop)
        else:
            self.run(work)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise VcbatchError("the client is closed", hint="Make a new one.")
            if self._loop is None:
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="vcbatch client", daemon=True)
                self._thread.start()
            if self._process != os.getpid():
                raise VcbatchError("the client was made before this process was forked", hint="Make a new one here.")
            if self._thread is threading.current_thread():
                raise VcbatchError("the client was called from its own event loop", hint="Use AsyncClient there.")
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _finally_stop(last: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.get_running_loop()
    try:
        await last
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await loop.shutdown_asyncgens()
    finally:
        loop.call_soon(loop.stop)


class _Pump(Generic[T]):
    """Fetches items ahead of their reader, so that not every item needs a switch of threads."""

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        self._items = items
        self._held: deque[T] = deque()
        self._work: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()

    async def take(self) -> list[T]:
        """Return at least one item; none at the end. Raises the error that ended the items."""
        if self._work is None:
            self._work = asyncio.create_task(self._fetch())
        while not self._held:
            if self._work.done():
                self._work.result()
                return []
            self._news.clear()
            await self._news.wait()
        batch = list(self._held)
        self._held.clear()
        self._room.set()
        return batch

    async def _fetch(self) -> None:
        try:
            async for item in self._items:
                while len(self._held) >= _AHEAD:
                    self._room.clear()
                    await self._room.wait()
                self._held.append(item)
                self._news.set()
        finally:
            self._news.set()

    async def stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        await self._items.aclose()
