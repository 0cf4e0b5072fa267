"""A gate that writes pass only while they may: the last word before a request's bytes leave.

A process that was stopped for a while (a debugger, a machine short of memory) goes on where it was, with requests
half-way out, before any of its timers is looked at. What it may still do has to be asked at the very end.
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
    """A request class for `aiohttp.ClientSession` whose writes close their connection in place of being sent where
    `may_write` says no at that moment."""

    class FencedRequest(aiohttp.ClientRequest):
        async def write_bytes(
            self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
        ) -> None:
            # aiohttp holds the header back until the first bytes of the body: up to here nothing has been sent.
            if self.method not in READS and not may_write():
                # Not `conn.close()`: from Python 3.12 on this runs before the response looks at the connection.
                if conn.transport is not None:
                    conn.transport.abort()
                return
            await super().write_bytes(writer, conn, content_length)

    return FencedRequest
