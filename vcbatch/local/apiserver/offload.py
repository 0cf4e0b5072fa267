"""Slow work off the event loop, so that other clients are served meanwhile.

Python's interpreter lock lets the loop's thread run every few milliseconds; the work in a thread takes as long as it
would on the loop, but doesn't block other requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from vcbatch.local.apiserver.registry import RequestContext

T = TypeVar("T")

LARGE = 64 * 1024
"""The size of JSON in bytes from which on work on an object runs in a thread: a few milliseconds on the loop."""
LARGE_YAML = 4 * 1024
"""The same for YAML, which takes far longer to read and write."""


class Offload(Protocol):
    """Runs work elsewhere while the caller waits."""

    async def run(self, work: Callable[[], T]) -> T:
        """Return or raise the result of the work."""
        ...

    def context(self, ctx: RequestContext) -> RequestContext:
        """The context for work that is run: its reads of the store are made on the event loop."""
        ...


class Inline:
    """Runs work on the event loop all the same: for servers in virtual time, whose clock doesn't include threads."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()

    def context(self, ctx: RequestContext) -> RequestContext:
        return replace(ctx, patient=True)


class Threads:
    """Runs work in a few threads. `stop` ends them."""

    def __init__(self, count: int = 2) -> None:
        self._count = count
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="apiserver-work")
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def context(self, ctx: RequestContext) -> RequestContext:
        loop = asyncio.get_running_loop()

        def on_loop(call: Callable[..., Any]) -> Callable[..., Any]:
            async def called(arguments: tuple[Any, ...]) -> Any:
                return call(*arguments)

            return lambda *arguments: asyncio.run_coroutine_threadsafe(called(arguments), loop).result()

        return replace(
            ctx, patient=True, lookup=on_loop(ctx.lookup), listed=on_loop(ctx.listed), used=on_loop(ctx.used)
        )

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
