"""Carry connections from a port of this machine's loopback interface into a network namespace.

usage: python -m tests.nodes.forward PORT /proc/PID/ns/net ADDRESS PORT
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from contextlib import suppress
from functools import partial

_CLONE_NEWNET = 0x40000000


def enter(namespace: str) -> None:
    """Everything that this thread opens from now on is in that network namespace; raises OSError."""
    descriptor = os.open(namespace, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), namespace)
    finally:
        os.close(descriptor)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def _carry(address: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        far_reader, far_writer = await asyncio.open_connection(address, port)
    except OSError:
        writer.transport.abort()
        return
    try:
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
    finally:
        far_writer.close()
        writer.close()


async def forward(port: int, namespace: str, address: str, far_port: int) -> None:
    """Serve until cancelled. Raises OSError where the port is taken or the namespace is gone."""
    server = await asyncio.start_server(partial(_carry, address, far_port), "127.0.0.1", port)
    enter(namespace)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(forward(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
