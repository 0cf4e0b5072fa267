"""Blocks writes of a replica that may not lead any more: the last check before the bytes of a request are sent.

A process that was stopped for a while (a debugger, a machine short of memory) continues where it was, with partly sent
requests, before any of its timers fires. So the check has to be made at the very end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.connector import Connection

READS = frozenset({"GET", "HEAD", "OPTIONS"})


def fenced_request(may_write: Callable[[], bool]) -> type[aiohttp.ClientRequest]:
    """A request class for `aiohttp.ClientSession` that closes the connection instead of sending a write where
    `may_write` returns False at that moment."""

    class FencedRequest(aiohttp.ClientRequest):
        async def write_bytes(
            self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
        ) -> None:
            # aiohttp delays the header until the first bytes of the body: up to here nothing has been sent.
            if self.method not in READS and not may_write():
                # Not `conn.close()`: from Python 3.12 on this runs before the response uses the connection.
                if conn.transport is not None:
                    conn.transport.abort()
                return
            await super().write_bytes(writer, conn, content_length)

    return FencedRequest
